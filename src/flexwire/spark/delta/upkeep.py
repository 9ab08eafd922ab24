"""Upkeep of tables that grow: merges small files, removes old days, and removes leftover files.

Each step first lists what it will do, and can be killed at any moment. A file is written before a
commit lists it. A file is removed only a long time after the last commit that listed the file.

- `to_join` and `join` merge the small files of one day of a table into one file. Only files of
  analyses with the state "in" are merged, so that other analyses can still be removed file by file.
  A merged file is merged again once the new files together reach an eighth of its size. This limits
  how often the same byte is rewritten.
- `to_retire` and `retire` remove the days before a given day from the tables. A connection is kept
  if it was still seen on or after the given day. The ledger keeps its entries, so that no capture
  is analyzed again.
- `unnamed_files` and `remove_unnamed_files` remove files that no table lists and no reader uses.
"""

from __future__ import annotations

import secrets
import tempfile
from collections import defaultdict
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from flexwire.errors import AnalysisError
from flexwire.spark.delta.grown import AddedFile, FileGroup
from flexwire.spark.delta.layout import DAY, TABLES, has_days
from flexwire.spark.delta.logs import (
    JOINED,
    TableLog,
    add_action,
    added_files,
    commit,
    is_joined,
    open_table,
    removals,
)
from flexwire.spark.delta.output import only_files, output
from flexwire.spark.delta.statistics import statistics
from flexwire.spark.publishing.compaction import LEAST_PARTS
from flexwire.spark.publishing.table_files import WHOLE_BYTES
from flexwire.storage.filesystems import report_failures
from flexwire.tables.keys import ANALYSIS
from flexwire.tables.output import LEDGER
from flexwire.tables.parquet import TableWriter

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from deltalake import DeltaTable

    from flexwire.storage.output_directory import OutputDirectory

# A merged file is merged again once the smaller files together reach an eighth of its size.
_SHARE: Final = 8
_CONNECTIONS: Final = "connections"


def to_join(out: OutputDirectory) -> Iterator[FileGroup]:
    """Yield the groups of files to merge."""
    grown = output(out.url)
    # The last analysis is left out, because `staging.undo` may remove its files.
    runs = {entry.analysis for entry in grown.entries[:-1]}
    for name in grown.names:
        table = TableLog(out, name).open()
        # A table from an earlier release is partitioned by analysis.
        if table is not None and ANALYSIS not in table.metadata().partition_columns:
            yield from _groups(name, table, runs)


def _groups(name: str, table: DeltaTable, runs: set[str]) -> Iterator[FileGroup]:
    days: defaultdict[str | None, list[dict[str, Any]]] = defaultdict(list)
    files = added_files(table)
    for file in files:
        # Files that another writer has merged may contain rows from any analysis.
        if file[ANALYSIS] in runs or is_joined(file["path"]):
            days[file[DAY]].append(file)
    latest = max((file[DAY] for file in files if file[DAY] is not None), default=None)
    for day, of_day in sorted(days.items(), key=lambda item: item[0] or ""):
        chosen = _small(of_day)
        least = LEAST_PARTS if day == latest else 2
        if len(chosen) >= least:
            yield FileGroup(name, day, tuple(chosen))


def _small(files: list[dict[str, Any]]) -> list[dict[str, Any]]:
    chosen: list[dict[str, Any]] = []
    size = 0
    for file in sorted(files, key=lambda file: (file["size"], file["path"])):
        if file["size"] >= WHOLE_BYTES or (
            is_joined(file["path"]) and file["size"] > size * _SHARE
        ):
            continue
        chosen.append(file)
        size += file["size"]
    return chosen


def join(out: OutputDirectory, group: FileGroup) -> int:
    """Replace a group of files with large files, and return the number of large files."""
    log = TableLog(out, group.table)
    # If another commit removes one of these files in the meantime, this commit fails.
    table = log.open()
    paths = set() if table is None else {file["path"] for file in added_files(table)}
    if table is None or not paths.issuperset(file["path"] for file in group.files):
        return 0
    fields = [field for field in pa.schema(table.schema().to_arrow()) if field.name != DAY]
    with tempfile.TemporaryDirectory() as scratch:
        added = [*_write(log, table, group, pa.schema(fields), Path(scratch))]
    expected, rows = sum(file["rows"] for file in group.files), sum(file.rows for file in added)
    try:
        _check_rows(log, expected, rows)
        values = {DAY: group.day} if has_days(group.table) else {}
        actions = [add_action(file, values, is_new=False) for file in added]
        with report_failures(log.directory.url, "commit to"):
            commit(table, [*removals(table, group.files, is_change=False), *actions])
    except BaseException:
        log.directory.remove([file.name for file in added])
        raise
    return len(added)


