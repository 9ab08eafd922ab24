"""``kafka-log`` reads the same rows from a log as Spark's Kafka source reads from the broker."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from flexwire.logs.checkpoints import STARTS
from tests.kafka.filling import INTERNAL, TOPICS, Broker, consumed, delete_before, write_typed

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


def by_broker(spark: SparkSession, kafka: Broker, *topics: str, **options: str) -> DataFrame:
    """Return the rows of Spark's own source."""
    asked = {"kafka.bootstrap.servers": kafka.address, "subscribe": ",".join(topics)}
    reader = spark.read.format("kafka").options(includeHeaders="true", **asked)
    return reader.options(
        **{key.replace("__", "."): value for key, value in options.items()}
    ).load()


def by_log(spark: SparkSession, kafka: Broker, *topics: str, **options: str) -> DataFrame:
    reader = spark.read.format("kafka-log").options(includeHeaders="true", topic=",".join(topics))
    return reader.options(**options).load(str(kafka.logs))


def rows(found: DataFrame) -> list[Row]:
    return sorted(found.collect(), key=lambda row: (row.topic, row.partition, row.offset))


def same(ours: DataFrame, spark_s: DataFrame) -> list[Row]:
    """Check that both sources have equal rows, in every column, and equal schemas."""
    assert ours.schema == spark_s.schema
    expected, got = rows(spark_s), rows(ours)
    differ = [(a, b) for a, b in zip(expected, got, strict=False) if a != b]
    assert (len(got), differ[:3]) == (len(expected), [])
    return got


def test_every_topic_row_by_row_and_column_by_column(spark: SparkSession, kafka: Broker) -> None:
    found = same(by_log(spark, kafka, *TOPICS), by_broker(spark, kafka, *TOPICS))
    assert {row.topic for row in found} == {*TOPICS}
    assert {row.timestampType for row in found if row.topic == "appended"} == {1}
    assert {row.headers is None for row in found} == {True, False}
    assert {row.key is None for row in found} == {row.value is None for row in found}
    # Out of 500 records, the last record of each key remains, unless it was deleted some time ago.
    assert 80 <= sum(row.topic == "compacted" for row in found) < 500


def test_the_logs_are_in_every_codec(spark: SparkSession, kafka: Broker) -> None:
    reader = spark.read.format("kafka-log").schema("topic string, compression string")
    pairs = reader.load(str(kafka.logs)).distinct().collect()
    codecs = {row.topic: row.compression for row in pairs if row.topic.startswith("in-")}
    expected = {name: name.rpartition("-")[2] for name in TOPICS if name.startswith("in-")}
    assert codecs == expected


def test_internal_topics_which_spark_s_own_source_leaves_out(
    spark: SparkSession, kafka: Broker
) -> None:
    assert by_broker(spark, kafka, *INTERNAL).count() == 0
    found = rows(by_log(spark, kafka, *INTERNAL))
    assert {row.topic for row in found} == {*INTERNAL}
    for topic in INTERNAL:
        expected = consumed(kafka, topic)
        got = [
            (row.partition, row.offset, int(row.timestamp.timestamp() * 1000), row.key, row.value)
            for row in found
            if row.topic == topic
        ]
        assert got == expected


def test_read_committed(spark: SparkSession, kafka: Broker) -> None:
    everything = rows(by_log(spark, kafka, "transactions"))
    committed = by_broker(spark, kafka, "transactions", kafka__isolation__level="read_committed")
    found = same(by_log(spark, kafka, "transactions", isolation="read_committed"), committed)
    values = [bytes(row.value) for row in everything]
    assert values.count(b"open") == values.count(b"after what is open") == 1
    kept = [bytes(row.value) for row in found]
    # A third of the transactions were aborted, and the last one has not ended.
    assert len(kept) == len(values) - 6 * 10 - 2
    assert {b"0 of 1", b"2 of 0", b"plain"} <= {*kept}
    assert not {b"0 of 0", b"open", b"after what is open"} & {*kept}


@pytest.mark.parametrize("topic", ["in-zstd", "compacted", "transactions"])
def test_offsets_begin_and_end_as_they_do_with_a_broker(
    spark: SparkSession, kafka: Broker, topic: str
) -> None:
    bounds = {
        "startingOffsets": f'{{"{topic}": {{"0": 45, "1": -2}}}}',
        "endingOffsets": f'{{"{topic}": {{"0": 78, "1": 60}}}}',
    }
    found = same(by_log(spark, kafka, topic, **bounds), by_broker(spark, kafka, topic, **bounds))
    assert all(45 <= row.offset < 78 for row in found if row.partition == 0)


@pytest.mark.parametrize("late", ["1715000000000", "1700000000000"])
def test_a_timestamp_is_where_it_is_for_a_broker(
    spark: SparkSession, kafka: Broker, late: str
) -> None:
    options = {"startingTimestamp": late}
    found = same(
        by_log(spark, kafka, "in-gzip", **options), by_broker(spark, kafka, "in-gzip", **options)
    )
    assert found


def test_a_stream_and_the_same_stream_started_again(
    spark: SparkSession, kafka: Broker, tmp_path: Path
) -> None:
    source = {"kafka.bootstrap.servers": kafka.address, "subscribe": "typed"}
    both = {
        "kafka": {**source, "startingOffsets": "earliest"},
        "kafka-log": {"topic": "typed", "path": str(kafka.logs)},
    }
    taken: dict[str, list[Row]] = {name: [] for name in both}

    def run(name: str) -> None:
        def keep(found: DataFrame, number: int) -> None:
            del number
            taken[name] += rows(found)

        reader = spark.readStream.format(name).options(includeHeaders="true", **both[name])
        writer = reader.load().writeStream.foreachBatch(keep).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / name)).start()
        assert query.awaitTermination(120)

    for name in both:
        run(name)
    before = len(taken["kafka"])
    write_typed(kafka, 100, 20)
    for name in both:
        run(name)
    assert taken["kafka-log"] == taken["kafka"] == rows(by_broker(spark, kafka, "typed"))
    assert len(taken["kafka"]) == before + 20


def test_what_the_log_holds_goes_back_through_spark_s_own_sink(
    spark: SparkSession, kafka: Broker
) -> None:
    found = by_log(spark, kafka, "in-lz4").where("partition = 0")
    sink = found.select("key", "value", "headers").coalesce(1).write.format("kafka")
    options = {"kafka.bootstrap.servers": kafka.address, "includeHeaders": "true"}
    sink.options(**options, topic="copied").save()
    # The new topic spreads the records over partitions, so only the records are compared.
    expected, got = (
        sorted(repr((row.key, row.value, row.headers)) for row in one.collect())
        for one in (found, by_log(spark, kafka, "copied"))
    )
    assert len(got) == 250
    assert got == expected


def test_records_before_the_log_start_offset_are_hidden_as_the_broker_does(
    spark: SparkSession, kafka: Broker
) -> None:
    delete_before(kafka, "cut", 30)
    shown = rows(by_broker(spark, kafka, "cut"))
    assert [row.offset for row in shown] == [*range(30, 100)]
    # Log start offsets are written at this interval (see SETTINGS).
    end = time.monotonic() + 60
    while "cut 0 30" not in (kafka.logs / STARTS).read_text() and time.monotonic() < end:
        time.sleep(0.2)
    assert rows(by_log(spark, kafka, "cut")) == shown
    every = rows(by_log(spark, kafka, "cut", includeDeleted="true"))
    assert [row.offset for row in every] == [*range(100)]
    assert every[30:] == shown
