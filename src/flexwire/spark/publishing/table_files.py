"""The files that a task writes (one for each table), and how small files are merged.

Only files that a task has reported are read. The size and the crc32c of these files are checked.
The same run always writes the same files.
"""

from __future__ import annotations

import struct
import tempfile
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Self

import pyarrow as pa
import pyarrow.parquet as pq

from flexwire.errors import AnalysisError
from flexwire.spark.publishing.manifest import PARTS, TABLES, joined_name
from flexwire.tables.parquet import TableWriter
from flexwire.wire.batch_layout import crc32c

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from concurrent.futures import Future

    from flexwire.spark.publishing.manifest import WrittenFile
    from flexwire.spark.publishing.task_output import TaskOutput
    from flexwire.storage.output_directory import OutputDirectory
    from flexwire.tables.records import Rows


# Most of the time for fetching a small file from a store is spent waiting. Fetched files are held
# in memory.
_AHEAD, _AHEAD_BYTES = 16, 64 << 20


def fetch_files(directory: OutputDirectory, files: Iterable[tuple[str, int]]) -> Iterator[bytes]:
    """Yield the bytes of each file, in order; ``files`` are their names and sizes."""
    if directory.path is not None:
        for name, _ in files:
            yield directory.read(name)
        return
    waiting: deque[tuple[int, Future[bytes]]] = deque()
    bytes_ahead = 0
    with ThreadPoolExecutor(_AHEAD, thread_name_prefix="flexwire-fetch") as pool:
        for name, size in files:
            while waiting and (len(waiting) == _AHEAD or bytes_ahead + size > _AHEAD_BYTES):
                file_size, data = waiting.popleft()
                bytes_ahead -= file_size
                yield data.result()
            waiting.append((size, pool.submit(directory.read, name)))
            bytes_ahead += size
        for _, data in waiting:
            yield data.result()


WHOLE_BYTES: Final = 128 << 20
"""The size, in bytes, at which a file is large enough."""

# A new file begins if the estimated size of the remaining parts is at least this many times
# `WHOLE_BYTES`.
_SURE_OF_ANOTHER = 1.25


class TablePart(NamedTuple):
    """One file that a range wrote: the range, the file's number in the range, and the file."""

    number: int
    place: int
    size: int
    rows: int
    crc32c: int


# A day of traffic consists of a million parts, and the driver holds all of them.
_PART: Final = struct.Struct("<IHIQI")


@dataclass(slots=True)
class PartGroup:
    """The work of one task: parts from one directory of a table, in the order of the ranges."""

    table: str
    folder: str
    prefix: str
    is_joined: bool = False
    size: int = 0
    _parts: bytearray = field(default_factory=bytearray)

    def __len__(self) -> int:
        return len(self._parts) // _PART.size

    def add(self, number: int, place: int, file: WrittenFile) -> None:
        """Add the next part."""
        self._parts += _PART.pack(number, place, file.size, file.rows, file.crc32c)
        self.size += file.size

    def parts(self) -> Iterator[TablePart]:
        """Yield the parts in order."""
        return map(TablePart._make, _PART.iter_unpack(self._parts))

    def name(self, part: TablePart) -> str:
        """Return the name of a part below its folder."""
        return f"{self.prefix}-{part.number:06d}-{part.place:04d}.parquet"

    def source(self, part: TablePart) -> str:
        """Return the path of a part."""
        return f"{PARTS}/{self.folder}/{self.name(part)}"

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last range of the group."""
        last = len(self._parts) - _PART.size
        return _PART.unpack_from(self._parts)[0], _PART.unpack_from(self._parts, last)[0]


def write_group(group: PartGroup, task_output: TaskOutput) -> None:
    """Move the parts of a group into their table, either merged or unchanged."""
    if group.is_joined:
        _Joiner(group, task_output).join()
        return
    for part, data in _read_checked(group, task_output.directory):
        local = task_output.scratch / group.name(part)
        local.write_bytes(data)
        _put(group, task_output, local, part.rows)


def _put(group: PartGroup, task_output: TaskOutput, local: Path, rows: int) -> None:
    below = f"{group.folder}/{local.name}".removeprefix(f"{group.table}/")
    task_output.put(local, group.table, below, rows)


class _Joiner:
    """Merges the parts of a group into as few files as possible, each of which is large enough."""

    def __init__(self, group: PartGroup, task_output: TaskOutput) -> None:
        self._group = group
        self._task_output = task_output
        self._parts = _read_checked(group, task_output.directory)
        self._left = group.size
        self._rows = 0

    def join(self) -> None:
        """Write the files, and hand them over to the task's output."""
        number = 0
        while self._left:
            local = self._task_output.scratch / joined_name(
                self._group.prefix, *self._group.span, number
            )
            rows = self._write(local)
            _put(self._group, self._task_output, local, rows)
            self._rows += rows
            number += 1
        expected = sum(part.rows for part in self._group.parts())
        if self._rows != expected:
            raise AnalysisError(
                f"{self._group.folder}: expected {expected} rows in its parts, got {self._rows}"
            )

    def _write(self, local: Path) -> int:
        """Write one file; return its number of rows."""
        part, data = next(self._parts)
        bytes_read = part.size
        with TableWriter(local, pq.read_schema(pa.BufferReader(data))) as writer:
            _copy(data, writer)
            while bytes_read < self._left and not self._is_done(local.stat().st_size, bytes_read):
                part, data = next(self._parts)
                bytes_read += part.size
                _copy(data, writer)
        self._left -= bytes_read
        return writer.rows

    def _is_done(self, bytes_written: int, bytes_read: int) -> bool:
        """Return whether a file is large enough, and the other parts would fill another file."""
        rest = (self._left - bytes_read) * bytes_written / bytes_read
        return bytes_written >= WHOLE_BYTES and rest >= _SURE_OF_ANOTHER * WHOLE_BYTES


