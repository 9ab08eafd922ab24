"""What the paths on a command line mean: captures, and where the output goes, by path or URL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from flexwire.capture.logs.finding import WORDS
from flexwire.capture.logs.names import is_log_file
from flexwire.errors import StorageError
from flexwire.storage.listing import CAPTURES, SUFFIXES, is_capture, list_files, list_sources
from flexwire.storage.place import Place
from flexwire.storage.urls import scheme_of, shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexwire.storage.source import Source

__all__ = [
    "SUFFIXES",
    "capture_files",
    "capture_sources",
    "input_sources",
    "local_files",
    "output_place",
]


def capture_sources(paths: Iterable[str | Path]) -> list[Source]:
    """The files that `list_sources` finds, no two of one name."""
    return _of_one_name(list_sources(paths))


def input_sources(paths: Iterable[str | Path]) -> tuple[list[Source], list[Source]]:
    """The captures that ``paths`` name, and the files of logs: segments and what is beside them.

    What a file is its name says; of a directory, others are left alone. Any file may be named.
    """
    found = _of_one_name(list_files(paths, _is_input, f"{CAPTURES}, or {WORDS}"))
    logs = [one for one in found if is_log_file(one.url.rpartition("/")[2])]
    of_logs = {one.url for one in logs}
    return [one for one in found if one.url not in of_logs], logs


def _is_input(name: str) -> bool:
    return is_capture(name) or is_log_file(name)


def _of_one_name(sources: list[Source]) -> list[Source]:
    if len({one.name for one in sources}) < len(sources):
        names = [one.name for one in sources]
        twice = next(name for name in names if names.count(name) > 1)
        raise StorageError("two files differ only in what is not shown of a URL", url=twice)
    return sources


def capture_files(paths: Iterable[str | Path]) -> list[Path]:
    """The files that `list_sources` finds, as paths. `StorageError` for one in an object store."""
    return local_files(list_sources(paths), "expected a file on this machine")


def local_files(sources: Iterable[Source], expected: str) -> list[Path]:
    """The same files as paths. `StorageError` with what was ``expected`` for another one."""
    files = []
    for source in sources:
        if scheme_of(source.url):
            raise StorageError(expected, url=source.name)
        files.append(Path(source.url))
    return files


def output_place(out: str | Path) -> Place:
    """Where an analysis writes: a directory here, or one in a store. `StorageError` for another."""
    text = str(out)
    if scheme_of(text) == "memory":
        raise StorageError(
            "expected a directory or a store that every process sees; memory:// is of one alone",
            url=shown(text),
        )
    return Place(text)
