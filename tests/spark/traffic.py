"""Make small captures: requests and responses in pcapng files, as a tap would write them."""

from __future__ import annotations

import struct
import uuid
from typing import TYPE_CHECKING, Any

import google_crc32c

from flexwire.capture.files.pcapng import PcapngWriter
from flexwire.codec import message
from flexwire.protocol import request_header_version, response_header_version

if TYPE_CHECKING:
    from pathlib import Path

CLIENT = ("10.0.0.9", 50000)
BROKER = ("10.0.0.1", 9092)
CONNECTION = "10.0.0.9:50000>10.0.0.1:9092"
START_US = 1_700_000_000_000_000
TOPIC_ID = uuid.UUID(int=0xABCDEF)


def made(name: str, /, **values: Any) -> Any:
    """Return a message with these fields, and with defaults for all others."""
    return message(name)(**values)


def nested(name: str, struct_name: str, /, **values: Any) -> Any:
    """Return a structure of a message with these fields."""
    return getattr(message(name), struct_name)(**values)


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def request(
    body: Any,
    version: int,
    correlation_id: int,
    *,
    client_id: str | None = "tests",
    tags: dict[int, bytes] | None = None,
) -> bytes:
    """Return the payload of a request's frame."""
    api_key = body.entry.api_key
    header = made(
        "RequestHeader",
        request_api_key=api_key,
        request_api_version=version,
        correlation_id=correlation_id,
        client_id=client_id,
        unknown_tagged_fields=tags or {},
    )
    encoded: bytes = header.encode(request_header_version(api_key, version))
    return encoded + bytes(body.encode(version))


def response(
    body: Any, version: int, correlation_id: int, *, tags: dict[int, bytes] | None = None
) -> bytes:
    """Return the payload of a response's frame."""
    header = made("ResponseHeader", correlation_id=correlation_id, unknown_tagged_fields=tags or {})
    encoded: bytes = header.encode(response_header_version(body.entry.api_key, version))
    return encoded + bytes(body.encode(version))


class Traffic:
    """Write connections into capture files, with a millisecond between frames."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.now_us = START_US
        self.writer = PcapngWriter(directory)
        self.sent = 0
        self.bytes = 0

    def connect(self, client: tuple[str, int] = CLIENT) -> Any:
        return self.writer.open_connection(client, BROKER, timestamp_us=self._tick())

    def send(self, connection: Any, direction: str, payload: bytes) -> None:
        """Add a frame with its length."""
        self.send_raw(connection, direction, framed(payload))

    def send_raw(self, connection: Any, direction: str, data: bytes) -> None:
        """Add unchanged bytes, which count as one frame."""
        connection.send(direction, data, timestamp_us=self._tick())
        self.sent += 1
        self.bytes += len(data)

    def exchange(
        self, connection: Any, asked: Any, answer: Any, version: int, correlation_id: int
    ) -> None:
        """Add a request and its response."""
        self.send(connection, "request", request(asked, version, correlation_id))
        self.send(connection, "response", response(answer, version, correlation_id))

    def rotate(self) -> None:
        """Begin a new file with the next frame."""
        self.writer.max_bytes = 0
        self.writer._next_file()
        self.writer.max_bytes = 2**30

    def close(self) -> None:
        self.writer.close()

    def _tick(self) -> int:
        self.now_us += 1000
        return self.now_us


def record_batch(
    *records: tuple[bytes | None, bytes | None, list[tuple[bytes, bytes | None]]],
) -> bytes:
    """Return an uncompressed batch with magic 2, base offset 100 and these records."""
    body = b"".join(_record(number, *one) for number, one in enumerate(records))
    head = struct.pack(
        ">hiqqqhii", 0, len(records) - 1, 1_700_000_000_000, 1_700_000_000_000, -1, -1, -1,
        len(records),
    )  # fmt: skip
    checked = head + body
    crc = google_crc32c.value(checked)
    length = 9 + len(checked)
    return struct.pack(">qiiBI", 100, length, 0, 2, crc) + checked


def _record(
    delta: int, key: bytes | None, value: bytes | None, headers: list[tuple[bytes, bytes | None]]
) -> bytes:
    body = b"\0" + _varint(0) + _varint(delta) + _sized(key) + _sized(value)
    body += _varint(len(headers))
    for name, content in headers:
        body += _sized(name) + _sized(content)
    return _varint(len(body)) + body


def _sized(data: bytes | None) -> bytes:
    return _varint(-1) if data is None else _varint(len(data)) + data


def _varint(value: int) -> bytes:
    number = (value << 1) ^ (value >> 31)
    out = b""
    while number > 0x7F:
        out += bytes([number & 0x7F | 0x80])
        number >>= 7
    return out + bytes([number])
