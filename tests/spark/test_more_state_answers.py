"""Answers about offsets, members, share groups, unused objects, and a cluster's settings."""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from flexwire.codec import message
from flexwire.report import render
from flexwire.spark.analyze import Analysis, analyze
from tests.capture.made_logs import TIME, MadeSegment, plain, write_log
from tests.capture.made_metadata import batch, elected, value, write
from tests.spark.internal_topics.made import MadeTopic, commit, keyed
from tests.spark.test_state_answers import ORDERS, partition, rows

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
OFFSETS, PAID, IDLE = "AAAAAAAAAAAAAAAAAAAAMQ", "AAAAAAAAAAAAAAAAAAAAMg", "AAAAAAAAAAAAAAAAAAAAMw"
PAID_ID = UUID(int=50)
SALT, KEY = b"the-salt-of-alice", b"the-stored-key-of-alice"
OF_GROUPS = ("group_offsets", "group_members", "share_state", "unused_groups", "unused_topics")
OF_CLUSTER = (
    *("cluster_partitions", "cluster_history", "cluster_configs", "cluster_quotas"),
    *("cluster_acls", "cluster_credentials"),
)


def groups(root: Path) -> None:
    log = MadeTopic("__consumer_offsets")
    # 0: a group that only commits, without members.
    log.add(*commit(0, 4, "slow"))
    # 1-4: a group with a member that owns one partition (by topic id) and waits for another (by
    # name).
    log.add(*keyed(3, "ConsumerGroupMetadata", {"group_id": "live"}, {"epoch": 1}))
    key = {"group_id": "live", "member_id": "m"}
    wants = {"subscribed_topic_names": ["wanted"], "client_id": "c", "client_host": "/h"}
    log.add(*keyed(5, "ConsumerGroupMemberMetadata", key, wants))
    of: Any = message("ConsumerGroupCurrentMemberAssignmentValue")
    has = [of.TopicPartitions(topic_id=PAID_ID, partitions=[0, 1])]
    assigned = {"member_epoch": 3, "assigned_partitions": has}
    log.add(*keyed(8, "ConsumerGroupCurrentMemberAssignment", key, assigned))
    # 4: a share group without members.
    log.add(*keyed(11, "ShareGroupMetadata", {"group_id": "shared"}, {"epoch": 2}))
    # 5: a commit in a transaction that has not ended, so that its group may be in use.
    log.add(*commit(0, 6, "within"), producer=7)
    log.write(root)
    shares = MadeTopic("__share_group_state")
    state: Any = message("ShareSnapshotValue")
    batches = [
        state.StateBatch(first_offset=3, last_offset=4, delivery_state=2, delivery_count=1),
        state.StateBatch(first_offset=5, last_offset=5, delivery_state=0, delivery_count=4),
    ]
    said = {"start_offset": 3, "state_batches": batches, "delivery_complete_count": 2}
    said |= {"write_timestamp": TIME - 1000}
    at = {"group_id": "shared", "topic_id": PAID_ID, "partition": 0}
    shares.add(*keyed(0, "ShareSnapshot", at, said))
    # This record is for a group without records of its own.
    new = {"start_offset": -1, "write_timestamp": -1}
    shares.add(*keyed(0, "ShareSnapshot", at | {"group_id": "elsewhere"}, new))
    shares.write(root / "shares")


def cluster(root: Path) -> None:
    names = {"orders": ORDERS, "__consumer_offsets": OFFSETS, "paid": PAID, "idle": IDLE}
    config = {"resourceType": 4, "resourceName": "1"}
    acl = {"id": ORDERS, "resourceType": 2, "resourceName": "pay", "patternType": 4}
    acl |= {"principal": "User:alice", "host": "*", "operation": 3, "permissionType": 3}
    salt, stored = (b64encode(one).decode() for one in (SALT, KEY))
    secret = {"salt": salt, "storedKey": stored, "serverKey": stored}
    scram = {"name": "alice", "mechanism": 1, "iterations": 4096, **secret}
    times = {"issueTimestamp": TIME, "maxTimestamp": TIME + 9000, "expirationTimestamp": TIME + 5}
    token = {"owner": "User:bob", "requester": "User:eve", "renewers": ["User:eve"], **times}
    who = [
        {"entityType": "user", "entityName": "alice"},
        {"entityType": "client-id", "entityName": None},
    ]
    first = [
        *(value("TopicRecord", name=name, topicId=one) for name, one in names.items()),
        *(partition(one, isr=[1, 2]) for one in names.values()),
        value("ConfigRecord", **config, name="log.cleaner.threads", value="2"),
        value("ConfigRecord", **config, name="listener.name.x.ssl.key.password", value="hunter2"),
        value("ConfigRecord", **config, name="gone", value="2"),
        value("ConfigRecord", **config, name="gone", value=None),
        value("ClientQuotaRecord", entity=who, key="producer_byte_rate", value=10.0, remove=False),
        value("AccessControlEntryRecord", **acl),
        value("UserScramCredentialRecord", **scram),
        value("DelegationTokenRecord", **token, tokenId="t-1"),
    ]
    change = {"partitionId": 0, "topicId": ORDERS}
    then = [
        value("PartitionChangeRecord", 2, **change, isr=[1]),
        value("PartitionChangeRecord", 2, **change, leader=-1, isr=[1]),
    ]
    made = elected(0, 1, time=TIME) + batch(1, first) + batch(1 + len(first), then, time=TIME + 8)
    write(root, {"0": made})


