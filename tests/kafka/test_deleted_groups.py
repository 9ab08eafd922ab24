"""If a group is deleted during a transaction, its offsets do not come back."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from flexwire.answers.state import last_commits, open_log
from tests.kafka.asking import ask, until
from tests.kafka.coordinating import LASTING, MOST_SECONDS
from tools.broker import VERSIONS, broker

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]
LOG, TOPIC, GROUP, STAYS = "__consumer_offsets", "orders", "g-gone", "g-stays"
# The first release uses the old coordinator; only the last release writes version 4 of the value.
OLD, NEW = VERSIONS[0], VERSIONS[-1]


def told(address: str, version: str) -> dict[str, int]:
    """Return what groups have committed, as the broker reports it."""
    asked = [
        {"groupId": one, "memberId": None, "memberEpoch": -1, "topics": None}
        for one in (GROUP, STAYS)
    ]
    form = {"groups": asked, "requireStable": False}
    return {
        group["groupId"]: one["committedOffset"]
        for group in ask(address, "OffsetFetch", version, most=9, **form)["groups"]
        for topic in group["topics"]
        for one in topic["partitions"]
    }


def delete_within_a_transaction(address: str) -> None:
    own: dict[str, Any] = {"bootstrap.servers": address, "log_level": 2}
    admin = AdminClient(own)
    [created] = admin.create_topics([NewTopic(TOPIC, 1, 1)]).values()
    created.result(MOST_SECONDS)
    producer = Producer({**own, "transactional.id": "t", **LASTING})
    producer.init_transactions(MOST_SECONDS)
    producer.begin_transaction()
    for group in (GROUP, STAYS):
        consumer = Consumer({**own, "group.id": group, "enable.auto.commit": False})
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, 5)], asynchronous=False)
        of_group = consumer.consumer_group_metadata()
        offsets = [TopicPartition(TOPIC, 0, 9)]
        producer.send_offsets_to_transaction(offsets, of_group, MOST_SECONDS)
        consumer.close()
    [deleted] = admin.delete_consumer_groups([GROUP]).values()
    deleted.result(MOST_SECONDS)
    producer.commit_transaction(MOST_SECONDS)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_deleted_group_had_pending_is_gone(
    version: str, spark: SparkSession, tmp_path: Path
) -> None:
    directory = tmp_path / "broker"
    with broker(version, directory) as address:
        delete_within_a_transaction(address)
        # Markers are written after the producer gets its answer.
        until(lambda: told(address, version).get(STAYS) == 9, "the transaction did not end")
        running = told(address, version)
        shutil.copytree(directory / "data", tmp_path / "copy")
    with broker(version, directory) as address:
        until(lambda: STAYS in told(address, version), "the log was not loaded")
        loaded = told(address, version)
    assert running == {STAYS: 9}
    # The old coordinator forgets the group while it runs, but finds it when it loads the log.
    assert loaded == ({STAYS: 9, GROUP: 9} if version == OLD else {STAYS: 9})
    log = open_log(spark, tmp_path / "copy", LOG)
    rows = {row.group: (row.offset, row.is_known) for row in last_commits(log).collect()}
    known = {STAYS: (9, True)}
    assert rows == (known if version == NEW else {**known, GROUP: (None, False)})
    versions = log.typed(["OffsetCommit"], ["version", "is_tombstone"]).where("not is_tombstone")
    assert {row.version for row in versions.collect()} == {4 if version == NEW else 3}
