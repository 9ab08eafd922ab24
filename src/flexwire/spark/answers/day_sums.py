"""Compute answers about growing tables from sums that are stored for each day.

```
sums/NAME/DAY-DIGEST.parquet     the sums of one answer for one day
```

The name of each sums file contains a digest of everything that the sums depend on: the files of
that day, by name and size, in each table that the answer reads; the release of flexwire; and the
catalog. The files of a table never change, and no name is reused. Sums whose digest matches the
current files are therefore correct, and no sums have to be invalidated. An append, `undo`,
`compact` or `retain` changes the files of the days that it touches, and thereby the names of their
sums. Missing sums are computed from the rows of their days, and stored. Sums can be removed at any
time, and two processes can write the same sums.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

import pyarrow as pa
import pyarrow.compute as pc

import flexwire
from flexwire.answers.asking.answer import AnalysisTables
from flexwire.answers.asking.day_sums import DAY, all_of
from flexwire.answers.asking.results import ask
from flexwire.answers.asking.time_span import TimeSpan
from flexwire.answers.asking.told_names import TOLD_NAMES, told_names
from flexwire.errors import StorageError
from flexwire.measures.audit_rows import CONNECTIONS
from flexwire.schema.catalog import catalog
from flexwire.spark.answers.continued import answered_later, learned_later, own_view_of
from flexwire.spark.answers.opened import OpenedOutput
from flexwire.spark.answers.used_columns import with_used_columns
from flexwire.spark.dataframes import read as read_stored
from flexwire.spark.publishing.table_files import write_one_file
from flexwire.tables.frames import TOPIC_NAMES
from flexwire.tables.keys import BEGAN_IN
from flexwire.tables.output import MESSAGES, SUMS, Output, day_of_sums
from flexwire.tables.row_filter import FRAMES, RECORDS
from flexwire.tasks import spark_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from flexwire.answers.asking.answer import Answer, DaySums
    from flexwire.answers.asking.results import AnswerResult
    from flexwire.spark.answers.used_columns import Read, RowsAsked
    from flexwire.spark.delta.grown import GrownOutput
    from flexwire.storage.output_directory import OutputDirectory
    from flexwire.storage.store_listing import FileEntry

_ALL_TIME: Final = TimeSpan()
_DAYS_AT_ONCE: Final = 32
_MOST_ROWS: Final = 1_000_000
"""The largest number of rows of sums that are stored. If the sums of some days have more rows, they
are not stored.
"""
_STALE: Final = timedelta(hours=1)
"""The age at which outdated sums of the same day are removed. Until then, readers may need them.
"""


@dataclass(frozen=True)
class KeptSums(Output):
    """Sums files that can be read as a table."""

    kept: tuple[FileEntry, ...]

    def files(self, _name: str) -> list[FileEntry]:
        """Return the sums files."""
        return [*self.kept]


class _NotRead:
    """A table from which no sums are computed. Reading it would be a programming error."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError(
            f"an answer read {name} from a table that the answer does not declare for its daily "
            "sums"
        )


