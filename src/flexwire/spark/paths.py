"""Which capture files the paths on a command line mean."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING

from flexwire.arguments import refuse
from flexwire.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Iterable

SUFFIXES = (".pcap", ".pcapng", ".pcap.gz", ".pcapng.gz")


def capture_files(paths: Iterable[str | Path]) -> list[Path]:
    """Every capture that ``paths`` name, each once, in the order of their names.

    A file is taken whatever its name is; of a directory, at any depth, what ends in one of
    `SUFFIXES`; and what does not exist is read as a pattern with ``*``, ``?``, ``[…]`` and ``**``.
    Raises `CaptureError` for a path that gives no file.
    """
    found: dict[Path, None] = {}
    for given in paths:
        if not isinstance(given, str | Path):
            raise refuse("paths", "a str or Path", given)
        path = Path(given)
        files = _files(path)
        if not files:
            raise CaptureError(_reason(path), source=str(path))
        found |= dict.fromkeys(one.resolve() for one in files)
    return sorted(found)


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if path.is_dir():
        return [one for one in path.rglob("*") if one.is_file() and _is_capture(one)]
    matches = map(Path, glob.glob(str(path), recursive=True))  # noqa: PTH207 - Path.glob takes no absolute pattern
    # A pipe or a device matches its own name, and is neither.
    known = (one for one in matches if one.is_file() or one.is_dir())
    return [one for match in known for one in _files(match)]


def _is_capture(path: Path) -> bool:
    return path.name.lower().endswith(SUFFIXES)


def _reason(path: Path) -> str:
    if path.is_dir():
        return f"no file in it ends in {', '.join(SUFFIXES)}"
    if path.exists():
        return "neither a file nor a directory"
    return "no such file or directory, and nothing matches it as a pattern"
