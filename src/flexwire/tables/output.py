"""The output of an analysis, by path or URL: the complete output with its tables and files.

On this machine, the output is a directory. In a store, it is the run to which ``current.json``
refers (`flexwire.spark.publishing.object_store` explains why). A run never changes, so an opened
`Output` reads the same run until the end. The keys for stores come from the same places as in
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
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from flexwire.storage.store_listing import FileEntry


# Spark ignores names that begin with an underscore.
MARKER: Final = "_flexwire.json"
SUCCESS: Final = "_SUCCESS"
CURRENT: Final = "current.json"
TABLE_FILES: Final = "table_files"
RUNS: Final = "runs"
LEDGER: Final = "ledger"
SUMS: Final = "sums"
"""The directory of the daily sums of tables that grow."""
ICEBERG_CATALOG: Final = "catalog/catalog.json"
"""The file that contains the catalog for an output's Iceberg tables."""
CURRENT_FORMAT: Final = 1
RUN: Final = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}")
MESSAGES: Final = "messages"
_TABLES: Final = "tables"
_OPTIONAL: Final = (*schema.GROWN_TABLES, *schema.REQUEST_LOG_TABLES, *LOG_TABLES)
_COLUMNS: Final = {table.place: table.columns for table in (*schema.TABLES, *_OPTIONAL)}


def day_of_sums(name: str) -> str:
    """Return the day in the name of a file of sums.

    >>> day_of_sums("2026-11-22-0f1e.parquet")
    '2026-11-22'
    """
    return name[: len("YYYY-MM-DD")]


@dataclass(frozen=True)
class Output:
    """A complete output: ``tables/``, ``facts.json``, ``report.html`` and other files in ``place``.

    The tables are listed once, when they are first needed.
    """

    place: OutputDirectory

    def on_days(self, _wanted: Callable[[str], bool]) -> Output:
        """Return the output with only the files of these days, if its files are divided by day."""
        return self

    @property
    def is_continued(self) -> bool:
        """True if connections continue from one of the output's analyses to the next."""
        return False

    @property
    def root(self) -> OutputDirectory:
        """The directory to which the names in `files` are relative."""
        return self.place

    def where(self, name: str) -> str:
        """Return the path or URL of a file or directory in the output."""
        return str(self.place.child(name))

    @property
    def names(self) -> list[str]:
        """The names of the tables that have files: "frames", "messages/FetchRequest" and so on."""
        return sorted({*self._listed, *self._expected})

    def message_names(self) -> list[str]:
        """Return the names of the messages that have a table."""
        start = f"{MESSAGES}/"
        return [name.removeprefix(start) for name in self.names if name.startswith(start)]

    def files(self, name: str) -> list[FileEntry]:
        """Return a table's files, with names below `root`.

        Raises `FlexwireError` if there is no table.
        """
        listed = self._listed.get(name) if isinstance(name, str) else None
        expected = self._expected.get(name, 0) if isinstance(name, str) else 0
        if len(listed or ()) < expected:
            where = self.where(f"{_TABLES}/{name}")
            raise FlexwireError(
                f"{where} must contain {expected} files, but only {len(listed or ())} are listed: "
                "try again, or repeat the analysis if files were removed"
            )
        if listed is None:
            raise refuse("name", f"a table of {self.place}", name)
        return listed

    def schema(self, name: str) -> pa.Schema:
        """Return the columns of a table, as `flexwire.tables.schema` defines them.

        The type of a message's body is the type in the files, with either the bytes of records or
        their sizes.
        """
        files = self.files(name)
        if name in _COLUMNS:
            return schema.schema_of(_COLUMNS[name])
        system, root = self.place.arrow()
        with report_failures(self.where(name), "read"):
            return pq.read_schema(f"{root}/{files[0].name}", filesystem=system)

    def dataset(self, name: str) -> ds.Dataset:
        """Return a table as a pyarrow dataset, which reads only the requested parts."""
        system, root = self.place.arrow()
        paths = [f"{root}/{file.name}" for file in self.files(name)]
        with report_failures(self.where(name), "open"):
            return ds.dataset(paths, schema=self.schema(name), format="parquet", filesystem=system)

    def table(
        self,
        name: str,
        columns: Sequence[str] | None = None,
        filter: ds.Expression | None = None,  # noqa: A002 - pyarrow's own name
    ) -> pa.Table:
        """Return a table in memory, with some of its columns and the rows that pass a filter."""
        dataset = self.dataset(name)
        with report_failures(self.where(name), "read"):
            return dataset.to_table(columns=None if columns is None else [*columns], filter=filter)

    def read(self, name: str) -> bytes:
        """Return the content of a file beside the tables, such as "facts.json" or "audit.csv"."""
        return self.place.read(name)

    @cached_property
    def _listed(self) -> dict[str, list[FileEntry]]:
        entries: dict[str, list[FileEntry]] = {}
        for entry in self.place.entries(f"{_TABLES}/"):
            if table := _table_of(entry.name.removeprefix(f"{_TABLES}/")):
                entries.setdefault(table, []).append(entry)
        for files in entries.values():
            files.sort()
        return entries

    @cached_property
    def _expected(self) -> Mapping[str, int]:
        """The number of files that a store must list for each table, if they were counted.

        On this machine, a listing is always complete.
        """
        if self.place.path is not None or not self.place.exists(f"{_TABLES}/{SUCCESS}"):
            return {}
        content: Any = json.loads(self.place.read(f"{_TABLES}/{SUCCESS}"))
        return dict(content.get(TABLE_FILES, {}))


