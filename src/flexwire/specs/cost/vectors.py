"""Read messages from a file: one JSON object per line, with the message's bytes in hex."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import TYPE_CHECKING, Any

from flexwire.errors import FlexwireError, short
from flexwire.specs.cost.meter import SentMessage
from flexwire.versions import HIGHEST

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_GZIP_MAGIC = b"\x1f\x8b"
LONGEST_LINE = 64 * 1024 * 1024
"""The longest line that is read. A longer line raises `VectorError`."""


class VectorError(FlexwireError):
    """An invalid line in a file of vectors."""

    def __init__(self, reason: str, *, source: str, line: int = 0) -> None:
        self.reason = reason
        self.source = source
        self.line = line
        super().__init__(f"{source}:{line}: {reason}" if line else f"{source}: {reason}")

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (self.reason, self.source, self.line))


def _rebuild(reason: str, source: str, line: int) -> VectorError:
    return VectorError(reason, source=source, line=line)


def read_vectors(path: Path) -> Iterator[SentMessage]:
    """Read messages, one per line: ``{"message": "FetchRequest", "version": 12, "hex": "…"}``.

    The bytes contain the message without its header. Other keys and empty lines are ignored. The
    file may be compressed with gzip. Raises `VectorError`.
    """
    number = 0
    try:
        with path.open("rb") as file:
            zipped = file.read(2) == _GZIP_MAGIC
        with gzip.open(path) if zipped else path.open("rb") as lines:
            while line := lines.readline(LONGEST_LINE):
                number += 1
                if line.strip():
                    yield _read(line, path, number)
    except (OSError, EOFError, zlib.error) as error:
        reason = (isinstance(error, OSError) and error.strerror) or str(error)
        raise VectorError(f"cannot be read: {reason}", source=str(path), line=number) from None


def _read(line: bytes, path: Path, number: int) -> SentMessage:
    try:
        vector: Any = json.loads(line)
    except (ValueError, RecursionError):
        raise VectorError("not JSON", source=str(path), line=number) from None
    try:
        name, version, body = vector["message"], vector["version"], bytes.fromhex(vector["hex"])
    except (KeyError, TypeError, ValueError):
        reason = 'expected an object with "message", "version" and "hex"'
        raise VectorError(reason, source=str(path), line=number) from None
    if type(name) is not str or type(version) is not int or not 0 <= version <= HIGHEST:
        reason = f"expected a message name and a version, got {short(name)} and {short(version)}"
        raise VectorError(reason, source=str(path), line=number)
    return SentMessage(name, None, None, version, body)
