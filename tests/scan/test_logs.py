"""Log records read without Spark equal those of the data source and of the reference."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.errors import ArgumentError, CaptureError
from flexwire.logs.records import CORRUPT, FACT_COLUMNS, KAFKA_COLUMNS
from flexwire.scan import read_kafka_log
from flexwire.spark.sources.kafka_log import KafkaLogOptions, KafkaLogReader
from flexwire.tasks import spark_schema
from tests.capture.made_logs import TIME, all_records, random_log, write_log

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("logs")
    for number, name in enumerate(("orders-0", "orders-1", "payments-0")):
        (directory / name).mkdir()
        write_log(directory / name, random_log(number))
    return directory


def of_source(path: Path, **options: str) -> list[dict[str, Any]]:
    """Run the tasks of the data source without Spark, and return their rows."""
    parsed = KafkaLogOptions.parse({"path": str(path), **options})
    reader = KafkaLogReader(parsed, spark_schema(parsed.schema()))
    return [row for task in reader.partitions() for b in reader.read(task) for row in b.to_pylist()]


def test_records_are_those_of_the_reference(logs: Path) -> None:
    rows = read_kafka_log(logs).read_all().to_pylist()
    assert list(rows[0]) == list(KAFKA_COLUMNS)
    for number, name in enumerate(("orders-0", "orders-1", "payments-0")):
        topic, partition = name.split("-")
        found = [
            (row["offset"], row["key"], row["value"])
            for row in rows
            if (row["topic"], row["partition"]) == (topic, int(partition))
        ]
        assert found == [
            (one.offset, one.key, one.value) for one in all_records(random_log(number))
        ]


@pytest.mark.parametrize(
    ("how", "options"),
    [
        ({}, {"includeHeaders": "true"}),
        ({"topics": ["orders"], "partitions": [1]}, {"topic": "orders", "partitions": "1"}),
        ({"include_batch": True}, {"includeBatch": "true"}),
        ({"include_file": True}, {"includeFile": "true"}),
        ({"mode": "PERMISSIVE", "replicas": "all"}, {"mode": "PERMISSIVE", "replicas": "all"}),
        ({"isolation": "read_committed"}, {"isolation": "read_committed"}),
        ({"include_deleted": True}, {"includeDeleted": "true"}),
        (
            {"since": datetime.fromtimestamp(TIME / 1000, UTC)},
            {"startingTimestamp": str(TIME)},
        ),
        (
            {"until": datetime.fromtimestamp((TIME + 900) / 1000, UTC)},
            {"endingTimestamp": str(TIME + 900)},
        ),
    ],
)  # fmt: skip
def test_rows_are_those_of_the_data_source(
    how: dict[str, Any], options: dict[str, str], logs: Path
) -> None:
    expected = of_source(logs, **{"includeHeaders": "true", **options})
    found = read_kafka_log(logs, **how).read_all().to_pylist()
    key = ("topic", "partition", "offset")
    assert sorted(found, key=lambda row: [row[name] for name in key]) == sorted(
        expected, key=lambda row: [row[name] for name in key]
    )
    assert found


def test_columns_are_given_in_the_order_that_was_asked_for(logs: Path) -> None:
    whole = read_kafka_log(logs, include_batch=True).read_all()
    names = ["value", "offset", next(iter(FACT_COLUMNS))]
    assert (
        read_kafka_log(logs, include_batch=True, columns=names)
        .read_all()
        .equals(whole.select(names))
    )
    with pytest.raises(ArgumentError, match="there is no column"):
        read_kafka_log(logs, columns=[CORRUPT])


def test_damage_is_an_error_or_a_row(logs: Path, tmp_path: Path) -> None:
    (tmp_path / "orders-0").mkdir()
    [segment, *_] = sorted((logs / "orders-0").glob("*.log"))
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 0xFF
    (tmp_path / "orders-0" / segment.name).write_bytes(data)
    with pytest.raises(CaptureError, match="crc is"):
        read_kafka_log(tmp_path).read_all()
    rows = read_kafka_log(tmp_path, mode="PERMISSIVE").read_all().to_pylist()
    told = [row[CORRUPT] for row in rows if row[CORRUPT] is not None]
    assert len(told) == 1
    assert 0 < len(rows) - 1 < len(all_records(random_log(0)))


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"isolation": "read"}, "isolation: expected one of"),
        ({"mode": "LOUD"}, "mode: expected one of"),
        ({"replicas": "none"}, "replicas: expected one of"),
        ({"include_file": "yes"}, "include_file: expected True or False"),
        ({"partitions": ["0"]}, "partitions: expected"),
        ({"topics": "orders"}, "topics: expected"),
        ({"topics": ["ordrs"]}, "ordrs"),
    ],
)
def test_what_an_option_does_not_take_is_refused(
    given: dict[str, Any], reason: str, logs: Path
) -> None:
    with pytest.raises(ArgumentError, match=reason):
        read_kafka_log(logs, **given)


def test_a_path_without_a_log_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CaptureError):
        read_kafka_log(tmp_path)
