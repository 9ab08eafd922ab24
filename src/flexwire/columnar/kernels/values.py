"""What a column holds and the wire carries: numbers, lengths, and the headers of tagged fields."""

from __future__ import annotations

from flexwire.columnar.kernels.layout import (
    BOOL,
    BUFFER,
    INT8,
    INT16,
    INT32,
    INTERLEAVED,
    O_COMPACT,
    O_NULLABLE,
    UINT16,
    UINT32,
)
from flexwire.columnar.kernels.memory import inlined, store_int16_native, store_int32_native
from flexwire.columnar.kernels.parts import gather, read_varint, read_varlong
from flexwire.native.machine import (
    copy_memory,
    load_int8,
    load_int16,
    load_int32,
    load_int64,
    load_uint8,
    load_uint16,
    load_uint32,
    load_word,
    part,
    store_word,
)

LONGEST = 2**31 - 1


@inlined
def turn_two(target: int, source: int) -> None:
    """Copy two numbers of four bytes, and turn the bytes of each."""
    both = load_int64(source)
    store_word(target, (both << 32) | ((both >> 32) & 0xFFFFFFFF))


@part
def copy_numbers(target: int, source: int, count: int, width: int) -> None:
    """Copy the numbers of an array, and turn their bytes to this machine's order."""
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


@part
def read_number(code: int, position: int, end: int) -> tuple[int, int]:
    """Read a number of any type, for a column that is wider than the type needs."""
    width = 8
    if code == INT8 or code == BOOL:
        width = 1
    elif code == INT16 or code == UINT16:
        width = 2
    elif code == INT32 or code == UINT32:
        width = 4
    if width > end - position:
        return 0, -1
    if code == INT8:
        return load_int8(position), position + 1
    if code == INT16:
        return load_int16(position), position + 2
    if code == UINT16:
        return load_uint16(position), position + 2
    if code == INT32:
        return load_int32(position), position + 4
    if code == UINT32:
        return load_uint32(position), position + 4
    return load_int64(position), position + 8


@inlined
def read_length(operation: int, width: int, position: int, end: int) -> tuple[int, int]:
    """Read a length or count, -1 for null where that may be."""
    if load_word(operation + O_COMPACT):
        if position < end and load_uint8(position) < 0x80:
            length = load_uint8(position) - 1
            position += 1
        else:
            length, position = read_varint(position, end)
            length -= 1
    elif width > end - position:
        return 0, -1
    else:
        length = load_int16(position) if width == 2 else load_int32(position)
        position += width
    if length > LONGEST or length < -1 or (length < 0 and not load_word(operation + O_NULLABLE)):
        return 0, -1
    return length, position


@part
def read_tag(form: int, position: int, end: int) -> tuple[int, int, int]:
    """Read the tag and size before a tagged field; -1 for the tag where a buffer ends."""
    if form == INTERLEAVED:
        header, position = read_varlong(position, end)
        return gather(header >> 1), gather(header), position
    first, position = read_varint(position, end)
    if position < 0:
        return 0, 0, -1
    if form == BUFFER:
        size = (first >> 1) ^ -(first & 1)
        if size == 0:
            return -1, 0, position
        if size < 0 or 2 > end - position:
            return 0, 0, -1
        tag = load_int16(position)
        return tag, size, position + 2 if tag >= 0 else -1
    size, position = read_varint(position, end)
    return first, size, position


@part
def is_among(tag: int, tags: int, count: int) -> bool:
    """Whether a tag is one of some."""
    for number in range(count):
        if load_word(tags + 8 * number) == tag:
            return True
    return False
