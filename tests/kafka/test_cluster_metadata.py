"""Views of a cluster's metadata log agree with the answers of Kafka's admin client at that time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.admin._resource import ResourceType

from tests.kafka.acting import SETTINGS, Acts, act, act_with_two, set_feature
from tests.kafka.test_quorum import quorum
from tests.spark.internal_topics.snapshots import compared, view
from tools.broker import VERSIONS, broker

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Row, SparkSession

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]
# The source of a configuration: 1 is the topic, 2 a broker, 3 the default of all brokers.
OF_TOPIC, OF_BROKERS = (1,), (2, 3)
# Changes that lose nothing in this test, and are therefore allowed.
DOWNGRADES = {
    "3.9.2": ("metadata.version", 20),
    "4.0.2": ("transaction.version", 1),
    "4.4.0": ("transaction.version", 1),
}


def by_admin(acts: Acts) -> dict[tuple[str, int], tuple[Any, ...]]:
    """Return leader, replicas and ISR by partition, as the admin client describes topics."""
    names = list(acts.admin.list_topics(timeout=60).topics)
    found = {}
    for name, one in acts.admin.describe_topics(TopicCollection(names)).items():
        for part in one.result(60).partitions:
            leader = None if part.leader is None or part.leader.id < 0 else part.leader.id
            replicas, isr = ([node.id for node in nodes] for nodes in (part.replicas, part.isr))
            found[name, part.id] = (leader, replicas, sorted(isr))
    return found


def by_log(rows: list[Row]) -> dict[tuple[str, int], tuple[Any, ...]]:
    return {(row.topic, row.partition): (row.leader, row.replicas, sorted(row.isr)) for row in rows}


def epochs(acts: Acts) -> dict[tuple[str, int], tuple[Any, ...]]:
    """Return the leader epoch by partition, and the ELR if the release has one."""
    asked = {"topics": None, "allowAutoTopicCreation": False}
    said = acts.ask(3, "Metadata", 12, {**asked, "includeTopicAuthorizedOperations": False})
    names = [{"name": one["name"]} for one in said["topics"]]
    body = {"topics": names, "responsePartitionLimit": 2000, "cursor": None}
    told = acts.ask(75, "DescribeTopicPartitions", 0, body)
    return {
        (topic["name"], part["partitionIndex"]): (
            part["leaderEpoch"],
            sorted(part["eligibleLeaderReplicas"] or []),
            sorted(part["lastKnownElr"] or []),
        )
        for topic in told["topics"]
        for part in topic["partitions"]
    }


def dynamic_configs(acts: Acts, topics: list[str]) -> dict[tuple[str, str, str], str | None]:
    """Return the configurations by resource and name; None stands for a value that the broker
    hides.
    """
    wanted = [ConfigResource(ResourceType.TOPIC, name) for name in topics]
    wanted += [ConfigResource(ResourceType.BROKER, "1")]
    found = {}
    for resource, one in acts.admin.describe_configs(wanted).items():
        kind = "topic" if resource.restype == ResourceType.TOPIC else "broker"
        for entry in one.result(60).values():
            if entry.source in (OF_TOPIC if kind == "topic" else OF_BROKERS):
                name = resource.name if entry.source != 3 else ""
                found[kind, name, entry.name] = None if entry.is_sensitive else entry.value
    return found


def agree(spark: SparkSession, acts: Acts) -> None:
    """Compare every view whose content a broker can be asked for."""
    from flexwire.answers.state.cluster import cluster_state  # noqa: PLC0415 - PySpark

    expected, told = by_admin(acts), epochs(acts)
    state = cluster_state(spark, acts.logs)
    assert state.committed_to == state.offset
    rows = view("partitions", "partitions", state).collect()
    assert by_log(rows) == expected
    assert {
        (row.topic, row.partition): (
            row.leader_epoch,
            sorted(row.elr),
            sorted(row.last_known_elr),
        )
        for row in rows
    } == told
    living = view("topics", "topics", state).where("deleted_offset is null").collect()
    assert {row.topic for row in living} == {topic for topic, _ in expected}
    configs = view("configs", "configs", state).where("value is not null").collect()
    said = dynamic_configs(acts, sorted({row.topic for row in living}))
    assert {
        (row.resource_type, row.resource_name, row.name): None
        if row.value == "withheld"
        else row.value
        for row in configs
    } == said
    brokers = view("brokers", "brokers", state).collect()
    assert {row.broker: row.is_fenced for row in brokers} == acts.fenced()
    described(acts, brokers)
    levels = view("features", "features", state).where("until_offset is null and level > 0")
    versions = acts.ask(
        18, "ApiVersions", 3, {"clientSoftwareName": "a", "clientSoftwareVersion": "1"}
    )
    features = {one["name"]: one["maxVersionLevel"] for one in versions["finalizedFeatures"]}
    # The admin client does not list features at level 0.
    assert {row.feature: row.level for row in levels.collect()} == features
    check_fenced(rows, {row.broker for row in brokers if row.is_fenced}, features)
    [row] = view("voters", "voters", state).collect()
    # This feature is static, so only the record of the leader election contains it.
    assert (row.voter, row.said_by, row.endpoints) == (1, "LEADER_CHANGE", None)
    assert quorum(acts.address, acts.version).voters == {1: None}
    clients(acts, state)


def check_fenced(rows: list[Row], fenced: set[int], features: dict[str, int]) -> None:
    """Compare ISRs with fenced brokers: without ELRs (KIP-966) one may be the last of an ISR."""
    has_elr = features.get("eligible.leader.replicas.version", 0) > 0
    lonely = [row for row in rows if fenced & {*row.isr}]
    assert all(len(row.isr) == 1 and row.leader is None for row in lonely)
    kept = [row for row in rows if fenced & {*row.elr}]
    assert not (lonely if has_elr else kept)
    # Only partitions that were moved to the second broker are compared.
    assert bool(fenced) == bool(lonely or kept)


def described(acts: Acts, brokers: list[Row]) -> None:
    nodes = {one.id: one for one in acts.admin.describe_cluster().result(60).nodes}
    for row in brokers:
        if not row.is_fenced:
            [end] = row.endpoints
            node = nodes[row.broker]
            assert (end.host, end.port, row.rack) == (node.host, node.port, node.rack)


def clients(acts: Acts, state: Any) -> None:
    """Compare quotas, users and ACLs."""
    quotas = acts.ask(48, "DescribeClientQuotas", 1, {"components": [], "strict": False})
    expected = {
        (
            tuple(sorted((who["entityType"], who["entityName"]) for who in one["entity"])),
            value["key"],
            value["value"],
        )
        for one in quotas["entries"] or []
        for value in one["values"]
    }
    assert {
        (tuple((one.type, one.name) for one in row.entity), row.quota, row.value)
        for row in view("quotas", "client_quotas", state).collect()
    } == expected
    users = acts.ask(50, "DescribeUserScramCredentials", 0, {"users": None})
    assert {
        (row["user"], row.mechanism, row.iterations)
        for row in view("scram", "scram_users", state).collect()
    } == {
        (one["user"], f"SCRAM-SHA-{ {1: 256, 2: 512}[info['mechanism']] }", info["iterations"])
        for one in users["results"]
        for info in one["credentialInfos"]
    }
    every = {
        "resourceTypeFilter": 1,
        "resourceNameFilter": None,
        "patternTypeFilter": 1,
        "principalFilter": None,
        "hostFilter": None,
        "operation": 1,
        "permissionType": 1,
    }
    acls = acts.ask(29, "DescribeAcls", 3, every)
    assert {
        (row.resource_type, row.resource_name, row.pattern_type, row.principal, row.operation)
        for row in view("acls", "acls", state).collect()
    } == {
        ("TOPIC", one["resourceName"], "PREFIXED", acl["principal"], "READ")
        for one in acls["resources"]
        for acl in one["acls"]
        if (one["resourceType"], one["patternType"], acl["operation"]) == (2, 4, 3)
    }


@pytest.mark.parametrize("version", VERSIONS)
def test_the_log_says_what_the_broker_says(
    spark: SparkSession, tmp_path: Path, version: str
) -> None:
    with broker(version, tmp_path, SETTINGS) as address:
        acts = Acts(version, address, tmp_path)
        act(acts)
        agree(spark, acts)
        with acts.second():
            act_with_two(acts)
            agree(spark, acts)
        acts.until(lambda: acts.fenced() == {1: False, 2: True})
        agree(spark, acts)
        with acts.second():
            acts.until(lambda: all(len(row[2]) == len(row[1]) for row in by_admin(acts).values()))
            agree(spark, acts)
        acts.until(lambda: acts.fenced() == {1: False, 2: True})
        set_feature(acts, *DOWNGRADES[version], 2)
        agree(spark, acts)
    # Each comparison reads ten views twice.
    assert len(compared(spark, tmp_path / "data", most=3)) == 3
    with broker(version, tmp_path, SETTINGS) as address:
        agree(spark, Acts(version, address, tmp_path))
