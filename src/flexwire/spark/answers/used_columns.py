"""Find which columns of tables in a store a query uses, so that tasks read only these columns.

Spark does not tell a Python data source which columns a query needs. But the plan of a query on
Parquet files shows which columns Spark's own reader will read. A query on tables in a store is
therefore built twice. The first time, each table is an empty directory, which is read as Parquet
files with the table's columns, and only the query's plan is made. The second time, tasks read the
columns of that plan.

Every table keeps all its columns. If a query uses the value of a column that is not read, an error
is raised. If it does not use the value, Spark leaves the column out. A wrong guess therefore never
changes a result: the query fails, and is rebuilt with all columns.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, TypeVar

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.results import ask
from flexwire.answers.boundaries import boundaries, boundary_notes
from flexwire.spark.dataframes import read
from flexwire.spark.failures import SPARK_ERRORS
from flexwire.tasks import is_connect, spark_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Protocol

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from flexwire.answers.asking.answer import AnalysisTables, Answer
    from flexwire.answers.asking.results import AnswerResult
    from flexwire.tables.output import Output

    class Read(Protocol):
        """A function like `flexwire.spark.dataframes.read`."""

        def __call__(
            self,
            spark: SparkSession,
            output: Output,
            name: str,
            schema: pa.Schema | None = None,
            narrow: StructType | None = None,
        ) -> DataFrame:
            """Return a table."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RowsAsked:
    """Tables for answers that are computed from all rows.

    Attributes:
        spark: the session.
        output: the output of the tables.
        opened: the function that opens the tables. Its argument is a function that reads a table.
        tables: the tables with all columns.
    """

    spark: SparkSession
    output: Output
    opened: Callable[[Read], AnalysisTables]
    tables: AnalysisTables

    def tables_by(self, read_table: Read) -> AnalysisTables:
        """Return the tables, each read by ``read_table``."""
        return self.tables if read_table is read else self.opened(read_table)

    def with_internal(self, tables: AnalysisTables) -> RowsAsked:
        """Return a copy with the internal topics of ``tables``."""

        def opened(read_table: Read) -> AnalysisTables:
            return replace(self.opened(read_table), internal=tables.internal)

        return replace(self, opened=opened, tables=tables)

    def ask(self, answer: Answer) -> AnswerResult:
        """Return an answer."""
        if answer.asks or answer.of_logs:
            # Building this query already runs jobs.
            return ask(answer, self.tables)
        return with_used_columns(
            self.spark,
            self.output,
            lambda read: answer.ask(self.opened(read)),
            lambda read: ask(answer, self.tables_by(read)),
        )

    def notes(self) -> tuple[str, ...]:
        """Return notes about connections that were cut between analyses."""
        return with_used_columns(
            self.spark,
            self.output,
            lambda read: boundaries(self.opened(read)),
            lambda read: boundary_notes(self.tables_by(read)),
        )


NOT_READ: Final = "flexwire did not read the column"
_SCAN: Final = re.compile(
    r"^Location: \w+ \[file:(\S+)\]$(?:\n.+)*?\nReadSchema: struct<(.*)>$", re.MULTILINE
)


def with_used_columns(
    spark: SparkSession,
    output: Output,
    build: Callable[[Read], DataFrame | None],
    use: Callable[[Read], T],
) -> T:
    """Return ``use(read)``, where ``read`` reads the columns that the query ``build(read)`` uses.

    If the tables are on this machine, Spark itself chooses the columns.
    """
    if output.root.path is not None or is_connect(spark):
        # A Spark Connect server does not see directories on this machine.
        return use(read)
    used = used_columns(spark, build)
    if not used:
        return use(read)
    try:
        return use(partial(_read_used, used))
    except SPARK_ERRORS as error:
        if NOT_READ not in str(error):
            raise
        return use(read)


def used_columns(
    spark: SparkSession, build: Callable[[Read], DataFrame | None]
) -> dict[str, set[str]]:
    """Return, by table name, the columns that a query uses, or nothing if this fails."""
    with TemporaryDirectory(prefix="flexwire-plan-") as scratch:
        names: list[str] = []

        def read_nothing(
            spark: SparkSession,
            output: Output,
            name: str,
            schema: pa.Schema | None = None,
            narrow: StructType | None = None,
        ) -> DataFrame:
            directory = Path(scratch, str(len(names)))
            directory.mkdir()
            names.append(name)
            columns = narrow or spark_schema(schema or output.schema(name))
            return spark.read.schema(columns).parquet(directory.as_uri())

        try:
            rows = build(read_nothing)
            if rows is None:
                return {}
            [(plan,)] = spark.sql("EXPLAIN FORMATTED SELECT * FROM {rows}", rows=rows).collect()
        except Exception:  # noqa: BLE001 - without rows, a query may fail in any way; all columns are then read
            return {}
        return _columns_read(plan, scratch, names)


def _columns_read(plan: str, scratch: str, names: list[str]) -> dict[str, set[str]]:
    used: dict[str, set[str]] = {name: set() for name in names}
    for path, columns in _SCAN.findall(plan):
        directory = Path(path)
        if directory.parent == Path(scratch):
            used[names[int(directory.name)]] |= top_level_names(columns)
    return used


def top_level_names(columns: str) -> set[str]:
    """Return the top-level field names in a schema's string, without those of nested fields.

    >>> sorted(top_level_names("size:int,body:struct<a:int,b:array<string>>,cost:decimal(10,2)"))
    ['body', 'cost', 'size']
    """
    flat = columns
    while (inner := re.sub(r"<[^<>]*>|\([^()]*\)", "", flat)) != flat:
        flat = inner
    return {field.partition(":")[0] for field in flat.split(",") if field}


def _read_used(
    used: Mapping[str, set[str]],
    spark: SparkSession,
    output: Output,
    name: str,
    schema: pa.Schema | None = None,
    narrow: StructType | None = None,
) -> DataFrame:
    """Return a table with all its columns. Tasks read only the columns that are used."""
    if name not in used or narrow is not None:
        return read(spark, output, name, schema, narrow)
    whole = output.schema(name) if schema is None else schema
    # A table without columns would have no rows.
    wanted = [field for field in whole if field.name in used[name]] or [whole.field(0)]
    rows = read(spark, output, name, pa.schema(wanted))
    kept = {field.name for field in wanted}
    return rows.select(
        *(
            F.col(field.name)
            if field.name in kept
            else F.raise_error(F.lit(f"{NOT_READ} {field.name} of {name}"))
            .cast(field.dataType)
            .alias(field.name)
            for field in spark_schema(whole)
        )
    )