def made(root: Path) -> Path:
    groups(root)
    cluster(root)
    for name in ("orders", "paid", "idle"):
        segment = MadeSegment(0)
        segment.add(plain(0, 10))
        write_log(root / f"{name}-0", [segment])
    return root


@pytest.fixture(scope="module")
def done(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    root = tmp_path_factory.mktemp("more")
    return analyze([made(root / "data")], root / "out", spark=spark, answers=OF_GROUPS)


@pytest.fixture(scope="module")
def of_cluster(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    root = tmp_path_factory.mktemp("cluster")
    return analyze([made(root / "data")], root / "out", spark=spark, answers=OF_CLUSTER)


def told(done: Analysis, name: str, *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[one] for one in columns) for row in rows(done, name)]


def test_offsets_of_groups(done: Analysis) -> None:
    columns = ("group", "topic", "partition", "offset", "end_offset", "lag", "pending_offset")
    assert told(done, "group_offsets", *columns) == [
        ("slow", "orders", 0, 4, 10, 6, None),
        ("within", "orders", 0, None, 10, None, 6),
    ]


def test_members_have_partitions_by_name(done: Analysis) -> None:
    [row] = rows(done, "group_members")
    assert (row["group"], row["type"], row["member_id"]) == ("live", "consumer", "m")
    assert (row["client_id"], row["client_host"], row["member_epoch"]) == ("c", "/h", 3)
    assert (row["topics"], row["partitions"]) == (["wanted"], 2)
    assert row["assigned"] == ["paid-0", "paid-1"]


def test_share_groups(done: Analysis) -> None:
    columns = ("group", "topic", "partition", "start_offset", "end_offset", "done", "lag")
    # There are seven records from start to end, two of which have been processed.
    assert told(done, "share_state", *columns) == [
        ("shared", "paid", 0, 3, 10, 2, 5),
        ("elsewhere", "paid", 0, -1, 10, None, None),
    ]
    assert told(done, "share_state", "deliveries", "batches") == [(4, 2), (None, 0)]


def test_what_nobody_uses(done: Analysis) -> None:
    # The last record is 8 ms after the first, so all groups are in use except one without dates.
    assert told(done, "unused_groups", "group", "type", "topics", "partitions", "idle_us") == [
        ("elsewhere", None, ["paid"], 1, None),
    ]
    columns = ("topic", "partitions", "groups", "is_known")
    # "orders" has a pending commit, and a member owns a partition of "paid".
    assert told(done, "unused_topics", *columns) == [("idle", 1, 0, True)]


def test_partitions_and_what_happened_to_them(of_cluster: Analysis) -> None:
    columns: tuple[str, ...]
    columns = ("topic", "leader", "isr", "is_offline", "is_under_replicated", "is_preferred")
    first, *others = told(of_cluster, "cluster_partitions", *columns)
    assert first == ("orders", None, [1], True, True, False)
    assert [one[0] for one in others] == ["__consumer_offsets", "idle", "paid"]
    assert all(one[1:4] == (1, [1, 2], False) for one in others)
    columns = ("topic", "leader", "previous_leader", "is_election", "left_isr", "left", "joined")
    # The beginning of each value is not a change.
    assert told(of_cluster, "cluster_history", *columns) == [
        ("orders", None, 1, False, [], 0, 0),
        ("orders", 1, 1, False, [2], 1, 0),
    ]


def test_what_a_cluster_is_set_to(of_cluster: Analysis) -> None:
    columns: tuple[str, ...] = ("resource_type", "resource_name", "name", "value")
    assert told(of_cluster, "cluster_configs", *columns) == [
        ("broker", "1", "listener.name.x.ssl.key.password", "withheld"),
        ("broker", "1", "log.cleaner.threads", "2"),
    ]
    assert told(of_cluster, "cluster_quotas", "entity", "quota", "value") == [
        (["client-id=", "user=alice"], "producer_byte_rate", 10.0)
    ]
    columns = ("principal", "permission", "operation", "resource_type", "pattern_type", "host")
    assert told(of_cluster, "cluster_acls", *columns) == [
        ("User:alice", "ALLOW", "READ", "TOPIC", "PREFIXED", "*")
    ]


def test_credentials_without_a_secret(of_cluster: Analysis) -> None:
    columns = ("principal", "kind", "iterations", "token_id", "renewers")
    assert told(of_cluster, "cluster_credentials", *columns) == [
        ("User:alice", "SCRAM-SHA-256", 4096, None, None),
        ("User:bob", "delegation token", None, "t-1", ["User:eve"]),
    ]
    place = of_cluster.output.place.path
    assert place is not None
    written = [one.read_bytes() for one in place.rglob("*") if one.is_file()]
    written.append(render(of_cluster.facts).encode())
    for secret in (SALT, KEY, b"hunter2"):
        for form in (secret, secret.hex().encode(), b64encode(secret)):
            assert not any(form in one for one in written)
