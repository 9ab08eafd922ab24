"""Columns of bytes that records are read into: keys and values, theirs and their headers'."""

from __future__ import annotations

from flexwire.kernels.machine import (
    copy_memory,
    load_int32_native,
    load_word,
    part,
    store_int8,
    store_word,
)
from flexwire.kernels.memory import inlined, store_int32_native
from flexwire.kernels.records.columns_layout import (
    K_CAPACITY,
    K_DATA,
    K_NULLS,
    K_OFFSETS,
    K_VALID,
)


@inlined
def copy_bytes(target: int, source: int, length: int, end: int) -> None:
    """Copy bytes that stand before ``end``; the target has room for `SPARE` more.

    Most keys are short, and two words are copied sooner than a function is called.
    """
    if length <= 16 and end - source >= 16:
        store_word(target, load_word(source))
        store_word(target + 8, load_word(source + 8))
    else:
        copy_memory(target, source, length)


@inlined
def put_bytes(column: int, row: int, start: int, raw: int, end: int) -> None:
    """Copy bytes into a row of a column that has room for them.

    ``raw`` is twice how many there are, and 1 for null, as it stands on the wire. ``end`` is where
    what may be read ends. Rows are put in order: the offset after the last one says where this one
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
    """Whether a column that is wanted has room for as many bytes after its last row."""
    if load_word(column + K_DATA) == 0:
        return True
    used = load_int32_native(load_word(column + K_OFFSETS) + 4 * row)
    return size <= load_word(column + K_CAPACITY) - used
