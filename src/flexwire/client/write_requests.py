"""The requests that may change something on a broker: all except those listed as read-only.

A new API in the catalog is treated as writing until it has been checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

READING: Final = frozenset(
    {
        "ApiVersions",
        "ConsumerGroupDescribe",
        "DescribeAcls",
        "DescribeClientQuotas",
        "DescribeCluster",
        "DescribeConfigs",
        "DescribeDelegationToken",
        "DescribeGroups",
        "DescribeLogDirs",
        "DescribeProducers",
        "DescribeQuorum",
        "DescribeShareGroupOffsets",
        "DescribeTopicPartitions",
        "DescribeTransactions",
        "DescribeUserScramCredentials",
        "Fetch",
        "FindCoordinator",
        "GetTelemetrySubscriptions",
        "ListClientMetricsResources",
        "ListConfigResources",
        "ListGroups",
        "ListOffset",
        "ListOffsets",
        "ListPartitionReassignments",
        "ListTransactions",
        "Metadata",
        "OffsetFetch",
        "OffsetForLeaderEpoch",
        "ReadShareGroupStateSummary",
        # The following APIs affect only the connection on which they are sent.
        "SaslAuthenticate",
        "SaslHandshake",
        "ShareGroupDescribe",
        "StreamsGroupDescribe",
    }
)
"""The APIs whose requests only read data, by name."""

CONDITIONS: Final = {
    "Metadata": "if the request lists topics and allowAutoTopicCreation is true",
    "Fetch": "if the request contains a replica id: the leader treats the caller as that replica",
}
"""The cases in which a request of a read-only API may nevertheless change something."""


REMARKS: Final = {
    "Fetch": "with sessionEpoch 0, the request occupies one of the broker's 1,000 fetch sessions",
    "FindCoordinator": "the first request for a coordinator type causes the cluster to create that "
    "coordinator's internal topic",
    "GetTelemetrySubscriptions": "the request registers a client instance with the broker",
}
"""The traces that read-only requests leave on a broker. None of them is user data."""


class Danger(NamedTuple):
    """An easily overlooked effect of an API's request, and which bodies have this effect."""

    effect: str
    holds: Callable[[Any], bool] = lambda _: True


def _is_open(acl_filter: Any) -> bool:
    """Return whether an ACL filter specifies neither the resource nor the principal."""
    return acl_filter.resource_name_filter is None and acl_filter.principal_filter is None


_JOINS: Final = (
    "with memberEpoch 0, the caller joins the group, which then assigns work to the new member"
)
_AS_CONTROLLER: Final = "a broker treats the caller as its controller"
_AS_BROKER: Final = "the controller treats the caller as the broker in the request"
_IN_QUORUM: Final = "the quorum treats the caller as a voter, and may elect another leader"

DANGERS: Final = {
    "AddRaftVoter": Danger("the request changes the voters of the metadata quorum"),
    "AlterClientQuotas": Danger(
        "an entity without a name is the default entity, whose quota applies to every entity "
        "without a quota of its own",
        lambda body: any(
            part.entity_name is None for entry in body.entries for part in entry.entity
        ),
    ),
    "AlterConfigs": Danger("the request resets every setting that it omits for its resources"),
    "AlterPartition": Danger(_AS_BROKER),
    "BeginQuorumEpoch": Danger(_IN_QUORUM),
    "BrokerHeartbeat": Danger(_AS_BROKER),
    "BrokerRegistration": Danger(_AS_BROKER),
    "ConsumerGroupHeartbeat": Danger(
        f"{_JOINS}; a classic group with that name will be converted",
        lambda body: body.member_epoch == 0,
    ),
    "ControlledShutdown": Danger(
        "the leadership of all partitions moves from the named broker to other brokers"
    ),
    "DeleteAcls": Danger(
        "a filter with neither a resource nor a principal deletes all ACLs",
        lambda body: any(map(_is_open, body.filters)),
    ),
    "DeleteGroups": Danger("the committed offsets of the groups are lost"),
    "DeleteRecords": Danger("records before the offset are lost; offset -1 is the high watermark"),
    "ElectLeaders": Danger(
        "without topicPartitions, the request elects leaders for every partition of the cluster",
        lambda body: body.topic_partitions is None,
    ),
    "EndQuorumEpoch": Danger(_IN_QUORUM),
    "FetchSnapshot": Danger(
        "without topics, the request terminates a Kafka 3.9.2 controller",
        lambda body: not body.topics,
    ),
    "InitProducerId": Danger(
        "the broker fences the producer that uses this transactional id, and aborts the "
        "transaction",
        lambda body: bool(body.transactional_id),
    ),
    "JoinGroup": Danger("the request joins the group, which then rebalances"),
    "LeaderAndIsr": Danger(_AS_CONTROLLER),
    "LeaveGroup": Danger("the request removes members that belong to other clients"),
    "RemoveRaftVoter": Danger("the request changes the voters of the metadata quorum"),
    "ShareFetch": Danger(
        "for a while, other consumers do not get the records that the request acquires"
    ),
    "ShareGroupHeartbeat": Danger(_JOINS, lambda body: body.member_epoch == 0),
    "StopReplica": Danger(_AS_CONTROLLER),
    "StreamsGroupHeartbeat": Danger(_JOINS, lambda body: body.member_epoch == 0),
    "UpdateMetadata": Danger(_AS_CONTROLLER),
    "Vote": Danger(_IN_QUORUM),
    "WriteTxnMarkers": Danger("the request ends the transactions of the listed producers"),
}
"""The effects of requests that are not obvious from the name of the API, by API."""


def why_it_writes(api_name: str, body: Any) -> str | None:
    """Return why a request may change something on the broker, or None if it only reads.

    >>> from flexwire.codec import message
    >>> why_it_writes("ListGroups", message("ListGroupsRequest")()) is None
    True
    >>> why_it_writes("DeleteTopics", message("DeleteTopicsRequest")())
    'DeleteTopics may change something'
    >>> why_it_writes("DeleteGroups", message("DeleteGroupsRequest")())
    'DeleteGroups may change something: the committed offsets of the groups are lost'
    """
    if api_name not in READING:
        danger = DANGERS.get(api_name)
        effect = f": {danger.effect}" if danger is not None and danger.holds(body) else ""
        return f"{api_name} may change something{effect}"
    if api_name == "Metadata" and body.topics and body.allow_auto_topic_creation:
        return (
            "Metadata may create the topics in the request, because allowAutoTopicCreation is "
            "true (the default)"
        )
    if api_name == "Fetch" and max(body.replica_id, body.replica_state.replica_id) >= 0:
        return "Fetch contains a replica id, so the leader treats the caller as that replica"
    return None


def remark_on(api_name: str, body: Any) -> str | None:
    """Return the trace that a read-only request leaves on the broker, or None if it leaves none.

    >>> from flexwire.codec import message
    >>> remark_on("Fetch", message("FetchRequest")(session_epoch=-1)) is None
    True
    """
    if api_name == "Fetch" and body.session_epoch != 0:
        return None
    return REMARKS.get(api_name)
