"""The records inside a magic 2 record batch.

This is the hot loop of the room, so the varints of one byte (and of two, where they are common) are
read in place: a call for each would take longer than all else that a record needs. The others go
through `flexwire.wire.varint`. A length is compared with the record's end before anything is cut
out; varints that run past that end are found when the record turns out to have another size.
"""

# ruff: noqa: PLR2004 - 128 is the bit that says "more follows", and here it is everywhere

from __future__ import annotations

from operator import attrgetter

from flexwire.errors import DecodeError, RecordError
from flexwire.records.ordinary import Unusual, read_ordinary
from flexwire.records.record import Record, RecordHeader
from flexwire.wire.batch_layout import LEAST_RECORD, LEAST_RECORD_HEADER
from flexwire.wire.limits import GROUP_BITS, INT64_MAX, INT64_MIN, VARINT_BITS, VARLONG_BITS
from flexwire.wire.varint import read_unsigned_varint


def read_records(  # noqa: PLR0917 - a kernel stands in for it, and knows no other
    data: bytes,
    start: int,
    count: int,
    base_offset: int,
    base_timestamp: int,
    budget: int,
    append_time: int | None,
) -> list[Record]:
    """Read ``count`` records, which must fill ``data`` from ``start`` to its end.

    ``budget`` is the most records and record headers to make in all: inflated bytes can hold
    millions of empty ones. ``append_time`` replaces every timestamp. Raises `RecordError` with an
    offset within ``data``.
    """
    remaining = len(data) - start
    if not 0 <= count <= remaining // LEAST_RECORD:
        raise RecordError(f"{count} records declared but {remaining} bytes remain", offset=start)
    if count > budget:
        raise over_budget(start)
    try:
        records = read_ordinary(data, start, count, base_offset, base_timestamp, budget - count)
    except (Unusual, IndexError):
        records = _read_checked(data, start, count, base_offset, base_timestamp, budget)
    if append_time is not None:
        for record in records:
            record.timestamp = append_time
    return records


def _read_checked(
    data: bytes, start: int, count: int, base_offset: int, base_timestamp: int, budget: int
) -> list[Record]:
    try:
        records, end = _read_all(data, start, count, base_offset, base_timestamp, budget - count)
    except IndexError:
        raise RecordError("the last record is cut off", offset=len(data)) from None
    except DecodeError as error:
        raise RecordError(error.reason, offset=error.offset or 0) from None
    if end != len(data):
        reason = f"{len(data) - end} bytes remain after the {count} records declared"
        raise RecordError(reason, offset=end)
    for name in ("offset", "timestamp"):
        numbers = list(map(attrgetter(name), records))
        if numbers and not INT64_MIN <= min(numbers) <= max(numbers) <= INT64_MAX:
            raise RecordError(f"the {name} of a record does not fit in 64 bits", offset=start)
    return records


def over_budget(offset: int) -> RecordError:
    """Make the error of inflated bytes that hold more records and headers than are allowed."""
    reason = "the inflated records are too many; if that is meant, raise max_inflated"
    return RecordError(reason, offset=offset)


def _read_all(  # noqa: C901, PLR0912, PLR0915 - one loop, in place: see the module's docstring
    data: bytes, p: int, count: int, base_offset: int, base_timestamp: int, budget: int
) -> tuple[list[Record], int]:
    records: list[Record] = []
    end = len(data)
    for _ in range(count):
        n = data[p]
        if n < 128:
            p += 1
        elif 0 < (m := data[p + 1]) < 128:
            n += (m << 7) - 128
            p += 2
        else:
            n, p = _read_wide(data, p)
        if n & 1 or n >> 1 > end - p:
            raise _wrong_length("record", n, end - p, p)
        stop = p + (n >> 1)
        # The record's attributes: no bit of them has a meaning yet, and Kafka ignores them.
        p += 1
        timestamp = data[p]
        if timestamp < 128:
            p += 1
        else:
            timestamp, p = _read_wide(data, p, VARLONG_BITS)
        offset = data[p]
        if offset < 128:
            p += 1
        else:
            offset, p = _read_wide(data, p)
        if data[p] == 1:
            key = None
            p += 1
        else:
            key, p = _read_bytes(data, p, stop, "key")
        n = data[p]
        if n < 128:
            p += 1
        elif 0 < (m := data[p + 1]) < 128:
            n += (m << 7) - 128
            p += 2
        else:
            n, p = _read_wide(data, p)
        if n == 1:
            value = None
        elif n & 1 or n >> 1 > stop - p:
            raise _wrong_length("value", n, stop - p, p)
        else:
            value = data[p : (p := p + (n >> 1))]
        headers: list[RecordHeader] = []
        if data[p]:
            p = _read_headers(data, p, stop, headers, budget)
            budget -= len(headers)
        else:
            p += 1
        if p != stop:
            raise RecordError(f"the record's size is wrong by {p - stop} bytes", offset=p)
        offset = base_offset + ((offset >> 1) ^ -(offset & 1))
        timestamp = base_timestamp + ((timestamp >> 1) ^ -(timestamp & 1))
        records.append(Record(offset, timestamp, key, value, headers))
    return records, p


def _read_headers(  # noqa: PLR0912 - as above
    data: bytes, p: int, stop: int, headers: list[RecordHeader], budget: int
) -> int:
    count = data[p]
    if count < 128:
        p += 1
    else:
        count, p = _read_wide(data, p)
    if count & 1 or count >> 1 > (stop - p) // LEAST_RECORD_HEADER:
        raise _wrong_length("record header", count, stop - p, p)
    if count >> 1 > budget:
        raise over_budget(p)
    for _ in range(count >> 1):
        n = data[p]
        if n < 128:
            p += 1
        else:
            n, p = _read_wide(data, p)
        if n & 1 or n >> 1 > stop - p:
            raise _wrong_length("record header key", n, stop - p, p)
        key = data[p : (p := p + (n >> 1))]
        n = data[p]
        if n < 128:
            p += 1
        else:
            n, p = _read_wide(data, p)
        if n == 1:
            headers.append((key, None))
        elif n & 1 or n >> 1 > stop - p:
            raise _wrong_length("record header value", n, stop - p, p)
        else:
            headers.append((key, data[p : (p := p + (n >> 1))]))
    return p


def _read_bytes(data: bytes, p: int, stop: int, what: str) -> tuple[bytes, int]:
    n = data[p]
    if n < 128:
        p += 1
    else:
        n, p = _read_wide(data, p)
    if n & 1 or n >> 1 > stop - p:
        raise _wrong_length(what, n, stop - p, p)
    end = p + (n >> 1)
    return data[p:end], end


def _read_wide(data: bytes, p: int, bits: int = VARINT_BITS) -> tuple[int, int]:
    """Read a varint of more than one byte; still in zig-zag form."""
    m = data[p + 1]
    if 0 < m < 128:
        return data[p] + (m << 7) - 128, p + 2
    if 0 < (k := data[p + 2]) < 128 <= m:
        return data[p] + (m << 7) + (k << 14) - 0x4080, p + 3
    most_bytes = -(-bits // GROUP_BITS)
    return read_unsigned_varint(data, p, len(data), most_bytes=most_bytes, bits=bits)


def _wrong_length(what: str, raw: int, remaining: int, offset: int) -> RecordError:
    """``raw`` is a length or count in zig-zag form, odd where it is negative."""
    declared = (raw >> 1) ^ -(raw & 1)
    unit = "count" if what == "record header" else "length"
    reason = f"{what} {unit} {declared} declared but {max(remaining, 0)} bytes remain"
    return RecordError(reason, offset=offset)
