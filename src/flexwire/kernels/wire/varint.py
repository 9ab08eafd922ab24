"""Varints and varlongs, unsigned and zig-zag, read and written by every kernel.

Numbers of 64 bits are the words that have their bits, so an unsigned one may look negative. What is
cut off, overlong or too large is refused, as strictly as `flexwire.wire.varint` does.
"""

from __future__ import annotations

from flexwire.kernels.machine import load_uint8, part, store_int8
from flexwire.kernels.memory import inlined, seldom
from flexwire.wire.limits import (
    GROUP_BITS,
    VARINT_BITS,
    VARINT_BYTES,
    VARLONG_BITS,
    VARLONG_BYTES,
)

# The most that the last group of each can be.
_VARINT_LAST = (1 << VARINT_BITS - GROUP_BITS * (VARINT_BYTES - 1)) - 1
_VARLONG_LAST = (1 << VARLONG_BITS - GROUP_BITS * (VARLONG_BYTES - 1)) - 1
_ALL_BUT_SIGN = 2**63 - 1
# What is left of 64 bits after the first seven.
_REST = 2**57 - 1


@part
def read_groups(position: int, end: int, groups: int, last: int) -> tuple[int, int]:
    """Read a number of at most so many groups of 7 bits, the last of them at most ``last``."""
    raw = 0
    for group in range(groups):
        if position >= end:
            return 0, -1
        byte = load_uint8(position)
        position += 1
        raw |= (byte & 0x7F) << (GROUP_BITS * group)
        if byte < 0x80:
            if (byte == 0 and group > 0) or (byte > last and group == groups - 1):
                return 0, -1
            return raw, position
    return 0, -1


@inlined
def read_varint(position: int, end: int) -> tuple[int, int]:
    """Read an unsigned varint: most have one byte."""
    if position < end:
        byte = load_uint8(position)
        if byte < 0x80:
            return byte, position + 1
    return read_groups(position, end, VARINT_BYTES, _VARINT_LAST)


@inlined
def read_varlong(position: int, end: int) -> tuple[int, int]:
    """Read an unsigned varlong, as the word that has its bits."""
    return read_groups(position, end, VARLONG_BYTES, _VARLONG_LAST)


@inlined
def read_short_groups(position: int, end: int, groups: int, last: int) -> tuple[int, int]:
    """Do what `read_groups` does, for numbers most of which have one byte or two."""
    if position < end:
        byte = load_uint8(position)
        if byte < 0x80:
            return byte, position + 1
        if position + 1 < end:
            second = load_uint8(position + 1)
            if 0 < second < 0x80:
                return (byte & 0x7F) | second << GROUP_BITS, position + 2
    return read_groups(position, end, groups, last)


@inlined
def read_zigzag_varint(position: int, end: int) -> tuple[int, int]:
    """Read a varint that stands for a signed number, and leave it zig-zag; see `signed`."""
    return read_short_groups(position, end, VARINT_BYTES, _VARINT_LAST)


@inlined
def read_zigzag_varlong(position: int, end: int) -> tuple[int, int]:
    """Read a varlong that stands for a signed number, and leave it zig-zag; see `signed`."""
    return read_short_groups(position, end, VARLONG_BYTES, _VARLONG_LAST)


@inlined
def signed(raw: int) -> int:
    """Give the number that a zig-zag one stands for: 0, 1, 2, 3 are 0, -1, 1, -2."""
    return (raw >> 1 & _ALL_BUT_SIGN) ^ -(raw & 1)


@inlined
def zigzag(number: int) -> int:
    """Give the zig-zag form of a signed number."""
    return (number << 1) ^ (number >> 63)


@part
def put_groups(position: int, raw: int) -> int:
    """Write a number in as few groups of 7 bits as it takes; gives how many.

    With a position of 0 nothing is written: the groups are only counted.
    """
    size = 1
    while raw & ~0x7F:
        if position:
            store_int8(position + size - 1, raw & 0x7F | 0x80)
        size += 1
        raw = raw >> GROUP_BITS & _REST
    if position:
        store_int8(position + size - 1, raw)
    return size


@inlined
def write_varint(position: int, raw: int) -> int:
    """Write an unsigned varint or varlong of the word that has its bits."""
    if 0 <= raw <= 0x7F:
        store_int8(position, raw)
        return position + 1
    seldom()
    return position + put_groups(position, raw)


@inlined
def write_zigzag(position: int, number: int) -> int:
    """Write a signed number as a varint or varlong: most have one byte or two."""
    raw = zigzag(number)
    if 0 <= raw <= 0x7F:
        store_int8(position, raw)
        return position + 1
    if 0 <= raw < 1 << 2 * GROUP_BITS:
        store_int8(position, raw & 0x7F | 0x80)
        store_int8(position + 1, raw >> GROUP_BITS)
        return position + 2
    return position + put_groups(position, raw)


@inlined
def zigzag_size(number: int) -> int:
    """Give how many bytes `write_zigzag` writes."""
    raw = zigzag(number)
    if 0 <= raw <= 0x7F:
        return 1
    return 2 if 0 <= raw < 1 << 2 * GROUP_BITS else put_groups(0, raw)


@inlined
def varint_size(raw: int) -> int:
    """Give how many bytes `write_varint` writes."""
    if 0 <= raw <= 0x7F:
        return 1
    seldom()
    return put_groups(0, raw)
