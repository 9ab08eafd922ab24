"""Puts numbers, varints and the headers of tagged fields on the wire."""

from __future__ import annotations

from flexwire.columnar.kernels.layout import (
    BUFFER,
    C_NEED,
    C_OUT,
    FULL,
    INT8,
    INT16,
    INT32,
    INTERLEAVED,
    UINT16,
    UINT32,
)
from flexwire.columnar.kernels.memory import inlined, load_int16_native, seldom
from flexwire.columnar.kernels.parts import spread
from flexwire.native.machine import (
    copy_memory,
    load_int32_native,
    load_word,
    part,
    store_int8,
    store_int16,
    store_int32,
    store_int64,
    store_word,
)

# What each operation has room for before it begins: more than any number and any header takes.
SLACK = 64


@part
def long_varint(target: int, value: int) -> int:
    """Write an unsigned varint of two bytes or more, or only measure it where ``target`` is 0."""
    size = 1
    while value < 0 or value > 0x7F:
        if target:
            store_int8(target + size - 1, (value & 0x7F) | 0x80)
        size += 1
        value = (value >> 7) & 0x01FFFFFFFFFFFFFF
    if target:
        store_int8(target + size - 1, value)
    return size


@inlined
def put_varint(target: int, value: int) -> int:
    """Write an unsigned varint or varlong of the word that has its bits; gives its size.

    A ``target`` of 0 is none: the varint is only measured.
    """
    if value < 0 or value > 0x7F:
        seldom()
        return long_varint(target, value)
    if target:
        store_int8(target, value)
    return 1


@part
def put_header(target: int, form: int, tag: int, size: int) -> int:
    """Write what stands before the value of a tagged field; gives its size. See `put_varint`."""
    if form == INTERLEAVED:
        return put_varint(target, (spread(tag) << 1) | spread(size))
    if form == BUFFER:
        length = put_varint(target, 2 * size)
        if target:
            store_int16(target + length, tag)
        return length + 2
    length = put_varint(target, tag)
    return length + put_varint(target + length if target else 0, size)


@part
def is_number(code: int, value: int) -> bool:
    """Whether a number of a wide column is in the range of its type."""
    if code == INT8:
        return -0x80 <= value <= 0x7F
    if code == INT16:
        return -0x8000 <= value <= 0x7FFF
    if code == UINT16:
        return 0 <= value <= 0xFFFF
    if code == INT32:
        return -0x80000000 <= value <= 0x7FFFFFFF
    return code != UINT32 or 0 <= value <= 0xFFFFFFFF


@part
def write_number(target: int, code: int, value: int) -> None:
    """Write a number of any type."""
    if code == INT8:
        store_int8(target, value)
    elif code == INT16 or code == UINT16:
        store_int16(target, value)
    elif code == INT32 or code == UINT32:
        store_int32(target, value)
    else:
        store_int64(target, value)


@part
def number_size(code: int) -> int:
    """Give how many bytes a number takes on the wire."""
    if code == INT8:
        return 1
    if code == INT16 or code == UINT16:
        return 2
    return 4 if code == INT32 or code == UINT32 else 8


@part
def turn_numbers(target: int, source: int, count: int, width: int) -> None:
    """Write the numbers of an array."""
    if width == 4:
        for number in range(count):
            store_int32(target + 4 * number, load_int32_native(source + 4 * number))
    elif width == 8:
        for number in range(count):
            store_int64(target + 8 * number, load_word(source + 8 * number))
    elif width == 2:
        for number in range(count):
            store_int16(target + 2 * number, load_int16_native(source + 2 * number))
    else:
        copy_memory(target, source, count)


@part
def grow_output(call: int, at: int, length: int) -> int:
    """Ask for room for ``length`` bytes more, and what an operation needs besides."""
    store_word(call + C_NEED, at - load_word(call + C_OUT) + length + SLACK)
    return FULL
