"""A log with older segments in a tier contains the records that Spark's own Kafka source reads."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from flexwire.answers.state import open_log, remote_segments, unreadable
from flexwire.answers.state.remote_segments import RECORDS
from flexwire.logs.checkpoints import STARTS
from tests.kafka.asking import ask
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
# A segment is copied to the tier when it is no longer the last, and then removed here.
CONFIG = {"remote.storage.enable": "true", "segment.ms": "100", "local.retention.ms": "1"}
OFTEN = {"log.retention.check.interval.ms": "500", "log.initial.task.delay.ms": "500"}


def wait(is_so: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 2 * MOST_SECONDS
    while not is_so():
        assert time.monotonic() < end, what
        time.sleep(0.2)


def local_starts(logs: Path) -> list[int]:
    """Return the base offsets of segments on the broker, with the lowest offset of each log."""
    return [
        min(int(one.name[:20]) for one in directory.glob("*.log"))
        for directory in logs.glob(f"{TOPIC}-*")
    ]


def begin_from(logs: Path, start: int) -> bool:
    """Return whether the broker has removed everything before an offset, in all partitions."""
    return min(local_starts(logs)) >= start


def segments_in(tier: Path) -> dict[str, tuple[int, int, int]]:
    """Return the partition, base offset and bytes of each segment in the tier, by id."""
    found = {}
    for one in tier.rglob("*.log"):
        base, _, name = one.stem.partition("-")
        partition = one.parent.name.removeprefix(f"{TOPIC}-").partition("-")[0]
        found[name] = (int(partition), int(base), one.stat().st_size)
    return found


def last_tiered(address: str) -> dict[int, int]:
    """Return the highest offset of each partition in the tier, as the broker reports it."""
    asked = [{"partitionIndex": one, "currentLeaderEpoch": -1, "timestamp": -5} for one in (0, 1)]
    form: dict[str, Any] = {"topics": [{"name": TOPIC, "partitions": asked}]}
    said = ask(address, "ListOffsets", TIERED, replicaId=-1, isolationLevel=0, **form)
    return {one["partitionIndex"]: one["offset"] for one in said["topics"][0]["partitions"]}


def segments_agree(spark: SparkSession, address: str, logs: Path, tier: Path) -> None:
    """Compare the view of segments with the tier and with the broker's answers."""
    log = open_log(spark, logs, "__remote_log_metadata")
    assert unreadable(log, RECORDS).count() == 0
    rows = [one for one in remote_segments(log).collect() if one.topic == TOPIC]
    assert all(one.is_known for one in rows)
    assert {one.state for one in rows} == {"COPY_SEGMENT_FINISHED"}
    assert {
        one.segment_id: (one.partition, one.start_offset, one.size_bytes) for one in rows
    } == segments_in(tier)
    highest: dict[int, int] = {}
    for one in rows:
        highest[one.partition] = max(one.end_offset, highest.get(one.partition, -1))
        assert [(epoch.leader_epoch, epoch.offset) for epoch in one.leader_epochs] == [
            (0, one.start_offset)
        ]
    assert highest == last_tiered(address)


def is_settled(tier: Path, logs: Path) -> bool:
    """Return whether all segments but the last are only in the tier."""
    starts = sorted(local_starts(logs))
    ends: dict[int, int] = {}
    for partition, base, _ in segments_in(tier).values():
        ends[partition] = max(base, ends.get(partition, 0))
    return len(ends) == len(starts) == 2 and all(
        len([*one.glob("*.log")]) == 1 for one in logs.glob(f"{TOPIC}-*")
    )


def test_a_tier_is_read_as_the_broker_reads_it(spark: SparkSession, tmp_path: Path) -> None:
    tier = tmp_path / "tier"
    settings = {**SETTINGS, **OFTEN, **tiered(tier)}
    with broker(TIERED, tmp_path / "kafka", settings) as address:
        kafka = Broker(address, tmp_path / "kafka" / "data")
        admin = AdminClient({"bootstrap.servers": address})
        for created in admin.create_topics([NewTopic(TOPIC, 2, 1, config=CONFIG)]).values():
            created.result(MOST_SECONDS)
        # Timestamps, which are in random order, decide where a segment ends. So no segment contains
        # batches of two codecs, and the last segment may still be on the broker.
        for codec, start in (("zstd", 100), ("none", 200), ("lz4", 200)):
            write_any(kafka, TOPIC, codec, 200)
            wait(partial(begin_from, kafka.logs, start), "no segment was given up")

        def by_files() -> DataFrame:
            reader = spark.read.format("kafka-log").options(includeHeaders="true", topic=TOPIC)
            return reader.load([str(kafka.logs), str(tier)])

        # Before that time, a segment may be removed while it is read, which causes a read error.
        wait(lambda: is_settled(tier, kafka.logs), "not all was copied")
        assert len(same(by_files(), by_broker(spark, kafka, TOPIC))) == 600
        segments_agree(spark, address, kafka.logs, tier)
        # The tier still contains the records that were deleted.
        for deleted in admin.delete_records([TopicPartition(TOPIC, 0, 30)]).values():
            assert deleted.result(MOST_SECONDS).low_watermark == 30
        wait(lambda: f"{TOPIC} 0 30" in (kafka.logs / STARTS).read_text(), "it is not written down")
        found = same(by_files(), by_broker(spark, kafka, TOPIC))
        assert [row.offset for row in found if row.partition == 0] == [*range(30, 300)]
        # Segments without remaining records are deleted from the tier, and forgotten.
        before = len(segments_in(tier))
        for deleted in admin.delete_records([TopicPartition(TOPIC, 0, 150)]).values():
            assert deleted.result(MOST_SECONDS).low_watermark == 150
        wait(lambda: len(segments_in(tier)) < before, "no segment was deleted")
        time.sleep(2)
        segments_agree(spark, address, kafka.logs, tier)
