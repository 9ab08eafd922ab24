"""The directory that a server serves: it finds files below it, and refuses all others."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from flexwire.errors import FlexwireError, short

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_SEEN: Final = 100_000
"""So many files and directories are looked at for one list."""
MARKERS: Final = ("facts.json", "tables/_flexwire.json")
"""The files by which the output of an analysis is known."""
ANALYSIS: Final = "an analysis"
"""The kind of a directory with the output of an analysis."""


class OutsideRootError(FlexwireError):
    """A path that is not below the root of a server, or not a file that may be read."""


class ServedRoot:
    """A directory below which files are read.

    A path is checked before it is opened. Nobody who is not trusted may write below the root while
    the server runs, or a file could become a symbolic link between the two.
    """

    def __init__(self, path: Path) -> None:
        self._path = path.resolve(strict=True)

    def file(self, name: str) -> Path:
        """Return the path of a regular file; raise `OutsideRootError` for any other."""
        return self._find(name, stat.S_ISREG, "a regular file")

    def directory(self, name: str) -> Path:
        """Return the path of a directory; raise `OutsideRootError` for any other."""
        return self._find(name, stat.S_ISDIR, "a directory")

    def name_of(self, path: Path) -> str:
        """Return the name of a path below the root, as `file` and `directory` take it."""
        return str(path.relative_to(self._path))

    def shown(self, text: str) -> str:
        """Return a text in which the root's own path does not appear."""
        return text.replace(f"{self._path}{os.sep}", "").replace(str(self._path), ".")

    def _find(self, name: str, is_kind: Callable[[int], bool], kind: str) -> Path:
        given = Path(name)
        if "\0" in name or not name:
            raise OutsideRootError(f"{short(name)} is not a path")
        if given.anchor or ".." in given.parts:
            raise OutsideRootError(
                f"{short(name)}: expected a path below the root, without .. and not absolute"
            )
        path, mode = self._path, stat.S_IFDIR
        for part in given.parts:
            path /= part
            try:
                mode = path.lstat().st_mode
            except (OSError, ValueError):
                # The error has no reason, because the reason could reveal what is outside.
                raise OutsideRootError(f"there is no {short(name)} below the root") from None
            if stat.S_ISLNK(mode):
                raise OutsideRootError(
                    f"{short(name)}: {short(self.name_of(path))} is a symbolic link, which is not "
                    "followed"
                )
        if not is_kind(mode):
            raise OutsideRootError(f"{short(name)} is not {kind}")
        return path

    def search(self, name: str) -> FoundFiles:
        """Return the inputs and analyses below a directory; raise `OutsideRootError` without it."""
        found, waiting = FoundFiles(), [self.directory(name)]
        while waiting and not found.is_cut:
            try:
                with os.scandir(waiting.pop()) as listed:
                    entries = sorted(islice(listed, MOST_SEEN + 1), key=lambda entry: entry.name)
            except OSError:
                found.unreadable += 1
                continue
            inner = [path for entry in entries if (path := self._sort_in(entry, found))]
            waiting += reversed(inner)
        return found

    def _sort_in(self, entry: os.DirEntry[str], found: FoundFiles) -> Path | None:
        """Take in one entry of a directory; return the path of a directory to search."""
        from flexwire.inputs import kind_by_name

        if found.seen == MOST_SEEN:
            found.is_cut = True
            return None
        found.seen += 1
        path = Path(entry.path)
        kind = kind_by_name(entry.name)
        if entry.is_symlink():
            found.links += 1
        elif entry.is_dir():
            if not all((path / marker).is_file() for marker in MARKERS):
                return path
            found.rows.append({"path": self.name_of(path), "kind": ANALYSIS, "bytes": None})
        elif entry.is_file() and kind is not None:
            size = entry.stat(follow_symlinks=False).st_size
            row = {"path": self.name_of(path), "kind": kind.value, "bytes": size}
            found.rows.append(row)
        return None


@dataclass(slots=True)
class FoundFiles:
    """The inputs and analyses below a directory, in the order of their names.

    ``links`` counts the symbolic links, which are not followed, ``unreadable`` the directories that
    cannot be read. The search ends after ``seen`` has reached `MOST_SEEN`, and then it ``is_cut``.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    seen: int = 0
    links: int = 0
    unreadable: int = 0
    is_cut: bool = False
