"""Reads a grown output: of each table the rows of those analyses that its ledger says are in."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import pyarrow.dataset as ds

from flexwire.arguments import refuse
from flexwire.errors import FlexwireError
from flexwire.facts.units import moment_at
from flexwire.spark.delta.layout import ALWAYS, DAY, TABLES, split, with_logs
from flexwire.spark.delta.ledger import IN, Ledger, LedgerEntry
from flexwire.spark.delta.logs import TableLog, added_files
from flexwire.storage.output_directory import OutputDirectory
from flexwire.storage.store_listing import FileEntry as File
from flexwire.tables.keys import ANALYSIS
from flexwire.tables.output import LEDGER, RUNS, Output

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    import pyarrow as pa
    from deltalake import DeltaTable

    from flexwire.spark.delta.layout import DeltaDirectory


# When a file was written, no table says.
_NEVER: Final = moment_at(0)


@dataclass(frozen=True)
class DeltaOutput(Output):
    """All tables of ``out``; the files beside them are of one analysis, whose place this is.

    What the ledger said when it was first asked is what is read. ``wanted`` says of which days.
    """

    out: OutputDirectory
    wanted: Callable[[str], bool] | None = None

    def on_days(self, wanted: Callable[[str], bool]) -> DeltaOutput:
        """Return the output with only the files of these days. Tables without days have all."""
        return replace(self, wanted=wanted)

    @property
    def is_continued(self) -> bool:
        """Whether connections go on from one of its analyses to the next."""
        return any(entry.state_before is not None for entry in self.entries)

    @property
    def root(self) -> OutputDirectory:
        """The directory below which the names of `files` lie."""
        return self.out

    def where(self, name: str) -> str:
        """Return the path or URL of a file or directory in it."""
        inner = name.split("/", maxsplit=1)[0] == TABLES
        return str((self.out if inner else self.place).child(name))

    @property
    def names(self) -> list[str]:
        """The tables to which one of the analyses has added."""
        return sorted({table["name"] for entry in self.entries for table in entry.tables})

    def files(self, name: str) -> list[File]:
        """Return the files of a table that are in."""
        return [
            File(f"{TABLES}/{name}/{file['path']}", file["size"], _NEVER, "")
            for file in self._files_in(self._table(name))
        ]

    def _files_in(self, table: DeltaTable) -> list[dict[str, Any]]:
        """Return the files of analyses that are in.

        What was joined was in. Analyses are replaced all at once, so one of them tells of all.
        """
        runs = {None, *(entry.analysis for entry in self.entries)}
        files = [file for file in added_files(table) if (file[ANALYSIS] or file["one_of"]) in runs]
        if self.wanted is None:
            return files
        return [file for file in files if file[DAY] is None or self.wanted(file[DAY])]

    def schema(self, name: str) -> pa.Schema:
        """Return the columns of a table; ``day`` and ``analysis`` are the last."""
        return self.dataset(name).schema

    def dataset(self, name: str) -> ds.Dataset:
        """Return a table as a dataset of pyarrow."""
        table = self._table(name)
        paths = {file["path"] for file in self._files_in(table)}
        return only_files(table.to_pyarrow_dataset(), paths)

    def _table(self, name: str) -> DeltaTable:
        table = TableLog(self.out, name).open() if name in self.names else None
        if table is None:
            raise refuse("name", f"a table of {self.out}", name)
        return table

    @cached_property
    def entries(self) -> list[LedgerEntry]:
        """The analyses that are in, the first one first; not the numbers of their files."""
        return entries_in(self.out)


def only_files(dataset: ds.FileSystemDataset, paths: Collection[str]) -> ds.FileSystemDataset:
    """Return some of the files of a dataset, with what is known of each."""
    fragments = [part for part in dataset.get_fragments() if part.path in paths]
    return ds.FileSystemDataset(fragments, dataset.schema, dataset.format, dataset.filesystem)


def entries_in(out: OutputDirectory) -> list[LedgerEntry]:
    """Return the entries of the analyses that are in, without the numbers of their files."""
    entries = Ledger(out).snapshot().entries(files=False)
    return [entry for entry in entries if entry.state == IN]


@dataclass(frozen=True)
class StagedOutput(Output):
    """The tables of one analysis before they are in, as its ``staged`` place has them.

    ``place`` is the one that they grow in.
    """

    staged: DeltaDirectory
    counts: Mapping[str, int]

    @cached_property
    def _expected(self) -> Mapping[str, int]:
        # By day, a file of a task becomes one or some.
        return self.counts

    def schema(self, name: str) -> pa.Schema:
        """Return the columns of a table, as they are of one analysis alone."""
        schema = super().schema(name)
        at = schema.get_field_index(ANALYSIS)
        return schema if at < 0 else schema.remove(at)

    @cached_property
    def _listed(self) -> dict[str, list[File]]:
        # Without a row a table has no file here.
        tables: dict[str, list[File]] = {name: [] for name in ALWAYS}
        for entry in self.staged.entries(f"{TABLES}/"):
            table, _ = split(entry.name)
            tables.setdefault(table, []).append(entry._replace(name=self.staged.at(entry.name)))
        return {table: sorted(files) for table, files in with_logs(tables).items()}


def output(out: str | Path) -> DeltaOutput:
    """Return the grown output in ``out``, by path or URL, with the report of the last analysis."""
    if not isinstance(out, str) and not hasattr(out, "__fspath__"):
        raise refuse("out", "a str or Path", out)
    directory = OutputDirectory(str(out))
    entries = entries_in(directory)
    if not entries:
        raise FlexwireError(
            f"there is no complete analysis in {directory}: its {LEDGER} is not there, or has none"
        )
    return DeltaOutput(directory.child(f"{RUNS}/{entries[-1].analysis}"), directory)
