"""The tables of an analysis as DataFrames: what every answer is a function of."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final

from flexwire.schema.catalog import catalog
from flexwire.spark.stored import of_files, of_rows, output_of
from flexwire.spark.stored import read as read_stored
from flexwire.spark.tables import spark_schema
from flexwire.tables.log_schema import LOG_TABLES
from flexwire.tables.output import MESSAGES, Output

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from pathlib import Path as FilePath

    import pyarrow as pa
    import pyarrow.parquet as pq
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from flexwire.answers.asking.internal_logs import InternalLogs
    from flexwire.answers.state.cluster import ClusterState
    from flexwire.spark.stored import Task
    from flexwire.tables.parquet import Ranges
    from flexwire.tables.spec_places import Path

# How Parquet calls what is in a list, in its specification and as Arrow once did.
_IN_LISTS: Final = re.compile(r"\.list\.(?:element|item)(?=\.|$)")


@dataclass(frozen=True, slots=True)
class LogTables:
    """The tables of logs, as docs/tables.md has them."""

    batches: DataFrame
    record_sizes: DataFrame
    keys: DataFrame
    rewrites: DataFrame


@dataclass(frozen=True, slots=True)
class Opened:
    """The output that tables were opened from, and the tables as they were then."""

    spark: SparkSession
    found: Output
    records: DataFrame
    message: Callable[[str], DataFrame | None]

    def hold_only(self, name: str, paths: Collection[Path], value: object) -> bool:
        """Whether all values of columns of a table are this one or null, as its files say."""
        if name not in self.found.names:
            return True
        wanted = {".".join(path) for path in paths}
        footers = (part.metadata for part in self.found.dataset(name).get_fragments())
        groups = (one.row_group(number) for one in footers for number in range(one.num_row_groups))
        return all(_hold_only(group, wanted, value) for group in groups)


def _hold_only(group: pq.RowGroupMetaData, wanted: set[str], value: object) -> bool:
    """Whether a row group has all the columns, and says it of them."""
    columns = map(group.column, range(group.num_columns))
    named = {_IN_LISTS.sub("", one.path_in_schema): one for one in columns}
    return wanted <= named.keys() and all(_is_only(named[one], value) for one in wanted)


def _is_only(column: pq.ColumnChunkMetaData, value: object) -> bool:
    told = column.statistics
    if told is None or not told.has_min_max:
        # Without any, or all null.
        return bool(column.num_values == (0 if told is None else told.null_count))
    return bool(told.min == told.max == value)


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
        return of_files(opened.spark, opened.found, ["records"], columns, task, schema)

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
        names = [f"{MESSAGES}/{one}" for one in opened.found.message_names() if one in {*known}]
        if not names:
            return None
        return of_files(opened.spark, opened.found, names, columns, task, schema, only=only)


def open_tables(spark: SparkSession, out: str | FilePath) -> AnalysisTables:
    """The tables of the analysis in ``out``, by path or URL; ``OUT/tables`` will do.

    Of Delta tables they are all analyses that are in. Raises `FlexwireError` where there is no
    complete analysis.
    """
    return tables_of(spark, output_of(out))


def tables_of(spark: SparkSession, found: Output, *, is_small: bool = False) -> AnalysisTables:
    """The tables of an output that was found, or is not published yet.

    Small ones are one partition each, and what is asked of them is a job of one task.
    """

    def read(name: str, columns: StructType | None = None) -> DataFrame:
        table = _read(spark, found, name, columns)
        return table.coalesce(1) if is_small else table

    names = set(found.message_names())

    @cache
    def message(name: str) -> DataFrame | None:
        return read(f"{MESSAGES}/{name}") if name in names else None

    def narrow(name: str, columns: StructType) -> DataFrame | None:
        return read(f"{MESSAGES}/{name}", columns) if name in names else None

    logs = None
    if LOG_TABLES[0].place in found.names:
        logs = LogTables(*(read(one.place) for one in LOG_TABLES))
    frames, connections, records = read("frames"), read("connections"), read("records")
    opened = Opened(spark, found, records, message)
    return AnalysisTables(
        frames, connections, records, message, logs, narrow, opened=opened, is_small=is_small
    )


def _read(
    spark: SparkSession, found: Output, name: str, columns: StructType | None = None
) -> DataFrame:
    schema = found.schema(name)
    # Of Delta tables some files count, and not others beside them; in a store it has no keys.
    if type(found) is not Output or found.place.path is None:
        return read_stored(spark, found, name, schema)
    # Spark's own reader of Parquet reads only the columns that an answer names.
    return spark.read.schema(columns or spark_schema(schema)).parquet(found.where(f"tables/{name}"))
