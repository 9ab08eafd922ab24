"""Where an analysis puts files: names below one directory or prefix, each file whole or not there.

`Place` is what the parts of this room ask of it; `LocalPlace` is one on a file system.
"""

from __future__ import annotations

import os
import secrets
import shutil
from dataclasses import dataclass
from datetime import UTC, datetime
from io import BufferedWriter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from flexwire.errors import FlexwireError
from flexwire.storage.private import FILE_MODE, create_private_file, make_private_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from io import FileIO


class Entry(Protocol):
    """A file below a place: its name from there, its bytes, and when it was written."""

    @property
    def name(self) -> str:
        """With ``/`` between its parts."""

    @property
    def size(self) -> int:
        """In bytes."""

    @property
    def modified(self) -> datetime:
        """By the clock of the place."""


class Place(Protocol):
    """Files by name. It can be pickled: tasks have one that means the same files."""

    @property
    def path(self) -> Path | None:
        """The directory, where it is one that programs can open by its path."""

    def child(self, name: str) -> Place:
        """The place below this one."""

    def put(self, local: Path, name: str, /) -> None:
        """Put a finished file there, whole, in place of one of that name. It may be moved."""

    def write(self, name: str, data: bytes) -> None:
        """Write a file there, whole, in place of one of that name."""

    def read(self, name: str) -> bytes:
        """The bytes of a file."""

    def exists(self, name: str) -> bool:
        """Whether there is a file of that name."""

    def entries(self, prefix: str) -> Iterator[Entry]:
        """All files whose names begin so, however deep."""

    def remove(self, names: Iterable[str]) -> None:
        """Remove files; those that are not there are no error."""


class Listed(NamedTuple):
    """An `Entry` of a directory."""

    name: str
    size: int
    modified: datetime


@dataclass(frozen=True, slots=True)
class LocalPlace:
    """A directory that exists, on a file system that this process sees."""

    path: Path

    def child(self, name: str) -> LocalPlace:
        """The place below this one."""
        return LocalPlace(self.path / name)

    def put(self, local: Path, name: str) -> None:
        """Put a finished file there, by one rename; it is gone from where it was."""
        target = self._target(name)
        local.chmod(FILE_MODE)
        if local.stat().st_dev == target.parent.stat().st_dev:
            with local.open("rb") as finished:
                # A machine that stops must not leave a name without the bytes.
                os.fsync(finished.fileno())
            local.replace(target)
            return
        # Another file system: copied beside its place first, that nobody finds a part of it.
        copied = _beside(target)
        try:
            with local.open("rb") as source, BufferedWriter(create_private_file(copied)) as new:
                shutil.copyfileobj(source, new)
                _sync(new)
            copied.replace(target)
        finally:
            copied.unlink(missing_ok=True)
        local.unlink()

    def write(self, name: str, data: bytes) -> None:
        """Write a file there, by one rename."""
        target = self._target(name)
        new = _beside(target)
        try:
            with BufferedWriter(create_private_file(new)) as file:
                file.write(data)
                _sync(file)
            new.replace(target)
        finally:
            new.unlink(missing_ok=True)

    def read(self, name: str) -> bytes:
        """The bytes of a file."""
        return (self.path / name).read_bytes()

    def exists(self, name: str) -> bool:
        """Whether there is a file of that name."""
        return (self.path / name).is_file()

    def entries(self, prefix: str) -> Iterator[Listed]:
        """All files whose names begin so."""
        # Only the directory that the prefix names is walked.
        for directory, _, names in os.walk(self.path / prefix.rpartition("/")[0]):
            for one in names:
                file = Path(directory, one)
                name = file.relative_to(self.path).as_posix()
                if name.startswith(prefix):
                    found = file.stat()
                    yield Listed(name, found.st_size, datetime.fromtimestamp(found.st_mtime, UTC))

    def remove(self, names: Iterable[str]) -> None:
        """Remove files."""
        for name in names:
            (self.path / name).unlink(missing_ok=True)

    def _target(self, name: str) -> Path:
        check_there(self.path)
        target = self.path / name
        make_private_directory(target.parent)
        return target


def _sync(file: BufferedWriter[FileIO]) -> None:
    file.flush()
    os.fsync(file.fileno())


def _beside(target: Path) -> Path:
    return target.with_name(f"_{target.name}.{secrets.token_hex(4)}")


def check_there(path: Path) -> None:
    """Raise `FlexwireError` where this process does not see the directory of a place.

    Made anew it would be one that nobody reads: of an analysis that is over, or on a machine that
    does not share it.
    """
    if not path.is_dir():
        raise FlexwireError(
            f"{path} is not there; an output must be on a file system that the driver and every "
            "executor see, and stay until the analysis is over"
        )
