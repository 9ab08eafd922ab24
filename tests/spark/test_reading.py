"""A table that tasks wrote is read either by Spark, or by tasks without Hadoop's connectors."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.errors import ArgumentError, FlexwireError
from flexwire.spark import dataframes
from flexwire.spark.answers import tables_to_audit
from flexwire.spark.dataframes import output_of, read_by_tasks, table
from flexwire.spark.delta import upkeep
from flexwire.spark.delta.output import DeltaTables
from flexwire.spark.delta.staging import grown_staging
from flexwire.spark.iceberg.output import IcebergTables
from flexwire.spark.publishing.catalogs import IcebergCatalog
from flexwire.spark.tables import Tables
from flexwire.storage.output_directory import OutputDirectory
from flexwire.tables import parquet
from flexwire.tables.schema import CONNECTIONS_TABLE, FRAMES_TABLE
from flexwire.tasks import spark_schema
from tests.spark.grown import MESSAGE as GROWN_MESSAGE
from tests.spark.grown import NOON, analyze, sources, write
from tests.tables.test_reading import MESSAGE, write_output, write_table

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def out(tmp_path: Path) -> Path:
    write_output(OutputDirectory(str(tmp_path)))
    return tmp_path


@pytest.mark.long
@pytest.mark.spark
def test_a_table_is_what_spark_reads_by_itself(spark: SparkSession, out: Path) -> None:
    write_table(OutputDirectory(str(out)), "frames", FRAMES_TABLE, frame_index=list(range(5)))
    found = output_of(out)
    for name in ("frames", MESSAGE):
        theirs = spark.read.parquet(str(out / "tables" / name))
        by_tasks = read_by_tasks(spark, found, name, found.schema(name))
        for ours in (table(spark, out, name), by_tasks):
            assert ours.schema == theirs.schema
            assert sorted(map(repr, ours.collect())) == sorted(map(repr, theirs.collect()))
    some = table(spark, out, "frames", ["frame_index"])
    assert some.columns == ["frame_index"]
    assert sorted(row.frame_index for row in some.collect()) == list(range(5))


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_a_table_that_grows_is_the_same_by_spark_and_by_tasks(
    spark: SparkSession, tmp_path: Path, form: str
) -> None:
    """The table contains files from several analyses, and files that were merged from them.

    Hadoop could interpret OUT's name as a pattern.
    """
    place = OutputDirectory(str(tmp_path / "out [a]{b,c} *"))
    tables = DeltaTables(place) if form == "delta" else IcebergTables(place, IcebergCatalog())
    for day, text in enumerate(["one", "two", "three"]):
        with grown_staging(tables, sources(text), lambda _: text, append=True) as writing:  # noqa: B023 - called at once
            write(writing, text, NOON + timedelta(days=day // 2))
            writing.publish()
    if form == "delta":
        for group in [*upkeep.to_join(place)]:
            upkeep.join(place, group)
        assert len(output_of(place.url).files("frames")) == 2
    found = output_of(place.url)
    for name in ("frames", "connections", GROWN_MESSAGE):
        schema = found.schema(name)
        expected = found.table(name).to_pylist()
        for ours in (table(spark, place.url, name), read_by_tasks(spark, found, name, schema)):
            rows = ours.toArrow().to_pylist()
            assert sorted(map(repr, rows)) == sorted(map(repr, expected))
            assert len({row["analysis"] for row in rows}) == len(rows) == 3


@pytest.mark.spark
def test_columns_that_a_query_does_not_use_are_not_read(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = OutputDirectory(str(tmp_path / "out"))
    assert analyze(place, "one")
    table(spark, place.url, "frames").groupBy("analysis").sum("size").explain()
    assert "ReadSchema: struct<size:bigint,analysis:string>" in capsys.readouterr().out


@given(st.lists(st.integers(0, 1 << 34), max_size=40), st.integers(0, 300))
def test_tasks_read_each_part_of_each_file_once(sizes: list[int], small: int) -> None:
    files = [(str(number), size) for number, size in enumerate([*sizes, *[5] * small])]
    tasks = dataframes.task_parts(files)
    parts = [part for task in tasks for part in task]
    whole = {file: 1 + size // dataframes.PART_BYTES for file, size in files}
    assert {(part.file, part.number, part.of) for part in parts} == {
        (file, number, of) for file, of in whole.items() for number in range(of)
    }
    assert len(parts) == sum(whole.values())
    # Opening a file counts as 4 MiB, so no task reads more than about thirty files.
    assert all(0 < len(task) <= 33 for task in tasks)


def test_row_groups_of_a_large_file_are_read_once_each(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 1)
    rows = pa.RecordBatch.from_pylist([{"frame_index": one} for one in range(5)], FRAMES_TABLE)
    with parquet.TableWriter(out / "tables/frames/large.parquet", FRAMES_TABLE) as writer:
        writer.write(rows)
    size = writer.size
    monkeypatch.setattr(dataframes, "PART_BYTES", size // 2)
    reader = dataframes._TablesReader(
        str(out), [("tables/frames/large.parquet", size)], spark_schema(FRAMES_TABLE)
    )
    parts = reader.partitions()
    assert len(parts) == 3
    read = [
        [index for batch in reader.read(part) for index in batch["frame_index"].to_pylist()]
        for part in parts
    ]
    assert read == [[0, 3], [1, 4], [2]]


def test_what_is_not_there_is_told_before_spark_is_asked(out: Path) -> None:
    with pytest.raises(ArgumentError, match="name: expected a table of"):
        table(None, out, "absent")  # type: ignore[arg-type]  # it is not touched
    with pytest.raises(FlexwireError, match="contains no flexwire tables"):
        table(None, out / "elsewhere", "frames")  # type: ignore[arg-type]  # see above


@pytest.mark.spark
def test_an_audit_takes_no_path_for_a_pattern(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out[1]"
    write_output(OutputDirectory(str(out)))
    write_table(OutputDirectory(str(out)), "connections", CONNECTIONS_TABLE, client=["a"])
    for place in (Tables(out / "tables"), output_of(out)):
        tables = tables_to_audit(spark, place)
        message = tables.message(MESSAGE.partition("/")[2])
        assert message is not None
        assert [one.count() for one in (tables.frames, tables.connections, message)] == [2, 1, 1]
