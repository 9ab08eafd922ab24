"""A log whose older segments are in a tier, as Spark's own Kafka source gets it from the broker."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from flexwire.capture.logs.starts import FILE
from tests.kafka.conftest import SETTINGS
from tests.kafka.filling import MOST_SECONDS, Broker, write_any
from tests.kafka.test_judged import by_broker, same
from tools.broker import TIERED, broker, tiered

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

TOPIC = "in-a-tier"
# Each segment is copied once it is not the last, and then given up here.
CONFIG = {"remote.storage.enable": "true", "segment.ms": "100", "local.retention.ms": "1"}
OFTEN = {"log.retention.check.interval.ms": "500", "log.initial.task.delay.ms": "500"}


def wait(is_so: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 2 * MOST_SECONDS
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(0.2)


def local_starts(logs: Path) -> list[int]:
    """Where the segments begin that the broker has itself, a list with the least of each log."""
    return [
        min(int(one.name[:20]) for one in directory.glob("*.log"))
        for directory in logs.glob(f"{TOPIC}-*")
    ]


def test_a_tier_is_read_as_the_broker_reads_it(spark: SparkSession, tmp_path: Path) -> None:
    tier = tmp_path / "tier"
    settings = {**SETTINGS, **OFTEN, **tiered(tier)}
    with broker(TIERED, tmp_path / "kafka", settings) as address:
        kafka = Broker(address, tmp_path / "kafka" / "data")
        admin = AdminClient({"bootstrap.servers": address})
        for created in admin.create_topics([NewTopic(TOPIC, 2, 1, config=CONFIG)]).values():
            created.result(MOST_SECONDS)
        for codec in ("zstd", "none", "lz4"):
            write_any(kafka, TOPIC, codec, 200)
            time.sleep(0.2)
        wait(lambda: min(local_starts(kafka.logs)) > 0, "no segment was given up")

        def by_files() -> DataFrame:
            reader = spark.read.format("kafka-log").options(includeHeaders="true", topic=TOPIC)
            return reader.load([str(kafka.logs), str(tier)])

        assert len(same(by_files(), by_broker(spark, kafka, TOPIC))) == 600
        # What is deleted lies in the tier.
        for deleted in admin.delete_records([TopicPartition(TOPIC, 0, 30)]).values():
            assert deleted.result(MOST_SECONDS).low_watermark == 30
        wait(lambda: f"{TOPIC} 0 30" in (kafka.logs / FILE).read_text(), "it is not written down")
        found = same(by_files(), by_broker(spark, kafka, TOPIC))
        assert [row.offset for row in found if row.partition == 0] == [*range(30, 300)]
