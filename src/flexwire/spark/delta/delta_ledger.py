"""The ledger as a Delta table: reads use the table's statistics, and commits are not retried."""

from __future__ import annotations

import secrets
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable, Schema
from deltalake.exceptions import CommitFailedError, DeltaError

from flexwire.errors import StorageError
from flexwire.spark.delta.grown import AddedFile
from flexwire.spark.delta.layout import storage_options, table_url
from flexwire.spark.delta.ledger import (
    COLUMNS,
    EARLIEST,
    LATEST,
    CommittedBetweenError,
    Ledger,
    LedgerEntry,
    LedgerSnapshot,
)
from flexwire.spark.delta.logs import (
    CONFIGURATION,
    add_action,
    commit,
    make_private,
    open_table,
    removals,
)
from flexwire.spark.delta.statistics import statistics
from flexwire.storage.filesystems import reason_of, report_failures
from flexwire.tables.output import LEDGER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from flexwire.storage.output_directory import OutputDirectory


@dataclass(frozen=True)
class DeltaLedgerSnapshot(LedgerSnapshot):
    """A version of the ledger's Delta table. ``table`` is None before the first commit."""

    table: DeltaTable | None
    directory: OutputDirectory

    def _names(self) -> list[str]:
        return [] if self.table is None else [field.name for field in self.table.schema().fields]

    def _files(self) -> Iterator[dict[str, Any]]:
        if self.table is None:
            return
        for action in pa.table(self.table.get_add_actions(flatten=True)).to_pylist():
            yield {
                "path": action["path"],
                "size": action["size_bytes"],
                "rows": action["num_records"],
                "first": action.get("min.time") or EARLIEST,
                "last": action.get("max.time") or LATEST,
            }

    def _rows(self, asked: Any, columns: list[str]) -> list[dict[str, Any]]:
        if self.table is None:
            return []
        with report_failures(self.directory.url, "read"):
            dataset = self.table.to_pyarrow_dataset()
            rows: list[dict[str, Any]] = dataset.to_table(columns=columns, filter=asked).to_pylist()
        return rows

    def rows_of(self, files: Iterable[Mapping[str, Any]]) -> list[LedgerEntry]:
        """Return the entries in some of the ledger's files."""
        entries: list[LedgerEntry] = []
        system, root = self.directory.arrow()
        for file in files:
            with report_failures(self.directory.url, "read"):
                rows = pq.read_table(f"{root}/{file['path']}", filesystem=system, partitioning=None)
            entries += self.to_entries(rows.to_pylist())
        return entries


@dataclass(frozen=True, slots=True)
class DeltaLedger(Ledger):
    """The ledger of the grown output in ``out``."""

    out: OutputDirectory

    @property
    def directory(self) -> OutputDirectory:
        """The ledger's directory."""
        return self.out.child(LEDGER)

    def snapshot(self) -> DeltaLedgerSnapshot:
        """Return the current ledger."""
        return DeltaLedgerSnapshot(open_table(self.directory), self.directory)

    def _commit(self, old: DeltaLedgerSnapshot, new: list[LedgerEntry], *, replaces: bool) -> None:
        try:
            if old.columns != COLUMNS.names:
                self._widen(old)
                # Another writer may have created the table and committed to it.
                raise CommittedBetweenError
            self._add(old, new, replaces=replaces)
        except CommitFailedError:
            raise CommittedBetweenError from None
        except DeltaError as error:
            if old.table is None and open_table(self.directory) is not None:
                raise CommittedBetweenError from None  # another writer committed first
            raise StorageError(
                reason_of(error), url=str(self.directory), tried="commit to"
            ) from None

    def _widen(self, old: DeltaLedgerSnapshot) -> None:
        """Create the table, or add the columns that the table of an earlier release lacks."""
        if old.table is None:
            make_private(self.directory)
            DeltaTable.create(
                table_url(self.directory), Schema.from_arrow(COLUMNS), mode="ignore", name=LEDGER,
                configuration=CONFIGURATION, storage_options=storage_options(self.directory),
            )  # fmt: skip
            return
        columns = old.columns
        lacking = Schema.from_arrow(pa.schema([f for f in COLUMNS if f.name not in columns]))
        old.table.alter.add_columns(lacking.fields)

    def _add(self, old: DeltaLedgerSnapshot, new: list[LedgerEntry], *, replaces: bool) -> None:
        assert old.table is not None  # noqa: S101 - for mypy: the table already exists
        removed = old.ledger_files if replaces else old.to_join()
        kept = [] if replaces else old.rows_of(removed)
        rows = pa.Table.from_pylist([asdict(entry) for entry in (*kept, *new)], COLUMNS)
        name = f"{secrets.token_hex(16)}.parquet"
        sink = pa.BufferOutputStream()
        pq.write_table(rows, sink, compression="zstd", store_schema=False)
        data = sink.getvalue().to_pybytes()
        self.directory.write(name, data)
        stats = statistics(pq.read_metadata(pa.BufferReader(data)))
        added = AddedFile(name, len(data), len(rows), stats)
        try:
            # No retries: deltalake would not call `make` again.
            commit(old.table, [add_action(added), *removals(old.table, removed)], tries=0)
        except CommitFailedError:
            self.directory.remove([name])
            raise
