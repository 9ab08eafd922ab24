"""Read an output of Iceberg tables: the rows of analyses whose state in its ledger is "in".

Iceberg has no 8-bit or 16-bit integers. Columns that tasks wrote with these widths are converted
back when they are read. An answer therefore receives the types that docs/tables.md lists, whatever
the format is.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from flexwire.arguments import refuse
from flexwire.errors import FlexwireError
from flexwire.facts.units import moment_at
from flexwire.spark.delta.grown import GrownOutput, GrownTables, run_directory, to_directory
from flexwire.spark.delta.layout import AT_ONCE, FIXED, check_scheme, has_days, time_of
from flexwire.spark.iceberg.catalog import (
    iceberg_failures,
    load,
    location,
    make_catalog,
    open_catalog,
)
from flexwire.spark.iceberg.files import TableFile, analyses_of, dataset_of, live_files
from flexwire.spark.iceberg.ledger import IcebergLedger
from flexwire.spark.iceberg.tables import IcebergTable
from flexwire.spark.publishing.catalogs import IcebergCatalog
from flexwire.storage.store_listing import FileEntry
from flexwire.tables import schema
from flexwire.tables.keys import ANALYSIS
from flexwire.tables.message_schema import table_schema
from flexwire.tables.output import ICEBERG_CATALOG, LEDGER, MESSAGES, is_delta, is_iceberg

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow.dataset as ds
    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

    from flexwire.storage.output_directory import OutputDirectory


# A table does not record when a file was written.
_NEVER: Final = moment_at(0)
_LARGE: Final = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}


@dataclass(frozen=True)
class IcebergTables(GrownTables):
    """The Iceberg tables in ``out``, opened through their catalog."""

    out: OutputDirectory
    catalog: IcebergCatalog

    @cached_property
    def opened(self) -> Catalog | None:
        """The catalog, or None before the first commit creates the catalog's file."""
        opened = open_catalog(self.out, self.catalog)
        if opened is not None:
            weakref.finalize(self, opened.close)
        return opened

    @cached_property
    def at_once(self) -> int:  # type: ignore[override]  # it depends on the catalog
        """The largest number of tables to commit to at the same time: 1 for SQLite."""
        return 1 if self.catalog.name is None else AT_ONCE

    @property
    def ledger(self) -> IcebergLedger:
        """The ledger, which lists the analyses in the tables."""
        return IcebergLedger(self.out, self.catalog, self.opened)

    def table(self, name: str) -> IcebergTable:
        """Return a table, which need not exist yet."""
        return IcebergTable(self.out, self.catalog, self.opened, name)

    def output(self, run: str) -> IcebergOutput:
        """Return the output, with the report of one analysis."""
        return IcebergOutput(run_directory(self.out, run), self.out, self)

    def check(self) -> None:
        """Raise `StorageError` or `FlexwireError` if an analysis cannot add to this output."""
        check_scheme(self.out)
        location(self.out)
        if is_delta(self.out):
            raise FlexwireError(
                f"{self.out} holds Delta tables; choose another --out for Iceberg tables"
            )
        if is_iceberg(self.out) and (kept := _kept(self.out)).place != self.catalog.place:
            raise FlexwireError(
                f"{self.out} keeps its tables in the catalog {kept.place}, not in "
                f"{self.catalog.place}; use the existing catalog, or choose another --out"
            )
        with iceberg_failures(self.out, "open the ledger of"):
            ledger = load(self.opened, self.catalog.place.database, LEDGER)
        if ledger is not None and ledger.location() != location(self.out.child(LEDGER)):
            raise FlexwireError(
                f"the database {self.catalog.place} holds the tables of another output, in "
                f"{ledger.location()}; use another database for {self.out}"
            )

    def prepare(self) -> None:
        """Create the catalog's file and the database."""
        if self.opened is None or not is_iceberg(self.out):
            made = make_catalog(self.out, self.catalog)
            self.__dict__["opened"] = made
            weakref.finalize(self, made.close)


