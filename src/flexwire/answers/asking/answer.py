"""An answer: a function on the tables of an analysis, and how the report shows its rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce, wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Protocol
from warnings import warn

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.labels import read_labels
from flexwire.facts.answers import ShownColumn
from flexwire.measures.evidence import PORT
from flexwire.schema.catalog import catalog
from flexwire.tables.output import MESSAGES
from flexwire.tables.schema import schema_of
from flexwire.tasks import map_in_arrow, spark_schema

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path as FilePath

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql.types import StructType

    from flexwire.answers.asking.internal_logs import InternalLogs
    from flexwire.answers.state.cluster import ClusterState
    from flexwire.facts.answers import AnswerPicture
    from flexwire.tables.parquet import ValueRanges
    from flexwire.tables.schema import Column
    from flexwire.tables.spec_places import Path

    Task = Callable[[str, Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


Ask = Callable[["AnalysisTables"], DataFrame]


@dataclass(frozen=True, slots=True, kw_only=True)
class DaySums:
    """How the result of an answer is computed from daily sums.

    Attributes:
        version: increases whenever ``part`` starts to count differently, so that older stored sums
            are ignored.
        tables: the function that returns the names of the tables that ``part`` reads. Each of these
            tables is partitioned by day.
        columns: the columns of the sums; the first is ``day``.
        part: the function that is applied to tables and returns sums by day, or None if there are
            no rows. Each sum covers the rows of one day. The function reads only ``tables``. It
            does not see connections or names from other days, and rows contain only the facts from
            their own analysis.
        total: the function that is applied to the sums and to all tables and returns the answer's
            rows. If ``takes_labels`` is true, the function also accepts the team ``labels``.
        unless: a function that returns whether the answer is computed from all rows of the tables
            instead, because ``part`` would need other tables, or because sums would cost more than
            they save.
        takes_labels: whether team labels change the answer.
    """

    version: int
    tables: Callable[[], Collection[str]]
    columns: pa.Schema
    part: Callable[[AnalysisTables], DataFrame | None]
    total: Callable[..., DataFrame]
    unless: Callable[[AnalysisTables], bool] | None = None
    takes_labels: bool = False

    def labelled(self, labels: str | FilePath) -> DaySums:
        """Return the same daily sums, but with a total that uses the teams in a label file."""
        if not self.takes_labels:
            return self
        return replace(self, total=partial(self.total, labels=read_labels(labels)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer from `analyze`: a table, a CSV file, and a section of the report.

    Attributes:
        name: the name of the function, the module, the table and the CSV file.
        question: the question that the rows answer, with a question mark.
        meaning: what the rows mean, in a sentence or two.
        advice: what the reader should do.
        row: the subject of one row: "a topic".
        columns: the columns of the DataFrame that ``ask`` returns, in order.
        order: the names of the columns by which the rows are ordered, with the most important row
            first. "-bytes" sorts large values first and nulls last.
        ask: the function that is applied to the tables.
        shown: the names of the columns that have a heading, if the report shows them in another
            order.
        place: the position of the answer in the report; answers with lower numbers come first.
        picture: the picture of the answer in the report.
        labelled: a function that reads a label file, and returns the function to call instead
            of ``ask``; None if labels do not change the answer.
        asks: the internal topics that the answer is about. The answer is computed if the logs in an
            analysis include one of these topics. No table contains the state of these topics, so
            only the analysis itself can compute the answer.
        of_logs: whether the answer needs log segments.
        of_grown: whether the answer is about several analyses. Such an answer is computed for
            tables that grow, or if it is requested by name.
        of_state: the answer about internal topics that corresponds to this answer about traffic.
        elsewhere: other commands that answer the same question for a broker's logs.
        most_rows: the number of rows that are kept, if it is larger than usual.
        sums: the functions that compute the answer from daily sums, if this is possible.

    An answer without rows is not shown.
    """

    name: str
    question: str
    meaning: str
    advice: str
    row: str
    columns: tuple[Column, ...]
    order: tuple[str, ...]
    ask: Ask
    shown: tuple[str, ...] = ()
    place: int = 0
    picture: AnswerPicture | None = None
    labelled: Callable[[str | FilePath], Ask] | None = None
    asks: tuple[str, ...] = ()
    of_logs: bool = False
    of_grown: bool = False
    of_state: str = ""
    elsewhere: str = ""
    most_rows: int = 0
    sums: DaySums | None = None

    def shown_columns(self) -> tuple[ShownColumn, ...]:
        """Return the columns that the report shows, in the report's order."""
        by_name = {column.name: column.shown() for column in self.columns if column.heading}
        return tuple(by_name[name] for name in self.shown or by_name)

    def ordered(self, rows: DataFrame) -> DataFrame:
        """Return the rows in this answer's order, with the most important first.

        The order is always the same.
        """
        return rows.orderBy(*map(_ordering, self.order))

    def sorted(self, rows: pa.Table) -> pa.Table:
        """Return rows that are in memory, in this answer's order."""
        keys = [
            (name.removeprefix("-"), "descending" if name.startswith("-") else "ascending")
            for name in self.order
        ]
        # Nulls come last, as in Spark.
        by = pa.table({name: _comparable(rows[name]) for name, _ in keys})
        return rows.take(pc.sort_indices(by, sort_keys=keys))


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """Return a column that Arrow can sort, with each list replaced by its rank in Spark's order."""
    if not pa.types.is_list(column.type):
        return column
    lists = [None if value is None else _placed(value) for value in column.to_pylist()]
    in_order = sorted({item for item in lists if item is not None})
    places = {item: place for place, item in enumerate(in_order)}
    return pa.array([None if item is None else places[item] for item in lists], pa.int64())


