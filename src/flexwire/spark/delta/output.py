"""Reads a grown output: the rows of analyses that have the state "in" in the ledger."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow.dataset as ds
import pyarrow.parquet as pq

from flexwire.arguments import refuse
from flexwire.errors import FlexwireError
from flexwire.facts.units import moment_at
from flexwire.spark.delta.delta_ledger import DeltaLedger
from flexwire.spark.delta.grown import (
    GrownOutput,
    GrownTables,
    run_directory,
    to_directory,
)
from flexwire.spark.delta.layout import AT_ONCE, DAY, TABLES, check_scheme
from flexwire.spark.delta.logs import TableLog, added_files
from flexwire.spark.delta.statistics import statistics
from flexwire.storage.store_listing import FileEntry as File
from flexwire.tables.keys import ANALYSIS
from flexwire.tables.output import is_iceberg

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa
    from deltalake import DeltaTable

    from flexwire.spark.delta.grown import AddedFile
    from flexwire.storage.output_directory import OutputDirectory


# A table does not record when a file was written.
_NEVER: Final = moment_at(0)


@dataclass(frozen=True)
class DeltaTables(GrownTables):
    """The Delta tables in ``out``."""

    out: OutputDirectory
    at_once = AT_ONCE

    @property
    def ledger(self) -> DeltaLedger:
        """The ledger, which lists the analyses in the tables."""
        return DeltaLedger(self.out)

    def table(self, name: str) -> TableLog:
        """Return a table, which need not exist yet."""
        return TableLog(self.out, name)

    def output(self, run: str) -> DeltaOutput:
        """Return the output, with the report of one analysis."""
        return DeltaOutput(run_directory(self.out, run), self.out)

    def check(self) -> None:
        """Raise `StorageError` or `FlexwireError` if an analysis cannot add to this output."""
        check_scheme(self.out)
        if is_iceberg(self.out):
            raise FlexwireError(
                f"{self.out} holds Iceberg tables; choose another --out for Delta tables"
            )

    def prepare(self) -> None:
        """Do nothing, because the first commit creates a table."""

    def with_statistics(self, table: str, files: Sequence[AddedFile]) -> list[AddedFile]:
        """Return files with column statistics for Delta's log, read from the footers."""
        system, root = self.table(table).directory.arrow()
        return [
            replace(
                file, stats=statistics(pq.read_metadata(f"{root}/{file.name}", filesystem=system))
            )
            for file in files
        ]


@dataclass(frozen=True)
class DeltaOutput(GrownOutput):
    """All Delta tables of ``out``, and the other files of one analysis, such as its report."""

    @property
    def tables(self) -> DeltaTables:
        """The tables."""
        return DeltaTables(self.out)

    def files(self, name: str) -> list[File]:
        """Return the files of a table that belong to analyses with the state "in"."""
        return [_entry(name, file) for file in self._state(name).files if self._is_wanted(file)]

    def files_by_day(self, name: str) -> dict[str, list[File]] | None:
        """Return the files of a table by the day of their rows, or None if a day is unknown."""
        state, by_day = self._state(name), dict[str, list[File]]()
        # A table with reader features may list a file's deleted rows in a separate file. pyarrow's
        # reader refuses such a table.
        if state.table.protocol().reader_features:
            return None
        for file in state.files:
            if file[DAY] is None:
                return None
            by_day.setdefault(file[DAY], []).append(_entry(name, file))
        return by_day

    def _is_wanted(self, file: Mapping[str, Any]) -> bool:
        return self.wanted is None or file[DAY] is None or self.wanted(file[DAY])

    def schema(self, name: str) -> pa.Schema:
        """Return the columns of a table; the last two are ``day`` and ``analysis``."""
        return self.dataset(name).schema

    def dataset(self, name: str) -> ds.Dataset:
        """Return a table as a pyarrow dataset."""
        state = self._state(name)
        paths = {file["path"] for file in state.files if self._is_wanted(file)}
        return only_files(state.table.to_pyarrow_dataset(), paths)

    def _state(self, name: str) -> _TableState:
        """Return a table in its state at the first use.

        Only files of analyses with the state "in" are ever merged. Analyses are always replaced all
        together, so checking one analysis of a merged file is enough.
        """
        if name not in self.states:
            table = TableLog(self.out, name).open() if name in self.names else None
            if table is None:
                raise refuse("name", f"a table of {self.out}", name)
            runs = {None, *(entry.analysis for entry in self.entries)}
            files = added_files(table)
            own = [file for file in files if (file[ANALYSIS] or file["one_of"]) in runs]
            self.states[name] = _TableState(table, own)
        state: _TableState = self.states[name]
        return state


@dataclass(frozen=True, slots=True)
class _TableState:
    """A table at one version, with only the files of analyses that have the state "in"."""

    table: DeltaTable
    files: list[dict[str, Any]]


def _entry(name: str, file: Mapping[str, Any]) -> File:
    return File(f"{TABLES}/{name}/{file['path']}", file["size"], _NEVER, "")


def only_files(dataset: ds.FileSystemDataset, paths: Collection[str]) -> ds.FileSystemDataset:
    """Return a dataset that contains some files of a dataset, and known facts about their rows."""
    fragments = [part for part in dataset.get_fragments() if part.path in paths]
    return ds.FileSystemDataset(fragments, dataset.schema, dataset.format, dataset.filesystem)


def tables_in(out: OutputDirectory) -> DeltaTables:
    """Return the tables of an output, which need not contain an analysis yet."""
    return DeltaTables(out)


def output(out: str | Path) -> DeltaOutput:
    """Return the grown output in ``out``, by path or URL, with the report of the last analysis."""
    tables = DeltaTables(to_directory(out))
    found = tables.complete_output()
    assert isinstance(found, DeltaOutput)  # noqa: S101 - for mypy
    return found
