"""The records in a magic 2 record batch, read and written in Python.

The loop over records is the hot loop of the package. Varints of one byte (and of two, if they are
common) are therefore read inline: a call for each would take longer than all other work for a
record. `flexwire.wire.varint` reads longer varints. A length is compared with the end of the record
before bytes are sliced. If a varint continues beyond that end, the size of the record is invalid,
and the error is detected.

Without kernels, `read_ordinary` and `write_ordinary` are the fast path. These functions accept
ordinary records, and refuse all others without giving a reason. `read_records` and `write_records`
then read or write everything again, and raise any errors. The fast path can therefore skip checks
that the final size makes unnecessary: a length that is too large leads beyond the end of the
record.
"""

# ruff: noqa: PLR2004 - 128 is the continuation bit of a varint, which is used everywhere here
from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

from flexwire.errors import DecodeError, EncodeError, RecordError, short
from flexwire.records.record import (
    Record,
    RecordHeader,
    checked_bytes,
    checked_integer,
    checked_nullable_bytes,
    write_each,
)
from flexwire.wire.batch_layout import LEAST_RECORD, LEAST_RECORD_HEADER, NO_VALUE
from flexwire.wire.limits import GROUP_BITS, INT64_MAX, INT64_MIN, VARINT_BITS, VARLONG_BITS
from flexwire.wire.varint import read_unsigned_varint, write_varint

if TYPE_CHECKING:
    from collections.abc import Sequence


# A delta of 32 bits can be added to such a number without exceeding 64 bits.
_NEAREST, _FARTHEST = INT64_MIN + (1 << 31), INT64_MAX - (1 << 31)
_ATTRIBUTES = b"\x00"
_NULL = write_varint(-1)
# Most lengths, deltas and counts are small, and a table is faster than encoding them.
_SMALL = tuple(write_varint(number) for number in range(512))
_FEW = len(_SMALL)


class Unusual(Exception):  # noqa: N818 - never leaves the package; other code raises the real error
    """A record that is not ordinary, so other code must handle it."""


def read_ordinary(
    data: bytes, start: int, count: int, base_offset: int, base_timestamp: int, budget: int
) -> list[Record]:
    """Read ``count`` records, which must fill ``data`` from ``start`` to its end.

    ``budget`` is the maximum number of record headers. Raises `Unusual` or `IndexError`.
    """
    if not (_NEAREST <= base_offset <= _FARTHEST and _NEAREST <= base_timestamp <= _FARTHEST):
        raise Unusual
    records, end = _read_ordinary(data, start, count, base_offset, base_timestamp, budget)
    if end != len(data):
        raise Unusual
    return records


def _read_ordinary(  # noqa: C901, PLR0912 - one loop without calls: see the docstring of the module
    data: bytes, p: int, count: int, base_offset: int, base_timestamp: int, budget: int
) -> tuple[list[Record], int]:
    records: list[Record] = []
    for _ in range(count):
        n = data[p]
        if n < 128:
            p += 1
        elif 0 < (m := data[p + 1]) < 128:
            n += (m << 7) - 128
            p += 2
        else:
            n, p = _read_wide_varint(data, p)
        # An odd number represents a negative number, as in all lengths.
        odd = n
        stop = p + (n >> 1)
        # The attributes of the record are skipped.
        timestamp = data[p := p + 1]
        timestamp, p = (timestamp, p + 1) if timestamp < 128 else _read_wide_varint(data, p)
        offset = data[p]
        offset, p = (offset, p + 1) if offset < 128 else _read_wide_varint(data, p)
        n = data[p]
        if n == 1:
            key = None
            p += 1
        else:
            n, p = (n, p + 1) if n < 128 else _read_wide_varint(data, p)
            odd |= n
            key = data[p : (p := p + (n >> 1))]
        n = data[p]
        if n == 1:
            value = None
            p += 1
        else:
            if n < 128:
                p += 1
            elif 0 < (m := data[p + 1]) < 128:
                n += (m << 7) - 128
                p += 2
            else:
                n, p = _read_wide_varint(data, p)
            odd |= n
            value = data[p : (p := p + (n >> 1))]
        headers: list[RecordHeader] = []
        if data[p]:
            budget -= data[p] >> 1
            if budget < 0:
                raise Unusual
            p = _read_ordinary_headers(data, p, headers)
        else:
            p += 1
        if p != stop or odd & 1:
            raise Unusual
        offset = base_offset + ((offset >> 1) ^ -(offset & 1))
        timestamp = base_timestamp + ((timestamp >> 1) ^ -(timestamp & 1))
        records.append(Record(offset, timestamp, key, value, headers))
    return records, p


