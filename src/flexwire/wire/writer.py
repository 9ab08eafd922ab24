"""A growing buffer and the path of the field being written."""

from __future__ import annotations

from flexwire.errors import EncodeError
from flexwire.wire.reader import format_path
from flexwire.wire.varint import write_unsigned_varint


class Writer:
    """Collects bytes. Raises `EncodeError` with the path of the field that cannot be written.

    A ``lenient`` one judges values only: it takes what the lenient reader gives, and what it
    collects is not a message.
    """

    __slots__ = ("buffer", "lenient", "path")

    def __init__(self, *, lenient: bool = False) -> None:
        self.buffer = bytearray()
        self.lenient = lenient
        self.path: list[str] = []

    def error(self, reason: str) -> EncodeError:
        """Make the error for the field being written."""
        return EncodeError(reason, path=format_path(self.path))

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes as they are."""
        self.buffer += data

    def write_unsigned_varint(self, value: int) -> None:
        """Append an unsigned varint: 0 to 2**32-1."""
        self.buffer += write_unsigned_varint(value)
