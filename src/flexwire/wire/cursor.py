"""A position at which bytes are read, and a buffer that grows as bytes are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.errors import DecodeError, EncodeError
from flexwire.wire.varint import read_unsigned_varint, read_unsigned_varlong, write_unsigned_varint

if TYPE_CHECKING:
    import struct


def format_path(path: list[str]) -> str:
    """Return a path in its usual form, such as ``topics[0].name``.

    >>> format_path(["topics", "[0]", "name"])
    'topics[0].name'
    """
    text = ""
    for step in path:
        text += step if step.startswith("[") or not text else f".{step}"
    return text


class Reader:
    """Read primitives from ``data``, and check every length against the remaining bytes.

    A reader is strict by default. A ``lenient`` reader accepts everything that Kafka's Java code
    accepts. Positions are counted in bytes from the start of ``data``. Raises `DecodeError` with
    the path and the byte at which reading failed.
    """

    __slots__ = ("data", "end", "lenient", "path", "position")

    def __init__(self, data: bytes, position: int = 0, *, lenient: bool = False) -> None:
        self.data = data
        self.position = position
        self.end = len(data)
        self.lenient = lenient
        self.path: list[str] = []

    @property
    def remaining(self) -> int:
        """The number of bytes that have not been read yet."""
        return self.end - self.position

    def error(self, reason: str, offset: int | None = None) -> DecodeError:
        """Return the error at ``offset``, or at the current position by default."""
        at = self.position if offset is None else offset
        return DecodeError(reason, path=format_path(self.path), offset=at)

    def annotate(self, start: int, label: str, value: object) -> None:
        """Ignore a value that was read. `ExplainingReader` records it."""

    def take(self, count: int) -> bytes:
        """Read ``count`` bytes unchanged."""
        if count > self.remaining:
            raise self.error(f"declared length {count} but {self.remaining} bytes remain")
        start = self.position
        self.position += count
        return self.data[start : self.position]

    def skip(self, count: int) -> None:
        """Skip ``count`` bytes without copying them."""
        if count > self.remaining:
            raise self.error(f"declared length {count} but {self.remaining} bytes remain")
        self.position += count

    def visit(self, count: int) -> None:
        """Ignore how many elements or tagged fields are read or skipped next."""

    def unpack(self, layout: struct.Struct, name: str) -> tuple[int | float | bytes, ...]:
        """Read big-endian values of fixed width."""
        if layout.size > self.remaining:
            raise self.error(f"{name} takes {layout.size} bytes but {self.remaining} remain")
        values = layout.unpack_from(self.data, self.position)
        self.position += layout.size
        return values

    def read_unsigned_varint(self) -> int:
        """Read an unsigned varint, from 0 to 2**32-1."""
        try:
            value, self.position = read_unsigned_varint(
                self.data, self.position, self.end, lenient=self.lenient
            )
        except DecodeError as error:
            raise self.error(error.reason, error.offset) from None
        return value

    def read_unsigned_varlong(self) -> int:
        """Read an unsigned varlong, from 0 to 2**64-1."""
        try:
            value, self.position = read_unsigned_varlong(
                self.data, self.position, self.end, lenient=self.lenient
            )
        except DecodeError as error:
            raise self.error(error.reason, error.offset) from None
        return value


class Writer:
    """Collect bytes. Raises `EncodeError` with the path of a field that cannot be written.

    A ``lenient`` writer only checks values. It accepts the values that the lenient reader returns,
    and does not write a valid message.
    """

    __slots__ = ("buffer", "lenient", "path")

    def __init__(self, *, lenient: bool = False) -> None:
        self.buffer = bytearray()
        self.lenient = lenient
        self.path: list[str] = []

    def error(self, reason: str) -> EncodeError:
        """Return the error for the field that is currently being written."""
        return EncodeError(reason, path=format_path(self.path))

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes unchanged."""
        self.buffer += data

    def write_unsigned_varint(self, value: int) -> None:
        """Append an unsigned varint, from 0 to 2**32-1."""
        self.buffer += write_unsigned_varint(value)