def _read_ordinary_headers(data: bytes, p: int, headers: list[RecordHeader]) -> int:
    append = headers.append
    # If none of these bits is set, a count or length has one byte and is not negative.
    count = data[p]
    if count & 129:
        raise Unusual
    p += 1
    for _ in range(count >> 1):
        n = data[p]
        if n & 129:
            n, p = _read_length(data, p)
        else:
            p += 1
        key = data[p : (p := p + (n >> 1))]
        n = data[p]
        if not n & 129:
            p += 1
        elif n == 1:
            append((key, None))
            p += 1
            continue
        else:
            n, p = _read_length(data, p)
        append((key, data[p : (p := p + (n >> 1))]))
    return p


def _read_length(data: bytes, p: int) -> tuple[int, int]:
    n, p = _read_wide_varint(data, p)
    if n & 1:
        raise Unusual
    return n, p


def _read_wide_varint(data: bytes, p: int) -> tuple[int, int]:
    """Read a 32-bit varint of several bytes. The result stays in zig-zag form."""
    n = data[p]
    if 0 < (m := data[p + 1]) < 128 <= n:
        return n + (m << 7) - 128, p + 2
    try:
        n, p = read_unsigned_varint(data, p, len(data))
    except DecodeError:
        raise Unusual from None
    return n, p


def write_ordinary(
    records: Sequence[Record], base_offset: int, base_timestamp: int
) -> tuple[bytes, int]:
    """Write records, each after its length. Also return the newest timestamp.

    Raises `Unusual`, `AttributeError` or `ValueError`.
    """
    if not (_NEAREST <= base_offset <= _FARTHEST and _NEAREST <= base_timestamp <= _FARTHEST):
        raise Unusual
    body: list[bytes] = []
    newest: list[int] = []
    for record in records:
        timestamp, offset, headers = record.timestamp, record.offset, record.headers
        if not (
            record.__class__ is Record
            and timestamp.__class__ is int
            and offset.__class__ is int
            and headers.__class__ is list
        ):
            raise Unusual
        newest.append(timestamp)
        timestamp -= base_timestamp
        offset -= base_offset
        parts = [
            _ATTRIBUTES,
            _SMALL[timestamp] if 0 <= timestamp < _FEW else _ordinary_delta(timestamp),
            _SMALL[offset] if 0 <= offset < _FEW else _ordinary_delta(offset),
        ]
        for value in (record.key, record.value):
            if value is None:
                parts.append(_NULL)
            elif value.__class__ is bytes:
                parts += (_length(len(value)), value)
            else:
                raise Unusual
        parts.append(_length(len(headers)))
        if headers:
            _write_headers(headers, parts)
        content = b"".join(parts)
        body += (_length(len(content)), content)
    return b"".join(body), max(newest, default=NO_VALUE)


def _write_headers(headers: list[RecordHeader], parts: list[bytes]) -> None:
    for header in headers:
        key, value = header
        if not (header.__class__ is tuple and key.__class__ is bytes):
            raise Unusual
        size = len(key)
        if value is None:
            parts += (_SMALL[size] if size < _FEW else _length(size), key, _NULL)
        elif value.__class__ is bytes:
            parts += (
                _SMALL[size] if size < _FEW else _length(size),
                key,
                _SMALL[len(value)] if len(value) < _FEW else _length(len(value)),
                value,
            )
        else:
            raise Unusual


def _length(size: int) -> bytes:
    return _SMALL[size] if size < _FEW else _ordinary_delta(size)


def _ordinary_delta(delta: int) -> bytes:
    """Write a zig-zag varint of at most 32 bits."""
    raw = delta << 1 if delta >= 0 else -delta * 2 - 1
    if raw < 1 << 14:
        return bytes((raw & 127 | 128, raw >> 7)) if raw > 127 else bytes((raw,))
    if raw < 1 << 21:
        return bytes((raw & 127 | 128, raw >> 7 & 127 | 128, raw >> 14))
    if raw >> 32:
        raise Unusual
    return write_varint(delta)


