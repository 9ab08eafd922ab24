"""The ledger as an Iceberg table, in the same catalog as the tables that it lists.

An engine that reads the tables can therefore also read the ledger. A commit contains the id of the
snapshot on which it is based, and the catalog refuses the commit if there is a newer snapshot.
pyiceberg must not retry by itself.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyiceberg.exceptions import TableAlreadyExistsError

from flexwire.facts.units import moment_at
from flexwire.spark.delta.ledger import (
    COLUMNS,
    EARLIEST,
    LATEST,
    CommittedBetweenError,
    Ledger,
    LedgerEntry,
    LedgerSnapshot,
)
from flexwire.spark.iceberg.catalog import (
    CONFLICTS,
    iceberg_failures,
    load,
    location,
    open_catalog,
)
from flexwire.spark.iceberg.files import dataset_of, expire_old, live_files, rows_of
from flexwire.spark.iceberg.tables import PROPERTIES
from flexwire.storage.filesystems import report_failures
from flexwire.storage.local import make_private_directory
from flexwire.tables.output import LEDGER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from flexwire.spark.publishing.catalogs import IcebergCatalog
    from flexwire.storage.output_directory import OutputDirectory

_PROPERTIES: Final = {**PROPERTIES, "commit.retry.num-retries": "0"}


@dataclass(frozen=True)
class IcebergLedgerSnapshot(LedgerSnapshot):
    """A state of the ledger's table. ``table`` is None before the first commit."""

    table: Table | None
    out: OutputDirectory

    def _names(self) -> list[str]:
        return [] if self.table is None else self.table.schema().column_names

    def _files(self) -> Iterator[dict[str, Any]]:
        for file in () if self.table is None else live_files(self.table, self.out):
            first, last = file.first.get("time"), file.last.get("time")
            yield {
                "path": file.name,
                "size": file.data.file_size_in_bytes,
                "rows": file.data.record_count,
                "first": EARLIEST if first is None else moment_at(first),
                "last": LATEST if last is None else moment_at(last),
            }

    def _rows(self, asked: Any, columns: list[str]) -> list[dict[str, Any]]:
        if self.table is None:
            return []
        dataset = dataset_of(live_files(self.table, self.out), COLUMNS, self.out)
        with report_failures(self.out.url, "read"):
            rows: list[dict[str, Any]] = dataset.to_table(columns=columns, filter=asked).to_pylist()
        return rows

    def entries_of(self, names: set[str]) -> list[LedgerEntry]:
        """Return the entries in some files of the ledger."""
        files = () if self.table is None else live_files(self.table, self.out)
        dataset = dataset_of([file for file in files if file.name in names], COLUMNS, self.out)
        with report_failures(self.out.url, "read"):
            return self.to_entries(dataset.to_table().to_pylist())


@dataclass(frozen=True, slots=True)
class IcebergLedger(Ledger):
    """The ledger of the output in ``out``."""

    out: OutputDirectory
    catalog: IcebergCatalog
    opened: Catalog | None

    @property
    def directory(self) -> OutputDirectory:
        """The ledger's directory."""
        return self.out.child(LEDGER)

    def snapshot(self) -> IcebergLedgerSnapshot:
        """Return the current ledger."""
        opened = self.opened or open_catalog(self.out, self.catalog)
        with iceberg_failures(self.directory, "open"):
            table = load(opened, self.catalog.place.database, LEDGER)
        return IcebergLedgerSnapshot(table, self.out)

    def _commit(
        self, old: IcebergLedgerSnapshot, new: list[LedgerEntry], *, replaces: bool
    ) -> None:
        try:
            with iceberg_failures(self.directory, "commit to"):
                if old.columns != COLUMNS.names:
                    self._widen(old)
                    # Another writer may have created the table and committed to it.
                    raise CommittedBetweenError
                self._add(old, new, replaces=replaces)
        except (*CONFLICTS, TableAlreadyExistsError):
            raise CommittedBetweenError from None

    def _widen(self, old: IcebergLedgerSnapshot) -> None:
        """Create the table, or add the columns that are missing from an earlier release's table."""
        if old.table is not None:
            with old.table.update_schema() as schema:
                schema.union_by_name(COLUMNS)
            return
        if self.directory.path is not None:
            make_private_directory(self.directory.path)
        opened = self.opened or open_catalog(self.out, self.catalog)
        assert opened is not None  # noqa: S101 - `GrownTables.prepare` made it
        opened.create_table(
            (self.catalog.place.database, LEDGER), COLUMNS,
            location=location(self.directory), properties=_PROPERTIES,
        )  # fmt: skip

    def _add(self, old: IcebergLedgerSnapshot, new: list[LedgerEntry], *, replaces: bool) -> None:
        table = old.table
        assert table is not None  # noqa: S101 - for mypy: the table already exists
        removed = {file["path"] for file in (old.ledger_files if replaces else old.to_join())}
        kept = [] if replaces or not removed else old.entries_of(removed)
        rows = pa.Table.from_pylist([asdict(entry) for entry in (*kept, *new)], COLUMNS)
        with table.transaction() as change:
            if replaces and removed:
                change.overwrite(rows)
            elif removed:
                change.overwrite(rows, rows_of([entry.analysis for entry in kept]))
            else:
                change.append(rows)
        expire_old(table)
