"""A format's options accept only valid values, and its filters lose no rows."""

from __future__ import annotations

import json
import random
import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest
from pyspark.sql import types as T  # noqa: N812 - as PySpark's own examples call it
from pyspark.sql.datasource import DataSourceReader

from flexwire.errors import ArgumentError
from flexwire.logs.files import LogQuery, Partition
from flexwire.records.inflation import Inflation
from flexwire.spark.functions.messages import OF_INFLATION, read_options
from flexwire.spark.sources import kafka_capture, kafka_log, requests
from flexwire.spark.sources.kafka_capture import KafkaCapture
from flexwire.spark.sources.kafka_log import (
    ACCEPTED,
    KafkaLog,
    KafkaLogOptions,
    KafkaLogReader,
    arrow_schema,
)
from flexwire.spark.sources.requests import CaptureOptions, narrow_query
from flexwire.tasks import spark_schema
from tests.capture.made_logs import MadeSegment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PATH = {"path": "/logs"}


def test_options_of_spark_s_own_source_mean_the_same() -> None:
    theirs = {**PATH, "Subscribe": "orders,clicks", "kafka.isolation.level": "read_committed"}
    ours = {**PATH, "topic": "orders,clicks", "isolation": "read_committed"}
    assert KafkaLogOptions.parse(theirs) == KafkaLogOptions.parse(ours)
    with pytest.raises(ArgumentError, match="subscribe and topic are the same option"):
        KafkaLogOptions.parse({**theirs, "topic": "payments"})


def by_partition(number: int) -> str:
    return json.dumps({"orders": {"0": number}})


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"startingOffsets": '{"orders": {"0": 23, "1": -2}}'}, {"starting": {("orders", 0): 23}}),
        (
            {"startingOffsetsByTimestamp": by_partition(9), "startingOffsets": by_partition(23)},
            {"starting_timestamps": {("orders", 0): 9}, "needs_start": True},
        ),
        (
            {
                "startingTimestamp": "8",
                "startingOffsetsByTimestamp": by_partition(9),
                "startingOffsets": "latest",
            },
            {"starting_timestamp": 8},
        ),
        (
            {"startingTimestamp": "8", "startingOffsetsByTimestampStrategy": "error"},
            {"starting_timestamp": 8, "needs_start": True},
        ),
        (
            {
                "startingOffsetsByTimestamp": by_partition(9),
                "startingOffsetsByTimestampStrategy": "latest",
            },
            {"starting_timestamps": {("orders", 0): 9}},
        ),
        (
            {"endingOffsetsByTimestamp": by_partition(9), "endingOffsets": by_partition(23)},
            {"ending_timestamps": {("orders", 0): 9}},
        ),
        (
            {"endingTimestamp": "8", "endingOffsetsByTimestamp": by_partition(9)},
            {"ending_timestamp": 8},
        ),
        ({"endingOffsets": '{"orders": {"0": 23, "1": -1}}'}, {"ending": {("orders", 0): 23}}),
        ({"minPartitions": "12"}, {"least_tasks": 12}),
    ],
)
def test_a_range_is_that_of_spark_s_own_source(
    given: dict[str, str], expected: dict[str, Any]
) -> None:
    options = KafkaLogOptions.parse({**PATH, **given})
    assert options.query == LogQuery(**expected)
    assert options.starts_late is False


def test_partitions_of_a_stream_may_begin_at_their_ends() -> None:
    given = {**PATH, "startingOffsets": '{"orders": {"0": 23, "1": -1, "2": -2}}'}
    options = KafkaLogOptions.parse(given)
    assert options.query.starting == {Partition("orders", 0): 23}
    assert options.starts_late == frozenset({Partition("orders", 1)})
    schema = spark_schema(options.schema())
    with pytest.raises(ArgumentError, match=r"^startingOffsets latest needs a stream"):
        KafkaLog(given).reader(schema)
    assert KafkaLog(given).streamReader(schema)


@pytest.mark.parametrize("name", ["kafka-log", "kafka-capture"])
def test_other_options_of_spark_s_own_sources_are_refused_with_what_to_use(name: str) -> None:
    refused, accepted, parse = {
        "kafka-log": (kafka_log.REFUSED, ACCEPTED, KafkaLogOptions.parse),
        "kafka-capture": (requests.REFUSED, requests.ACCEPTED, CaptureOptions.parse),
    }[name]
    assert not refused.keys() & accepted.keys()
    for option, advice in refused.items():
        with pytest.raises(ArgumentError, match=f"^there is no option {option}: {advice}$"):
            parse({**PATH, option.upper(): "1"})


