"""Parts that the record kernels share: varints, and columns of bytes.

A part that reads gives what it read and the position behind it; -1 for that position where
`flexwire.records.body` would refuse or is to be asked.
"""

from __future__ import annotations

from flexwire.columnar.kernels.memory import inlined, store_int32_native
from flexwire.columnar.record_kernels.layout import (
    K_CAPACITY,
    K_DATA,
    K_NULLS,
    K_OFFSETS,
    K_VALID,
    SPARE,
)
from flexwire.native.machine import (
    copy_memory,
    load_int32_native,
    load_uint8,
    load_word,
    part,
    store_int8,
    store_word,
)
from flexwire.native.records_machine import (
    GROUPS_32,
    GROUPS_64,
    LAST_32,
    LAST_64,
    read_wide,
)


@inlined
def read_varint(position: int, end: int) -> tuple[int, int]:
    """Read a zig-zag varint of 32 bits."""
    raw, position = read_raw(position, end)
    return (raw >> 1) ^ -(raw & 1), position


@inlined
def read_raw(position: int, end: int) -> tuple[int, int]:
    """Read a zig-zag varint of 32 bits, and leave it so; most have one byte or two."""
    if position < end:
        byte = load_uint8(position)
        if byte < 0x80:
            return byte, position + 1
        if position + 1 < end:
            second = load_uint8(position + 1)
            if 0 < second < 0x80:
                return (byte & 0x7F) | second << 7, position + 2
    number, position = read_wide(position, end, GROUPS_32, LAST_32)
    return (number << 1) ^ (number >> 63), position


@inlined
def read_varlong(position: int, end: int) -> tuple[int, int]:
    """Read a zig-zag varint of 64 bits; most have one byte or two."""
    if position < end:
        byte = load_uint8(position)
        if byte < 0x80:
            return (byte >> 1) ^ -(byte & 1), position + 1
        if position + 1 < end:
            second = load_uint8(position + 1)
            if 0 < second < 0x80:
                raw = (byte & 0x7F) | second << 7
                return (raw >> 1) ^ -(raw & 1), position + 2
    return read_wide(position, end, GROUPS_64, LAST_64)


@inlined
def copy_bytes(target: int, source: int, length: int, end: int) -> None:
    """Copy bytes that stand before ``end``; the target has room for `SPARE` more.

    Most keys are short, and two words are copied sooner than a function is called.
    """
    if length <= SPARE and end - source >= SPARE:
        store_word(target, load_word(source))
        store_word(target + 8, load_word(source + 8))
    else:
        copy_memory(target, source, length)


@inlined
def put_bytes(column: int, row: int, start: int, raw: int, end: int) -> None:
    """Copy bytes into a row of a column that has room for them.

    ``raw`` is twice how many there are, and 1 for null, as it stands on the wire. ``end`` is where
    what may be read ends. Rows are put in order: the offset behind the last one says where this one
    begins.
    """
    data = load_word(column + K_DATA)
    if data == 0:
        return
    offsets = load_word(column + K_OFFSETS)
    used = load_int32_native(offsets + 4 * row)
    if raw & 1:
        store_int8(load_word(column + K_VALID) + row, 0)
        store_word(column + K_NULLS, load_word(column + K_NULLS) + 1)
        store_int32_native(offsets + 4 * row + 4, used)
        return
    length = raw >> 1
    store_int8(load_word(column + K_VALID) + row, 1)
    copy_bytes(data + used, start, length, end)
    store_int32_native(offsets + 4 * row + 4, used + length)


@part
def has_room(column: int, row: int, size: int) -> bool:
    """Whether a column that is wanted has room for as many bytes behind its last row."""
    if load_word(column + K_DATA) == 0:
        return True
    used = load_int32_native(load_word(column + K_OFFSETS) + 4 * row)
    return size <= load_word(column + K_CAPACITY) - used
