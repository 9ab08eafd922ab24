"""Writing the records inside a magic 2 record batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexwire.errors import EncodeError, short
from flexwire.records.ordinary import Unusual, write_ordinary
from flexwire.records.values import (
    checked_bytes,
    checked_integer,
    checked_nullable_bytes,
    write_each,
)
from flexwire.wire.batch_layout import NO_VALUE
from flexwire.wire.varint import write_varint

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.records.record import Record

_ATTRIBUTES = b"\x00"
_NULL = write_varint(-1)
# Most lengths, deltas and counts are small, and looking one up is faster than making it.
_SMALL = tuple(write_varint(number) for number in range(512))
_HEADER_PARTS = 2


def write_records(
    records: Sequence[Record], base_offset: int, base_timestamp: int
) -> tuple[bytes, int]:
    """Write the records, each with its length in front; gives the newest timestamp too.

    Raises `EncodeError` where a field holds what it cannot, where the offset is further than 32
    bits from the base offset, and where the timestamp is further than 64 from the base timestamp.
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
        reason = f"{value} is further than {bits} bits from the batch's base {name} {base}"
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
