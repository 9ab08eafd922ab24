"""A directory of this machine: its files, and new ones that appear whole."""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from flexwire.storage.pages import Entry, moment_of
from flexwire.storage.private import FILE_MODE, create_private_file, make_private_directory
from flexwire.storage.source import version_here

if TYPE_CHECKING:
    from collections.abc import Iterator

# Spark and other readers of tables pass over names with a point before them.
_MARK: Final = ".flexwire-"


@contextmanager
def writing(target: Path) -> Iterator[Path]:
    """A new file for its owner alone, in the place of ``target`` once the block is done.

    It is written beside it under another name, synced and renamed: one that is already there
    is replaced at once, and nothing is left of one whose block raises.
    """
    make_private_directory(target.parent)
    growing = target.parent / f"{_MARK}{secrets.token_hex(8)}-{target.name}"[:255]
    create_private_file(growing).close()
    try:
        yield growing
        with growing.open("rb") as file:
            os.fsync(file.fileno())
        growing.replace(target)
    except BaseException:
        with suppress(OSError):
            growing.unlink()
        raise
    _sync_directory(target.parent)


def move(file: Path, target: Path) -> None:
    """Put a finished file in the place of ``target``, by one rename; it is gone from where it was.

    From another file system it is copied.
    """
    make_private_directory(target.parent)
    if file.stat().st_dev != target.parent.stat().st_dev:
        with writing(target) as growing:
            shutil.copyfile(file, growing)
        file.unlink()
        return
    file.chmod(FILE_MODE)
    with file.open("rb") as finished:
        # A machine that stops must not leave a name without the bytes.
        os.fsync(finished.fileno())
    file.replace(target)


def entries(root: Path, prefix: str = "", *, unfinished: bool = False) -> Iterator[Entry]:
    """Every file below ``root`` whose name there begins with ``prefix``, without `writing`'s own.

    With ``unfinished`` only those: what a process left there that was killed.
    """
    start = root / prefix[: prefix.rfind("/") + 1]
    for place, directories, names in os.walk(start, onerror=_raise_unless_gone):
        directories.sort()
        for name in sorted(names):
            path = Path(place, name)
            relative = path.relative_to(root).as_posix()
            if name.startswith(_MARK) is not unfinished or not relative.startswith(prefix):
                continue
            with suppress(FileNotFoundError):  # removed meanwhile
                status = path.stat()
                modified = moment_of(status.st_mtime)
                yield Entry(relative, status.st_size, modified, version_here(status))


def remove(root: Path, name: str) -> None:
    """Remove a file, and the directories that are empty without it; nothing where none is."""
    path = root / name
    path.unlink(missing_ok=True)
    for above in path.parents:
        if above == root:
            return
        try:
            above.rmdir()
        except FileNotFoundError:
            continue
        except OSError:  # not empty
            return


def _raise_unless_gone(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _sync_directory(directory: Path) -> None:
    # Without it a rename may be lost when the machine stops.
    number = os.open(directory, os.O_RDONLY)
    try:
        with suppress(OSError):  # some network file systems cannot
            os.fsync(number)
    finally:
        os.close(number)
