"""Message sets, magic 0 and 1: a sequence of messages, each with its offset and size.

A compressed message is a wrapper: its value inflates to another message set. In magic 1 the inner
offsets are relative, and the wrapper contains the real offset of the last inner message.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, NamedTuple

from flexwire.errors import EncodeError, RecordError
from flexwire.records.body import over_budget
from flexwire.records.record import (
    Record,
    check_size,
    checked_integer,
    checked_nullable_bytes,
    write_each,
)
from flexwire.wire.batch_layout import (
    COMPRESSION_MASK,
    CRC_SIZE,
    ENTRY,
    LEAST_SIZES,
    MAGIC_AT,
    MESSAGE_CRC_START,
    NO_VALUE,
    PREFIXES,
)
from flexwire.wire.limits import INT64_MAX, INT64_MIN

if TYPE_CHECKING:
    from collections.abc import Sequence


_LENGTH_SIZE = 4


class MessageEntry(NamedTuple):
    """One entry of a message set. ``offset`` is the stored offset, which may be relative."""

    offset: int
    crc: int
    magic: int
    attributes: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def read_message(data: bytes, start: int, stop: int) -> MessageEntry:
    """Read the message between ``start`` and ``stop`` in ``data``. The crc is not checked.

    Raises `RecordError` with an offset in ``data``.
    """
    magic = data[start + MAGIC_AT]
    if magic > 1:
        raise RecordError(f"a message set cannot contain magic {magic}", offset=start)
    layout = PREFIXES[magic]
    # There must be room for both lengths, as the reads below assume.
    if stop - start < layout.size + 2 * _LENGTH_SIZE:
        raise RecordError(f"{stop - start} bytes are too few for a message", offset=start)
    offset, _, crc, _, attributes, *timestamp = layout.unpack_from(data, start)
    key, position = _read_nullable_bytes(data, start + layout.size, stop, "key")
    value, position = _read_nullable_bytes(data, position, stop, "value")
    if position != stop:
        raise RecordError(f"{stop - position} bytes remain after the value", offset=position)
    when = timestamp[0] if timestamp else NO_VALUE
    return MessageEntry(offset, crc, magic, attributes, when, key, value)


def _read_nullable_bytes(
    data: bytes, position: int, stop: int, what: str
) -> tuple[bytes | None, int]:
    if stop - position < _LENGTH_SIZE:
        raise RecordError(f"the {what} length is cut off", offset=position)
    start = position + _LENGTH_SIZE
    length = int.from_bytes(data[position:start], "big", signed=True)
    if length == -1:
        return None, start
    if not 0 <= length <= stop - start:
        reason = f"{what} length {length} declared but {stop - start} bytes remain"
        raise RecordError(reason, offset=position)
    return data[start : start + length], start + length


def wrapped_bytes(wrapper: MessageEntry) -> bytes:
    """Return the compressed message set of a wrapper. Raises `RecordError` for a null value."""
    if wrapper.value is None:
        raise RecordError("a wrapper message has a null value")
    return wrapper.value


def read_inner_records(
    data: bytes, wrapper: MessageEntry, *, append_time: int | None, check_crc: bool, budget: int
) -> list[Record]:
    """Read the inflated message set of a wrapper. ``append_time`` replaces every timestamp.

    ``budget`` is the maximum number of records. Raises `RecordError` with an offset within
    ``data``.
    """
    messages: list[MessageEntry] = []
    position = 0
    while position < len(data):
        start = position
        remaining = len(data) - start
        size = ENTRY.unpack_from(data, start)[1] if remaining >= ENTRY.size else 0
        if not LEAST_SIZES[0] <= size + ENTRY.size <= remaining:
            raise RecordError("an inner message is cut off", offset=start)
        position += ENTRY.size + size
        message = read_message(data, start, position)
        _check_inner(data[start:position], message, wrapper, start, check_crc=check_crc)
        messages.append(message)
        if len(messages) > budget:
            raise over_budget(start)
    if not messages:
        raise RecordError("a wrapper message has no inner messages")
    base = _absolute_base(wrapper, messages[-1])
    records = [
        Record(
            base + message.offset,
            message.timestamp if append_time is None else append_time,
            message.key,
            message.value,
            [],
        )
        for message in messages
    ]
    if not all(INT64_MIN <= record.offset <= INT64_MAX for record in records):
        raise RecordError("the offset of a record does not fit in 64 bits")
    return records


def _check_inner(
    entry: bytes, message: MessageEntry, wrapper: MessageEntry, start: int, *, check_crc: bool
) -> None:
    if message.magic != wrapper.magic:
        reason = (
            f"a message with magic value {message.magic} is inside a wrapper message with magic "
            f"value {wrapper.magic}"
        )
        raise RecordError(reason, offset=start)
    if message.attributes & COMPRESSION_MASK:
        raise RecordError("a message inside a wrapper message is itself compressed", offset=start)
    if check_crc:
        check_message_crc(entry, message.crc, start)


def check_message_crc(entry: bytes, crc: int, offset: int) -> None:
    """Check the crc of a whole message set entry. Raises `RecordError` at ``offset``."""
    actual = zlib.crc32(memoryview(entry)[MESSAGE_CRC_START:])
    if actual != crc:
        raise RecordError(
            f"the declared crc is {crc:#010x}, but the actual crc is {actual:#010x}", offset=offset
        )


def _absolute_base(wrapper: MessageEntry, last: MessageEntry) -> int:
    # In magic 0 the inner offsets are absolute. Some versions of librdkafka produce magic 1 with a
    # wrapper at offset 0, which for Kafka means that no offsets are assigned yet.
    if wrapper.magic == 0 or wrapper.offset == 0:
        return 0
    return wrapper.offset - last.offset


_NULL = (-1).to_bytes(4, "big", signed=True)


def write_messages(
    records: Sequence[Record], *, magic: int, attributes: int, base_offset: int = 0
) -> bytes:
    """Write a message for each record. The offsets are relative to ``base_offset``.

    Raises `EncodeError` for values that the magic does not support: record headers and, in magic 0,
    timestamps.
    """

    def write(record: Record) -> bytes:
        timestamp = checked_integer(record.timestamp, 64, "timestamp")
        if magic == 0 and timestamp != NO_VALUE:
            reason = f"magic 0 has no timestamps: expected {NO_VALUE}, got {timestamp}"
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
    """Write one entry of a message set. In magic 0, the timestamp is left out."""
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
