"""Writes records from columns, as the records of a record batch.

A record is measured before it is written, and room is asked for once. Offsets that point outside of
a column, and a delta that does not fit, are refused.
"""

from __future__ import annotations

from flexwire.kernels.machine import (
    kernel,
    load_int32_native,
    load_uint8,
    load_word,
    part,
    store_int8,
    store_word,
)
from flexwire.kernels.memory import copy_bytes, inlined
from flexwire.kernels.records.columns_layout import (
    DONE,
    EXTENT,
    GROW,
    REFUSED,
    V_BIT,
    V_DATA,
    V_OFFSETS,
    V_SIZE,
    V_VALID,
    W_BASE_OFFSET,
    W_BASE_TIMESTAMP,
    W_BATCHES,
    W_CAPACITY,
    W_EACH,
    W_FIRST,
    W_GAP,
    W_HEADER_KEY,
    W_HEADER_OFFSETS,
    W_HEADER_VALUE,
    W_HEADERS,
    W_KEY,
    W_OFFSETS,
    W_OUT,
    W_ROWS,
    W_TABLE,
    W_TIMESTAMPS,
    W_USED,
    W_VALUE,
)
from flexwire.kernels.wire.lengths import NULL
from flexwire.kernels.wire.varint import write_zigzag, zigzag_size
from flexwire.wire.limits import INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN

_WRONG = -2


@inlined
def is_difference(value: int, base: int) -> bool:
    """Whether the difference of two numbers fits in 64 bits."""
    if base >= 0:
        return value >= INT64_MIN + base
    return value <= INT64_MAX + base


@inlined
def length_of(column: int, row: int) -> int:
    """Give the length of a row of a column of bytes: -1 for null, -2 for an impossible one."""
    valid = load_word(column + V_VALID)
    if valid != 0:
        bit = load_word(column + V_BIT) + row
        if not load_uint8(valid + (bit >> 3)) >> (bit & 7) & 1:
            return NULL
    offsets = load_word(column + V_OFFSETS) + 4 * row
    start, end = load_int32_native(offsets), load_int32_native(offsets + 4)
    if start < 0 or start > end or end > load_word(column + V_SIZE):
        return _WRONG
    return end - start


@inlined
def measure_bytes(length: int) -> int:
    """Give how many bytes a length and what it counts take."""
    return zigzag_size(length) + max(length, 0)


@inlined
def write_bytes(position: int, column: int, row: int, length: int) -> int:
    """Write a row of a column of bytes, as long as `length_of` says; gives the position after."""
    position = write_zigzag(position, length)
    if length > 0:
        start = load_int32_native(load_word(column + V_OFFSETS) + 4 * row)
        copy_bytes(position, load_word(column + V_DATA) + start, length)
        position += length
    return position


@part
def measure_headers(call: int, first: int, last: int) -> int:
    """Give how many bytes record headers take; -1 where they cannot be written."""
    size = 0
    for header in range(first, last):
        key = length_of(call + W_HEADER_KEY, header)
        value = length_of(call + W_HEADER_VALUE, header)
        if key < 0 or value == _WRONG:
            return -1
        size += measure_bytes(key) + measure_bytes(value)
    return size


@part
def write_record(call: int, row: int) -> int:
    """Write the record of a row: DONE, GROW, or REFUSED."""
    timestamp, base_timestamp = (
        load_word(load_word(call + W_TIMESTAMPS) + 8 * row),
        load_word(call + W_BASE_TIMESTAMP),
    )
    offset, base_offset = (
        load_word(load_word(call + W_OFFSETS) + 8 * row),
        load_word(call + W_BASE_OFFSET),
    )
    if not (is_difference(timestamp, base_timestamp) and is_difference(offset, base_offset)):
        return REFUSED
    timestamp_delta, offset_delta = timestamp - base_timestamp, offset - base_offset
    key, value = length_of(call + W_KEY, row), length_of(call + W_VALUE, row)
    if offset_delta < INT32_MIN or offset_delta > INT32_MAX or key < NULL or value < NULL:
        return REFUSED
    first = last = 0
    header_offsets = load_word(call + W_HEADER_OFFSETS)
    if header_offsets != 0:
        first = load_int32_native(header_offsets + 4 * row)
        last = load_int32_native(header_offsets + 4 * row + 4)
        if first < 0 or first > last or last > load_word(call + W_HEADERS):
            return REFUSED
    headers = measure_headers(call, first, last)
    if headers < 0:
        return REFUSED
    size = 1 + zigzag_size(timestamp_delta) + zigzag_size(offset_delta)
    size += measure_bytes(key) + measure_bytes(value) + zigzag_size(last - first) + headers
    used = load_word(call + W_USED)
    if size > INT32_MAX:
        return REFUSED
    whole = zigzag_size(size) + size
    if whole > load_word(call + W_CAPACITY) - used:
        return GROW
    position = write_zigzag(load_word(call + W_OUT) + used, size)
    store_int8(position, 0)
    position = write_zigzag(position + 1, timestamp_delta)
    position = write_zigzag(position, offset_delta)
    position = write_bytes(position, call + W_KEY, row, key)
    position = write_bytes(position, call + W_VALUE, row, value)
    position = write_zigzag(position, last - first)
    for header in range(first, last):
        for column in (call + W_HEADER_KEY, call + W_HEADER_VALUE):
            position = write_bytes(position, column, header, length_of(column, header))
    store_word(call + W_USED, used + whole)
    return DONE


@part
def write_batch(call: int, first: int, last: int) -> int:
    """Write the records of one batch: DONE, GROW, or REFUSED."""
    store_word(call + W_BASE_OFFSET, load_word(load_word(call + W_OFFSETS) + 8 * first))
    store_word(call + W_BASE_TIMESTAMP, load_word(load_word(call + W_TIMESTAMPS) + 8 * first))
    for row in range(first, last):
        status = write_record(call, row)
        if status != DONE:
            return status
    return DONE


@kernel
def write(call: int, _unused: int, _also_unused: int) -> int:
    """Write the rows from W_FIRST to W_ROWS; W_FIRST is then the first whose batch is not written.

    DONE, or GROW where there is no room for that batch, or REFUSED where it cannot be written.
    """
    rows = load_word(call + W_ROWS)
    gap = load_word(call + W_GAP)
    while load_word(call + W_FIRST) < rows:
        first, used = load_word(call + W_FIRST), load_word(call + W_USED)
        last = min(first + load_word(call + W_EACH), rows)
        if gap > load_word(call + W_CAPACITY) - used:
            return GROW
        store_word(call + W_USED, used + gap)
        status = write_batch(call, first, last)
        if status != DONE:
            store_word(call + W_USED, used)
            return status
        batches = load_word(call + W_BATCHES)
        extent = load_word(call + W_TABLE) + EXTENT * batches
        store_word(extent, used)
        store_word(extent + 8, load_word(call + W_USED))
        store_word(call + W_BATCHES, batches + 1)
        store_word(call + W_FIRST, last)
    return DONE
