"""Reads the records of record batches into columns.

Before a batch is begun every column has room for all its bytes, so that nothing has to be asked
within it. Each length is compared with the bytes that remain of the record before it is used. What
is out of the ordinary is refused: the batch is taken back, and `flexwire.records` is asked.
"""

from __future__ import annotations

from flexwire.kernels.machine import kernel, load_uint8, load_word, part, store_word
from flexwire.kernels.memory import inlined, store_int32_native
from flexwire.kernels.records.columns_layout import (
    B_ATTRIBUTES,
    B_BASE_OFFSET,
    B_BASE_TIMESTAMP,
    B_BUDGET,
    B_COUNT,
    B_CRC,
    B_END,
    B_MAX_TIMESTAMP,
    B_POSITION,
    B_ROWS,
    B_SIZE,
    B_SKIP,
    B_START,
    BATCH,
    DONE,
    FIRST_MILLISECOND,
    GROW,
    LAST_MILLISECOND,
    NO_MOMENT,
    R_BATCHES,
    R_CHECK,
    R_DATA,
    R_FIRST,
    R_HEADER_KEY,
    R_HEADER_OFFSETS,
    R_HEADER_VALUE,
    R_HEADERS,
    R_HEADERS_CAPACITY,
    R_HIGHEST_OFFSET,
    R_HIGHEST_TIME,
    R_KEY,
    R_LOWEST_OFFSET,
    R_LOWEST_TIME,
    R_NO_MOMENTS,
    R_OFFSETS,
    R_ROWS,
    R_ROWS_CAPACITY,
    R_TABLE,
    R_TIMESTAMPS,
    R_VALUE,
    REFUSED,
)
from flexwire.kernels.records.columns_parts import has_room, put_bytes
from flexwire.kernels.records.crc import crc_of
from flexwire.kernels.wire.varint import read_zigzag_varint, read_zigzag_varlong, signed
from flexwire.wire.batch_layout import (
    CRC_START,
    LEAST_RECORD,
    LEAST_RECORD_HEADER,
    NO_VALUE,
    TIMESTAMP_TYPE_MASK,
)
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


@inlined
def put_numbers(call: int, row: int, offset: int, timestamp: int) -> None:
    """Put a record's offset, and the moment that its timestamp is, where these are wanted."""
    offsets, timestamps = load_word(call + R_OFFSETS), load_word(call + R_TIMESTAMPS)
    if offsets != 0:
        store_word(offsets + 8 * row, offset)
    if timestamps != 0:
        moment = 1000 * timestamp
        if not FIRST_MILLISECOND <= timestamp <= LAST_MILLISECOND or timestamp == NO_VALUE:
            moment = NO_MOMENT
            store_word(call + R_NO_MOMENTS, load_word(call + R_NO_MOMENTS) + 1)
        store_word(timestamps + 8 * row, moment)


@part
def read_batch(call: int, batch: int) -> bool:
    """Read the records of one batch, for which there is room; False where it is refused."""
    position, end = load_word(batch + B_START), load_word(batch + B_END)
    count, budget = load_word(batch + B_COUNT), load_word(batch + B_BUDGET)
    base_offset = load_word(batch + B_BASE_OFFSET)
    base_timestamp = load_word(batch + B_BASE_TIMESTAMP)
    is_append_time = load_word(batch + B_ATTRIBUTES) & TIMESTAMP_TYPE_MASK != 0
    header_offsets = load_word(call + R_HEADER_OFFSETS)
    row, wants = load_word(call + R_ROWS), wants_all(call)
    if count < 0 or count > (end - position) // LEAST_RECORD or count > budget:
        return False
    if not (is_common(base_offset) and is_common(base_timestamp)):
        return False
    budget -= count
    for _ in range(count):
        raw, position = read_zigzag_varint(position, end)
        length = signed(raw)
        if position < 0 or length < LEAST_RECORD - 1 or length > end - position:
            return False
        stop = position + length
        # No bit of a record's attributes has a meaning yet.
        delta, offset_delta, position = read_deltas(position + 1, stop)
        key, key_size, position = read_extent(position, stop)
        value, value_size, position = read_extent(position, stop)
        headers, position = count_headers(position, stop)
        if position < 0 or not is_common(delta):
            return False
        before = load_word(call + R_HEADERS)
        if headers > 0:
            position = read_headers(call, position, stop, headers, budget, end)
            budget -= headers
        if position != stop:
            return False
        offset, timestamp = base_offset + offset_delta, base_timestamp + delta
        if is_append_time:
            timestamp = load_word(batch + B_MAX_TIMESTAMP)
        if wants or is_wanted(call, offset, timestamp):
            put_numbers(call, row, offset, timestamp)
            put_bytes(call + R_KEY, row, key, key_size, end)
            put_bytes(call + R_VALUE, row, value, value_size, end)
            row += 1
            if header_offsets != 0:
                store_int32_native(header_offsets + 4 * row, load_word(call + R_HEADERS))
        else:
            drop_headers(call, before)
    store_word(batch + B_ROWS, row - load_word(call + R_ROWS))
    store_word(call + R_ROWS, row)
    return position == end


@part
def drop_headers(call: int, headers: int) -> None:
    """Take back record headers; their nulls stay counted, which only costs a look."""
    store_word(call + R_HEADERS, headers)


@part
def has_room_for(call: int, batch: int) -> bool:
    """Whether every column has room for all that a batch could hold."""
    size = load_word(batch + B_END) - load_word(batch + B_START)
    rows = load_word(call + R_ROWS)
    headers = load_word(call + R_HEADERS)
    return (
        # One that has more is refused.
        min(load_word(batch + B_COUNT), size // LEAST_RECORD)
        <= load_word(call + R_ROWS_CAPACITY) - rows
        and size // LEAST_RECORD_HEADER <= load_word(call + R_HEADERS_CAPACITY) - headers
        and has_room(call + R_KEY, rows, size)
        and has_room(call + R_VALUE, rows, size)
        and has_room(call + R_HEADER_KEY, headers, size)
        and has_room(call + R_HEADER_VALUE, headers, size)
    )


@part
def is_intact(call: int, batch: int) -> bool:
    """Whether the crc of a batch is that of its bytes, if that is asked."""
    if load_word(call + R_CHECK) == 0:
        return True
    start = load_word(call + R_DATA) + load_word(batch + B_POSITION)
    crc = crc_of(start + CRC_START, start + load_word(batch + B_SIZE))
    return crc == load_word(batch + B_CRC)


@kernel
def read(call: int, _unused: int, _also_unused: int) -> int:
    """Read the batches from R_FIRST to R_BATCHES; R_FIRST is then the first that is not read.

    DONE, or GROW where a column is too small for that batch, or REFUSED where it is refused.
    """
    table = load_word(call + R_TABLE)
    while load_word(call + R_FIRST) < load_word(call + R_BATCHES):
        batch = table + BATCH * load_word(call + R_FIRST)
        if load_word(batch + B_SKIP) == 0:
            if not has_room_for(call, batch):
                return GROW
            rows, headers = load_word(call + R_ROWS), load_word(call + R_HEADERS)
            if not (is_intact(call, batch) and read_batch(call, batch)):
                # Offsets and columns beyond these are written anew.
                store_word(call + R_ROWS, rows)
                store_word(call + R_HEADERS, headers)
                store_word(batch + B_ROWS, 0)
                return REFUSED
        store_word(call + R_FIRST, load_word(call + R_FIRST) + 1)
    return DONE
