"""Reads the records that most are into columns, sooner than `columns_reading` reads any.

Their lengths and deltas have at most three bytes, no more than 63 record headers follow, and after
each there is memory that may be read: so numbers are loaded before it is known where they end, and
texts copied some words at a time. What was found is put at once, into rows that count only when the
whole record was. A record that is not like that is left to `columns_reading`, which begins it anew.
"""

from __future__ import annotations

from flexwire.kernels.machine import (
    copy_memory,
    load_int32_native,
    load_uint8,
    load_word,
    part,
    store_int8,
    store_word,
)
from flexwire.kernels.memory import CHUNK, copy_chunk, inlined, seldom, store_int32_native
from flexwire.kernels.records.columns_layout import (
    B_ATTRIBUTES,
    B_BASE_OFFSET,
    B_BASE_TIMESTAMP,
    B_BUDGET,
    B_END,
    B_MAX_TIMESTAMP,
    B_POSITION,
    B_START,
    FIRST_MILLISECOND,
    K_DATA,
    K_NULLS,
    K_OFFSETS,
    K_VALID,
    LAST_MILLISECOND,
    R_CHECK,
    R_DATA,
    R_DATA_END,
    R_HEADER_KEY,
    R_HEADER_OFFSETS,
    R_HEADER_VALUE,
    R_HEADERS,
    R_KEY,
    R_OFFSETS,
    R_TIMESTAMPS,
    R_VALUE,
    SPARE,
)
from flexwire.kernels.records.crc import prefetch
from flexwire.kernels.wire.varint import signed
from flexwire.wire.batch_layout import HEADER_SIZE, NO_VALUE, TIMESTAMP_TYPE_MASK

# No delta of three bytes reaches it.
_MOST_DELTA = 2**20
# A longer text is copied by the system, which is soonest then.
_LONG = 512
# While records are read, as much of what follows is fetched for its crc, a line at a time.
_MOST_AHEAD, _LINE = 1 << 18, 64
# A count of record headers in one byte: even, as it is not negative, and no second byte follows.
_NO_COUNT = 0x81


@inlined
def read_short(position: int) -> tuple[int, int, bool]:
    """Read a zig-zag number of at most three bytes; eight are loaded.

    Gives it as it stands, the position after it, and False if it is longer or overlong.
    """
    word = load_word(position)
    if word & 0x80 == 0:
        return word & 0x7F, position + 1, True
    if word & 0x8000 == 0:
        high = word & 0x7F00
        if high == 0:
            seldom()
            return 0, 0, False
        return word & 0x7F | high >> 1, position + 2, True
    seldom()
    high = word & 0x7F0000
    if word & 0x800000 == 0 and high != 0:
        return word & 0x7F | (word & 0x7F00) >> 1 | high >> 2, position + 3, True
    return 0, 0, False


@inlined
def copy_text(target: int, source: int, length: int) -> None:
    """Copy bytes: `SPARE` more of them may be read, and as many written."""
    if length > _LONG:
        seldom()
        copy_memory(target, source, length)
        return
    copy_chunk(target, source)
    if length > CHUNK:
        copy_chunk(target + CHUNK, source + CHUNK)
        done = SPARE
        while done < length:
            copy_chunk(target + done, source + done)
            copy_chunk(target + done + CHUNK, source + done + CHUNK)
            done += SPARE


@inlined
def take_text(
    column: int, row: int, used: int, position: int, stop: int
) -> tuple[int, int, int, bool]:
    """Put a key or value, if it is wanted, into a row of a column that has ``used`` bytes so far.

    Gives 1 for null and otherwise an even number, the position after it, and the bytes that the
    column has then. False where its length is not short, or it does not end before ``stop``.
    """
    raw, position, is_short = read_short(position)
    data, ends = load_word(column + K_DATA), load_word(column + K_OFFSETS) + 4 * row + 4
    if not is_short:
        return 0, 0, 0, False
    if raw & 1:
        if raw != 1:
            seldom()
            return 0, 0, 0, False
        if data != 0:
            store_int8(load_word(column + K_VALID) + row, 0)
            store_word(column + K_NULLS, load_word(column + K_NULLS) + 1)
            store_int32_native(ends, used)
        return raw, position, used, True
    length = raw >> 1
    if length >= stop - position:
        seldom()
        return 0, 0, 0, False
    if data != 0:
        store_int8(load_word(column + K_VALID) + row, 1)
        copy_text(data + used, position, length)
        used += length
        store_int32_native(ends, used)
    return raw, position + length, used, True


@inlined
def used_of(column: int, row: int) -> int:
    """Give how many bytes a column has before a row; 0 where it is not wanted."""
    if load_word(column + K_DATA) == 0:
        return 0
    return load_int32_native(load_word(column + K_OFFSETS) + 4 * row)


