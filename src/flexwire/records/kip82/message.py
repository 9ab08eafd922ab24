"""A KIP-82 message: like a message of magic 1, with another magic and optional headers."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from typing import NamedTuple

from flexwire.errors import DecodeError, RecordError
from flexwire.records.headers import Headers
from flexwire.records.record import COMPRESSIONS, Compression, TimestampType, check_size
from flexwire.wire.batch_layout import (
    COMPRESSION_MASK,
    CRC_SIZE,
    ENTRY,
    MESSAGE_CRC_START,
    PREFIXES,
    TIMESTAMP_TYPE_MASK,
)
from flexwire.wire.cursor import Reader, Writer
from flexwire.wire.types import INT32, NULLABLE_BYTES

MAGIC = 2
# The compression types at the time of the document, in the order of their numbers.
KNOWN_COMPRESSIONS = COMPRESSIONS[: COMPRESSIONS.index(Compression.ZSTD)]
# "Use Bit 4 as boolean flag for if headers present"
_HEADERS_MASK = 0x10
_KNOWN_MASK = COMPRESSION_MASK | TIMESTAMP_TYPE_MASK | _HEADERS_MASK
# The fields before the key are the same as in magic 1.
_PREFIX = PREFIXES[1]
_LENGTH_SIZE = 4


@dataclass(slots=True)
class Kip82Message:
    """A message with its offset. The object corresponds to a `Record` with typed headers.

    ``timestamp`` is in milliseconds since the epoch, or -1 if there is none. ``timestamp_type`` is
    ``NoTimestampType`` for messages of magic 0.
    """

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = field(default_factory=Headers)
    timestamp_type: TimestampType = TimestampType.CREATE_TIME


class Kip82Entry(NamedTuple):
    """An entry of a message set as it is stored. The offset of the entry may be relative."""

    offset: int
    crc: int
    attributes: int
    timestamp: int
    key: bytes | None
    headers: bytes
    value: bytes | None

    @property
    def compression(self) -> Compression:
        """The compression type of the value. A message with compression is a wrapper."""
        return KNOWN_COMPRESSIONS[self.attributes & COMPRESSION_MASK]

    @property
    def timestamp_type(self) -> TimestampType:
        """The source of the timestamp."""
        if self.attributes & TIMESTAMP_TYPE_MASK:
            return TimestampType.LOG_APPEND_TIME
        return TimestampType.CREATE_TIME


def read_entry(data: bytes) -> Kip82Entry:
    """Read the message of magic 2 in ``data``. The crc is not checked.

    Raises `RecordError`, with an offset in ``data``, for an invalid length, for attributes that are
    not in the document, and for a flag that announces headers of zero bytes, which no writer would
    set.
    """
    reader = Reader(data)
    reader.path = ["message"]
    try:
        offset, _, crc, _, attributes, timestamp = map(int, reader.unpack(_PREFIX, "the prefix"))
        _check_attributes(attributes)
        reader.path = ["key"]
        key = NULLABLE_BYTES.read(reader)
        headers = b""
        if attributes & _HEADERS_MASK:
            reader.path = ["headers"]
            headers = _read_headers(reader)
        reader.path = ["value"]
        value = NULLABLE_BYTES.read(reader)
        if reader.remaining:
            raise reader.error(f"{reader.remaining} bytes remain after the value")
    except DecodeError as error:
        raise RecordError(f"{error.path}: {error.reason}", offset=error.offset or 0) from None
    return Kip82Entry(offset, crc, attributes, timestamp, key, headers, value)


def _read_headers(reader: Reader) -> bytes:
    start = reader.position
    length = INT32.read(reader)
    if length < 1:
        raise reader.error(f"the headers flag is set, but the headers have length {length}", start)
    return reader.take(length)


def _check_attributes(attributes: int) -> None:
    unknown = attributes & ~_KNOWN_MASK
    number = attributes & COMPRESSION_MASK
    if unknown:
        raise RecordError(f"attributes {attributes:#04x} have bits that KIP-82 does not define")
    if number >= len(KNOWN_COMPRESSIONS):
        raise RecordError(f"KIP-82 does not define compression type {number}")


def write_entry(
    offset: int,
    key: bytes | None,
    value: bytes | None,
    *,
    attributes: int,
    timestamp: int,
    headers: bytes,
) -> bytes:
    """Write a message of magic 2, with its flag for headers and its crc.

    Raises `EncodeError` if the message is too large for its size field.
    """
    contents = [key, headers, value] if headers else [key, value]
    size = (
        _PREFIX.size - ENTRY.size + sum(_LENGTH_SIZE + len(content or b"") for content in contents)
    )
    check_size(size, "")
    writer = Writer()
    for content in contents:
        NULLABLE_BYTES.write(writer, content)
    attributes |= _HEADERS_MASK if headers else 0
    prefix = _PREFIX.pack(offset, size, 0, MAGIC, attributes, timestamp)
    checked = prefix[MESSAGE_CRC_START:] + writer.buffer
    crc = zlib.crc32(checked).to_bytes(CRC_SIZE, "big")
    return prefix[: MESSAGE_CRC_START - CRC_SIZE] + crc + checked