def test_the_column_of_corrupt_records_may_have_another_name() -> None:
    given = {**PATH, "mode": "PERMISSIVE", "columnNameOfCorruptRecord": "damage"}
    for more in ({}, {"countBy": "topic"}):
        options = KafkaLogOptions.parse({**given, **more})
        assert options.schema().names[-1] == "damage"
        assert "_corrupt_record" not in options.columns
    # Without a column for record headers, the name has no meaning.
    without = KafkaLogOptions.parse({**PATH, "columnNameOfCorruptRecord": "damage"})
    assert "damage" not in without.schema().names


def test_every_option_says_what_it_says() -> None:
    options = KafkaLogOptions.parse(
        {
            "paths": '["a", "b"]',
            "topic": "orders, clicks",
            "PARTITIONS": "0,4-6",
            "startingoffsets": '{"orders": {"0": 23, "1": -2}}',
            "endingOffsets": '{"orders": {"0": 50, "1": -1}}',
            "startingTimestamp": "1700000000000",
            "endingTimestamp": "1800000000000",
            "includeHeaders": "TRUE",
            "includeBatch": "true",
            "includeFile": "true",
            "replicas": "all",
            "isolation": "read_committed",
            "mode": "permissive",
            "maxPartitionBytes": "64m",
        }
    )
    query = options.query
    assert options.paths == ["a", "b"]
    assert query.topics == {"orders", "clicks"}
    assert query.partitions == {0, 4, 5, 6}
    assert (query.starting, query.ending) == ({}, {})
    assert (query.starting_timestamp, query.ending_timestamp) == (1700000000000, 1800000000000)
    assert (query.isolation, query.replicas) == ("read_committed", "all")
    assert (options.mode, query.piece_bytes) == ("PERMISSIVE", 64 << 20)
    names = options.schema().names
    assert names[:8] == [
        "key",
        "value",
        "topic",
        "partition",
        "offset",
        "timestamp",
        "timestampType",
        "headers",
    ]
    assert names[-3:] == ["file", "replica", "_corrupt_record"]
    assert "partition_leader_epoch" in names
    assert "is_control" not in names


def test_what_is_not_given_is_all_there_is() -> None:
    options = KafkaLogOptions.parse(PATH)
    assert options.query == LogQuery()
    assert options.mode == "FAILFAST"
    assert options.schema().names[-1] == "timestampType"


def test_tasks_that_only_count_read_more() -> None:
    counting = PATH | {"countBy": "topic"}
    assert KafkaLogOptions.parse(counting).query.piece_bytes == 512 << 20
    asked = KafkaLogOptions.parse(counting | {"maxPartitionBytes": "1m"})
    assert asked.query.piece_bytes == 1 << 20


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("topic", "a,,b"),
        ("topic", "['a', 'b']"),
        ("partitions", "-1"),
        ("partitions", "7-3"),
        ("partitions", "0-999999999"),
        ("startingOffsets", "first"),
        ("startingOffsets", '{"a": 1}'),
        ("startingOffsets", '{"a": {"x": 1}}'),
        ("startingOffsets", '{"a": {"0": -3}}'),
        ("startingOffsetsByTimestamp", "1000"),
        ("startingOffsetsByTimestamp", '{"a": {"0": -1}}'),
        ("endingOffsetsByTimestamp", '{"a": {"0": "1000"}}'),
        ("startingOffsetsByTimestampStrategy", "earliest"),
        ("minPartitions", "0"),
        ("columnNameOfCorruptRecord", ""),
        ("columnNameOfCorruptRecord", "Key"),
        ("endingOffsets", '{"a": {"0": -2}}'),
        ("endingOffsets", '{"a": {"0": true}}'),
        ("endingOffsets", "[" * 100_000),
        ("startingTimestamp", "yesterday"),
        ("endingTimestamp", str(1 << 63)),
        ("includeHeaders", "yes"),
        ("replicas", "none"),
        ("isolation", "serializable"),
        ("mode", "DROPMALFORMED"),
        ("maxPartitionBytes", "0"),
        ("maxPartitionBytes", "12 parsecs"),
        ("maxInflated", "0"),
        ("maxInflated", "all"),
        ("maxRatio", "0"),
        ("maxRatio", "-5"),
        ("maxRatio", "1e3"),
        ("maxRatio", "9999999999"),
    ],
)
def test_what_an_option_does_not_take_is_said_with_what_it_takes(name: str, value: str) -> None:
    with pytest.raises(ArgumentError, match=rf"^{name}: expected .*, got "):
        KafkaLogOptions.parse({**PATH, name: value})


