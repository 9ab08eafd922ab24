"""Writing message sets, magic 0 and 1: messages one after the other, and wrapper messages."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

from flexwire.errors import EncodeError
from flexwire.records.values import (
    check_size,
    checked_integer,
    checked_nullable_bytes,
    write_each,
)
from flexwire.wire.batch_layout import CRC_SIZE, ENTRY, MESSAGE_CRC_START, NO_VALUE, PREFIXES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.records.record import Record

_NULL = (-1).to_bytes(4, "big", signed=True)


def write_messages(
    records: Sequence[Record], *, magic: int, attributes: int, base_offset: int = 0
) -> bytes:
    """Write a message for each record; their offsets are relative to ``base_offset``.

    Raises `EncodeError` for what the magic has no place for: record headers, and in magic 0 a
    timestamp.
    """

    def write(record: Record) -> bytes:
        timestamp = checked_integer(record.timestamp, 64, "timestamp")
        if magic == 0 and timestamp != NO_VALUE:
            reason = f"magic 0 has no timestamps, so it must be {NO_VALUE}, got {timestamp}"
            raise EncodeError(reason, path="timestamp")
        if record.headers:
            raise EncodeError(f"magic {magic} has no record headers", path="headers")
        offset = checked_integer(record.offset, 64, "offset")
        return write_message(
            checked_integer(offset - base_offset, 64, "offset"),
            checked_nullable_bytes(record.key, "key"),
            checked_nullable_bytes(record.value, "value"),
            magic=magic,
            attributes=attributes,
            timestamp=timestamp,
        )

    return b"".join(write_each(records, write))


def write_message(
    offset: int,
    key: bytes | None,
    value: bytes | None,
    *,
    magic: int,
    attributes: int,
    timestamp: int,
) -> bytes:
    """Write one entry of a message set; the timestamp is left out in magic 0."""
    prefix = PREFIXES[magic]
    size = prefix.size - ENTRY.size + 2 * len(_NULL) + len(key or b"") + len(value or b"")
    check_size(size, "")
    fields = (offset, size, 0, magic, attributes, timestamp)
    entry = prefix.pack(*fields[: 5 + magic])
    content = b"".join((entry[MESSAGE_CRC_START:], *_nullable(key), *_nullable(value)))
    crc = zlib.crc32(content).to_bytes(CRC_SIZE, "big")
    return entry[: MESSAGE_CRC_START - CRC_SIZE] + crc + content


def _nullable(value: bytes | None) -> tuple[bytes, ...]:
    return (_NULL,) if value is None else (len(value).to_bytes(4, "big"), value)
