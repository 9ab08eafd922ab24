"""Which requests may change something on a broker: every one that is not known only to read.

A new API of the catalog therefore counts as writing until somebody has looked at it.
"""

from __future__ import annotations

from typing import Any, Final

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
        # Brokers create the topic of coordinators when they are first asked for one.
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
        # They concern the connection that they are sent on.
        "SaslAuthenticate",
        "SaslHandshake",
        "ShareGroupDescribe",
        "StreamsGroupDescribe",
    }
)
"""The APIs whose requests only read, by name."""

CONDITIONS: Final = {
    "Metadata": "where topics are named and allowAutoTopicCreation is true",
    "Fetch": "where it names a replica: the leader takes it for the follower's",
}
"""When a request of an API that reads may change something all the same."""


def why_it_writes(api_name: str, body: Any) -> str | None:
    """Why a request may change something on the broker; None where it only reads.

    >>> from flexwire.codec import message
    >>> why_it_writes("ListGroups", message("ListGroupsRequest")()) is None
    True
    >>> why_it_writes("DeleteTopics", message("DeleteTopicsRequest")())
    'DeleteTopics may change something'
    """
    if api_name not in READING:
        return f"{api_name} may change something"
    if api_name == "Metadata" and body.topics and body.allow_auto_topic_creation:
        return (
            "Metadata may create the topics that it names, as its allowAutoTopicCreation is true "
            "unless it is said to be false"
        )
    if api_name == "Fetch" and max(body.replica_id, body.replica_state.replica_id) >= 0:
        return "Fetch names a replica, for which the leader then takes the caller"
    return None
