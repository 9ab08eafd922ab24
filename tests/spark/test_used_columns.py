"""From tables in a store, tasks read only columns that a query uses, and answers do not change."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers import ANSWERS
from flexwire.answers.asking.results import ask
from flexwire.errors import FlexwireError
from flexwire.spark import dataframes
from flexwire.spark.analyze import analyze
from flexwire.spark.answers import used_columns
from flexwire.spark.answers.day_sums import SumsByDay
from flexwire.spark.answers.outputs import tables_of
from flexwire.spark.answers.used_columns import RowsAsked, with_used_columns
from flexwire.spark.dataframes import output_of
from flexwire.spark.delta.output import DeltaOutput
from flexwire.spark.failures import SPARK_ERRORS
from flexwire.spark.settings import set_for_answers
from tests.capture.interleaved import CLEAN, write_capture
from tests.spark.faulty import Store

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from flexwire.answers.asking.results import AnswerResult
    from flexwire.spark.answers.used_columns import Read
    from flexwire.storage.output_directory import OutputDirectory
    from flexwire.tables.output import Output


class InStore(DeltaOutput):
    """Tables that tasks read as if they were in a store."""

    @property
    def root(self) -> OutputDirectory:
        return Store(super().root.url)


@pytest.fixture(scope="module")
def grown(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return tables of two analyses of one capture."""
    root = tmp_path_factory.mktemp("grown")
    for file in write_capture(root / "captures", 5, replace(CLEAN, files=2)):
        analyze([file], root / "out", spark=spark, format="delta", append=True, answers="none")
    return root / "out"


def stored(out: Path) -> Output:
    """Return an output as if it were in a store."""
    found = output_of(out)
    assert isinstance(found, DeltaOutput)
    return InStore(found.place, found.out)


def rows_asked(spark: SparkSession, output: Output) -> RowsAsked:
    opened = partial(tables_of, spark, output, is_small=True)
    return RowsAsked(spark, output, lambda read_table: opened(read_table=read_table), opened())


def told(result: AnswerResult) -> list[str]:
    return sorted(map(repr, result.rows.to_pylist()))


@pytest.fixture
def columns_read(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, list[str]]]:
    """Return the tables that tasks read, each with its columns."""
    read: list[tuple[str, list[str]]] = []
    by_tasks = dataframes.read_by_tasks

    def record(spark: SparkSession, output: Output, name: str, schema: pa.Schema) -> DataFrame:
        read.append((name, schema.names))
        return by_tasks(spark, output, name, schema)

    monkeypatch.setattr(dataframes, "read_by_tasks", record)
    return read


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
def test_every_answer_of_a_store_is_that_of_all_columns(spark: SparkSession, grown: Path) -> None:
    here = tables_of(spark, output_of(grown), is_small=True)
    rows = rows_asked(spark, stored(grown))
    with set_for_answers(spark, is_small=True):
        for answer in ANSWERS:
            if answer.asks or answer.of_logs:
                continue
            assert told(rows.ask(answer)) == told(ask(answer, here)), answer.name
            assert told(SumsByDay(rows).ask(answer)) == told(ask(answer, here)), answer.name


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
def test_only_used_columns_are_read(
    spark: SparkSession, grown: Path, columns_read: list[tuple[str, list[str]]]
) -> None:
    output = stored(grown)

    def build(read_table: Read) -> DataFrame:
        frames = read_table(spark, output, "frames")
        requests = frames.where(F.col("direction") == "request")
        return requests.groupBy("client_id").agg(F.sum("size"))

    rows = with_used_columns(spark, output, build, lambda read: build(read).collect())
    expected = build(dataframes.read).collect()
    assert sorted(map(repr, rows)) == sorted(map(repr, expected))
    assert columns_read[0] == ("frames", ["direction", "client_id", "size"])
    assert len(columns_read[1][1]) > 20
    # A count requires no column, but one is read.
    columns_read.clear()

    def count(read_table: Read) -> DataFrame:
        return read_table(spark, output, "frames").groupBy().count()

    assert with_used_columns(spark, output, count, lambda read: count(read).collect())[0][0] > 0
    assert [len(columns) for _, columns in columns_read] == [1]


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
def test_a_column_that_was_not_expected_to_be_used_is_read_after_all(
    spark: SparkSession,
    grown: Path,
    columns_read: list[tuple[str, list[str]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    output = stored(grown)

    def build(read_table: Read) -> DataFrame:
        return read_table(spark, output, "frames").select("size", "client_id")

    expected = sorted(map(repr, build(dataframes.read).collect()))
    columns_read.clear()
    monkeypatch.setattr(used_columns, "used_columns", lambda *_: {"frames": {"size"}})
    rows = with_used_columns(spark, output, build, lambda read: build(read).collect())
    assert sorted(map(repr, rows)) == expected
    assert [len(columns) > 1 for _, columns in columns_read] == [False, True]
    # Other errors are not hidden.
    with pytest.raises(SPARK_ERRORS, match="no such column"):
        with_used_columns(
            spark,
            output,
            build,
            lambda read: build(read).select(F.raise_error(F.lit("no such column"))).collect(),
        )


@pytest.mark.spark
def test_a_query_that_fails_without_rows_reads_all_columns(
    spark: SparkSession, grown: Path
) -> None:
    output = stored(grown)

    def fails(_: Read) -> DataFrame:
        raise FlexwireError("there are no rows")

    for build in (fails, lambda _: None):
        found = with_used_columns(spark, output, build, lambda read: read)
        assert found is dataframes.read
    # Tables on this machine are read by Spark itself.
    here = with_used_columns(spark, output_of(grown), fails, lambda read: read)
    assert here is dataframes.read


def test_the_names_in_a_schema_are_those_of_columns() -> None:
    columns = "size:int,body:struct<a:int,b:array<struct<c:string,d:int>>>,cost:decimal(10,2),e:int"
    assert used_columns.top_level_names(columns) == {"size", "body", "cost", "e"}
    assert used_columns.top_level_names("") == set()