def test_what_a_batch_may_inflate_to_is_an_option_of_both_formats_and_of_functions() -> None:
    given = {"maxInflated": "1m", "maxRatio": "50"}
    expected = Inflation(1 << 20, 50, is_held=True)
    assert KafkaLogOptions.parse({**PATH, **given}).inflation == expected
    assert CaptureOptions.parse({**PATH, **given}).request.inflation == expected
    assert read_options(given, *OF_INFLATION).inflation == expected
    # If the option does not set a ratio, batches are not limited by a ratio.
    assert KafkaLogOptions.parse(PATH).inflation == Inflation()
    assert read_options({}, *OF_INFLATION).inflation.ratio is None


def test_an_option_that_is_unknown_and_a_path_that_is_missing_are_told() -> None:
    told = "there is no option subscriber; choose one of: "
    with pytest.raises(ArgumentError, match=told) as no:
        KafkaLogOptions.parse({**PATH, "subscriber": "a"})
    assert all(one in str(no.value) for one in ACCEPTED)
    with pytest.raises(ArgumentError, match=r"expected a path: \.load\(PATH\)"):
        KafkaLogOptions.parse({})
    assert KafkaLogOptions.parse({"paths": json.dumps(["x"])}).paths == ["x"]


def test_a_topic_that_is_not_there_is_told_and_one_without_such_records_is_not(
    tmp_path: Path,
) -> None:
    for name in ("orders-0", "clicks-3"):
        MadeSegment(0).write(tmp_path / name, kinds="log")

    def planned(**given: str) -> list[object]:
        options = KafkaLogOptions.parse({"path": str(tmp_path), **given})
        return list(KafkaLogReader(options, spark_schema(options.schema())).partitions())

    # Their segments are empty.
    for found in ({}, {"topic": "orders,clicks"}, {"topic": "clicks", "partitions": "0"}):
        assert planned(**found) == []
    with pytest.raises(ArgumentError, match=r"topics that exist \(clicks, orders\), got 'order'"):
        planned(topic="orders,order")


def made_filters(chance: random.Random) -> list[tuple[Any, Callable[[dict[str, Any]], bool]]]:
    """Return some filters, each with an equivalent test in Python."""
    from pyspark.sql import datasource  # noqa: PLC0415 - 4.0 has no filters

    when = datetime(2023, 11, 14, tzinfo=UTC)
    values: dict[str, Callable[[], Any]] = {
        "topic": lambda: chance.choice("abc"),
        "partition": lambda: chance.randint(0, 3),
        "offset": lambda: chance.randint(0, 9),
        "timestamp": lambda: when + timedelta(microseconds=chance.randint(0, 9_000)),
        "key": lambda: b"k",
    }
    compared: dict[str, Callable[[Any, Any], bool]] = {
        "EqualTo": lambda a, b: a == b,
        "EqualNullSafe": lambda a, b: a == b,
        "GreaterThan": lambda a, b: a > b,
        "GreaterThanOrEqual": lambda a, b: a >= b,
        "LessThan": lambda a, b: a < b,
        "LessThanOrEqual": lambda a, b: a <= b,
        "In": lambda a, b: a in b,
    }
    found: list[tuple[Any, Callable[[dict[str, Any]], bool]]] = []
    for _ in range(chance.randint(1, 3)):
        column, kind = chance.choice(list(values)), chance.choice(list(compared))
        value = values[column]()
        if kind == "In":
            value = tuple(values[column]() for _ in range(chance.randint(1, 3)))
        made: Any = getattr(datasource, kind)(attribute=(column,), value=value)
        is_negated = chance.random() < 0.2

        def passes(
            row: dict[str, Any],
            column: str = column,
            kind: str = kind,
            value: Any = value,
            *,
            is_negated: bool = is_negated,
        ) -> bool:
            return compared[kind](row[column], value) is not is_negated

        found.append((datasource.Not(made) if is_negated else made, passes))
    return found


