"""A cluster's state after each record equals the state computed by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.capture.log_vectors import write_all
from tests.capture.made_metadata import TIME, log, snapshot, value, write
from tests.spark.internal_topics.snapshots import compared

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark
A, B, OLD = "AAAAAAAAAAAAAAAAAAAAMA", "AAAAAAAAAAAAAAAAAAAAMQ", "AAAAAAAAAAAAAAAAAAAAMg"
DIRS = ["AAAAAAAAAAAAAAAAAAAAOA", "AAAAAAAAAAAAAAAAAAAAOQ"]


def topic(name: str, identity: str) -> bytes:
    return value("TopicRecord", name=name, topicId=identity)


def partition(identity: str, **fields: Any) -> bytes:
    first = {
        "partitionId": 0,
        "topicId": identity,
        "replicas": [1, 2],
        "isr": [1, 2],
        "removingReplicas": [],
        "addingReplicas": [],
        "leader": 1,
        "leaderEpoch": 0,
        "partitionEpoch": 0,
        "directories": DIRS,
    }
    return value("PartitionRecord", 2, **first | fields)


def change(identity: str, **fields: Any) -> bytes:
    return value("PartitionChangeRecord", 2, partitionId=0, topicId=identity, **fields)


def config(kind: int, resource: str, name: str, said: str | None) -> bytes:
    return value("ConfigRecord", resourceType=kind, resourceName=resource, name=name, value=said)


BEGIN, END, ABORT = (
    value("BeginTransactionRecord", name="many"),
    value("EndTransactionRecord"),
    value("AbortTransactionRecord", reason="the controller was replaced"),
)
# The leader is elected at offset 0.
PARTS = [
    [topic("a", A), partition(A)],  # 1, 2
    [config(2, "a", "retention.ms", "1"), config(2, "a", "cleanup.policy", "compact")],  # 3, 4
    [change(A, isr=[1], eligibleLeaderReplicas=[2])],  # 5
    [change(A, leader=-1, isr=[], eligibleLeaderReplicas=[1, 2], lastKnownElr=[1])],  # 6
    [BEGIN, topic("b", B), partition(B, leader=2), config(2, "b", "x", "1"), END],  # 7-11
    [value("ClearElrRecord", topicName="")],  # 12
    [change(A, leader=2, isr=[2], leaderRecoveryState=1)],  # 13
    [BEGIN, change(A, leader=1), topic("c", OLD), config(4, "", "z", "1"), ABORT],  # 14-18
    [config(2, "a", "retention.ms", None), config(4, "", "ssl.key.password", "hunter2")],  # 19, 20
    [change(A, replicas=[2, 3], directories=[DIRS[1], DIRS[0]], addingReplicas=[3])],  # 21
    [value("RemoveTopicRecord", topicId=B)],  # 22
    [change(A, replicas=[3]), topic("b", OLD), partition(OLD)],  # 23-25
    [BEGIN, change(A, leader=3), config(2, "b", "x", "2")],  # 26-28
]


def shown(rows: DataFrame, *names: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in rows.select(*names).collect()), key=str)


@pytest.mark.long
def test_partitions_and_configs(spark: SparkSession, tmp_path: Path) -> None:
    from flexwire.answers.cluster_configs import configs  # noqa: PLC0415
    from flexwire.answers.state.cluster import cluster_state  # noqa: PLC0415 - PySpark
    from flexwire.answers.state.cluster_partitions import partitions  # noqa: PLC0415

    there = write(tmp_path, {"0": log(*PARTS, voters=(1, 2, 3))})
    state = cluster_state(spark, there, committed_to=24)
    assert (state.offset, state.start, state.snapshot, state.committed_to) == (29, 0, None, 24)
    of_a, of_b = sorted(partitions(state).collect(), key=lambda row: row.topic)
    # A leader is elected at offsets 6 and 13. The partition changes at 5, 6, 12, 13, 21 and 23, and
    # the change at 12 empties the ELR.
    assert (of_a.leader, of_a.leader_epoch, of_a.partition_epoch) == (2, 2, 6)
    assert (of_a.replicas, of_a.isr, of_a.elr, of_a.last_known_elr) == ([3], [2], [], [])
    assert (of_a.adding_replicas, of_a.removing_replicas, of_a.is_recovering) == ([3], [], True)
    # The last change of replicas does not name their directories.
    assert (of_a.directories, of_a.changed_offset, of_a.is_committed) == (None, 23, True)
    assert (of_b.topic_id, of_b.leader, of_b.partition_epoch, of_b.directories) == (OLD, 1, 0, DIRS)
    assert (of_b.changed_offset, of_b.is_committed) == (25, False)
    names = ("resource_type", "resource_name", "name", "value", "changed_offset", "is_committed")
    assert shown(configs(state), *names) == [
        ("broker", "", "ssl.key.password", "withheld", 20, True),
        ("topic", "a", "cleanup.policy", "compact", 4, True),
        ("topic", "a", "retention.ms", None, 19, True),
        ("topic", "b", "x", None, 22, True),
    ]


@pytest.mark.cluster
def test_topics_and_history(spark: SparkSession, tmp_path: Path) -> None:
    from flexwire.answers.cluster_history import partition_history  # noqa: PLC0415
    from flexwire.answers.cluster_topics import topics  # noqa: PLC0415
    from flexwire.answers.state.cluster import cluster_state  # noqa: PLC0415 - PySpark

    there = write(tmp_path, {"0": log(*PARTS, voters=(1, 2, 3))})
    state = cluster_state(spark, there, committed_to=24)
    facts = ("topic", "topic_id", "created_offset", "deleted_offset", "is_committed")
    assert shown(topics(state), *facts) == [
        ("a", A, 1, None, True),
        ("b", B, 8, 22, True),
        ("b", OLD, 24, None, False),
    ]
    told = ("topic_id", "changed_offset", "leader", "leader_epoch", "left_isr", "joined_isr")
    assert shown(partition_history(state), *told) == sorted([
        (A, 2, 1, 0, None, None),
        (A, 5, 1, 0, [2], []),
        (A, 6, None, 1, [1], []),
        (A, 13, 2, 2, [], [2]),
        (B, 9, 2, 0, None, None),
        (OLD, 25, 1, 0, None, None),
    ], key=str)  # fmt: skip
    assert [row.offset for row in state.unended.select("offset").collect()] == [27, 28]


@pytest.mark.cluster
def test_as_of_an_offset_a_time_and_a_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    from flexwire.answers.cluster_topics import topics  # noqa: PLC0415
    from flexwire.answers.state.cluster import (  # noqa: PLC0415 - PySpark
        cluster_state,
        metadata_records,
    )
    from flexwire.answers.state.cluster_partitions import partitions  # noqa: PLC0415
    from flexwire.errors import ArgumentError, CaptureError  # noqa: PLC0415 - beside the next

    whole = log(*PARTS, voters=(1, 2, 3))
    kept = snapshot([topic("a", A), partition(A, leader=2, leaderEpoch=9, partitionEpoch=20)])
    there = write(tmp_path, {"0": whole, "12-1": kept})

    def leader(**asked: Any) -> list[tuple[Any, ...]]:
        state = cluster_state(spark, there, **asked)
        return shown(partitions(state), "leader", "leader_epoch", "changed_offset", "is_committed")

    assert leader(offset=3) == [(1, 0, 2, True)]
    assert leader(offset=12) == [(2, 9, None, True)]
    assert leader(offset=12, oldest=True) == [(2, 0, 9, True), (None, 1, 6, True)]
    # The snapshot is the newest base. Nothing shows whether later records are committed.
    assert leader(offset=14) == [(2, 10, 13, None)]
    second = datetime.fromtimestamp(TIME / 1000, UTC)
    assert leader(time=second + timedelta(seconds=3.5)) == [(1, 0, 5, True)]
    # A transaction counts once it has ended.
    for offset, count in ((11, 1), (12, 2)):
        state = cluster_state(spark, there, offset=offset, oldest=True)
        assert topics(state).count() == count
        assert state.unended.count() == (0 if count == 2 else 3)
    rows = metadata_records(spark, tmp_path)
    # The counts exclude the log's control record, and the first and last records of the snapshot.
    counts = rows.groupBy("snapshot_offset", "snapshot_epoch").count()
    assert {tuple(row) for row in counts.collect()} == {(None, None, 28), (12, 1, 2)}
    with pytest.raises(CaptureError, match="offset 99 is not known; it is known from 0 to 29"):
        cluster_state(spark, there, offset=99)
    with pytest.raises(ArgumentError, match="committed_to: expected at least 12"):
        cluster_state(spark, there, committed_to=3)
    with pytest.raises(ArgumentError, match="time: expected a datetime with a time zone"):
        cluster_state(spark, there, time=datetime(2026, 1, 1))  # noqa: DTZ001 - the test needs a time without a zone
    with pytest.raises(ArgumentError, match="got both"):
        cluster_state(spark, there, time=second, offset=1)


@pytest.mark.cluster
def test_what_nothing_reads_is_told(spark: SparkSession, tmp_path: Path) -> None:
    from flexwire.answers.cluster_topics import topics  # noqa: PLC0415
    from flexwire.answers.state.cluster import cluster_state  # noqa: PLC0415 - PySpark

    odd = [bytes([1, 99, 0, 1]), b"", b"\x02\x02\x00", topic("a", A)[:-1], topic("b", B)]
    there = write(tmp_path, {"0": log(odd)})
    state = cluster_state(spark, there)
    assert [row.offset for row in state.unread().orderBy("offset").collect()] == [1, 2, 3, 4]
    assert [row.topic for row in topics(state).collect()] == ["b"]


@pytest.mark.slow
@pytest.mark.cluster
def test_snapshots_of_a_broker_are_the_state_of_the_log_before_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_all(tmp_path)
    assert compared(spark, tmp_path / "4.4.0") == [96, 186, 344]
    assert compared(spark, tmp_path / "__cluster_metadata-0") == [128]