@dataclass(frozen=True)
class PartialOutput(Output):
    """An output that is not complete yet, with the number of files that each table has so far.

    A listing with fewer files is an error. A table without a count is not checked.
    """

    counts: Mapping[str, int]

    @cached_property
    def _expected(self) -> Mapping[str, int]:
        return self.counts


def table_files(entries: Iterable[FileEntry]) -> Counter[str]:
    """Return how many of these files, which are below the directory of tables, each table has."""
    return Counter(filter(None, (_table_of(entry.name) for entry in entries)))


def _table_of(name: str) -> str:
    """Return the table to which a file below the directory of tables belongs, or ""."""
    table, _, file = name.rpartition("/")
    return "" if file.startswith(("_", ".")) else table


def output(out: str | Path) -> Output:
    """Return the complete output of ``analyze(..., out)``. Raises `FlexwireError` if there is none.

    ``OUT/tables`` can be given instead of ``OUT``.
    """
    if not isinstance(out, str | Path):
        raise refuse("out", "a str or Path", out)
    place = OutputDirectory(str(out))
    if place.path is not None and (place.path / MARKER).is_file():
        place = OutputDirectory(str(place.path.parent))
    if is_delta(place):
        raise FlexwireError(
            f"{place} holds Delta tables; read them with flexwire.spark.delta.output.output, "
            "or with any reader of Delta tables"
        )
    if is_iceberg(place):
        raise FlexwireError(
            f"{place} holds Iceberg tables; read them with flexwire.spark.iceberg.output.output, "
            "or with any engine that reads their catalog"
        )
    return Output(published(place))


def is_delta(out: OutputDirectory) -> bool:
    """Return whether the tables in ``out`` are Delta tables, to which analyses are added."""
    return next(iter(out.child(LEDGER).entries("_delta_log/")), None) is not None


def is_iceberg(out: OutputDirectory) -> bool:
    """Return whether the tables in ``out`` are Iceberg tables, to which analyses are added."""
    return out.exists(ICEBERG_CATALOG)


def published(out: OutputDirectory) -> OutputDirectory:
    """Return the place of the complete output in ``out``.

    Raises `FlexwireError` if there is no complete output.
    """
    run = current_run(out).get("run")
    if run is not None:
        return out.child(f"{RUNS}/{run}")
    if out.path is None and not out.exists(f"{_TABLES}/{SUCCESS}"):
        raise FlexwireError(
            f"there is no complete analysis in {out}: {CURRENT} is missing. Either no analysis was "
            "started, or the analysis was killed or is still running"
        )
    check_finished(out.child(_TABLES))
    return out


def check_finished(tables: OutputDirectory) -> None:
    """Raise `FlexwireError` unless the tables are present and complete."""
    where = tables.path or tables
    if not tables.exists(MARKER):
        raise FlexwireError(
            f"{where} contains no flexwire tables, because {MARKER} is missing; pass the tables/ "
            "directory of an analysis"
        )
    if not tables.exists(SUCCESS):
        raise FlexwireError(
            f"{where} is unfinished, because {SUCCESS} is missing: the analysis was killed or is "
            "still running; wait, or run flexwire analyze again"
        )


def current_run(out: OutputDirectory) -> dict[str, str | None]:
    """Return the names of the current ``run`` in a store and of the run ``before``, or nothing."""
    if not out.exists(CURRENT):
        return {}
    try:
        content: Any = json.loads(out.read(CURRENT))
        runs = {name: content[name] for name in ("run", "before")}
    except (ValueError, KeyError, TypeError) as error:
        raise _not_ours() from error
    if content.get("format") != CURRENT_FORMAT or not all(
        run is None or (isinstance(run, str) and RUN.fullmatch(run)) for run in runs.values()
    ):
        raise _not_ours()
    return runs


def _not_ours() -> FlexwireError:
    return FlexwireError(
        f"{CURRENT} was not written by this version of flexwire; choose another --out"
    )
