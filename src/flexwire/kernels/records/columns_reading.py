"""Reads the records of record batches into columns.

Before a batch is begun every column has room for all its bytes, so that nothing has to be asked
within it. Each length is compared with the bytes that remain of the record before it is used. What
is out of the ordinary is refused: the batch is taken back, and `flexwire.records` is asked.
"""

from __future__ import annotations

from flexwire.kernels.machine import kernel, load_word, part, store_word
from flexwire.kernels.memory import inlined, store_int32_native
from flexwire.kernels.records.columns_common import common_end, read_common
from flexwire.kernels.records.columns_layout import (
    B_ATTRIBUTES,
    B_BASE_OFFSET,
    B_BASE_TIMESTAMP,
    B_BUDGET,
    B_COUNT,
    B_END,
    B_MAX_TIMESTAMP,
    B_ROWS,
    B_SKIP,
    B_START,
    BATCH,
    DONE,
    FIRST_MILLISECOND,
    GROW,
    LAST_MILLISECOND,
    NO_MOMENT,
    R_BATCHES,
    R_FIRST,
    R_HEADER_KEY,
    R_HEADER_OFFSETS,
    R_HEADER_VALUE,
    R_HEADERS,
    R_HEADERS_CAPACITY,
    R_KEY,
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
from flexwire.kernels.records.walking import (
    is_common,
    is_intact,
    is_wanted,
    read_record,
    wants_all,
)
from flexwire.wire.batch_layout import (
    LEAST_RECORD,
    LEAST_RECORD_HEADER,
    NO_VALUE,
    TIMESTAMP_TYPE_MASK,
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
    first, last = row, row + count
    common = common_end(call, batch) if wants else 0
    while count > 0:
        if common:
            row, position = read_common(call, batch, row, last, position, common)
            count = last - row
            if count == 0:
                break
        count -= 1
        before = load_word(call + R_HEADERS)
        delta, offset_delta, key, key_size, value, value_size, headers, position = read_record(
            call, position, end, budget
        )
        if position < 0:
            return False
        budget -= headers
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
    store_word(batch + B_ROWS, row - first)
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