def _placed(elements: list[Any]) -> tuple[Any, ...]:
    """Return a list as a tuple that Python sorts as Spark sorts the list, with nulls first."""
    return tuple((value is not None, value) for value in elements)


def _ordering(name: str) -> SparkColumn:
    if name.startswith("-"):
        return F.col(name.removeprefix("-")).desc_nulls_last()
    return F.col(name).asc_nulls_last()


# The order of positional arguments that `Answer` accepts until the next release.
_BY_POSITION: Final = (
    *("name", "question", "meaning", "advice", "row", "columns", "order", "shown", "ask"),
    *("picture", "labelled", "asks", "of_logs", "of_grown", "of_state", "elsewhere", "most_rows"),
)


def _with_positions(constructor: Callable[..., None]) -> Callable[..., None]:
    """Return a constructor for `Answer` that also accepts the arguments of earlier releases.

    Earlier releases accepted positional arguments, and two lists of columns: the columns of the
    table, and `ShownColumn` objects.
    """

    @wraps(constructor)
    def called(self: Answer, *positional: Any, **named: Any) -> None:
        by_position = dict(zip(_BY_POSITION, positional, strict=False))
        if len(by_position) < len(positional) or by_position.keys() & named.keys():
            raise TypeError("Answer: got too many arguments, or the same argument twice")
        named |= by_position
        shown = named.get("shown", ())
        if positional or any(isinstance(field, ShownColumn) for field in shown):
            how = "pass arguments to Answer by keyword, and use headings instead of ShownColumn"
            warn(f"{how}; the old form will be removed in the next release", DeprecationWarning, 2)
            columns = {column.name: column for column in named["columns"]}
            for column in shown:
                heading = {
                    "heading": column.heading,
                    "kind": column.kind,
                    "is_about": column.is_about,
                }
                columns[column.name] = replace(columns[column.name], **heading)
            named |= {
                "columns": (*columns.values(),),
                "shown": tuple(column.name for column in shown),
            }
        constructor(self, **named)

    return called


Answer.__init__ = _with_positions(Answer.__init__)  # type: ignore[method-assign]

P = ParamSpec("P")


def returns(
    columns: tuple[Column, ...],
) -> Callable[
    [Callable[Concatenate[AnalysisTables, P], DataFrame | None]],
    Callable[Concatenate[AnalysisTables, P], DataFrame],
]:
    """Return a decorator that makes a function on tables return these columns, in this order.

    If the function returns None, the result is a DataFrame without rows.
    """
    names = [column.name for column in columns]

    def decorated(
        function: Callable[Concatenate[AnalysisTables, P], DataFrame | None],
    ) -> Callable[Concatenate[AnalysisTables, P], DataFrame]:
        @wraps(function)
        def called(tables: AnalysisTables, /, *positional: P.args, **named: P.kwargs) -> DataFrame:
            rows = function(tables, *positional, **named)
            return no_rows(tables.frames, columns) if rows is None else rows.select(*names)

        return called

    return decorated


def no_rows(table: DataFrame, columns: tuple[Column, ...]) -> DataFrame:
    """Return a DataFrame with these columns and no rows, created from any table."""
    kinds = spark_schema(schema_of(columns))
    nothing = [F.lit(None).cast(field.dataType).alias(field.name) for field in kinds]
    return table.where("false").select(*nothing)


def address(end: SparkColumn) -> SparkColumn:
    """Return the host in an address, as column ``address``: "10.0.0.9" for "10.0.0.9:50000"."""
    return F.regexp_replace(end, PORT, "").alias("address")


@dataclass(frozen=True, slots=True)
class LogTables:
    """The tables created from logs, as described in docs/tables.md."""

    batches: DataFrame
    record_sizes: DataFrame
    keys: DataFrame
    rewrites: DataFrame