@dataclass(frozen=True)
class SumsByDay:
    """The sums of one output, for the answers of one session.

    Attributes:
        rows: the tables of a growing output, limited to ``span``. After their first use, they do
            not change.
        span: the time that the answers cover. The rows of days that are only partly in the span are
            read.
    """

    rows: RowsAsked
    span: TimeSpan = _ALL_TIME

    @property
    def spark(self) -> SparkSession:
        """The session."""
        return self.rows.spark

    @property
    def output(self) -> GrownOutput:
        """The output."""
        return cast("GrownOutput", self.rows.output)

    @property
    def tables(self) -> AnalysisTables:
        """The tables of the span, with all columns."""
        return self.rows.tables

    def ask(self, answer: Answer) -> AnswerResult:
        """Return an answer from the sums of days, or from all rows if there are no sums for it."""
        sums = answer.sums
        if sums is None or self._has_more(sums):
            return self.rows.ask(answer)
        part = self._sums(answer.name, sums, self.span)
        if part is None:
            return self.rows.ask(answer)

        def total(read_table: Read) -> DataFrame:
            return sums.total(part(read_table), self._whole(read_table))

        return with_used_columns(
            self.spark,
            self.output,
            total,
            lambda read_table: ask(replace(answer, ask=lambda _: total(read_table)), self.tables),
        )

    def _has_more(self, sums: DaySums) -> bool:
        """Return whether the answer needs data that the sums lack."""
        if sums.unless is None:
            return False
        # Each row of a connection counts here, so the view with one row for each connection is not
        # used.
        connections = self._read(self.output, CONNECTIONS)
        return sums.unless(replace(self.tables, connections=connections))

    def _whole(self, read_table: Read) -> AnalysisTables:
        """Return the tables for totals, with the required rows from other days and analyses."""
        connections = self._read(self.output, CONNECTIONS, read_table=read_table)
        is_continued = self.output.is_continued and BEGAN_IN in connections.columns
        has_names = is_continued and TOPIC_NAMES in self.output.names
        learned = self._read(self.output, TOPIC_NAMES, read_table=read_table) if has_names else None
        return replace(
            self.rows.tables_by(read_table),
            told=self._told,
            learned=learned,
            answered_later=answered_later(connections) if is_continued else None,
            clients=learned_later(connections) if is_continued else None,
        )

    def _told(self) -> DataFrame | None:
        rows = self._sums("told_names", TOLD_NAMES, _ALL_TIME)
        if rows is None:
            return told_names(self.tables)
        return TOLD_NAMES.total(rows(read_stored), self.tables)

    def _sums(self, name: str, sums: DaySums, span: TimeSpan) -> Callable[[Read], DataFrame] | None:
        """Return a function that returns the sums of all days in a span.

        Its argument is a function that reads the rows of days that are only partly in the span.
        Returns None if the rows themselves have to be read.
        """
        files = {
            table: self.output.files_by_day(table)
            for table in sums.tables()
            if table in self.output.names
        }
        days = {day for by_day in files.values() for day in by_day or () if span.has_day(day)}
        whole = sorted(filter(span.has_whole_day, days))
        if not whole or None in files.values():
            return None
        names = {day: f"{day}-{_digest(name, sums, day, files)}.parquet" for day in whole}
        kept = self._kept(name, sums, names)
        if kept is None:
            return None
        edges = days.difference(whole)

        def with_edges(read_table: Read) -> DataFrame:
            part = sums.part(self._days(sums, edges, span, read_table)) if edges else None
            return kept if part is None else all_of([kept, part.select(*sums.columns.names)])

        return with_edges

    def _kept(self, name: str, sums: DaySums, names: dict[str, str]) -> DataFrame | None:
        """Return the sums of whole days. Sums that were missing are stored for later use.

        Returns None if there are too many rows of sums.
        """
        place = self.output.out.child(f"{SUMS}/{name}")
        before = _listed(place)
        missing = [day for day in names if names[day] not in before]
        parts, not_kept = [], set[str]()
        for first in range(0, len(missing), _DAYS_AT_ONCE):
            days = missing[first : first + _DAYS_AT_ONCE]
            rows = self._computed(sums, days)
            if len(rows) > _MOST_ROWS:
                return None
            try:
                _keep(place, sums, rows, {day: names[day] for day in days})
            except StorageError:
                # For a user with only read access to the output, the sums are computed each time.
                parts.append(self.spark.createDataFrame(rows))
                not_kept.update(days)
        listed = _listed(place)
        kept = [names[day] for day in names if day not in not_kept]
        if not listed.keys() >= {*kept}:
            # Another process has removed some of the sums in the meantime.
            return None
        if kept:
            files = tuple(listed[file] for file in kept)
            parts.append(read_stored(self.spark, KeptSums(place, files), name, sums.columns))
        if missing and not not_kept:
            _remove_others(place, listed.values(), names)
        return all_of(parts)

    def _computed(self, sums: DaySums, days: Sequence[str]) -> pa.Table:
        """Return the sums of some days, computed from rows: at most one row more than the limit."""

        def rows_of(read_table: Read) -> DataFrame | None:
            part = sums.part(self._days(sums, days, read_table=read_table))
            if part is None:
                return None
            of_days = part[DAY].isin(*map(date.fromisoformat, days))
            return part.select(*sums.columns.names).where(of_days)

        def table_of(read_table: Read) -> pa.Table:
            rows = rows_of(read_table)
            if rows is None:
                return sums.columns.empty_table()
            # Spark's conversion from Arrow rejects a null structure that contains a non-nullable
            # field.
            schema = spark_schema(sums.columns)
            return rows.limit(_MOST_ROWS + 1).to(schema).toArrow().cast(sums.columns)

        return with_used_columns(self.spark, self.output, rows_of, table_of)

    def _days(
        self,
        sums: DaySums,
        days: Iterable[str],
        span: TimeSpan = _ALL_TIME,
        read_table: Read = read_stored,
    ) -> AnalysisTables:
        """Return the tables from which sums are computed, with the rows of some days in a span."""
        chosen = {*days}
        output = self.output.on_days(chosen.__contains__)
        declared = {*sums.tables()} & {*output.names}
        # For a message without any row on these days, there is no table.
        names = {name for name in declared if name in {FRAMES, RECORDS} or output.files(name)}
        unread: Any = _NotRead()

        def read(name: str, columns: StructType | None = None) -> DataFrame:
            return span.only(own_view_of(output, self._read(output, name, columns, read_table)))

        @cache
        def message(name: str) -> DataFrame | None:
            table = f"{MESSAGES}/{name}"
            return read(table) if table in names else None

        def narrow(name: str, columns: StructType) -> DataFrame | None:
            table = f"{MESSAGES}/{name}"
            return read(table, columns) if table in names else None

        frames, records = (read(table) if table in names else unread for table in (FRAMES, RECORDS))
        # Direct reads of files would include rows outside the span.
        opened = None if span else OpenedOutput(self.spark, output, records, message)
        return AnalysisTables(
            frames, unread, records, message, None, narrow, opened=opened,
            is_small=self.tables.is_small,
        )  # fmt: skip

    def _read(
        self,
        output: Output,
        name: str,
        columns: StructType | None = None,
        read_table: Read = read_stored,
    ) -> DataFrame:
        table = read_table(self.spark, output, name, narrow=columns)
        return table.coalesce(1) if self.tables.is_small else table