def read_records(  # noqa: PLR0917 - a kernel with the same arguments may replace this function
    data: bytes,
    start: int,
    count: int,
    base_offset: int,
    base_timestamp: int,
    budget: int,
    append_time: int | None,
) -> list[Record]:
    """Read ``count`` records, which must fill ``data`` from ``start`` to its end.

    ``budget`` is the maximum number of records and record headers, because inflated bytes can
    contain millions of empty records. ``append_time`` replaces every timestamp. Raises
    `RecordError` with an offset in ``data``.
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
    """Return the error for inflated bytes with more records and headers than are allowed."""
    reason = "the batch has too many records or record headers; to allow them, raise max_inflated"
    return RecordError(reason, offset=offset)


def _read_all(  # noqa: C901, PLR0912, PLR0915 - one loop without calls: see the docstring of the module
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
        # The attributes of the record. No bit has a meaning yet, and Kafka ignores all of them.
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


def _read_headers(  # noqa: PLR0912 - as above, this is a loop without calls
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
    """Read a varint of several bytes. The result stays in zig-zag form."""
    m = data[p + 1]
    if 0 < m < 128:
        return data[p] + (m << 7) - 128, p + 2
    if 0 < (k := data[p + 2]) < 128 <= m:
        return data[p] + (m << 7) + (k << 14) - 0x4080, p + 3
    most_bytes = -(-bits // GROUP_BITS)
    return read_unsigned_varint(data, p, len(data), most_bytes=most_bytes, bits=bits)


def _wrong_length(what: str, raw: int, remaining: int, offset: int) -> RecordError:
    """Return the error for ``raw``, a length or count in zig-zag form (odd if it is negative)."""
    declared = (raw >> 1) ^ -(raw & 1)
    unit = "count" if what == "record header" else "length"
    reason = f"{what} {unit} {declared} declared but {max(remaining, 0)} bytes remain"
    return RecordError(reason, offset=offset)


_HEADER_PARTS = 2


def write_records(
    records: Sequence[Record], base_offset: int, base_timestamp: int
) -> tuple[bytes, int]:
    """Write the records, each after its length. Also return the newest timestamp.

    Raises `EncodeError` if a field has an impossible value, if an offset differs from the base
    offset by more than 32 bits, or if a timestamp differs from the base timestamp by more than 64
    bits.
    """
    try:
        return write_ordinary(records, base_offset, base_timestamp)
    except (Unusual, AttributeError, TypeError, ValueError):
        return _write_checked(records, base_offset, base_timestamp)


def _write_checked(
    records: Sequence[Record], base_offset: int, base_timestamp: int
) -> tuple[bytes, int]:
    def write(record: Record) -> bytes:
        content = _write_record(record, base_offset, base_timestamp)
        return _varint(len(content)) + content

    body = b"".join(write_each(records, write))
    return body, max((record.timestamp for record in records), default=NO_VALUE)


def _varint(number: int) -> bytes:
    return _SMALL[number] if 0 <= number < len(_SMALL) else write_varint(number)


def _write_record(record: Record, base_offset: int, base_timestamp: int) -> bytes:
    timestamp = checked_integer(record.timestamp, 64, "timestamp")
    offset = checked_integer(record.offset, 64, "offset")
    headers = record.headers
    if not isinstance(headers, list | tuple):
        raise EncodeError(f"expected a list, got {short(headers)}", path="headers")
    parts = [
        _ATTRIBUTES,
        _delta(timestamp, base_timestamp, 64, "timestamp"),
        _delta(offset, base_offset, 32, "offset"),
        *_nullable(checked_nullable_bytes(record.key, "key")),
        *_nullable(checked_nullable_bytes(record.value, "value")),
        _varint(len(headers)),
    ]
    for index, header in enumerate(headers):
        parts += _header(header, f"headers[{index}]")
    return b"".join(parts)


def _delta(value: int, base: int, bits: int, name: str) -> bytes:
    delta = value - base
    if not -1 << (bits - 1) <= delta < 1 << (bits - 1):
        reason = f"{value} differs by more than {bits} bits from the batch's base {name} {base}"
        raise EncodeError(reason, path=name)
    return _varint(delta)


def _nullable(value: bytes | None) -> tuple[bytes, ...]:
    return (_NULL,) if value is None else (_varint(len(value)), value)


def _header(header: Any, path: str) -> tuple[bytes, ...]:
    if not isinstance(header, tuple | list) or len(header) != _HEADER_PARTS:
        raise EncodeError(f"expected a key and a value, got {short(header)}", path=path)
    key = checked_bytes(header[0], f"{path}.key")
    value = checked_nullable_bytes(header[1], f"{path}.value")
    return _varint(len(key)), key, *_nullable(value)