@inlined
def take_headers(  # noqa: PLR0917 - numbers, which a kernel is given one by one
    call: int, position: int, stop: int, count: int, row: int, keys: int, values: int
) -> tuple[int, int, int, int]:
    """Put record headers, ``count`` being twice as many, into rows from ``row`` on.

    Gives the position after them, row, and the bytes of both columns; not ``stop`` if one is
    refused.
    """
    while count != 0:
        count -= 2
        key, at, keys, is_common = take_text(call + R_HEADER_KEY, row, keys, position, stop)
        if not is_common or key & 1:
            return 0, row, keys, values
        # A value may be the last of a record.
        _, position, values, is_common = take_text(call + R_HEADER_VALUE, row, values, at, stop + 1)
        if not is_common:
            return 0, row, keys, values
        row += 1
    return position, row, keys, values


@inlined
def take_deltas(
    call: int, row: int, position: int, base_offset: int, base_timestamp: int, mask: int
) -> tuple[int, bool]:
    """Put the moment and the offset of a record, where these are wanted; gives the position after.

    ``mask`` is 0 where all records have the base timestamp.
    """
    delta, position, is_short = read_short(position)
    timestamps, offsets = load_word(call + R_TIMESTAMPS), load_word(call + R_OFFSETS)
    if not is_short:
        return 0, False
    if timestamps != 0:
        timestamp = base_timestamp + (signed(delta) & mask)
        store_word(timestamps + 8 * row, 1000 * timestamp)
        if timestamp == NO_VALUE:
            seldom()
            return 0, False
    delta, position, is_short = read_short(position)
    if not is_short:
        return 0, False
    if offsets != 0:
        store_word(offsets + 8 * row, base_offset + signed(delta))
    return position, True


@inlined
def fetch(position: int, stop: int) -> None:
    """Have memory fetched, which may not be there."""
    while position < stop:
        prefetch(position)
        position += _LINE


@part
def timestamp_of(batch: int) -> tuple[int, int]:
    """Give what records' timestamps count from, and a mask for their deltas."""
    if load_word(batch + B_ATTRIBUTES) & TIMESTAMP_TYPE_MASK:
        return load_word(batch + B_MAX_TIMESTAMP), 0
    return load_word(batch + B_BASE_TIMESTAMP), -1


@part
def common_end(call: int, batch: int) -> int:
    """Give where records end that may be read here: `SPARE` before what must not be read.

    That is the end of the data, unless they were inflated. 0 for a batch that may have timestamps
    beyond all moments, or more records and headers than its budget.
    """
    start, end = load_word(batch + B_START), load_word(batch + B_END)
    base, _ = timestamp_of(batch)
    is_moment = FIRST_MILLISECOND + _MOST_DELTA <= base <= LAST_MILLISECOND - _MOST_DELTA
    if not is_moment or load_word(batch + B_BUDGET) < end - start:
        return 0
    if start != load_word(call + R_DATA) + load_word(batch + B_POSITION) + HEADER_SIZE:
        return end - SPARE
    return min(end, load_word(call + R_DATA_END) - SPARE)


@part
def read_common(
    call: int, batch: int, row: int, last: int, position: int, end: int
) -> tuple[int, int]:
    """Read records into rows from ``row`` to ``last``, up to one that is not common.

    None of them ends after ``end``; see `common_end`. Gives the row and the position after them.
    """
    if position > end:
        return row, position
    base_offset = load_word(batch + B_BASE_OFFSET)
    base_timestamp, mask = timestamp_of(batch)
    header_offsets, header_row = load_word(call + R_HEADER_OFFSETS), load_word(call + R_HEADERS)
    keys, values = used_of(call + R_KEY, row), used_of(call + R_VALUE, row)
    header_keys = used_of(call + R_HEADER_KEY, header_row)
    header_values = used_of(call + R_HEADER_VALUE, header_row)
    ahead = load_word(batch + B_END) - load_word(batch + B_START)
    ahead = min(ahead, _MOST_AHEAD) if load_word(call + R_CHECK) else 0
    while row < last:
        raw, at, is_common = read_short(position)
        stop = at + (raw >> 1)
        if not is_common or raw & 1 or stop > end:
            break
        if ahead:
            fetch(position + ahead, stop + ahead)
        # No bit of a record's attributes has a meaning yet.
        at, is_common = take_deltas(call, row, at + 1, base_offset, base_timestamp, mask)
        if not is_common:
            break
        _, at, keys, is_common = take_text(call + R_KEY, row, keys, at, stop)
        if not is_common:
            break
        _, at, values, is_common = take_text(call + R_VALUE, row, values, at, stop)
        if not is_common:
            break
        count = load_uint8(at)
        if count & _NO_COUNT:
            break
        at, header_row, header_keys, header_values = take_headers(
            call, at + 1, stop, count, header_row, header_keys, header_values
        )
        if at != stop:
            break
        row, position = row + 1, stop
        if header_offsets != 0:
            store_int32_native(header_offsets + 4 * row, header_row)
            store_word(call + R_HEADERS, header_row)
    return row, position