def _copy(data: bytes, writer: TableWriter) -> None:
    # pyarrow cannot copy pages unchanged. Besides, small row groups are merged into larger ones.
    file = pq.ParquetFile(pa.BufferReader(data))
    for group in range(file.num_row_groups):
        for batch in file.read_row_group(group, use_threads=False).to_batches():
            writer.write(batch)


def _read_checked(
    group: PartGroup, directory: OutputDirectory
) -> Iterator[tuple[TablePart, bytes]]:
    """Yield each part with its bytes, after checking them against the task's report."""
    files = ((group.source(part), part.size) for part in group.parts())
    for part, data in zip(group.parts(), fetch_files(directory, files), strict=True):
        if len(data) != part.size or crc32c(data) != part.crc32c:
            raise AnalysisError(
                f"{group.source(part)} differs from the bytes that its task wrote; another "
                "process is writing to the output"
            )
        yield part, data


def write_one_file(
    directory: OutputDirectory,
    name: str,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    constants: Mapping[str, str] | None = None,
) -> None:
    """Write a table that is a single file with this name; only the driver calls this."""
    with tempfile.TemporaryDirectory() as scratch:
        local = Path(scratch, Path(name).name)
        with TableWriter(local, schema, constants) as writer:
            for batch in batches:
                writer.write(batch)
        directory.put(local, name)


class TableFiles:
    """The files that a task writes: one for each table, all with the same name, placed at the end.

    If the task is one of several that write a part of each table, small files are merged later.
    ``origins`` are the same as in `TableWriter`, and can be set until the first row is written.
    """

    def __init__(self, task_output: TaskOutput, name: str, *, is_part: bool = False) -> None:
        self._task_output = task_output
        self._is_part = is_part
        self._name = name
        self.origins: Mapping[str, str] | None = None
        self._open: dict[str, TableWriter] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.__exit__(*error)  # type: ignore[arg-type]  # the three that a context gets
        if error[0] is None:
            for table, writer in self._open.items():
                folder = PARTS if self._is_part and writer.size < WHOLE_BYTES else TABLES
                local = self._local(table)
                self._task_output.put(local, table, self._name, writer.rows, folder=folder)

    def write(self, table: str, rows: Rows) -> None:
        """Write rows of a table."""
        self.begin(table, rows.schema).write(rows)

    def begin(self, table: str, columns: pa.Schema) -> TableWriter:
        """Return the writer of a table; its file is written even if it contains no rows."""
        writer = self._open.get(table)
        if writer is None:
            writer = self._stack.enter_context(
                TableWriter(self._local(table), columns, self._task_output.constants, self.origins)
            )
            self._open[table] = writer
        return writer

    def _local(self, table: str) -> Path:
        return self._task_output.scratch / f"{table.replace('/', '-')}.parquet"
