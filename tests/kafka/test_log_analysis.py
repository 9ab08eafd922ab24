"""An analysis of a broker's own directory agrees with the broker's consumers."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.answers.storage import storage
from flexwire.spark.analyze import analyze
from flexwire.spark.answers.outputs import open_tables
from tests.kafka.filling import INTERNAL, TOPICS, Broker, consumed

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


def test_a_broker_s_directory(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    done = analyze([kafka.logs], tmp_path / "out", spark=spark)
    tables = open_tables(spark, tmp_path / "out")
    answers = {row.topic: row for row in storage(tables).collect()}
    assert {*TOPICS, *INTERNAL} <= answers.keys()
    told = by_spark(spark, kafka)
    for topic in (*TOPICS, *INTERNAL):
        got, expected = answers[topic], told[topic]
        assert got.records == expected["records"], topic
        assert got.tombstones == expected["tombstones"], topic
        assert got.superseded_records == expected["superseded"], topic
        assert got.damaged == 0
    for topic in TOPICS:
        # A third of the 18 transactions were aborted; two records are in an open transaction, or
        # follow it.
        unseen = 6 * 10 + 2 if topic == "transactions" else 0
        assert answers[topic].records == len(consumed(kafka, topic)) + unseen, topic
    codecs = {topic: row.codecs for topic, row in answers.items() if topic.startswith("in-")}
    assert codecs == {topic: [topic.rpartition("-")[2]] for topic in codecs}
    assert 0 < answers["transactions"].transactional_share < 1
    assert answers["transactions"].control_batches > 0
    sizes: dict[str, int] = defaultdict(int)
    for row in done.output.table("log_batches", ["file", "size"]).to_pylist():
        sizes[row["file"]] += row["size"]
    # The cluster's own log grows while the broker runs.
    files = [
        one for one in kafka.logs.rglob("*.log") if one.parent.name.rpartition("-")[0] in TOPICS
    ]
    written = {str(one): one.stat().st_size for one in files if one.stat().st_size}
    assert {name: sizes[name] for name in written} == written


def by_spark(spark: SparkSession, kafka: Broker) -> dict[str, dict[str, Any]]:
    """Return the expected result by topic, from records read one by one through ``kafka-log``."""
    schema = "topic string, partition int, key binary, value binary"
    found: dict[str, dict[str, Any]] = defaultdict(lambda: {"records": 0, "tombstones": 0, "n": 0})
    keys: dict[str, set[Any]] = defaultdict(set)
    for row in spark.read.format("kafka-log").schema(schema).load(str(kafka.logs)).collect():
        one = found[row.topic]
        one["records"] += 1
        if row.key is not None:
            one["n"] += 1
            one["tombstones"] += row.value is None
            keys[row.topic].add((row.partition, bytes(row.key)))
    return {
        topic: one | {"superseded": one["n"] - len(keys[topic])} for topic, one in found.items()
    }
