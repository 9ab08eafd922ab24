"""Ordinary records, read and written in Python as fast as that goes.

What kernels are to a process that has them, this is to one that has none: it takes what nearly all
records are, and refuses the rest without a word. `flexwire.records.body` and
`flexwire.records.body_writing` then read or write all of it again, and word the errors. So nothing
is checked here that shows at the end: a length that is too long moves beyond the record's end.
"""

# ruff: noqa: PLR2004 - 128 is the bit that says "more follows", and here it is everywhere

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.errors import DecodeError
from flexwire.records.record import Record
from flexwire.wire.batch_layout import NO_VALUE
from flexwire.wire.limits import INT64_MAX, INT64_MIN
from flexwire.wire.varint import read_unsigned_varint, write_varint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.records.record import RecordHeader

# What a delta of 32 bits cannot leave the range of 64 bits from.
_NEAREST, _FARTHEST = INT64_MIN + (1 << 31), INT64_MAX - (1 << 31)
_ATTRIBUTES = b"\x00"
_NULL = write_varint(-1)
# Most lengths, deltas and counts are small, and looking one up is faster than making it.
_SMALL = tuple(write_varint(number) for number in range(512))
_FEW = len(_SMALL)


class Unusual(Exception):  # noqa: N818 - never leaves the room: others say what is wrong, if it is
    """A record is not as nearly all are."""


def read_ordinary(
    data: bytes, start: int, count: int, base_offset: int, base_timestamp: int, budget: int
) -> list[Record]:
    """Read ``count`` records, which must fill ``data`` from ``start`` to its end.

    ``budget`` is the most record headers to make. Raises `Unusual` or `IndexError`.
    """
    if not (_NEAREST <= base_offset <= _FARTHEST and _NEAREST <= base_timestamp <= _FARTHEST):
        raise Unusual
    records, end = _read_all(data, start, count, base_offset, base_timestamp, budget)
    if end != len(data):
        raise Unusual
    return records


def _read_all(  # noqa: C901, PLR0912 - one loop, in place, as there
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
            n, p = _read_wide(data, p)
        # Where it is odd it is negative, as all lengths are.
        odd = n
        stop = p + (n >> 1)
        # The record's attributes are passed by.
        timestamp = data[p := p + 1]
        timestamp, p = (timestamp, p + 1) if timestamp < 128 else _read_wide(data, p)
        offset = data[p]
        offset, p = (offset, p + 1) if offset < 128 else _read_wide(data, p)
        n = data[p]
        if n == 1:
            key = None
            p += 1
        else:
            n, p = (n, p + 1) if n < 128 else _read_wide(data, p)
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
                n, p = _read_wide(data, p)
            odd |= n
            value = data[p : (p := p + (n >> 1))]
        headers: list[RecordHeader] = []
        if data[p]:
            budget -= data[p] >> 1
            if budget < 0:
                raise Unusual
            p = _read_headers(data, p, headers)
        else:
            p += 1
        if p != stop or odd & 1:
            raise Unusual
        offset = base_offset + ((offset >> 1) ^ -(offset & 1))
        timestamp = base_timestamp + ((timestamp >> 1) ^ -(timestamp & 1))
        records.append(Record(offset, timestamp, key, value, headers))
    return records, p


def _read_headers(data: bytes, p: int, headers: list[RecordHeader]) -> int:
    append = headers.append
    # A count or length is of one byte and not negative where none of these bits is set.
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
    n, p = _read_wide(data, p)
    if n & 1:
        raise Unusual
    return n, p


def _read_wide(data: bytes, p: int) -> tuple[int, int]:
    """Read a varint of 32 bits and more than one byte; still in zig-zag form."""
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
    """Write records, each with its length in front; gives the newest timestamp too.

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
            _SMALL[timestamp] if 0 <= timestamp < _FEW else _delta(timestamp),
            _SMALL[offset] if 0 <= offset < _FEW else _delta(offset),
        ]
        for one in (record.key, record.value):
            if one is None:
                parts.append(_NULL)
            elif one.__class__ is bytes:
                parts += (_length(len(one)), one)
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
    return _SMALL[size] if size < _FEW else _delta(size)


def _delta(delta: int) -> bytes:
    """Write a zig-zag varint of at most 32 bits."""
    raw = delta << 1 if delta >= 0 else -delta * 2 - 1
    if raw < 1 << 14:
        return bytes((raw & 127 | 128, raw >> 7)) if raw > 127 else bytes((raw,))
    if raw < 1 << 21:
        return bytes((raw & 127 | 128, raw >> 7 & 127 | 128, raw >> 14))
    if raw >> 32:
        raise Unusual
    return write_varint(delta)
