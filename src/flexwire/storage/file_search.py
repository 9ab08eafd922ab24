"""Find the capture files to which paths and URLs on a command line refer."""

from __future__ import annotations

import glob
import os
import re
import stat
from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Final

from flexwire.arguments import refuse
from flexwire.errors import CaptureError, StorageError
from flexwire.storage.filesystems import (
    local_path,
    open_store,
    reason_of,
    report_failures,
    scheme_of,
    shown,
)
from flexwire.storage.input_file import InputFile, version_here
from flexwire.storage.store_listing import file_description, list_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    IsWanted = Callable[[str], bool]

_NOTHING: Final = (
    "no file found: expected a file, a directory with a file that {}, or a pattern for such files"
)
SUFFIXES: Final = (".pcap", ".pcapng", ".pcap.gz", ".pcapng.gz")
CAPTURES: Final = f"ends in {', '.join(SUFFIXES)}"
"""The condition that a capture's name must meet, as worded in error messages."""


def list_captures(paths: Iterable[str | Path]) -> list[InputFile]:
    """Return all captures to which ``paths`` refer, without duplicates, sorted by name.

    A single file is accepted whatever its name. In a directory, at any depth, files whose names end
    in one of `SUFFIXES` are accepted. If a path does not exist, it is treated as a pattern with
    ``*``, ``?``, ``[…]`` and ``**``. The name of a file on this machine is its absolute path,
    without symbolic links.

    Raises `CaptureError` for a path without files, and `StorageError` if a path cannot be examined.
    """
    return list_files(paths, has_capture_name, CAPTURES)


def list_files(paths: Iterable[str | Path], is_wanted: IsWanted, name: str) -> list[InputFile]:
    """Return files of any kind, found as captures are. ``name`` describes their names in errors."""
    sources: list[InputFile] = []
    for path_or_url in paths:
        if not isinstance(path_or_url, str | Path):
            raise refuse("paths", "a str or Path", path_or_url)
        url = str(path_or_url)
        count_before = len(sources)
        if scheme_of(url):
            sources.extend(_in_store(url, is_wanted))
            reason = _NOTHING.format(name)
        else:
            path = local_path(url)
            sources.extend(_here(path, is_wanted))
            reason = _reason(path, name)
        if len(sources) == count_before:
            raise CaptureError(reason, source=shown(url))
    sources.sort(key=_order)
    return [
        source for at, source in enumerate(sources) if not at or source.url != sources[at - 1].url
    ]


def _order(source: InputFile) -> str:
    # A directory comes before its siblings, in the order of paths.
    return source.url.replace("/", "\0")


def _here(path: Path, is_wanted: IsWanted) -> Iterator[InputFile]:
    if path.is_file():
        yield _source(os.path.realpath(path), path.stat())
    elif path.is_dir():
        for directory_name, _, names in os.walk(path, onerror=_refuse):
            directory = os.path.realpath(directory_name)
            for name in filter(is_wanted, names):
                file = os.path.join(directory, name)  # noqa: PTH118 - making a Path for each of a million files takes a minute
                # The link is broken, or the file was removed in the meantime.
                with suppress(FileNotFoundError):
                    status = os.stat(file)  # noqa: PTH116 - using Path for a million files takes a minute
                    if stat.S_ISREG(status.st_mode):
                        is_link = os.path.islink(file)  # noqa: PTH114 - using Path for a million files takes a minute
                        yield _source(os.path.realpath(file) if is_link else file, status)
    else:
        matches = map(Path, glob.iglob(str(path), recursive=True))  # noqa: PTH207 - Path.glob does not accept absolute patterns
        # A pipe or a device matches its own name, and is neither a file nor a directory.
        for match in matches:
            if match.is_file() or match.is_dir():
                yield from _here(match, is_wanted)


def _source(file: str, status: os.stat_result) -> InputFile:
    return InputFile(file, status.st_size, version_here(status))


def _in_store(url: str, is_wanted: IsWanted) -> Iterator[InputFile]:
    store = open_store(url)
    if not url.endswith("/"):
        with report_failures(url, "list"), suppress(FileNotFoundError):
            info = store.files.info(store.key(url), **store.limit)
            if info.get("type") == "file":
                size, _, version = file_description(store, info)
                yield InputFile(url, size, version)
                return
    is_empty = True
    for entry in list_store(url):
        is_empty = False
        if is_wanted(entry.name.rpartition("/")[2]):
            yield InputFile(f"{url.rstrip('/')}/{entry.name}", entry.size, entry.version)
    if is_empty and glob.has_magic(url):
        yield from _matching(url, is_wanted)


def _matching(pattern: str, is_wanted: IsWanted) -> Iterator[InputFile]:
    """Yield the files that match a pattern, and the captures in directories that match it."""
    from fsspec.utils import glob_translate  # noqa: PLC0415 - this package is also imported without fsspec

    first = re.search(r"[*?[]", pattern)
    literal = pattern[: first.start()] if first else pattern
    root, _, prefix = literal.rpartition("/")
    if root.endswith("/"):
        raise StorageError("expected a bucket name without * or ?", url=shown(pattern))
    with report_failures(pattern, "match"):
        matches = re.compile(glob_translate(pattern[len(root) + 1 :].rstrip("/"))).match
    for entry in list_store(root, prefix):
        parents = accumulate(entry.name.split("/")[:-1], "{}/{}".format)
        is_inside = is_wanted(entry.name.rpartition("/")[2]) and any(map(matches, parents))
        if matches(entry.name) or is_inside:
            yield InputFile(f"{root}/{entry.name}", entry.size, entry.version)


def capture_paths(paths: Iterable[str | Path]) -> list[Path]:
    """Return the files of `list_captures` as paths. Raises `StorageError` for an object store."""
    files = []
    for source in list_captures(paths):
        if scheme_of(source.url):
            raise StorageError("expected a file on this machine", url=source.name)
        files.append(Path(source.url))
    return files


def has_capture_name(name: str) -> bool:
    """Return whether a file name is that of a capture."""
    return name.lower().endswith(SUFFIXES)


def _refuse(error: OSError) -> None:
    raise StorageError(reason_of(error), url=str(error.filename), tried="list")


def _reason(path: Path, name: str) -> str:
    if path.is_dir():
        return f"no file in this directory {name}"
    if path.exists():
        return "neither a file nor a directory"
    return "no such file or directory, and no file matches this pattern"
