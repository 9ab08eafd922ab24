"""A table that tasks have written is read by tasks, without Hadoop's connectors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from flexwire.errors import ArgumentError, FlexwireError
from flexwire.spark import dataframes
from flexwire.spark.dataframes import table
from flexwire.storage.output_directory import OutputDirectory
from flexwire.tables import parquet
from flexwire.tables.schema import FRAMES_TABLE
from flexwire.tasks import spark_schema
from tests.tables.test_reading import MESSAGE, write_output, write_table

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture
def out(tmp_path: Path) -> Path:
    write_output(OutputDirectory(str(tmp_path)))
    return tmp_path


@pytest.mark.spark
def test_a_table_is_what_spark_reads_by_itself(spark: SparkSession, out: Path) -> None:
    write_table(OutputDirectory(str(out)), "frames", FRAMES_TABLE, frame_index=list(range(5)))
    for name in ("frames", MESSAGE):
        ours, theirs = table(spark, out, name), spark.read.parquet(str(out / "tables" / name))
        assert ours.schema == theirs.schema
        assert sorted(map(repr, ours.collect())) == sorted(map(repr, theirs.collect()))
    some = table(spark, out, "frames", ["frame_index"])
    assert some.columns == ["frame_index"]
    assert sorted(row.frame_index for row in some.collect()) == list(range(5))


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
    with pytest.raises(FlexwireError, match="holds no tables of flexwire"):
        table(None, out / "elsewhere", "frames")  # type: ignore[arg-type]  # see above
