"""One Iceberg table. Each change (columns, new or removed files) is one commit to the catalog."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyiceberg.exceptions import TableAlreadyExistsError, ValidationError
from pyiceberg.transforms import DayTransform

from flexwire.errors import FlexwireError
from flexwire.spark.delta.grown import AddedFile, GrownTable, retry_commit
from flexwire.spark.delta.layout import TABLES, has_days, time_of
from flexwire.spark.iceberg.catalog import (
    CONFLICTS,
    iceberg_failures,
    load,
    location,
    open_catalog,
)
from flexwire.spark.iceberg.files import analyses_of, expire_old, live_files, rows_of
from flexwire.spark.publishing.catalogs import catalog_table
from flexwire.storage.filesystems import reason_of
from flexwire.storage.local import make_private_directory
from flexwire.tables.keys import ANALYSIS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table, Transaction

    from flexwire.spark.publishing.catalogs import IcebergCatalog
    from flexwire.storage.output_directory import OutputDirectory


ADDED: Final = "flexwire.analysis"
"""The property of a snapshot that contains the name of the analysis that it added."""
REMOVED: Final = "flexwire.removed"
_DAY: Final = "day"
_LOGGER: Final = logging.getLogger("pyiceberg.io.pyarrow")
PROPERTIES: Final = {
    "format-version": "2",
    # An analysis's name is longer than the 16 characters that statistics keep by default.
    f"write.metadata.metrics.column.{ANALYSIS}": "full",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "20",
    "commit.manifest-merge.enabled": "true",
    "commit.manifest.min-count-to-merge": "50",
}


@dataclass(frozen=True, slots=True)
class IcebergTable(GrownTable):
    """The table ``name`` of an output."""

    out: OutputDirectory
    catalog: IcebergCatalog
    opened: Catalog | None
    name: str

    @property
    def directory(self) -> OutputDirectory:
        """The directory of the table and its files."""
        return self.out.child(f"{TABLES}/{self.name}")

    def open(self) -> Table | None:
        """Return the table in its current state, if the table exists."""
        # A running analysis may have created the catalog's file in the meantime.
        opened = self.opened or open_catalog(self.out, self.catalog)
        with iceberg_failures(self.directory, "open"):
            return load(opened, self.catalog.place.database, self.name)

    def add(self, files: Sequence[AddedFile], columns: pa.Schema, run: str) -> int:
        """Add files of an analysis with these columns. Return the snapshot that contains them.

        One commit creates the table or adds its new columns, and adds the files. If the table
        already contains the analysis, it does not change. In this case an earlier attempt
        succeeded, and only its reply was lost.
        """
        own = [field for field in columns if field.name != ANALYSIS]
        whole = pa.schema([*own, pa.field(ANALYSIS, pa.string())])
        return retry(lambda: self._add(files, whole, run), self.directory)

    def _add(self, files: Sequence[AddedFile], columns: pa.Schema, run: str) -> int:
        table = self.open()
        if table is not None and (snapshot := snapshot_of(table, run)) is not None:
            return snapshot
        if table is None:
            return self._make(files, columns, run)
        expire_old(table)
        with table.transaction() as change:
            self._widen(change, columns)
            self._add_files(change, files, run)
        return _version(table)

    def _make(self, files: Sequence[AddedFile], columns: pa.Schema, run: str) -> int:
        opened = self.opened or open_catalog(self.out, self.catalog)
        assert opened is not None  # noqa: S101 - `GrownTables.prepare` made it
        if self.directory.path is not None:
            make_private_directory(self.directory.path)
        identifier = (self.catalog.place.database, catalog_table(self.name))
        change = opened.create_table_transaction(
            identifier, columns, location=location(self.directory), properties=PROPERTIES
        )
        if has_days(self.name):
            with change.update_spec() as spec:
                spec.add_field(time_of(self.name), DayTransform(), _DAY)
        self._add_files(change, files, run)
        return _version(change.commit_transaction())

    def _add_files(self, change: Transaction, files: Sequence[AddedFile], run: str) -> None:
        if not files:
            return
        paths = [f"{location(self.directory)}/{file.name}" for file in files]
        # The ledger ensures that no file is added twice. If pyiceberg itself checked this, it would
        # read all manifests.
        with _without_warnings_of_statistics():
            change.add_files(paths, snapshot_properties={ADDED: run}, check_duplicate_files=False)

    def _widen(self, change: Transaction, columns: pa.Schema) -> None:
        """Add missing columns to the table before files with these columns are added."""
        try:
            with change.update_schema() as schema:
                schema.union_by_name(columns)
        except (ValidationError, ValueError, TypeError) as error:
            raise FlexwireError(
                f"the columns of table {self.name} differ from those of an earlier analysis, and "
                f"Iceberg cannot convert the columns: {reason_of(error)}; choose another --out"
            ) from None

    def analyses(self, runs: Collection[str]) -> set[str]:
        """Return those of the given analyses that have rows in the table."""
        table = self.open()
        if table is None:
            return set()
        analyses: set[str] = set()
        for file in live_files(table, self.out, rows_of(runs)):
            analyses |= analyses_of(file, self.out) & {*runs}
        return analyses

    def own_files(self, run: str) -> list[dict[str, Any]] | None:
        """Return the files of an analysis, or None if a file also has rows of other analyses."""
        table = self.open()
        files = [] if table is None else live_files(table, self.out, rows_of({run}))
        own = [file for file in files if run in analyses_of(file, self.out)]
        if any(file.analysis != run for file in own):
            return None
        return [{"path": file.name, "size": file.data.file_size_in_bytes} for file in own]

    def remove(self, runs: Collection[str]) -> None:
        """Remove the rows of these analyses from the table. The files themselves are kept.

        If an engine has merged a file with other files, the new file is rewritten without these
        rows.
        """
        retry(lambda: self._remove({*runs}), self.directory)

    def _remove(self, runs: set[str]) -> int:
        table, rows = self.open(), rows_of(runs)
        if table is None or not live_files(table, self.out, rows):
            return 0
        table.delete(rows, snapshot_properties={REMOVED: ",".join(sorted(runs))})
        return 0


@contextmanager
def _without_warnings_of_statistics() -> Iterator[None]:
    """Suppress pyiceberg's warning for each column without statistics.

    Some columns intentionally have no statistics: see `flexwire.tables.parquet`.
    """

    def is_other(record: logging.LogRecord) -> bool:
        return not str(record.msg).startswith("PyArrow statistics missing")

    _LOGGER.addFilter(is_other)
    try:
        yield
    finally:
        _LOGGER.removeFilter(is_other)


def snapshot_of(table: Table, run: str) -> int | None:
    """Return the snapshot that added an analysis to a table, if there is one."""
    for snapshot in table.metadata.snapshots:
        told = {} if snapshot.summary is None else snapshot.summary.additional_properties
        if told.get(ADDED) == run:
            return snapshot.snapshot_id
    return None


def _version(table: Table) -> int:
    snapshot = table.current_snapshot()
    return 0 if snapshot is None else snapshot.snapshot_id


def retry(change: Callable[[], int], directory: OutputDirectory) -> int:
    """Return the result of a change to a table, as `retry_commit` does."""

    def changed() -> int:
        with iceberg_failures(directory, "commit to"):
            return change()

    return retry_commit(changed, directory, (*CONFLICTS, TableAlreadyExistsError))
