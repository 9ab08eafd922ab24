"""Where an analysis puts files: names below one directory or prefix, each file whole or not there.

`Place` is what the parts of this room ask of it; `LocalPlace` is one on a file system.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from flexwire.errors import FlexwireError
from flexwire.storage.local import entries, remove, writing
from flexwire.storage.private import FILE_MODE, make_private_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from flexwire.storage.pages import Entry


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
        # Another file system.
        with writing(target) as new:
            shutil.copyfile(local, new)
        local.unlink()

    def write(self, name: str, data: bytes) -> None:
        """Write a file there, by one rename."""
        with writing(self._target(name)) as new:
            new.write_bytes(data)

    def read(self, name: str) -> bytes:
        """The bytes of a file."""
        return (self.path / name).read_bytes()

    def exists(self, name: str) -> bool:
        """Whether there is a file of that name."""
        return (self.path / name).is_file()

    def entries(self, prefix: str) -> Iterator[Entry]:
        """All files whose names begin so, with those that a process left there that was killed."""
        yield from entries(self.path, prefix)
        yield from entries(self.path, prefix, unfinished=True)

    def remove(self, names: Iterable[str]) -> None:
        """Remove files, and directories that are empty without them."""
        for name in names:
            remove(self.path, name)

    def _target(self, name: str) -> Path:
        check_there(self.path)
        target = self.path / name
        make_private_directory(target.parent)
        return target


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
