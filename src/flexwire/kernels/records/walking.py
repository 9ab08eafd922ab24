"""Walks records of magic 2, whatever becomes of them: what stands where, and whether it can.

Each length is compared with the bytes that remain of the record before it is used. A position of -1
is what is refused. The words of a call begin as `columns_layout` says for reading.
"""

from __future__ import annotations

from flexwire.kernels.machine import load_uint8, load_word, part, store_word
from flexwire.kernels.memory import inlined
from flexwire.kernels.records.columns_layout import (
    B_CRC,
    B_POSITION,
    B_SIZE,
    R_CHECK,
    R_DATA,
    R_HEADER_KEY,
    R_HEADER_OFFSETS,
    R_HEADER_VALUE,
    R_HEADERS,
    R_HIGHEST_OFFSET,
    R_HIGHEST_TIME,
    R_LOWEST_OFFSET,
    R_LOWEST_TIME,
)
from flexwire.kernels.records.columns_parts import put_bytes
from flexwire.kernels.records.crc import crc_of
from flexwire.kernels.wire.varint import read_zigzag_varint, read_zigzag_varlong, signed
from flexwire.wire.batch_layout import CRC_START, LEAST_RECORD, LEAST_RECORD_HEADER
from flexwire.wire.limits import INT64_MAX, INT64_MIN

_HALF = 2**62


@inlined
def read_extent(position: int, stop: int) -> tuple[int, int, int]:
    """Find a key or value; gives where it begins, twice its length or 1 for null, where it ends."""
    if position < 0:
        return 0, 0, -1
    raw, position = read_zigzag_varint(position, stop)
    length = raw >> 1
    if position < 0 or length > stop - position or (raw & 1 and length > 0):
        return 0, 0, -1
    return position, raw, position + length


@inlined
def read_headers(call: int, position: int, stop: int, count: int, budget: int, end: int) -> int:
    """Read the record headers of one record; gives the position after them, -1 where refused."""
    if count > (stop - position) // LEAST_RECORD_HEADER or count > budget:
        return -1
    row = load_word(call + R_HEADERS)
    wanted = load_word(call + R_HEADER_OFFSETS) != 0
    for _ in range(count):
        key, key_size, position = read_extent(position, stop)
        if position < 0 or key_size & 1:
            return -1
        value, value_size, position = read_extent(position, stop)
        if position < 0:
            return -1
        if wanted:
            put_bytes(call + R_HEADER_KEY, row, key, key_size, end)
            put_bytes(call + R_HEADER_VALUE, row, value, value_size, end)
            row += 1
    store_word(call + R_HEADERS, row)
    return position


@inlined
def is_common(number: int) -> bool:
    """Whether a number is small enough that the sum of two such fits in 64 bits."""
    return -_HALF <= number < _HALF


@inlined
def read_deltas(position: int, stop: int) -> tuple[int, int, int]:
    """Read the timestamp delta and the offset delta; gives the position after them too."""
    timestamp_delta, position = read_zigzag_varlong(position, stop)
    if position < 0:
        return 0, 0, -1
    offset_delta, position = read_zigzag_varint(position, stop)
    return signed(timestamp_delta), signed(offset_delta), position


@inlined
def count_headers(position: int, stop: int) -> tuple[int, int]:
    """Read how many record headers there are; mostly none."""
    if position < 0 or position >= stop:
        return 0, -1
    if load_uint8(position) == 0:
        return 0, position + 1
    raw, position = read_zigzag_varint(position, stop)
    count = signed(raw)
    return (count, position) if count >= 0 else (0, -1)


@inlined
def read_record(
    call: int, position: int, end: int, budget: int
) -> tuple[int, int, int, int, int, int, int, int]:
    """Read a record; its headers go where they are wanted, no more of them than ``budget``.

    Gives the timestamp delta, the offset delta, the key and the value as `read_extent` does, how
    many headers there are, and the position after all of it.
    """
    raw, position = read_zigzag_varint(position, end)
    length = signed(raw)
    if position < 0 or length < LEAST_RECORD - 1 or length > end - position:
        return 0, 0, 0, 0, 0, 0, 0, -1
    stop = position + length
    # No bit of a record's attributes has a meaning yet.
    delta, offset_delta, position = read_deltas(position + 1, stop)
    key, key_size, position = read_extent(position, stop)
    value, value_size, position = read_extent(position, stop)
    headers, position = count_headers(position, stop)
    if position < 0 or not is_common(delta):
        return 0, 0, 0, 0, 0, 0, 0, -1
    if headers > 0:
        position = read_headers(call, position, stop, headers, budget, end)
    if position != stop:
        position = -1
    return delta, offset_delta, key, key_size, value, value_size, headers, position


@part
def is_wanted(call: int, offset: int, timestamp: int) -> bool:
    """Whether a record is in the ranges."""
    return load_word(call + R_LOWEST_OFFSET) <= offset <= load_word(
        call + R_HIGHEST_OFFSET
    ) and load_word(call + R_LOWEST_TIME) <= timestamp <= load_word(call + R_HIGHEST_TIME)


@part
def wants_all(call: int) -> bool:
    """Whether the ranges have no ends."""
    return (
        load_word(call + R_LOWEST_OFFSET) == INT64_MIN
        and load_word(call + R_HIGHEST_OFFSET) == INT64_MAX
        and load_word(call + R_LOWEST_TIME) == INT64_MIN
        and load_word(call + R_HIGHEST_TIME) == INT64_MAX
    )


@part
def is_intact(call: int, batch: int) -> bool:
    """Whether the crc of a batch is that of its bytes, if that is asked."""
    if load_word(call + R_CHECK) == 0:
        return True
    start = load_word(call + R_DATA) + load_word(batch + B_POSITION)
    crc = crc_of(start + CRC_START, start + load_word(batch + B_SIZE))
    return crc == load_word(batch + B_CRC)
