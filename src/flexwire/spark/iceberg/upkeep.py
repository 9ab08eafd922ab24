"""Maintain Iceberg tables: remove old days, old snapshots and old files.

All engines can merge the small files of Iceberg tables, so flexwire does not. The error that
`to_join` raises explains how engines do it. Each step first lists its work, and can be killed at
any moment. A file is removed only if no remaining snapshot lists it.
"""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pyiceberg.expressions import And, BooleanExpression, LessThan

from flexwire.errors import FlexwireError
from flexwire.spark.delta.grown import FileGroup
from flexwire.spark.delta.layout import TABLES, has_days, time_of
from flexwire.spark.iceberg.catalog import iceberg_failures, name_below
from flexwire.spark.iceberg.files import (
    TableFile,
    expire_old,
    live_files,
    old_snapshots,
)
from flexwire.spark.iceberg.output import tables_in
from flexwire.spark.iceberg.tables import REMOVED, retry
from flexwire.tables.output import LEDGER

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from pyiceberg.manifest import ManifestFile
    from pyiceberg.table import Table

    from flexwire.spark.iceberg.tables import IcebergTable
    from flexwire.storage.output_directory import OutputDirectory


_NO_COMPACTION: Final = (
    "flexwire does not compact Iceberg tables. Use your query engine: CALL "
    "CATALOG.system.rewrite_data_files(table => 'DATABASE.frames') in Spark, ALTER TABLE "
    "CATALOG.DATABASE.frames EXECUTE optimize in Trino, "
    "OPTIMIZE DATABASE.frames REWRITE DATA USING BIN_PACK in Athena"
)
_CONNECTIONS: Final = "connections"
_LAST: Final = "last_time"
_HOUR: Final = 60 * 60


def to_join(out: OutputDirectory) -> Iterator[FileGroup]:
    """Raise a `FlexwireError` that explains how engines merge files of Iceberg tables."""
    raise FlexwireError(f"{out}: {_NO_COMPACTION}")


def to_retire(out: OutputDirectory, before: date) -> Iterator[FileGroup]:
    """Yield the files of days before ``before``, except for connections with later traffic."""
    tables = tables_in(out)
    start = datetime(before.year, before.month, before.day, tzinfo=UTC)
    for name in tables.complete_output().names:
        table = tables.table(name).open() if has_days(name) else None
        if table is None:
            continue
        days: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
        for file in _old_files(table, out, name, start):
            told = {"path": file.name, "size": file.data.file_size_in_bytes}
            days[_day(file)].append(told)
        for day, files in sorted(days.items()):
            yield FileGroup(name, day, tuple(files))


def _old_files(
    table: Table, out: OutputDirectory, name: str, start: datetime
) -> Iterator[TableFile]:
    """Yield the files whose rows are all older than a given time."""
    for file in live_files(table, out, _before(name, start)):
        columns = [time_of(name)] + [_LAST] * (name == _CONNECTIONS)
        lasts = [file.last.get(column) for column in columns]
        if all(last is not None and last < _micros(start) for last in lasts):
            yield file


def _before(name: str, start: datetime) -> BooleanExpression:
    expressions = [_less(time_of(name), start)]
    if name == _CONNECTIONS:
        expressions.append(_less(_LAST, start))
    return expressions[0] if len(expressions) == 1 else And(*expressions)


def _less(column: str, moment: datetime) -> BooleanExpression:
    return LessThan(column, moment.isoformat())  # type: ignore[call-arg,arg-type]  # pydantic hides its signature


def _micros(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _day(file: TableFile) -> str:
    return (date(1970, 1, 1) + timedelta(days=file.data.partition[0])).isoformat()


def retire(out: OutputDirectory, groups: Iterable[FileGroup]) -> None:
    """Remove files from their tables, with one commit per table. The files are deleted later."""
    names: defaultdict[str, set[str]] = defaultdict(set)
    for group in groups:
        names[group.table] |= {file["path"] for file in group.files}
    tables = tables_in(out)
    for name, paths in names.items():
        table = tables.table(name)
        retry(partial(_retire, table, paths), table.directory)


def _retire(place: IcebergTable, paths: set[str]) -> int:
    table = place.open()
    if table is None:
        return 0
    left = [file for file in live_files(table, place.out) if file.name in paths]
    if left:
        with (
            table.transaction() as change,
            change.update_snapshot(snapshot_properties={REMOVED: "old days"}).overwrite() as files,
        ):
            for file in left:
                files.delete_data_file(file.data)
    return len(left)


def unnamed_files(out: OutputDirectory, hours: int) -> Iterator[FileGroup]:
    """Yield each table with its files, by path, that only snapshots older than ``hours`` list.

    Files that no snapshot lists are also included if they are older than ``hours``.
    """
    before = datetime.now(UTC) - timedelta(hours=hours)
    for name, place, find in _places(out):
        table = find()
        if table is None:
            continue
        with iceberg_failures(out, "list"):
            named = _named_files(table, out, {*old_snapshots(table, hours * _HOUR)})
        paths = [
            f"{place}/{entry.name}"
            for entry in out.child(place).entries()
            if entry.modified < before and f"{place}/{entry.name}" not in named
        ]
        if paths:
            yield FileGroup(name, None, tuple({"path": path} for path in sorted(paths)))


def _places(out: OutputDirectory) -> Iterator[tuple[str, str, Callable[[], Table | None]]]:
    """Yield each table and the ledger: its name, its directory, and the function that opens it."""
    tables = tables_in(out)
    for name in tables.complete_output().names:
        yield name, f"{TABLES}/{name}", tables.table(name).open
    yield LEDGER, LEDGER, lambda: tables.ledger.snapshot().table


def _named_files(table: Table, out: OutputDirectory, without: set[int]) -> set[str]:
    """Return the files that a table lists, except those that only snapshots in ``without`` list."""
    metadata = table.metadata
    paths = {table.metadata_location, *(entry.metadata_file for entry in metadata.metadata_log)}
    paths |= {statistics.statistics_path for statistics in metadata.statistics}
    paths |= {statistics.statistics_path for statistics in metadata.partition_statistics}
    manifests: dict[str, ManifestFile] = {}
    for snapshot in metadata.snapshots:
        if snapshot.snapshot_id not in without:
            paths.add(snapshot.manifest_list)
            manifests |= {one.manifest_path: one for one in snapshot.manifests(table.io)}
    paths |= manifests.keys()
    for manifest in manifests.values():
        entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
        paths |= {entry.data_file.file_path for entry in entries}
    return {name_below(out, path) for path in paths}


def remove_unnamed_files(out: OutputDirectory, names: Collection[str], hours: int) -> None:
    """Expire snapshots older than ``hours`` in all tables. Remove unnamed files of ``names``."""
    for _, place, find in _places(out):

        def expire(find: Callable[[], Table | None] = find) -> int:
            table = find()
            return 0 if table is None else expire_old(table, hours * _HOUR, kept=0, least=1)

        retry(expire, out.child(place))
    for group in [*unnamed_files(out, hours)]:
        if group.table in names:
            out.remove(file["path"] for file in group.files)
