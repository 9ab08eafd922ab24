"""What stands before the value of a tagged field, in the three forms of KIP-482."""

from __future__ import annotations

from flexwire.kernels.machine import load_int16, load_word, part, store_int16
from flexwire.kernels.memory import inlined
from flexwire.kernels.wire.operations import BUFFER, INTERLEAVED
from flexwire.kernels.wire.varint import (
    read_varint,
    read_varlong,
    signed,
    varint_size,
    write_varint,
    zigzag,
)

TAG_WIDTH = 2
"""The bytes of a tag in an optional field buffer."""


@part
def gather(value: int) -> int:
    """Bring every second bit of a word together, from the lowest on: 32 bits."""
    value &= 0x5555555555555555
    value = (value | (value >> 1)) & 0x3333333333333333
    value = (value | (value >> 2)) & 0x0F0F0F0F0F0F0F0F
    value = (value | (value >> 4)) & 0x00FF00FF00FF00FF
    value = (value | (value >> 8)) & 0x0000FFFF0000FFFF
    return (value | (value >> 16)) & 0xFFFFFFFF


@part
def spread(value: int) -> int:
    """Put the 32 bits of a number into every second bit of a word."""
    value = (value | (value << 16)) & 0x0000FFFF0000FFFF
    value = (value | (value << 8)) & 0x00FF00FF00FF00FF
    value = (value | (value << 4)) & 0x0F0F0F0F0F0F0F0F
    value = (value | (value << 2)) & 0x3333333333333333
    return (value | (value << 1)) & 0x5555555555555555


@part
def read_header(form: int, position: int, end: int) -> tuple[int, int, int]:
    """Read the tag and size before a tagged field; -1 for the tag where a buffer ends."""
    if form == INTERLEAVED:
        header, position = read_varlong(position, end)
        return gather(header >> 1), gather(header), position
    first, position = read_varint(position, end)
    if position < 0:
        return 0, 0, -1
    if form == BUFFER:
        size = signed(first)
        if size == 0:
            return -1, 0, position
        if size < 0 or end - position < TAG_WIDTH:
            return 0, 0, -1
        tag = load_int16(position)
        return tag, size, position + TAG_WIDTH if tag >= 0 else -1
    size, position = read_varint(position, end)
    return first, size, position


@part
def write_header(position: int, form: int, tag: int, size: int) -> int:
    """Write what stands before the value of a tagged field."""
    if form == INTERLEAVED:
        return write_varint(position, (spread(tag) << 1) | spread(size))
    if form == BUFFER:
        position = write_varint(position, zigzag(size))
        store_int16(position, tag)
        return position + TAG_WIDTH
    return write_varint(write_varint(position, tag), size)


@part
def header_size(form: int, tag: int, size: int) -> int:
    """Give how many bytes `write_header` writes."""
    if form == INTERLEAVED:
        return varint_size((spread(tag) << 1) | spread(size))
    if form == BUFFER:
        return varint_size(zigzag(size)) + TAG_WIDTH
    return varint_size(tag) + varint_size(size)


@inlined
def likely_header(form: int) -> int:
    """Give how many bytes most headers take; room for them is left before a value is written."""
    return 1 + TAG_WIDTH if form == BUFFER else 2


@part
def is_among(tag: int, tags: int, count: int) -> bool:
    """Whether a tag is one of the words from an address on."""
    for number in range(count):
        if load_word(tags + 8 * number) == tag:
            return True
    return False
