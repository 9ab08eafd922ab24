"""The tables of an analysis as DataFrames: what every answer is a function of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING, Protocol

from pyspark.sql import DataFrame

from flexwire.schema.catalog import catalog
from flexwire.tables.output import MESSAGES
from flexwire.tasks import map_in_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql.types import StructType

    from flexwire.answers.asking.internal_logs import InternalLogs
    from flexwire.answers.state.cluster import ClusterState
    from flexwire.tables.parquet import Ranges
    from flexwire.tables.spec_places import Path

    Task = Callable[[str, Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class LogTables:
    """The tables of logs, as docs/tables.md has them."""

    batches: DataFrame
    record_sizes: DataFrame
    keys: DataFrame
    rewrites: DataFrame


class Opened(Protocol):
    """The output that tables were opened from, and the tables as they were then."""

    @property
    def records(self) -> DataFrame:
        """The table of records."""

    @property
    def message(self) -> Callable[[str], DataFrame | None]:
        """The table of one message, None where there is none."""

    def message_names(self) -> list[str]:
        """Return the messages that have a table."""

    def hold_only(self, name: str, paths: Collection[Path], value: object) -> bool:
        """Return whether all values of columns of a table are this one or null."""

    def of_files(
        self,
        names: Sequence[str],
        columns: Sequence[str],
        task: Task,
        schema: pa.Schema,
        *,
        only: Ranges | None = None,
    ) -> DataFrame:
        """Return what ``task`` makes of these columns of the files of these tables."""


@dataclass(frozen=True, slots=True)
class AnalysisTables:
    """The tables, as docs/tables.md has them; nothing is read before an answer is asked for.

    ``message`` gives the table of one message ("FetchRequest"), None where there is none. ``logs``
    is None where no log segment was given. ``narrow`` gives the table of a message with these
    columns only, where tables are read from files: of what is in arrays of arrays, Spark by itself
    reads every field. ``internal`` is there while logs with internal topics are analysed: what
    these say is in no table. ``opened`` is where they are from.
    """

    frames: DataFrame
    connections: DataFrame
    records: DataFrame
    message: Callable[[str], DataFrame | None]
    logs: LogTables | None = None
    narrow: Callable[[str, StructType], DataFrame | None] | None = None
    internal: InternalLogs | None = None
    opened: Opened | None = None
    is_small: bool = False

    def narrowed(self, name: str, columns: StructType) -> DataFrame | None:
        """The table of one message, of which no other columns than these are needed."""
        return self.message(name) if self.narrow is None else self.narrow(name, columns)

    def cluster(self, *, oldest: bool = False) -> ClusterState | None:
        """Return the cluster's state (`InternalLogs.cluster`); None without a log of it."""
        return None if self.internal is None else self.internal.cluster(oldest=oldest)

    def hold_only(self, message: str, paths: Collection[Path], value: object) -> bool:
        """Whether it is known that these columns of a message have no other value, but null."""
        opened = self.opened
        if opened is None or opened.message is not self.message:
            return False
        return opened.hold_only(f"{MESSAGES}/{message}", paths, value)

    def of_records(self, columns: Sequence[str], task: Task, schema: pa.Schema) -> DataFrame:
        """What ``task`` makes of these columns of records, in batches."""
        opened = self.opened
        # Of records that were filtered since, the files are not those.
        if opened is None or opened.records is not self.records:
            return of_rows({"records": self.records}, columns, task, schema)
        return opened.of_files(["records"], columns, task, schema)

    def of_messages(
        self,
        columns: Sequence[str],
        task: Task,
        schema: pa.Schema,
        only: Ranges | None = None,
    ) -> DataFrame | None:
        """What ``task`` makes of these columns of all messages, in batches; None without any.

        The task is told of which message they are. Where no row of many is as ``only`` says, they
        may be left out.
        """
        opened, known = self.opened, catalog().names()
        if opened is None or opened.message is not self.message:
            tables = {name: one for name in known if (one := self.message(name)) is not None}
            return of_rows(tables, columns, task, schema) if tables else None
        names = [f"{MESSAGES}/{one}" for one in opened.message_names() if one in {*known}]
        if not names:
            return None
        return opened.of_files(names, columns, task, schema, only=only)


def of_rows(
    tables: Mapping[str, DataFrame], columns: Sequence[str], task: Task, schema: pa.Schema
) -> DataFrame:
    """Return what ``task`` makes of these columns of tables, whose rows Spark gives."""
    made = [
        map_in_arrow(table.select(*columns), partial(task, name), schema)
        for name, table in tables.items()
    ]
    return reduce(DataFrame.unionByName, made)
