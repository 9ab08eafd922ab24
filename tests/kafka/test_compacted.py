"""After a broker's cleaner compacted a commit log, views are exact where they claim to be."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from flexwire.answers.state import last_commits, open_log
from tests.kafka.asking import ask, until
from tests.kafka.coordinating import MOST_SECONDS
from tools.broker import VERSIONS, broker

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]
VERSION = VERSIONS[-1]
LOG, TOPIC, PARTITIONS = "__consumer_offsets", "orders", 3
GROUPS = tuple(f"g-{number}" for number in range(6))
# This group commits once, and again only at the end; another group is deleted.
STILL, GONE = "g-still", "g-gone"
CLEANING = {"log.cleaner.backoff.ms": "200", "log.cleaner.threads": "1"}
Commits = dict[tuple[str, int], int]


class Committing:
    """Let groups commit, and return the broker's view of the commits."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.admin = AdminClient({"bootstrap.servers": address, "log_level": 2})
        [created] = self.admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)]).values()
        created.result(MOST_SECONDS)
        self._consumers: dict[str, Consumer] = {}
        self._offset = 0

    def commit(self, *groups: str) -> None:
        self._offset += 1
        for group in groups:
            own = {"bootstrap.servers": self.address, "group.id": group, "log_level": 2}
            if group not in self._consumers:
                self._consumers[group] = Consumer({**own, "enable.auto.commit": False})
            places = [TopicPartition(TOPIC, one, self._offset) for one in range(PARTITIONS)]
            self._consumers[group].commit(offsets=places, asynchronous=False)

    def delete(self, group: str) -> None:
        self._consumers.pop(group).close()
        for deleted in self.admin.delete_consumer_groups([group]).values():
            deleted.result(MOST_SECONDS)

    def configure(self, **settings: str) -> None:
        configs = [
            {"name": name.replace("_", "."), "configOperation": 0, "value": value}
            for name, value in settings.items()
        ]
        resources = [{"resourceType": 2, "resourceName": LOG, "configs": configs}]
        form: dict[str, Any] = {"resources": resources, "validateOnly": False}
        said = ask(self.address, "IncrementalAlterConfigs", VERSION, **form)
        assert said["responses"][0]["errorCode"] == 0, said

    def said(self) -> Commits:
        """Return all commits that the broker reports to its admin client."""
        names = (*GROUPS, STILL, GONE)
        asked = [
            {"groupId": one, "memberId": None, "memberEpoch": -1, "topics": None} for one in names
        ]
        form = {"groups": asked, "requireStable": False}
        return {
            (group["groupId"], one["partitionIndex"]): one["committedOffset"]
            for group in ask(self.address, "OffsetFetch", VERSION, most=9, **form)["groups"]
            for topic in group["topics"]
            for one in topic["partitions"]
        }

    def ends(self) -> dict[int, int]:
        asks = Consumer({"bootstrap.servers": self.address, "group.id": "asks", "log_level": 2})
        places = [TopicPartition(LOG, one) for one in range(2)]
        return {one.partition: asks.get_watermark_offsets(one, MOST_SECONDS)[1] for one in places}


def cleaned(logs: Path) -> dict[int, int]:
    """Return the broker's checkpoint of its compaction."""
    path = logs / "cleaner-offset-checkpoint"
    lines = [one.split() for one in path.read_text().splitlines()[2:]] if path.exists() else []
    return {int(number): int(at) for topic, number, at in lines if topic == LOG}


def test_a_log_that_a_broker_compacted(spark: SparkSession, tmp_path: Path) -> None:
    logs = tmp_path / "data"
    with broker(VERSION, tmp_path, CLEANING) as address:
        made = Committing(address)
        made.commit(*GROUPS, STILL, GONE)
        made.configure(segment_ms="100", min_cleanable_dirty_ratio="0.001", delete_retention_ms="0")
        for _ in range(5):
            made.commit(*GROUPS)
        early, early_ends = made.said(), made.ends()
        made.delete(GONE)

        def is_cleaned() -> bool:
            # Only an appended record creates a new segment.
            made.commit(*GROUPS)
            time.sleep(0.3)
            return all(cleaned(logs).get(one, 0) > at for one, at in early_ends.items())

        until(is_cleaned, "the cleaner did not come so far")
        made.configure(segment_ms="604800000", min_cleanable_dirty_ratio="1.0")
        time.sleep(1)
        made.commit(*GROUPS)
        late, late_ends = made.said(), made.ends()
        made.commit(*GROUPS, STILL)
        last = made.said()
    done = cleaned(logs)
    # A moved replica copies a log that is already compacted, and the replica's checkpoint has no
    # entries.
    logs.joinpath("cleaner-offset-checkpoint").write_text("0\n0\n")
    assert all(early_ends[one] < done[one] <= late_ends[one] for one in done)
    rows = spark.read.format("kafka-log").option("topic", LOG).load(str(logs))
    # The cleaner removed most commits.
    assert rows.count() < sum(early_ends.values())

    def view(ends: dict[int, int] | None) -> tuple[Commits, set[tuple[str, int]], tuple[int, ...]]:
        log = open_log(spark, logs, LOG, offsets=ends)
        found = [one for one in last_commits(log).collect() if one.group != "asks"]
        known = {(one.group, one.partition): one.offset for one in found if one.is_known}
        return (
            known,
            {(one.group, one.partition) for one in found if not one.is_known},
            log.incomplete,
        )

    assert view(None) == (last, set(), ())
    assert view(late_ends) == (late, set(), ())
    known, unknown, incomplete = view(early_ends)
    assert incomplete == tuple(sorted(early_ends))
    # Facts that are reported as known are correct. All other facts are gone; if a part of a fact is
    # left, the view reports that.
    assert known == {place: at for place, at in early.items() if place in known}
    assert {(STILL, one) for one in range(PARTITIONS)} <= {*known}
    assert unknown
    lost = {*early} - {*known} - unknown
    assert {group for group, _ in lost} <= {GONE}
