"""Write KIP-82 messages field by field, so that any field can be invalid."""

from __future__ import annotations

import gzip
import struct
import zlib

GZIP, LOG_APPEND, HAS_HEADERS = 0x01, 0x08, 0x10


def sized(value: bytes | None) -> bytes:
    return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value


def new_message(  # noqa: PLR0913 - the fields of a message
    value: bytes | None,
    *,
    key: bytes | None = None,
    headers: bytes | None = None,
    offset: int = 0,
    attributes: int = 0,
    timestamp: int = 1000,
    magic: int = 2,
    crc: int | None = None,
) -> bytes:
    """Return an entry of magic 2; the flag is set if there are headers, even an empty list."""
    if headers is not None:
        attributes |= HAS_HEADERS
    content = struct.pack(">BBq", magic, attributes, timestamp) + sized(key)
    if headers is not None:
        content += sized(headers)
    content += sized(value)
    right = zlib.crc32(content)
    return struct.pack(">qiI", offset, 4 + len(content), right if crc is None else crc) + content


def new_wrapper(
    *inner: bytes, offset: int = 0, attributes: int = 0, timestamp: int = 3000
) -> bytes:
    value = gzip.compress(b"".join(inner), mtime=0)
    return new_message(value, offset=offset, attributes=GZIP | attributes, timestamp=timestamp)