def _digest(name: str, sums: DaySums, day: str, files: dict[str, Any]) -> str:
    """Return the digest of everything on which the sums of a day depend."""
    follows_from = [
        name, sums.version, str(sums.columns), flexwire.__version__,
        catalog().digest or None, day,
        [
            [table, sorted([file.name, file.size] for file in by_day.get(day, ()))]
            for table, by_day in sorted(files.items())
        ],
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(follows_from).encode()).hexdigest()[:32]


def _listed(place: OutputDirectory) -> dict[str, FileEntry]:
    """Return the sums files by name. Return an empty result if they cannot be listed."""
    try:
        return {entry.name: entry for entry in place.entries()}
    except StorageError:
        return {}


def _keep(place: OutputDirectory, sums: DaySums, rows: pa.Table, names: dict[str, str]) -> None:
    """Write the sums of each day to that day's file, even for a day without rows."""
    for day, name in names.items():
        of_day = rows.filter(pc.equal(rows[DAY], date.fromisoformat(day)))
        write_one_file(place, name, sums.columns, of_day.to_batches())


def _remove_others(
    place: OutputDirectory, entries: Collection[FileEntry], names: dict[str, str]
) -> None:
    """Remove older sums of these days."""
    before = max(entry.modified for entry in entries) - _STALE
    old = (entry.name for entry in entries if entry.modified < before)
    place.remove([name for name in old if names.get(day_of_sums(name), name) != name])
