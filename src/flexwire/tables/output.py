"""The output of an analysis, read by path or URL: which one is complete, its tables, its files.

In a directory of this machine the output is the directory. In a store it is the run that
``current.json`` names (`flexwire.spark.publishing.object_store` says why), which nothing changes
any more: an `Output` that was opened reads that one to the end. Keys are those of
`flexwire.storage`.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from flexwire.arguments import refuse
from flexwire.errors import FlexwireError
from flexwire.storage.filesystems import report_failures
from flexwire.storage.output_directory import OutputDirectory
from flexwire.tables import schema
from flexwire.tables.log_schema import LOG_TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from flexwire.storage.store_listing import FileEntry


# Spark leaves names with an underscore before them alone.
MARKER: Final = "_flexwire.json"
SUCCESS: Final = "_SUCCESS"
CURRENT: Final = "current.json"
TABLE_FILES: Final = "table_files"
RUNS: Final = "runs"
LEDGER: Final = "ledger"
CURRENT_FORMAT: Final = 1
RUN: Final = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}")
MESSAGES: Final = "messages"
_TABLES: Final = "tables"
_OF_LOGS: Final = (*schema.REQUEST_LOG_TABLES, *LOG_TABLES)
_COLUMNS: Final = {one.place: one.columns for one in (*schema.TABLES, *_OF_LOGS)}


@dataclass(frozen=True)
class Output:
    """A complete output: ``tables/``, ``facts.json``, ``report.html`` and the others in ``place``.

    Its tables are listed once, when they are first asked for.
    """

    place: OutputDirectory

    @property
    def root(self) -> OutputDirectory:
        """Where the names of `files` begin."""
        return self.place

    def where(self, name: str) -> str:
        """The path or URL of a file or directory in it."""
        return str(self.place.child(name))

    @property
    def names(self) -> list[str]:
        """Its tables: "frames", "messages/FetchRequest" and so on, those that have a file."""
        return sorted({*self._listed, *self._expected})

    def message_names(self) -> list[str]:
        """The messages that have a table, by name."""
        start = f"{MESSAGES}/"
        return [one.removeprefix(start) for one in self.names if one.startswith(start)]

    def files(self, name: str) -> list[FileEntry]:
        """The files of a table, by their names below `root`. `FlexwireError` without the table."""
        found = self._listed.get(name) if isinstance(name, str) else None
        expected = self._expected.get(name, 0) if isinstance(name, str) else 0
        if len(found or ()) < expected:
            where = self.where(f"{_TABLES}/{name}")
            raise FlexwireError(
                f"{where} has {expected} files, and {len(found or ())} are listed: try again, "
                "or analyze again where files were removed"
            )
        if found is None:
            raise refuse("name", f"a table of {self.place}", name)
        return found

    def schema(self, name: str) -> pa.Schema:
        """The columns of a table, as `flexwire.tables.schema` has them.

        A message's body is as it was written: with the bytes of its records, or with their sizes.
        """
        files = self.files(name)
        if name in _COLUMNS:
            return schema.schema_of(_COLUMNS[name])
        system, root = self.place.arrow()
        with report_failures(self.where(name), "read"):
            return pq.read_schema(f"{root}/{files[0].name}", filesystem=system)

    def dataset(self, name: str) -> ds.Dataset:
        """A table as a dataset of pyarrow, which reads what is asked for, in pieces."""
        system, root = self.place.arrow()
        paths = [f"{root}/{one.name}" for one in self.files(name)]
        with report_failures(self.where(name), "open"):
            return ds.dataset(paths, schema=self.schema(name), format="parquet", filesystem=system)

    def table(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        filter: ds.Expression | None = None,  # noqa: A002 - pyarrow's own name of it
    ) -> pa.Table:
        """A table in memory: of its rows those that pass a filter, and of these some columns."""
        found = self.dataset(name)
        with report_failures(self.where(name), "read"):
            return found.to_table(columns=None if columns is None else [*columns], filter=filter)

    def read(self, name: str) -> bytes:
        """The content of a file beside the tables: "facts.json", "report.html", "audit.csv"."""
        return self.place.read(name)

    @cached_property
    def _listed(self) -> dict[str, list[FileEntry]]:
        found: dict[str, list[FileEntry]] = {}
        for entry in self.place.entries(f"{_TABLES}/"):
            if table := _table_of(entry.name.removeprefix(f"{_TABLES}/")):
                found.setdefault(table, []).append(entry)
        for files in found.values():
            files.sort()
        return found

    @cached_property
    def _expected(self) -> Mapping[str, int]:
        """How many files a store must list of each table, where the analysis has counted them.

        On this machine a listing is what there is.
        """
        if self.place.path is not None or not self.place.exists(f"{_TABLES}/{SUCCESS}"):
            return {}
        told: Any = json.loads(self.place.read(f"{_TABLES}/{SUCCESS}"))
        return dict(told.get(TABLE_FILES, {}))


@dataclass(frozen=True)
class PartialOutput(Output):
    """An output that is not complete yet, of whose tables it is known how many files were written.

    A listing that has fewer is an error. Nothing is known of a table that is not counted.
    """

    counts: Mapping[str, int]

    @cached_property
    def _expected(self) -> Mapping[str, int]:
        return self.counts


def table_files(entries: Iterable[FileEntry]) -> Counter[str]:
    """How many files each table has, of those that lie below the directory of tables."""
    return Counter(filter(None, (_table_of(one.name) for one in entries)))


def _table_of(name: str) -> str:
    """The table of a file, by its name below the directory of tables; empty for another file."""
    table, _, file = name.rpartition("/")
    return "" if file.startswith(("_", ".")) else table


def output(out: str | Path) -> Output:
    """The complete output of ``analyze(..., out)``, by path or URL; `FlexwireError` without one.

    ``OUT/tables`` is taken for ``OUT``.
    """
    if not isinstance(out, str | Path):
        raise refuse("out", "a str or Path", out)
    place = OutputDirectory(str(out))
    if place.path is not None and (place.path / MARKER).is_file():
        place = OutputDirectory(str(place.path.parent))
    if is_delta(place):
        raise FlexwireError(
            f"{place} holds Delta tables; flexwire.spark.delta.output.output reads them, and so "
            "does whatever reads Delta"
        )
    return Output(published(place))


def is_delta(out: OutputDirectory) -> bool:
    """Whether the tables in ``out`` are Delta's, to which analyses are added."""
    return next(iter(out.child(LEDGER).entries("_delta_log/")), None) is not None


