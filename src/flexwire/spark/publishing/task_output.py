"""The place for the finished files of a task. Each file is moved there whole, and recorded.

A file is written in the attempt's own directory, and placed by one rename or one PUT. The name of a
file depends only on the input of the task. An attempt that is killed leaves only files that no
manifest lists, or that a later attempt writes again with the same bytes.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from flexwire.errors import ArgumentError
from flexwire.spark.publishing.manifest import TABLES, WrittenFile, check_there
from flexwire.spark.scratch import local_directory
from flexwire.storage.local import make_private_directory
from flexwire.wire.batch_layout import extend_crc32c

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.storage.output_directory import OutputDirectory

SCRATCH: Final = "_scratch"
_CHUNK: Final = 1 << 20


Arrange = Callable[[Path, str, str, int], Iterable[tuple[Path, str, int]]]
"""The files that a table's finished file becomes, based on its path, table, name and rows."""


def as_it_is(local: Path, _table: str, name: str, rows: int) -> Iterable[tuple[Path, str, int]]:
    """Return the file unchanged, as a single file."""
    return ((local, name, rows),)


@dataclass(slots=True)
class TaskOutput:
    """The place for the finished files of a task.

    ``place`` is the directory of the output. ``scratch`` is this attempt's own directory for
    unfinished files. If the output is on a file system, ``scratch`` is on the same file system.
    ``scratch`` is removed after the attempt. ``arrange`` decides which files a finished file
    becomes. At the end, a place with ``keeps_files`` knows all files that tasks have written.
    ``constants`` contains columns that are added to all files.
    """

    directory: OutputDirectory
    scratch: Path = field(default_factory=Path)
    files: list[WrittenFile] = field(default_factory=list)
    arrange: Arrange = as_it_is
    keeps_files: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    constants: dict[str, str] = field(default_factory=dict)

    def count_files(self, files: Iterable[WrittenFile]) -> Iterator[WrittenFile]:
        """Yield the files that tasks have written; if ``keeps_files``, keep them in `files`.

        Afterwards `counts` always contains the number of files of each table.
        """
        for file in files:
            self.counts[file.table] += 1
            if self.keeps_files:
                self.files.append(file)
            yield file

    def put(
        self, local: Path, table: str, name: str, rows: int | None = None, *, folder: str = TABLES
    ) -> None:
        """Hand over a file of a table, and remove it from its old path.

        ``name`` (see `part_name`) and the bytes must depend only on the task's input. By default,
        ``rows`` is the number of rows in the Parquet file's footer. `arrange` decides which files
        are placed. A file that will be merged later is put in another ``folder``, `PARTS`.
        """
        count = _rows(local) if rows is None else rows
        for part, part_name, part_rows in self.arrange(local, table, name, count):
            self._put(part, table, part_name, part_rows, folder)
        local.unlink(missing_ok=True)

    def _put(self, local: Path, table: str, name: str, rows: int, folder: str) -> None:
        full = f"{folder}/{table}/{name}"
        if any(not part or part.startswith((".", "_")) for part in f"{table}/{name}".split("/")):
            raise ArgumentError(
                "expected a table and a name, no part of which begins with a dot or an underscore, "
                f"got {table!r} and {name!r}"
            )
        if any(file.name == full for file in self.files):
            raise ArgumentError(f"{full} already exists; each file needs its own name")
        noted = WrittenFile(full, table, local.stat().st_size, rows, _crc(local))
        if self.directory.path is not None:
            check_there(self.directory.path)
        self.directory.put(local, full)
        local.unlink(missing_ok=True)
        self.files.append(noted)

    @contextmanager
    def open_attempt(self, number: int) -> Iterator[TaskOutput]:
        """Return the output of one task attempt."""
        root = self.directory.path
        if root is None:
            # Spark removes these directories when the executor ends, even if its workers were
            # killed.
            base = local_directory()
        else:
            check_there(root)
            base = root / SCRATCH
            make_private_directory(base)
        scratch = Path(tempfile.mkdtemp(prefix=f"{number:06d}-", dir=base))
        try:
            yield TaskOutput(
                self.directory, scratch, arrange=self.arrange, constants=self.constants
            )
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _rows(local: Path) -> int:
    # Workers of other jobs do not need Parquet.
    import pyarrow.parquet as pq  # noqa: PLC0415 - not all workers need it

    rows: int = pq.read_metadata(local).num_rows
    return rows


def _crc(local: Path) -> int:
    crc = 0
    with local.open("rb") as file:
        while data := file.read(_CHUNK):
            crc = extend_crc32c(crc, data)
    return crc