@dataclass(frozen=True)
class IcebergOutput(GrownOutput):
    """All Iceberg tables of ``out``, and the other files of one analysis, such as its report."""

    iceberg: IcebergTables

    @property
    def tables(self) -> IcebergTables:
        """The tables, opened through their catalog."""
        return self.iceberg

    def files(self, name: str) -> list[FileEntry]:
        """Return the files of a table that belong to analyses with the state "in"."""
        return [_entry(file) for file in self._state(name).files if self._is_wanted(name, file)]

    def files_by_day(self, name: str) -> dict[str, list[FileEntry]] | None:
        """Return the files of a table by the day of their rows, or None if a day is unknown."""
        by_day: dict[str, list[FileEntry]] = {}
        for file in self._state(name).files:
            days = file.days(time_of(name))
            if days is None:
                return None
            for day in days:
                by_day.setdefault(day, []).append(_entry(file))
        return by_day

    def schema(self, name: str) -> pa.Schema:
        """Return the columns of a table. The last column is ``analysis``."""
        return self._state(name).columns

    def dataset(self, name: str) -> ds.Dataset:
        """Return a table as a pyarrow dataset."""
        state = self._state(name)
        files = [file for file in state.files if self._is_wanted(name, file)]
        return dataset_of(files, state.columns, self.out)

    def _state(self, name: str) -> _TableState:
        """Return a table in its state at the first use.

        Engines merge only files of analyses that the ledger lists. Analyses are always replaced all
        together, so checking one analysis of a merged file is enough.
        """
        if name not in self.states:
            table = self.iceberg.table(name).open() if name in self.names else None
            if table is None:
                raise refuse("name", f"a table of {self.out}", name)
            runs = {entry.analysis for entry in self.entries}
            files = [file for file in live_files(table, self.out) if self._is_in(runs, file)]
            self.states[name] = _TableState(_columns(name, table), files)
        state: _TableState = self.states[name]
        return state

    def _is_wanted(self, name: str, file: TableFile) -> bool:
        """Return whether a file may contain rows from a wanted day."""
        if self.wanted is None or not has_days(name):
            return True
        days = file.days(time_of(name))
        return days is None or any(map(self.wanted, days))

    def _is_in(self, runs: set[str], file: TableFile) -> bool:
        # An engine may truncate the bounds that it writes. Truncated bounds do not show the
        # analysis.
        return file.first.get(ANALYSIS) in runs or not runs.isdisjoint(analyses_of(file, self.out))


@dataclass(frozen=True, slots=True)
class _TableState:
    """The columns of a table, and its files from analyses that have the state "in"."""

    columns: pa.Schema
    files: list[TableFile]


def _entry(file: TableFile) -> FileEntry:
    return FileEntry(file.name, file.data.file_size_in_bytes, _NEVER, "")


def _columns(name: str, table: Table) -> pa.Schema:
    place, _, message = name.partition("/")
    declared = table_schema(message) if place == MESSAGES else schema.schema_of(FIXED[name])
    kind = pa.struct([*table.schema().as_arrow()])
    return pa.schema([*as_declared(kind, pa.struct([*declared]))])


def as_declared(kind: pa.DataType, declared: pa.DataType | None) -> pa.DataType:
    """Return the Arrow type of an Iceberg type, with the declared number of bits, if any."""
    if pa.types.is_struct(kind):
        own: Any = declared if declared is not None and pa.types.is_struct(declared) else ()
        types = {field.name: field.type for field in own}
        return pa.struct([_field(field.name, field, types.get(field.name)) for field in kind])
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        inner = None if declared is None else getattr(declared, "value_type", None)
        return pa.list_(_field("item", kind.value_field, inner))
    if pa.types.is_int32(kind) and declared is not None and pa.types.is_integer(declared):
        return declared
    return _LARGE.get(kind, kind)


def _field(name: str, field: pa.Field, declared: pa.DataType | None) -> pa.Field:
    return pa.field(name, as_declared(field.type, declared), nullable=field.nullable)


def _kept(out: OutputDirectory) -> IcebergCatalog:
    return IcebergCatalog.from_json(out.read(ICEBERG_CATALOG))


def tables_in(out: OutputDirectory) -> IcebergTables:
    """Return the Iceberg tables of an output. Raises `FlexwireError` if it contains none."""
    if not is_iceberg(out):
        raise FlexwireError(f"{out} holds no Iceberg tables: {ICEBERG_CATALOG} is missing")
    return IcebergTables(out, _kept(out))


def output(out: str | Path) -> IcebergOutput:
    """Return the output in ``out``, by path or URL, with the report of the last analysis."""
    found = tables_in(to_directory(out)).complete_output()
    assert isinstance(found, IcebergOutput)  # noqa: S101 - for mypy
    return found
