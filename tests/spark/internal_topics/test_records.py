"""In Spark, `internal_records` keeps existing columns, adds new ones, and refuses invalid ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from flexwire.answers.state import internal_records
from flexwire.errors import ArgumentError
from tests.capture.log_vectors import BASE, write

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


@pytest.mark.long
def test_what_a_broker_wrote(spark: SparkSession, tmp_path: Path) -> None:
    path = write(tmp_path, f"__consumer_offsets-0/{BASE}.log").parent
    reader = spark.read.format("kafka-log").option("includeBatch", "true")
    # Non-nullable columns also pass through. Spark treats constants as such columns.
    rows = reader.load(str(path)).selectExpr(
        *("key", "value", "topic", "partition", "offset", "timestamp", "is_transactional"),
        "array(struct(1 as one)) as more",
    )
    made = internal_records(rows, "__consumer_offsets", ["OffsetCommit"])
    assert made.columns == [
        *("partition", "offset", "timestamp", "is_transactional", "more"),
        *("type", "message", "version", "release", "is_tombstone", "error", "OffsetCommit"),
    ]
    found = {row.offset: row for row in made.collect()}
    # The marker at offset 1 is a control record, which `kafka-log` omits.
    assert sorted(found) == [0, *range(2, 27)]
    assert found[0].is_transactional
    assert found[0].more == [(1,)]
    assert found[0].OffsetCommit.key[:3] == ("tx-group", "orders-none", 0)
    assert found[0].OffsetCommit.value[:4] == (7, -1, "tx", 1795252746012)
    assert (found[2].message, found[2].version, found[2].OffsetCommit) == ("GroupMetadata", 3, None)
    assert found[26].is_tombstone
    assert (found[26].OffsetCommit.key.topic, found[26].OffsetCommit.value) == ("orders-zstd", None)
    assert not any(row.error for row in found.values())

    with pytest.raises(ArgumentError, match="topic: expected"):
        internal_records(rows, "orders", [])
    with pytest.raises(ArgumentError, match="records: expected names of"):
        internal_records(rows, "consumer-offsets", ["TopicRecord"])
    with pytest.raises(ArgumentError, match="rows: expected the columns key"):
        internal_records(rows.drop("key"), "consumer-offsets", [])
    with pytest.raises(ArgumentError, match="got 'error'"):
        internal_records(rows.selectExpr("*", "1 as error"), "consumer-offsets", [])
