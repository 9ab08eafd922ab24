"""The directory that a server serves: find files below it, and reject all others."""

from __future__ import annotations

import os
import re
import stat
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flexwire.errors import FlexwireError, short

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MOST_SEEN: Final = 100_000
"""The maximum number of files and directories that are examined for one listing."""
MARKERS: Final = ("facts.json", "tables/_flexwire.json")
"""The files by which the output of an analysis is recognized."""
ANALYSIS: Final = "an analysis"
"""The kind of a directory that contains the output of an analysis."""
_WRITTEN: Final = ("tables", "answers", "sums")
"""The directories that an analysis writes. These directories contain no inputs.

The demo puts its capture in the same parent directory.
"""


class OutsideRootError(FlexwireError):
    """A path that is not below the root of a server, or is not a file that may be read."""


# On Linux, each open descriptor has a path. Opening this path opens the file of the descriptor,
# even if the file's name now refers to another file.
_DESCRIPTORS: Final = Path("/proc/self/fd")
_DESCRIPTOR: Final = re.compile(rf"{_DESCRIPTORS}/\d+")
# The file is opened only to check it, not to read it. Opening a pipe without a writer would block.
_LOOK: Final = getattr(os, "O_PATH", 0) | getattr(os, "O_NOFOLLOW", 0)
_HAS_DESCRIPTORS: Final = hasattr(os, "O_PATH") and _DESCRIPTORS.is_dir()


class ServedRoot:
    """The directory that contains all files that the server may read.

    A name is resolved part by part, each part in the directory that is already open, and symbolic
    links are not followed. The file that is read is the file that was checked, even if somebody
    replaces the file with a link in the meantime. This guarantee holds only on Linux. On other
    systems, a name is only checked before it is opened.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.resolve(strict=True)
        # The name of each descriptor that is or was open, for error messages.
        self._names: dict[str, str] = {}

    @contextmanager
    def file(self, name: str) -> Iterator[Path]:
        """Yield a path for reading a regular file. Raises `OutsideRootError` for anything else.

        The path is valid until the end of the block.
        """
        with self._open(name, stat.S_ISREG, "a regular file") as path:
            yield path

    @contextmanager
    def directory(self, name: str) -> Iterator[Path]:
        """Yield the path of a directory, as `file` does for files."""
        with self._open(name, stat.S_ISDIR, "a directory") as path:
            yield path

    def check_directory(self, name: str) -> None:
        """Raise `OutsideRootError` if the name does not belong to a directory."""
        with self.directory(name):
            return

    def shown(self, text: str) -> str:
        """Return a text with names relative to the root in place of paths."""
        text = _DESCRIPTOR.sub(lambda found: self._names.get(found[0], found[0]), text)
        return text.replace(f"{self._path}{os.sep}", "").replace(str(self._path), ".")

    @contextmanager
    def _open(self, name: str, is_kind: Callable[[int], bool], kind: str) -> Iterator[Path]:
        given = Path(name)
        if "\0" in name or not name:
            raise OutsideRootError(f"{short(name)} is not a path")
        if given.anchor or ".." in given.parts:
            raise OutsideRootError(
                f"{short(name)}: expected a relative path below the root, without .."
            )
        place = _look(None, str(self._path))
        try:
            for number, part in enumerate(given.parts, 1):
                before = place
                try:
                    place = _look(before, part)
                except (OSError, ValueError):
                    # No reason is given, because it could reveal what exists outside.
                    raise OutsideRootError(f"there is no {short(name)} below the root") from None
                finally:
                    if place is not before:
                        before.close()
                if stat.S_ISLNK(place.mode):
                    link = str(Path(*given.parts[:number]))
                    raise OutsideRootError(
                        f"{short(name)}: {short(link)} is a symbolic link, which is not followed"
                    )
            if not is_kind(place.mode):
                raise OutsideRootError(f"{short(name)} is not {kind}")
            self._names[str(place.path)] = name
            yield place.path
        finally:
            place.close()

    def search(self, name: str) -> FoundFiles:
        """Return the inputs and analyses in a directory.

        Raises `OutsideRootError` for anything else.
        """
        found, waiting = FoundFiles(), [name]
        self.check_directory(name)
        while waiting and not found.is_cut:
            place = waiting.pop()
            try:
                with self.directory(place) as path, os.scandir(path) as listed:
                    entries = sorted(islice(listed, MOST_SEEN + 1), key=lambda entry: entry.name)
                    # The entries are examined before the directory is closed.
                    inner = [
                        below for entry in entries if (below := self._sort_in(place, entry, found))
                    ]
            except (OSError, OutsideRootError):
                found.unreadable += 1
                continue
            waiting += reversed(inner)
        return found

    def _sort_in(self, place: str, entry: os.DirEntry[str], found: FoundFiles) -> str | None:
        """Add an entry of a directory to the result.

        Return the name of the entry if the entry is a directory to search.
        """
        from flexwire.inputs import kind_by_name

        if found.seen == MOST_SEEN:
            found.is_cut = True
            return None
        found.seen += 1
        path, name = Path(entry.path), str(Path(place, entry.name))
        kind = kind_by_name(entry.name)
        if entry.is_symlink():
            found.links += 1
        elif entry.is_dir():
            if place in found.analyses and (entry.name in _WRITTEN or entry.name.startswith("_")):
                return None
            if all((path / marker).is_file() for marker in MARKERS):
                found.rows.append({"path": name, "kind": ANALYSIS, "bytes": None})
                found.analyses.add(name)
            return name
        elif entry.is_file() and kind is not None:
            size = entry.stat(follow_symlinks=False).st_size
            found.rows.append({"path": name, "kind": kind.value, "bytes": size})
        return None


class _Place(NamedTuple):
    """A file or directory: the path that opens it, its mode, and its descriptor if there is one."""

    path: Path
    mode: int
    descriptor: int | None = None

    def close(self) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)


def _look(parent: _Place | None, name: str) -> _Place:
    """Return a part of a path in its parent, without following links. Raises `OSError`."""
    if not _HAS_DESCRIPTORS:
        path = Path(name) if parent is None else parent.path / name
        return _Place(path, path.lstat().st_mode)
    below = None if parent is None else parent.descriptor
    descriptor = os.open(name, _LOOK, dir_fd=below)
    return _Place(_DESCRIPTORS / str(descriptor), os.fstat(descriptor).st_mode, descriptor)


@dataclass(slots=True)
class FoundFiles:
    """The inputs and analyses in a directory, sorted by name.

    ``links`` is the number of symbolic links, which are not followed, and ``unreadable`` is the
    number of directories that cannot be read. If ``seen`` reaches `MOST_SEEN`, the search ends and
    ``is_cut`` is true. ``analyses`` contains the names of the directories that contain an analysis.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    seen: int = 0
    links: int = 0
    unreadable: int = 0
    is_cut: bool = False
    analyses: set[str] = field(default_factory=set)