def published(out: OutputDirectory) -> OutputDirectory:
    """The place of the complete output below ``out``; `FlexwireError` where there is none."""
    run = current_run(out).get("run")
    if run is not None:
        return out.child(f"{RUNS}/{run}")
    if out.path is None and not out.exists(f"{_TABLES}/{SUCCESS}"):
        raise FlexwireError(
            f"there is no complete analysis in {out}, as there is no {CURRENT}: none was made, or "
            "it was ended in the middle, or goes on"
        )
    check_finished(out.child(_TABLES))
    return out


def check_finished(tables: OutputDirectory) -> None:
    """Raise `FlexwireError` unless the tables below a place are there and complete."""
    where = tables.path or tables
    if not tables.exists(MARKER):
        raise FlexwireError(
            f"{where} holds no tables of flexwire, as it has no {MARKER}; give the tables/ of an "
            "analysis"
        )
    if not tables.exists(SUCCESS):
        raise FlexwireError(
            f"{where} is unfinished, as it has no {SUCCESS}: its analysis was ended in the middle, "
            "or goes on; run flexwire analyze again"
        )


def current_run(out: OutputDirectory) -> dict[str, str | None]:
    """Which ``run`` is the output in a store, and which was ``before``; empty where none is."""
    if not out.exists(CURRENT):
        return {}
    try:
        told: Any = json.loads(out.read(CURRENT))
        runs = {name: told[name] for name in ("run", "before")}
    except (ValueError, KeyError, TypeError) as error:
        raise _not_ours() from error
    if told.get("format") != CURRENT_FORMAT or not all(
        run is None or (isinstance(run, str) and RUN.fullmatch(run)) for run in runs.values()
    ):
        raise _not_ours()
    return runs


def _not_ours() -> FlexwireError:
    return FlexwireError(
        f"{CURRENT} was not written by this version of flexwire; choose another --out"
    )
