"""Write record batches and messages field by field, so that any field can be invalid."""

from __future__ import annotations

import struct
import zlib
from typing import TypeAlias

import google_crc32c

from flexwire.wire.varint import write_varint

Headers: TypeAlias = list[tuple[bytes, bytes | None]]
MAX_TIMESTAMP = 2000
GZIP, SNAPPY, LZ4, ZSTD = 1, 2, 3, 4


def nullable(value: bytes | None) -> bytes:
    return write_varint(-1) if value is None else write_varint(len(value)) + value


def record(
    offset_delta: int = 0,
    timestamp_delta: int = 0,
    key: bytes | None = None,
    value: bytes | None = None,
    headers: Headers | None = None,
) -> bytes:
    content = b"\x00" + write_varint(timestamp_delta) + write_varint(offset_delta)
    content += nullable(key) + nullable(value) + write_varint(len(headers or []))
    content += b"".join(nullable(name) + nullable(content_) for name, content_ in headers or [])
    return write_varint(len(content)) + content


def batch(
    body: bytes,
    count: int,
    *,
    attributes: int = 0,
    base_offset: int = 0,
    last_offset_delta: int | None = None,
    base_timestamp: int = 1000,
    magic: int = 2,
) -> bytes:
    last = max(count - 1, 0) if last_offset_delta is None else last_offset_delta
    after_crc = struct.pack(">hiqq", attributes, last, base_timestamp, MAX_TIMESTAMP)
    after_crc += struct.pack(">qhii", 7, 3, 11, count) + body
    crc = google_crc32c.value(after_crc)
    header = struct.pack(">qiibI", base_offset, 9 + len(after_crc), 5, magic, crc)
    return header + after_crc


def message(
    value: bytes | None,
    *,
    key: bytes | None = None,
    magic: int = 1,
    offset: int = 0,
    attributes: int = 0,
    timestamp: int = 1000,
) -> bytes:
    content = struct.pack(">bb", magic, attributes)
    if magic:
        content += struct.pack(">q", timestamp)
    for part in (key, value):
        content += struct.pack(">i", -1) if part is None else struct.pack(">i", len(part)) + part
    return struct.pack(">qiI", offset, 4 + len(content), zlib.crc32(content)) + content


# The fields of a record after its length, each with a valid value.
_RIGHT = {
    "attributes": b"\x00",
    "timestamp delta": b"\x00",
    "offset delta": b"\x00",
    "key": nullable(b"k"),
    "value": nullable(b"v"),
    "header count": write_varint(1),
    "header key": nullable(b"h"),
    "header value": nullable(b"w"),
}


def with_part(part: str, wrong: bytes) -> bytes:
    """Return a batch with one record, one part of which is the given value."""
    content = b"".join(wrong if name == part else right for name, right in _RIGHT.items())
    return batch(write_varint(len(content)) + content, 1)


PARTS = list(_RIGHT)[1:]
"""Fields that are varints, or begin with one."""
