"""Records from captures and from Spark's own Kafka source are decoded like those from logs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flexwire.answers.state import InternalLog, captured_records, internal_records, last_commits
from flexwire.errors import ArgumentError
from flexwire.tables.schema import RECORDS
from tests.capture.made_logs import COMMIT
from tests.spark.internal_topics.made import commit

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
OFFSETS = "__consumer_offsets"
FIELDS = {"OffsetCommit": ["key.partition", "value.offset"]}
# The rows of Spark's own Kafka source with includeHeaders.
KAFKA = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "timestampType int, headers array<struct<key: string, value: binary>>"
)
WRITTEN = [commit(0, 5), commit(1, 7), commit(0, None), (b"\0\1\0\5gr", b"\0\1")]


def typed(rows: DataFrame) -> list[Any]:
    """Return the place and type of each record, and the offset that it commits."""
    found = internal_records(rows, OFFSETS, FIELDS).orderBy("partition", "offset").collect()
    for row in found:
        assert (row.error is None) == (row.OffsetCommit is not None) == (row.offset != 3)
    return [
        (
            (row.partition, row.offset, row.message, row.is_tombstone),
            row.OffsetCommit and (row.OffsetCommit.key.partition, row.OffsetCommit.value),
        )
        for row in found
    ]


EXPECTED = [
    ((2, 0, "OffsetCommit", False), (0, (5,))),
    ((2, 1, "OffsetCommit", False), (1, (7,))),
    ((2, 2, "OffsetCommit", True), (0, None)),
    ((2, 3, "OffsetCommit", False), None),
]


@pytest.mark.long
def test_columns_of_spark_s_own_kafka_source(spark: SparkSession) -> None:
    rows: list[Any] = [
        (*map(as_bytes, one), OFFSETS, 2, at, None, 0, None) for at, one in enumerate(WRITTEN)
    ]
    made = spark.createDataFrame(rows, KAFKA)
    assert typed(made) == EXPECTED
    # All other records pass through.
    kept = internal_records(made, OFFSETS, []).columns
    assert kept[:5] == ["partition", "offset", "timestamp", "timestampType", "headers"]


def as_bytes(one: bytes | None) -> bytearray | None:
    return None if one is None else bytearray(one)


@pytest.mark.cluster
def test_views_over_spark_s_own_kafka_source(spark: SparkSession) -> None:
    rows: list[Any] = [
        (*map(as_bytes, one), OFFSETS, 2, at, None, 0, None) for at, one in enumerate(WRITTEN)
    ]
    log = InternalLog(spark.createDataFrame(rows, KAFKA), OFFSETS)
    [row] = last_commits(log).collect()
    assert (row.partition, row.offset, row.pending, row.is_known) == (1, 7, None, True)


def table(path: Path) -> Path:
    """Return the table of a capture in which two followers fetch and a client produces."""
    fetched = [
        {"source": "fetch", "topic": OFFSETS, "partition": 2, "offset": at, "key": key,
         "value": value, "is_control": False, "is_transactional": False}
        for at, (key, value) in enumerate(WRITTEN)
    ]  # fmt: skip
    others: list[dict[str, Any]] = [
        {**fetched[0], "topic": "orders"},
        {**fetched[0], "source": "produce", "offset": 17},
        {**fetched[0], "offset": 18, "key": COMMIT, "is_control": True, "is_transactional": True},
        # An empty batch, and bytes that are not a batch, contain no record.
        {**fetched[0], "offset": None, "key": None, "value": None},
        {"source": "fetch", "topic": OFFSETS, "partition": 2, "error": "damaged", "bytes": b"x"},
    ]
    made = pa.Table.from_pylist([*fetched, *others, *fetched[1:]], RECORDS)
    pq.write_table(made, path)
    return path


@pytest.mark.long
def test_the_records_table_of_a_capture(spark: SparkSession, tmp_path: Path) -> None:
    records = spark.read.parquet(str(table(tmp_path / "records.parquet")))
    assert typed(captured_records(records, "consumer-offsets")) == EXPECTED
    with pytest.raises(ArgumentError, match="topic: expected"):
        captured_records(records, "orders")
    with pytest.raises(ArgumentError, match="records: expected the columns is_control, source"):
        captured_records(records.drop("source", "is_control"), OFFSETS)
