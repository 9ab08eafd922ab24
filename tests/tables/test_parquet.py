"""Spark reads a table's file as it reads its own files, and equal rows result in equal bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flexwire.tables import parquet
from flexwire.tables.message_schema import table_schema
from flexwire.tables.parquet import TableWriter
from flexwire.tables.records import record_rows
from flexwire.tables.schema import CONNECTIONS_TABLE, FRAMES_TABLE, PACKETS_TABLE, RECORDS
from flexwire.tasks import spark_schema
from tests.tables.carrying import PRODUCE, Carrier, Topic, message_rows
from tests.tables.test_records import DOCUMENTS

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SCHEMAS = {
    "frames": FRAMES_TABLE,
    "connections": CONNECTIONS_TABLE,
    "packets": PACKETS_TABLE,
    "records": RECORDS,
    "FetchResponse": table_schema("FetchResponse"),
    "MetadataResponse": table_schema("MetadataResponse"),
}
MESSAGES = message_rows(
    PRODUCE, [Carrier(at, [Topic("t", None, [(0, one)])]) for at, one in enumerate(DOCUMENTS)]
)
ROWS = pa.Table.from_batches(record_rows(MESSAGES, PRODUCE), RECORDS)


def write(path: Path, rows: pa.Table, schema: pa.Schema, most: int = 1000) -> Path:
    with TableWriter(path, schema) as table:
        for batch in rows.to_batches(max_chunksize=most):
            table.write(batch)
    assert table.rows == len(rows)
    assert table.size == path.stat().st_size
    return path


@pytest.mark.spark
@pytest.mark.parametrize("name", SCHEMAS)
def test_spark_reads_the_schema_that_it_would_write(
    name: str, spark: SparkSession, tmp_path: Path
) -> None:
    schema = SCHEMAS[name]
    ours = write(tmp_path / "ours.parquet", schema.empty_table(), schema)
    spark.createDataFrame([], spark_schema(schema)).write.parquet(str(tmp_path / "theirs"))
    theirs = spark.read.parquet(str(tmp_path / "theirs")).schema
    assert spark.read.parquet(str(ours)).schema == theirs


@pytest.mark.spark
@pytest.mark.parametrize("is_vectorized", ["true", "false"])
def test_spark_reads_the_rows(is_vectorized: str, spark: SparkSession, tmp_path: Path) -> None:
    records = write(tmp_path / "records.parquet", ROWS, RECORDS)
    messages = write(
        tmp_path / "messages.parquet", pa.Table.from_batches([MESSAGES]), MESSAGES.schema
    )
    name = "spark.sql.parquet.enableVectorizedReader"
    before = spark.conf.get(name)
    spark.conf.set(name, is_vectorized)
    try:
        found = spark.read.parquet(str(records)).toArrow()
        carried = spark.read.parquet(str(messages)).select("frame_index", "time", "body").toArrow()
    finally:
        spark.conf.set(name, before or "true")
    assert found.to_pylist() == ROWS.to_pylist()
    assert carried.to_pylist() == MESSAGES.select(["frame_index", "time", "body"]).to_pylist()


@pytest.mark.slow
def test_the_rows_are_read_as_they_were_written(tmp_path: Path) -> None:
    path = write(tmp_path / "records.parquet", ROWS, RECORDS)
    assert pq.read_table(path).to_pylist() == ROWS.to_pylist()


@pytest.mark.slow
def test_the_same_rows_are_the_same_bytes_and_only_the_owner_s(tmp_path: Path) -> None:
    one, other, cut = (
        write(tmp_path / name, ROWS, RECORDS, most)
        for name, most in (("a", 1000), ("b", 1000), ("c", 7))
    )
    assert one.read_bytes() == other.read_bytes() == cut.read_bytes()
    assert one.stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        TableWriter(one, RECORDS)


def test_row_groups_are_bounded_by_bytes_and_by_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = pa.schema([("bytes", pa.binary())])
    monkeypatch.setattr(parquet, "ROW_GROUP_BYTES", 1000)
    monkeypatch.setattr(parquet, "ROW_GROUP_ROWS", 6)

    def groups(sizes: list[int]) -> list[int]:
        rows = pa.table([[b"x" * size for size in sizes]], schema)
        path = write(tmp_path / str(len(sizes)), rows, schema)
        found = pq.ParquetFile(path).metadata
        assert pq.read_table(path).equals(rows)
        return [found.row_group(group).num_rows for group in range(found.num_row_groups)]

    # A batch that does not fit is halved until it does.
    assert groups([1] * 14) == [3, 4, 3, 4]
    assert groups([5000, 5000, 1]) == [1, 1, 1]
    assert groups([300, 300, 300, 300]) == [2, 2]
    assert groups([]) == []


WRONG = pa.RecordBatch.from_pydict({"offset": ["not a number"]})


@pytest.mark.parametrize("most", [1, parquet.ROW_GROUP_BYTES])
def test_an_error_leaves_no_file(
    most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The error is found when the next batch is written, or when the file ends.
    monkeypatch.setattr(parquet, "ROW_GROUP_BYTES", most)
    path = tmp_path / "records.parquet"

    def fail() -> None:
        with TableWriter(path, RECORDS) as table:
            for batch in (WRONG, *ROWS.to_batches()[:1]):
                table.write(batch)

    with pytest.raises(pa.ArrowInvalid):
        fail()
    assert not path.exists()


def test_numbers_in_lists_are_not_looked_up_and_lists_have_no_statistics(tmp_path: Path) -> None:
    schema = pa.schema(
        {"n": pa.int32(), "list": pa.list_(pa.struct({"n": pa.int32(), "t": pa.string()}))}
    )
    rows = pa.table([[1], [[{"n": 1, "t": "one"}]]], schema)
    group = pq.ParquetFile(write(tmp_path / "r", rows, schema)).metadata.row_group(0)
    columns = [*map(group.column, range(group.num_columns))]
    coded = {one.path_in_schema for one in columns if "RLE_DICTIONARY" in one.encodings}
    assert coded == {"n", "list.list.element.t"}
    assert {one.path_in_schema for one in columns if one.is_stats_set} == {"n"}


def test_what_grows_from_row_to_row_is_written_as_differences(tmp_path: Path) -> None:
    def grown(name: str, rows: pa.Table) -> set[str]:
        group = pq.ParquetFile(write(tmp_path / name, rows, rows.schema)).metadata.row_group(0)
        columns = map(group.column, range(group.num_columns))
        return {one.path_in_schema for one in columns if "DELTA_BINARY_PACKED" in one.encodings}

    assert grown("records", ROWS) == {"offset", "timestamp"}
    assert grown("messages", pa.Table.from_batches([MESSAGES])) == {"time", "frame_index"}


def test_bytes_have_no_statistics_and_record_headers_have_dictionaries(tmp_path: Path) -> None:
    group = pq.ParquetFile(write(tmp_path / "r", ROWS, RECORDS)).metadata.row_group(0)
    columns = {one.path_in_schema: one for one in map(group.column, range(group.num_columns))}
    told = {path for path, one in columns.items() if one.is_stats_set}
    coded = {path for path, one in columns.items() if "RLE_DICTIONARY" in one.encodings}
    assert {"topic", "time", "offset", "timestamp"} <= told
    assert not told & {"key", "value", "bytes", "headers.list.element.value"}
    assert {"topic", "connection", "headers.list.element.key"} <= coded
    assert not coded & {"key", "value", "bytes", "offset"}
    assert {one.compression for one in columns.values()} == {"ZSTD"}


def test_files_say_of_error_codes_and_ids_of_topics_what_they_are(tmp_path: Path) -> None:
    schema = table_schema("FetchResponse")
    partition = {"error_code": 0, "partition_index": 7}
    body = {"responses": [{"topic_id": "A" * 22, "partitions": [partition, partition]}]}
    rows = pa.Table.from_pylist([{"body": body}], schema)
    group = pq.read_metadata(write(tmp_path / "rows.parquet", rows, schema)).row_group(0)
    columns = (group.column(number) for number in range(group.num_columns))
    listed = {one.path_in_schema: one for one in columns if ".list." in one.path_in_schema}
    at = "body.responses.list.element"
    code = listed[f"{at}.partitions.list.element.error_code"].statistics
    topic_id = listed[f"{at}.topic_id"].statistics
    assert (code.min, code.max, topic_id.min, topic_id.max) == (0, 0, "A" * 22, "A" * 22)
    # No query reads the other columns, which have many more values.
    assert listed[f"{at}.partitions.list.element.partition_index"].statistics is None