def _check_rows(log: TableLog, expected: int, rows: int) -> None:
    if rows != expected:
        raise AnalysisError(f"{log.directory}: expected {expected} rows in files, got {rows}")


def _write(
    log: TableLog, table: DeltaTable, group: FileGroup, columns: pa.Schema, scratch: Path
) -> Iterator[AddedFile]:
    """Write the rows of a group to a few large files, and put these into the table's directory."""
    dataset = table.to_pyarrow_dataset()
    parts = only_files(dataset, {file["path"] for file in group.files})
    # Row groups are read one at a time, because the rows of a table can be large.
    batches = parts.to_batches(columns=columns.names, batch_readahead=0, fragment_readahead=0)
    for first in batches:
        local = scratch / f"{JOINED}{secrets.token_hex(16)}.parquet"
        with TableWriter(local, columns) as writer:
            writer.write(first)
            while local.stat().st_size < WHOLE_BYTES and (batch := next(batches, None)) is not None:
                writer.write(batch)
        name = local.name if group.day is None else f"{DAY}={group.day}/{local.name}"
        size, stats = local.stat().st_size, statistics(pq.read_metadata(local))
        log.directory.put(local, name)
        local.unlink(missing_ok=True)
        yield AddedFile(name, size, writer.rows, stats)


def to_retire(out: OutputDirectory, before: date) -> Iterator[FileGroup]:
    """Yield the files of days before ``before``, except for connections with later traffic."""
    start = datetime(before.year, before.month, before.day, tzinfo=UTC)
    for name in output(out.url).names:
        table = TableLog(out, name).open() if has_days(name) else None
        if table is None:
            continue
        days: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for file in added_files(table):
            is_open = name == _CONNECTIONS and (
                file["last_time"] is None or file["last_time"] >= start
            )
            if file[DAY] is not None and file[DAY] < before.isoformat() and not is_open:
                days[file[DAY]].append(file)
        for day, files in sorted(days.items()):
            yield FileGroup(name, day, tuple(files))


def retire(out: OutputDirectory, groups: Iterable[FileGroup]) -> None:
    """Remove files from tables, with one commit per table; `vacuum` deletes the files later."""
    tables: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for group in groups:
        tables[group.table] += group.files
    for name, files in tables.items():
        log = TableLog(out, name)
        table = log.open()
        assert table is not None  # noqa: S101 - for mypy: the table contains the files
        paths = {file["path"] for file in files}
        left = [file for file in added_files(table) if file["path"] in paths]
        if left:
            with report_failures(log.directory.url, "commit to"):
                commit(table, removals(table, left))


def unnamed_files(out: OutputDirectory, hours: int) -> Iterator[FileGroup]:
    """Yield, for each table, the paths of files that were not listed in it for ``hours``."""
    for name, table in _tables(out):
        if paths := _vacuum(table, hours, dry_run=True):
            yield FileGroup(name, None, tuple({"path": path} for path in sorted(paths)))


def remove_unnamed_files(out: OutputDirectory, names: Collection[str], hours: int) -> None:
    """Remove files that were not listed in these tables for ``hours``."""
    for name, table in _tables(out):
        if name in names:
            _vacuum(table, hours, dry_run=False)


def _vacuum(table: DeltaTable, hours: int, *, dry_run: bool) -> list[str]:
    with report_failures(table.table_uri, "list"):
        return table.vacuum(hours, dry_run, enforce_retention_duration=False, full=True)


def _tables(out: OutputDirectory) -> Iterator[tuple[str, DeltaTable]]:
    places = {name: f"{TABLES}/{name}" for name in output(out.url).names} | {LEDGER: LEDGER}
    for name, place in places.items():
        if (table := open_table(out.child(place))) is not None:
            yield name, table