@pytest.mark.skipif(
    not hasattr(DataSourceReader, "pushFilters"), reason="PySpark 4.0 hands no filters over"
)
def test_a_narrowed_query_reads_every_row_that_passes() -> None:
    chance = random.Random(1)
    start = datetime(2023, 11, 14, tzinfo=UTC)
    narrower = 0
    for _ in range(400):
        filters = made_filters(chance)
        query = narrow_query(LogQuery(), [one for one, _ in filters])
        narrower += query != LogQuery()
        for _ in range(20):
            milliseconds = chance.randint(0, 9)
            row = {
                "topic": chance.choice("abc"),
                "partition": chance.randint(0, 3),
                "offset": chance.randint(0, 9),
                "timestamp": start + timedelta(milliseconds=milliseconds),
                "key": b"k",
            }
            if all(passes(row) for _, passes in filters):
                assert query.wants(Partition(str(row["topic"]), int(str(row["partition"]))))
                assert query.offsets.low <= chance_int(row["offset"]) <= query.offsets.high
                millis = int(start.timestamp()) * 1000 + milliseconds
                assert query.timestamps.low <= millis <= query.timestamps.high
    assert narrower > 200


def chance_int(value: object) -> int:
    assert isinstance(value, int)
    return value


HEADER = T.StructType(
    [T.StructField("key", T.BinaryType()), T.StructField("value", T.BinaryType())]
)


@pytest.mark.parametrize(
    ("name", "kind", "reason"),
    [
        ("offsets", T.LongType(), "there is no column offsets; choose one of: key, value, topic"),
        ("headers", T.ArrayType(HEADER), "column headers: expected the type array<struct<key:str"),
        ("timestamp", T.TimestampNTZType(), "column timestamp: expected the type timestamp, with"),
    ],
)
def test_a_column_or_type_that_there_is_not_is_told(
    name: str, kind: T.DataType, reason: str
) -> None:
    fields = [T.StructField("partition", T.IntegerType(), nullable=False)]
    assert (
        not arrow_schema(T.StructType(fields), KafkaLogOptions.parse(PATH))
        .field("partition")
        .nullable
    )
    with pytest.raises(ArgumentError, match=f"^{re.escape(reason)}"):
        arrow_schema(
            T.StructType([*fields, T.StructField(name, kind)]), KafkaLogOptions.parse(PATH)
        )


@pytest.mark.parametrize(
    "name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp", "replicas"]
)
def test_what_only_a_stream_or_only_a_query_takes_is_told(name: str) -> None:
    schema = spark_schema(KafkaLogOptions.parse(PATH).schema())
    value = {
        "endingOffsets": "latest",
        "endingTimestamp": "1",
        "endingOffsetsByTimestamp": by_partition(1),
        "replicas": "all",
    }[name]
    with pytest.raises(ArgumentError, match=f"^a stream cannot use {name}"):
        KafkaLog({**PATH, name: value}).streamReader(schema)
    with pytest.raises(ArgumentError, match=r"^startingOffsets latest needs a stream"):
        KafkaLog({**PATH, "startingOffsets": "latest"}).reader(schema)
    assert KafkaLog({**PATH, "startingOffsets": "latest"}).streamReader(schema)


@pytest.mark.parametrize(
    ("sources", "lacking", "name"),
    [
        (kafka_log, "ReadMaxRows", "maxOffsetsPerTrigger"),
        (kafka_capture, "ReadMaxBytes", "maxBytesPerTrigger"),
        (kafka_capture, "ReadMaxBytes", "maxFilesPerTrigger"),
    ],
)
def test_a_limit_of_a_batch_needs_a_pyspark_that_has_limits(
    monkeypatch: pytest.MonkeyPatch, sources: Any, lacking: str, name: str
) -> None:
    source = {kafka_log: KafkaLog, kafka_capture: KafkaCapture}[sources]

    def stream(**given: str) -> None:
        reading = source({**PATH, **given})
        reading.streamReader(cast("T.StructType", reading.schema()))

    monkeypatch.setattr(sources, lacking, object)
    stream(**{name: "5"})
    monkeypatch.setattr(sources, lacking, None)
    stream()
    with pytest.raises(ArgumentError, match=f"(?m)^{name} needs PySpark 4.2 or later$"):
        stream(**{name: "5"})
