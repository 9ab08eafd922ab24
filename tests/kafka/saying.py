"""Print the responses to `flexwire call` as `Drive.java` prints those to Kafka's clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexwire.client import Cluster
from tests.kafka.reaching import CALL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.kafka.sidecars import Sidecars

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TOPICS = tuple(f"drive-{codec}" for codec in CODECS)
GROUP, EARLIEST, LATEST = "drive-group", -2, -1
# The names of the protocol's numeric values.
_SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
}
_OF_TOPIC, _ANY = 2, 1
_QUORUM = {"topicName": "__cluster_metadata", "partitions": [{"partitionIndex": 0}]}
_EVERY_ACL: dict[str, Any] = {
    "resourceTypeFilter": _ANY,
    "resourceNameFilter": None,
    "patternTypeFilter": _ANY,
    "principalFilter": None,
    "hostFilter": None,
    "operation": _ANY,
    "permissionType": _ANY,
}
WORDS = (
    "cluster", "node", "partition", "start", "end", "commit", "group", "config", "acl", "quota",
    "scram", "feature", "quorum", "log directory",
)  # fmt: skip


def by_call(sidecars: Sidecars) -> set[tuple[str, ...]]:
    """Send the requests for all of `WORDS`."""
    with Cluster(sidecars.address("PLAINTEXT"), client_id=CALL) as cluster:
        said = [
            *_of_cluster(cluster),
            *_of_partitions(cluster),
            *_of_group(cluster),
            *_of_principals(cluster),
        ]
    return {tuple("null" if part is None else str(part) for part in one) for one in said}


def _asked(cluster: Cluster, name: str, to: str = "any", **body: Any) -> dict[str, Any]:
    answer = cluster.call(name, body, to=to, retries=5)
    assert not answer.error_codes, answer.to_json(names=True)
    found: Any = answer.to_json()
    return dict(found)


def _of_cluster(cluster: Cluster) -> Iterator[tuple[Any, ...]]:
    told = _asked(cluster, "DescribeCluster")
    yield "cluster", told["clusterId"]
    for node in told["brokers"]:
        yield "node", node["brokerId"], node["host"], node["port"]
    for one in _asked(cluster, "ApiVersions")["finalizedFeatures"]:
        yield "feature", one["name"], one["maxVersionLevel"]
    quorum = _asked(cluster, "DescribeQuorum", topics=[_QUORUM])["topics"][0]["partitions"][0]
    voters = sorted(one["replicaId"] for one in quorum["currentVoters"])
    yield "quorum", quorum["leaderId"], voters
    for one in _asked(cluster, "DescribeLogDirs", "1", topics=None)["results"]:
        parts = sorted(
            f"{topic['name']}-{part['partitionIndex']}"
            for topic in one["topics"]
            for part in topic["partitions"]
            # librdkafka's group was made later.
            if topic["name"].startswith("drive-") and topic["name"] != "drive-c"
        )
        yield "log directory", one["logDir"], f"[{', '.join(parts)}]"
    resource = {"resourceType": _OF_TOPIC, "resourceName": TOPICS[0]}
    for one in _asked(cluster, "DescribeConfigs", resources=[resource])["results"][0]["configs"]:
        yield "config", one["name"], one["value"], _SOURCES[one["configSource"]]


def _of_partitions(cluster: Cluster) -> Iterator[tuple[Any, ...]]:
    named = [{"name": name} for name in TOPICS]
    told = _asked(cluster, "Metadata", topics=named, allowAutoTopicCreation=False)
    for topic in told["topics"]:
        for part in topic["partitions"]:
            name, index = topic["name"], part["partitionIndex"]
            yield "partition", name, topic["topicId"], index, part["leaderId"], part["replicaNodes"]
            start = _offset(cluster, name, index, EARLIEST)
            yield "start", name, index, start["offset"]
            end = _offset(cluster, name, index, LATEST)
            yield "end", name, index, end["offset"], end["leaderEpoch"]


def _offset(cluster: Cluster, topic: str, partition: int, timestamp: int) -> dict[str, Any]:
    wanted = {"name": topic, "partitions": [{"partitionIndex": partition, "timestamp": timestamp}]}
    told = _asked(cluster, "ListOffsets", f"leader:{topic}-{partition}", topics=[wanted])
    found: dict[str, Any] = told["topics"][0]["partitions"][0]
    return found


def _of_group(cluster: Cluster) -> Iterator[tuple[Any, ...]]:
    to = f"group:{GROUP}"
    [one] = _asked(cluster, "DescribeGroups", to, groups=[GROUP])["groups"]
    coordinator = cluster.broker(to).call("DescribeCluster")
    nodes: Any = coordinator.to_json()
    [own] = [
        node["brokerId"]
        for node in nodes["brokers"]
        if f"{node['host']}:{node['port']}" == str(coordinator.broker)
    ]
    yield "group", one["groupId"], one["groupState"], own
    asked = [{"groupId": GROUP, "memberEpoch": -1, "topics": None}]
    # The next version names no topics.
    told: Any = cluster.call("OffsetFetch", {"groups": asked}, 9, to=to).to_json()
    for topic in told["groups"][0]["topics"]:
        for part in topic["partitions"]:
            where = (topic["name"], part["partitionIndex"])
            yield "commit", *where, part["committedOffset"], part["metadata"]


def _of_principals(cluster: Cluster) -> Iterator[tuple[Any, ...]]:
    for one in _asked(cluster, "DescribeAcls", **_EVERY_ACL)["resources"]:
        for acl in one["acls"]:
            yield "acl", one["resourceName"], acl["principal"], acl["host"]
    for one in _asked(cluster, "DescribeClientQuotas")["entries"]:
        who = ", ".join(f"{part['entityType']}={part['entityName']}" for part in one["entity"])
        # Java has its own format for doubles.
        limits = ", ".join(f"{limit['key']}={limit['value']:.1E}" for limit in one["values"])
        yield "quota", f"{{{who}}}", f"{{{limits.replace('E+0', 'E')}}}"
    for one in _asked(cluster, "DescribeUserScramCredentials", users=None)["results"]:
        for info in one["credentialInfos"]:
            yield "scram", one["user"], info["mechanism"], info["iterations"]
