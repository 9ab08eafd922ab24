"""The files of an Iceberg table in its current state, and its old snapshots."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import timedelta
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyiceberg.conversions import from_bytes
from pyiceberg.expressions import BooleanExpression, In
from pyiceberg.types import PrimitiveType

from flexwire.errors import FlexwireError
from flexwire.facts.units import moment_at
from flexwire.spark.iceberg.catalog import iceberg_failures, name_below
from flexwire.storage.filesystems import report_failures
from flexwire.tables.keys import ANALYSIS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    import pyarrow as pa
    from pyiceberg.manifest import DataFile
    from pyiceberg.schema import Schema
    from pyiceberg.table import FileScanTask, Table

    from flexwire.storage.output_directory import OutputDirectory


# The limit on old snapshots. A commit by pyiceberg copies and writes all snapshots several times:
# 250 snapshots take a second of CPU time.
_KEPT: Final = 48
_LEAST: Final = 24
_OLD_SECONDS: Final = 60 * 60
_MOST_DAYS: Final = 366
_BOUNDED: Final = frozenset({ANALYSIS, "time", "first_time", "last_time"})


@dataclass(frozen=True, slots=True)
class TableFile:
    """A live file of a table: its name within the output, and its entry in the table's metadata."""

    name: str
    data: DataFile
    first: dict[str, Any]
    last: dict[str, Any]

    @property
    def analysis(self) -> str | None:
        """The analysis of all rows of the file, or None if it contains rows of several analyses."""
        first = self.first.get(ANALYSIS)
        return first if first == self.last.get(ANALYSIS) else None

    def days(self, column: str) -> list[str] | None:
        """Return the days in UTC from the first to the last time in a column.

        Returns None if the table's metadata lacks these times, or if they span more than a year.
        """
        if column not in self.first or column not in self.last:
            return None
        first, last = (moment_at(bounds[column]).date() for bounds in (self.first, self.last))
        count = (last - first).days + 1
        if count > _MOST_DAYS:
            return None
        return [(first + timedelta(days=day)).isoformat() for day in range(count)]


def expire_old(
    table: Table, seconds: int = _OLD_SECONDS, kept: int = _KEPT, least: int = _LEAST
) -> int:
    """Expire those of a table's snapshots that are older than ``seconds``. Return their number.

    The ``kept`` newest snapshots are kept. Nothing is expired if fewer than ``least`` snapshots are
    old. Files that only expired snapshots list are kept until `flexwire tables vacuum` removes
    them, so that running readers can finish.
    """
    old = old_snapshots(table, seconds, kept)
    if len(old) < least:
        return 0
    table.maintenance.expire_snapshots().by_ids(old).commit()
    table.refresh()
    return len(old)


def old_snapshots(table: Table, seconds: int, kept: int = 0) -> list[int]:
    """Return the snapshots older than ``seconds``, except the ``kept`` newest snapshots.

    Snapshots to which a branch or a tag refers are also excluded.
    """
    before = time.time_ns() // 1_000_000 - seconds * 1000
    named = {reference.snapshot_id for reference in table.metadata.refs.values()}
    snapshots = sorted(table.metadata.snapshots, key=lambda one: one.sequence_number or 0)
    return [
        snapshot.snapshot_id
        for snapshot in snapshots[: max(0, len(snapshots) - kept)]
        if snapshot.timestamp_ms < before and snapshot.snapshot_id not in named
    ]


def rows_of(runs: Collection[str]) -> BooleanExpression:
    """Return the expression that selects the rows of these analyses."""
    return In(ANALYSIS, {*runs})  # type: ignore[call-arg,arg-type]  # pydantic hides its signature


def live_files(
    table: Table, out: OutputDirectory, rows: BooleanExpression | None = None
) -> list[TableFile]:
    """Return all files of a table's current state, or only those that may contain some of ``rows``.

    Raises `FlexwireError` if an engine has recorded deleted rows in a separate delete file.
    """
    with iceberg_failures(out, "list"):
        scan = table.scan() if rows is None else table.scan(row_filter=rows)
        tasks: list[FileScanTask] = [*scan.plan_files()]
    if any(task.delete_files for task in tasks):
        raise FlexwireError(
            f"{'.'.join(table.name())} has delete files; merge them into its data files with "
            "Spark's rewrite_data_files, or set its write.delete.mode to copy-on-write"
        )
    schema = table.schema()
    return [
        TableFile(
            name_below(out, task.file.file_path),
            task.file,
            _bounds(schema, task.file.lower_bounds),
            _bounds(schema, task.file.upper_bounds),
        )
        for task in tasks
    ]


def _bounds(schema: Schema, bounds: dict[int, bytes] | None) -> dict[str, Any]:
    """Return the bounds of the columns that flexwire uses, as Python values."""
    return {
        field.name: from_bytes(field.field_type, bounds[field.field_id])
        for field in schema.fields
        if bounds
        and field.field_id in bounds
        and field.name in _BOUNDED
        and isinstance(field.field_type, PrimitiveType)
    }


def analyses_of(file: TableFile, out: OutputDirectory) -> set[str]:
    """Return the analyses that have rows in a file. A file with several analyses is read."""
    if file.analysis is not None:
        return {file.analysis}
    system, root = out.arrow()
    with report_failures(out.url, "read"):
        column = pq.read_table(
            f"{root}/{file.name}", columns=[ANALYSIS], filesystem=system, partitioning=None
        )
    return {*column[ANALYSIS].unique().to_pylist()}


def dataset_of(
    files: Iterable[TableFile], columns: pa.Schema, out: OutputDirectory
) -> ds.FileSystemDataset:
    """Return files as a pyarrow dataset with these columns. Files are opened only when needed."""
    system, root = out.arrow()
    parquet = ds.ParquetFileFormat()
    fragments = [
        parquet.make_fragment(f"{root}/{file.name}", system, _known(file, columns))
        for file in files
    ]
    return ds.FileSystemDataset(fragments, columns, parquet, system)


def _known(file: TableFile, columns: pa.Schema) -> ds.Expression | None:
    """Return an expression that is true for all rows of a file, given the ranges of their times."""
    known = []
    for name in ("time", "first_time"):
        if name in columns.names and name in file.first and name in file.last:
            first, last = moment_at(file.first[name]), moment_at(file.last[name])
            known += [pc.field(name) >= first, pc.field(name) <= last]
    return reduce(lambda one, other: one & other, known) if known else None
