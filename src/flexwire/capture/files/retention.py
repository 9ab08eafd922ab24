"""Keep the finished files of one writer within a disk limit by removing the oldest files."""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from flexwire.errors import ArgumentError

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger("flexwire.tap")


@dataclass(frozen=True, slots=True)
class KeepLimit:
    """The part of a capture that is kept on disk: a number of bytes, of files, or both.

    The file that is currently being written also counts. A frame larger than ``max_bytes`` is
    nevertheless written completely. Raises `ArgumentError` for invalid limits.
    """

    max_bytes: int | None = None
    max_files: int | None = None

    def __post_init__(self) -> None:
        if self.max_bytes is not None and self.max_bytes < 1:
            raise ArgumentError(f"expected at least 1 byte to keep, got {self.max_bytes}")
        if self.max_files is not None and self.max_files < 1:
            raise ArgumentError(f"expected at least 1 file to keep, got {self.max_files}")


NO_LIMIT = KeepLimit()


class FinishedFile(NamedTuple):
    """A finished file, with the device and inode by which it is recognized later."""

    path: Path
    inode: tuple[int, int]
    size: int
    frames: int


class KeptFiles:
    """Finished files, oldest first, within a limit. Only files of this run are removed.

    ``growing`` is the number of files that are being written at the same time.
    """

    def __init__(self, limit: KeepLimit, growing: int = 1) -> None:
        self._limit = limit
        self._growing = growing
        self._files: deque[FinishedFile] = deque()
        self._size = 0
        self.removed: list[FinishedFile] = []
        """The files that were removed. The code that counts them empties this list afterwards."""

    def begin(self, path: Path) -> None:
        """Do nothing when a file begins."""

    def add(self, file: FinishedFile) -> None:
        """Add a finished file."""
        # Without a limit, no file is removed, so the writer does not have to remember the files.
        if self._limit != NO_LIMIT:
            self._files.append(file)
            self._size += file.size

    def make_room(self, size: int) -> list[Path]:
        """Remove the oldest files until ``size`` more bytes fit. Return the removed files."""
        gone = []
        while self._files and self._is_beyond(size):
            file = self._files.popleft()
            self._size -= file.size
            gone.append(file.path)
            self._remove(file)
        return gone

    def _is_beyond(self, size: int) -> bool:
        limit = self._limit
        too_many = (
            limit.max_files is not None and len(self._files) + self._growing > limit.max_files
        )
        return too_many or (limit.max_bytes is not None and self._size + size > limit.max_bytes)

    def _remove(self, file: FinishedFile) -> None:
        try:
            status = file.path.stat(follow_symlinks=False)
            # The file was moved, and another file now has its name.
            if (status.st_dev, status.st_ino) != file.inode:
                return
            file.path.unlink()
        except FileNotFoundError:
            return
        except OSError as error:
            log.error("cannot remove %s to stay within the limit: %s", file.path, error)  # noqa: TRY400  # the message is enough
            return
        self.removed.append(file)
