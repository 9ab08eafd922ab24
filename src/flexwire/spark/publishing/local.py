"""An output on this machine: written next to the existing output, which it then replaces.

```
OUT/_flexwire.lock              held by the analysis that is under way
OUT/_flexwire-unfinished-…/     what it has written until now, for its owner alone to read
    new/                        what is published in the end: tables/, facts.json, report.html, …
    old/                        what was published before, while it is being replaced
    placing                     exists once all of the old output is in old/
```
The next analysis removes the files of a killed analysis. While it holds the lock, no other analysis
is running. If the killed analysis was replacing a complete output, that output is restored first.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from flexwire.errors import FlexwireError
from flexwire.spark.publishing.output import (
    ANSWERS,
    AUDIT_CSV,
    AUDIT_JSON,
    FACTS,
    REPORT,
    Staging,
)
from flexwire.spark.tables import TABLES, check_ours
from flexwire.storage.local import FILE_MODE, make_private_directory, make_tree_private
from flexwire.storage.output_directory import OutputDirectory
from flexwire.tables.output import MARKER, SUCCESS, Output

if TYPE_CHECKING:
    from collections.abc import Iterator


# Spark ignores names that begin with an underscore.
LOCK, PREFIX = "_flexwire.lock", "_flexwire-unfinished-"
# The tables are moved before the files that are made from them, so a reader that finds a report
# also finds the tables.
PARTS = (
    *(f"tables/{name}" for name in (*TABLES, ANSWERS)),
    *(ANSWERS, AUDIT_CSV, AUDIT_JSON, FACTS, REPORT),
)
_MARKER, _SUCCESS = f"tables/{MARKER}", f"tables/{SUCCESS}"
_PLACING = "placing"
# After an analysis is killed, its Java process keeps writing for a moment.
_REMOVALS, _SECONDS_BETWEEN = 50, 0.1


@dataclass(frozen=True)
class LocalStaging(Staging):
    """The staging area of one analysis, in the directory ``place`` below ``out``."""

    directory: Path

    @property
    def new(self) -> Path:
        """The directory for files to publish, each under the name that it will have in ``out``."""
        return self.directory / "new"

    @property
    def files(self) -> OutputDirectory:
        """The directory of `files`, as the place where tasks put files."""
        return OutputDirectory(str(self.new))

    @property
    def published(self) -> Output:
        """The output to read after `publish`."""
        return Output(self.out)

    def publish(self) -> None:
        """Replace the content of ``out`` with the content of `new`, by renaming.

        At any moment, a reader finds the complete old output, the complete new output, or an output
        that is not marked as complete, but never parts of both outputs. If replacing fails, the old
        output is restored. If the process is killed, the next analysis restores the old output.
        """
        make_tree_private(self.new)
        out, old = Path(self.out.url), self.directory / "old"
        tables = out / "tables"
        is_new = not tables.exists()
        make_private_directory(old / "tables")
        retired = [(out / part, old / part) for part in (_SUCCESS, *reversed(PARTS))]
        placed = [(self.new / part, out / part) for part in (*PARTS, _SUCCESS)]
        moved: list[tuple[Path, Path]] = []
        try:
            make_private_directory(tables)
            if not (tables / MARKER).exists():
                # The marker is written first, because an unfinished directory must be recognizable
                # as one of flexwire's.
                placed.insert(0, (self.new / _MARKER, out / _MARKER))
            for moves in (retired, placed):
                if moves is placed:
                    (self.directory / _PLACING).touch()
                for source, target in moves:
                    if os.path.lexists(source):
                        moved.append((source, target))
                        move(source, target)
        except BaseException:
            for source, target in reversed(moved):
                if os.path.lexists(target) and not os.path.lexists(source):
                    move(target, source)
            if is_new:
                with suppress(OSError):
                    tables.rmdir()
            raise


def move(source: Path, target: Path) -> None:
    """Rename a file or directory within one file system."""
    source.rename(target)


@contextmanager
def local_staging(out: Path) -> Iterator[LocalStaging]:
    """Provide a place for one analysis into ``out``; remove it and its content at the end.

    Raises `FlexwireError` if another analysis into ``out`` is running, if ``out/tables`` or
    ``out/answers`` holds files that flexwire did not write, or if the files of a killed analysis
    cannot be removed.
    """
    is_new = not out.exists()
    make_private_directory(out)
    try:
        with locked(out):
            check_ours(out / "tables")
            check_ours(out / ANSWERS)
            sweep(out)
            directory = Path(tempfile.mkdtemp(prefix=PREFIX, dir=out))
            try:
                staging = LocalStaging(OutputDirectory(str(out)), directory)
                make_private_directory(staging.new / "tables")
                yield staging
            except BaseException as error:
                try:
                    sweep(out)
                except FlexwireError as sweep_error:
                    error.add_note(str(sweep_error))
                raise
            sweep(out)
    finally:
        if is_new:
            with suppress(OSError):
                out.rmdir()  # fails unless the directory is empty


def sweep(out: Path) -> None:
    """Remove the files that finished analyses left in ``out``; the lock must be held."""
    for unfinished in out.glob(f"{PREFIX}*"):
        if unfinished.is_dir() and not unfinished.is_symlink():
            _bring_back(out, unfinished)
            _remove(unfinished)


def _bring_back(out: Path, unfinished: Path) -> None:
    """Restore the complete output that a killed analysis was replacing, if there is one.

    If this process is killed too, the next analysis completes the work.
    """
    old, placing = unfinished / "old", unfinished / _PLACING
    if os.path.lexists(out / _SUCCESS) or not os.path.lexists(old / _SUCCESS):
        return
    if placing.exists():
        # All parts that are already in place belong to the new, incomplete output.
        for part in PARTS:
            if os.path.lexists(out / part):
                move(out / part, unfinished / "new" / part)
        placing.unlink()
    for part in (*PARTS, _SUCCESS):
        if os.path.lexists(old / part):
            move(old / part, out / part)


def _remove(unfinished: Path) -> None:
    for _ in range(_REMOVALS):
        shutil.rmtree(unfinished, ignore_errors=True)
        if not unfinished.exists():
            return
        time.sleep(_SECONDS_BETWEEN)
    raise FlexwireError(
        f"remove {unfinished}: this directory of an unfinished analysis can contain payloads, "
        "and flexwire could not remove it"
    )


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Hold the lock of an output; raise `FlexwireError` if another analysis into it is running."""
    path = out / LOCK
    lock = _lock(path)
    while not _is_at(lock, path):
        # Another analysis ended and removed the file between the calls that open and lock it.
        os.close(lock)
        lock = _lock(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(lock)


def _lock(path: Path) -> int:
    lock = os.open(path, os.O_RDWR | os.O_CREAT, FILE_MODE)
    try:
        # The lock is released when its process ends for any reason.
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise FlexwireError(
            f"another analysis is writing to {path.parent}; wait until that analysis is done, or "
            "choose another --out"
        ) from None
    except OSError as error:
        os.close(lock)
        raise FlexwireError(
            f"{path}: cannot lock: {error.strerror or error}; choose an --out on a file system "
            "that supports locks"
        ) from error
    return lock


def _is_at(lock: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(lock), path.stat())
    except FileNotFoundError:
        return False