class OutputTables(Protocol):
    """The output from which tables were opened, and the tables that it contained at that moment."""

    @property
    def records(self) -> DataFrame:
        """The table of records."""

    @property
    def message(self) -> Callable[[str], DataFrame | None]:
        """The function that returns the table of a message, or None if the message has no table."""

    def message_names(self) -> list[str]:
        """Return the names of the messages that have a table."""

    def hold_only(self, name: str, paths: Collection[Path], value: object) -> bool:
        """Return whether these columns of a table contain only ``value`` and null."""

    def of_files(
        self,
        names: Sequence[str],
        columns: Sequence[str],
        task: Task,
        schema: pa.Schema,
        *,
        only: ValueRanges | None = None,
    ) -> DataFrame:
        """Apply ``task`` to these columns of the files of these tables, and return the result."""


@dataclass(frozen=True, slots=True)
class AnalysisTables:
    """The tables, as described in docs/tables.md. Nothing is read until an answer is computed.

    ``message`` returns the table for one message ("FetchRequest"), or None if the message has no
    table. ``logs`` is None if no log segments were given. If the tables are files, ``narrow``
    returns a message's table with only the given columns. (Spark itself would read every field of
    nested arrays.) ``internal`` is set while logs of internal topics are analyzed, because no table
    contains the content of these topics. ``opened`` describes the output from which the tables were
    opened. If the tables cover only a span of time, ``named`` returns the complete table for a
    message that contains topic names.

    For the total of daily sums (`flexwire.answers.asking.day_sums`), there are four more
    attributes. ``told`` returns the topic names that are stored with the sums. ``learned`` is the
    table of topic names that analyses learned, because the sums from one analysis lack the names
    that other analyses learned. ``answered_later`` contains the keys of requests whose response
    belongs to a later analysis. ``clients`` contains facts about clients that one analysis lacks
    but another analysis learned.
    """

    frames: DataFrame
    connections: DataFrame
    records: DataFrame
    message: Callable[[str], DataFrame | None]
    logs: LogTables | None = None
    narrow: Callable[[str, StructType], DataFrame | None] | None = None
    internal: InternalLogs | None = None
    opened: OutputTables | None = None
    is_small: bool = False
    named: Callable[[str], DataFrame | None] | None = None
    told: Callable[[], DataFrame | None] | None = None
    learned: DataFrame | None = None
    answered_later: DataFrame | None = None
    clients: DataFrame | None = None

    def narrowed(self, name: str, columns: StructType) -> DataFrame | None:
        """Return the table for one message, from which only these columns are needed."""
        return self.message(name) if self.narrow is None else self.narrow(name, columns)

    def naming(self, name: str) -> DataFrame | None:
        """Return the table for a message that contains topic names, with rows from all times."""
        return (self.message if self.named is None else self.named)(name)

    def cluster(self, *, oldest: bool = False) -> ClusterState | None:
        """Return the cluster's state (`InternalLogs.cluster`), or None without a metadata log."""
        return None if self.internal is None else self.internal.cluster(oldest=oldest)

    def hold_only(self, message: str, paths: Collection[Path], value: object) -> bool:
        """Return whether these columns of a message can contain only ``value`` and null."""
        opened = self.opened
        if opened is None or opened.message is not self.message:
            return False
        return opened.hold_only(f"{MESSAGES}/{message}", paths, value)

    def of_records(self, columns: Sequence[str], task: Task, schema: pa.Schema) -> DataFrame:
        """Apply ``task`` to these columns of the records, in batches, and return the result."""
        opened = self.opened
        # If the records were filtered, the files contain other records, too.
        if opened is None or opened.records is not self.records:
            return of_rows({"records": self.records}, columns, task, schema)
        return opened.of_files(["records"], columns, task, schema)

    def of_messages(
        self,
        columns: Sequence[str],
        task: Task,
        schema: pa.Schema,
        only: ValueRanges | None = None,
    ) -> DataFrame | None:
        """Apply ``task`` to these columns of all messages, or return None if there are no messages.

        The task receives the name of the message with each batch. Row groups that contain no row
        from ``only`` may be left out.
        """
        opened, message_names = self.opened, catalog().names()
        if opened is None or opened.message is not self.message:
            tables = {
                name: table for name in message_names if (table := self.message(name)) is not None
            }
            return of_rows(tables, columns, task, schema) if tables else None
        names = [
            f"{MESSAGES}/{message}"
            for message in opened.message_names()
            if message in {*message_names}
        ]
        if not names:
            return None
        return opened.of_files(names, columns, task, schema, only=only)


def of_rows(
    tables: Mapping[str, DataFrame], columns: Sequence[str], task: Task, schema: pa.Schema
) -> DataFrame:
    """Apply ``task`` to these columns of the tables that Spark reads, and return the result."""
    results = [
        map_in_arrow(table.select(*columns), partial(task, name), schema)
        for name, table in tables.items()
    ]
    return reduce(DataFrame.unionByName, results)
