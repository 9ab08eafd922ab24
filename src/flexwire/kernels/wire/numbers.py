"""Numbers of fixed width, big-endian on the wire, by their operations."""

from __future__ import annotations

from flexwire.kernels.machine import (
    copy_memory,
    load_int8,
    load_int16,
    load_int32,
    load_int64,
    load_uint8,
    load_uint16,
    load_uint32,
    part,
    store_int8,
    store_int16,
    store_int32,
    store_int64,
    store_word,
)
from flexwire.kernels.memory import inlined, store_int16_native, store_int32_native
from flexwire.kernels.wire.operations import BOOL, INT8, INT16, INT32, UINT16, UINT32, UUID
from flexwire.wire.limits import (
    INT8_MAX,
    INT8_MIN,
    INT16_MAX,
    INT16_MIN,
    INT32_MAX,
    INT32_MIN,
    UINT16_MAX,
    UINT32_MAX,
)

UUID_SIZE = 16


@part
def fixed_size(code: int) -> int:
    """Give the bytes that a value of fixed width takes."""
    if code <= INT8:
        return 1
    if code <= UINT16:
        return 2
    if code <= UINT32:
        return 4
    return UUID_SIZE if code == UUID else 8


@part
def load_number(code: int, position: int) -> int:
    """Load a number of any type, of a double the bits, where its bytes are there."""
    if code == INT32:
        return load_int32(position)
    if code == INT16:
        return load_int16(position)
    if code == INT8:
        return load_int8(position)
    if code == BOOL:
        return load_uint8(position)
    if code == UINT16:
        return load_uint16(position)
    if code == UINT32:
        return load_uint32(position)
    return load_int64(position)


@part
def store_number(code: int, position: int, value: int) -> int:
    """Store a number of any type where there is room for it; gives the position after it."""
    if code <= INT8:
        store_int8(position, value)
        return position + 1
    if code <= UINT16:
        store_int16(position, value)
        return position + 2
    if code <= UINT32:
        store_int32(position, value)
        return position + 4
    store_int64(position, value)
    return position + 8


@part
def is_in_range(code: int, value: int) -> bool:
    """Whether a number of 64 bits is one of an integer type."""
    if code == INT32:
        return INT32_MIN <= value <= INT32_MAX
    if code == INT16:
        return INT16_MIN <= value <= INT16_MAX
    if code == INT8:
        return INT8_MIN <= value <= INT8_MAX
    if code == UINT16:
        return 0 <= value <= UINT16_MAX
    return code != UINT32 or 0 <= value <= UINT32_MAX


@inlined
def turn_two(target: int, source: int) -> None:
    """Copy two numbers of four bytes, and turn the bytes of each."""
    both = load_int64(source)
    store_word(target, (both << 32) | ((both >> 32) & UINT32_MAX))


@part
def turn_numbers(target: int, source: int, count: int, width: int) -> None:
    """Copy the numbers of an array and turn the bytes of each: from the wire or to it."""
    if width == 4:
        for number in range(count):
            store_int32_native(target + 4 * number, load_int32(source + 4 * number))
    elif width == 8:
        for number in range(count):
            store_word(target + 8 * number, load_int64(source + 8 * number))
    elif width == 2:
        for number in range(count):
            store_int16_native(target + 2 * number, load_int16(source + 2 * number))
    else:
        copy_memory(target, source, count)
