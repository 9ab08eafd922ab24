"""A request that may change something on a broker is sent only if the caller allows it."""

from __future__ import annotations

from typing import Any

import pytest

from flexwire.client import Broker
from flexwire.client.write_requests import (
    CONDITIONS,
    DANGERS,
    READING,
    REMARKS,
    remark_on,
    why_it_writes,
)
from flexwire.codec import message
from flexwire.errors import WriteRefusedError
from flexwire.protocol.apis import request_entries
from flexwire.schema.catalog import catalog
from tests.net.answering import answering

APIS = {
    entry.name.removesuffix("Request")
    for key in catalog().api_keys()
    for entry in request_entries(key)
}
# The lists follow Kafka's API documentation. Be careful when you add an API to READING.
SURELY_WRITES = {
    "AlterConfigs", "AlterPartitionReassignments", "CreateTopics", "DeleteRecords", "DeleteTopics",
    "EndTxn", "Envelope", "Heartbeat", "InitProducerId", "JoinGroup", "OffsetCommit", "Produce",
    "PushTelemetry", "ReadShareGroupState", "ShareAcknowledge", "ShareFetch", "UpdateFeatures",
    "UnregisterBroker", "Vote", "WriteTxnMarkers",
}  # fmt: skip


def test_the_table_names_apis_and_no_other() -> None:
    assert READING <= APIS
    assert set(CONDITIONS) <= READING
    assert SURELY_WRITES <= APIS - READING


def test_an_api_that_nobody_has_looked_at_counts_as_writing() -> None:
    assert why_it_writes("DescribeWhateverComes", None) is not None


@pytest.mark.parametrize("name", sorted(APIS))
def test_nothing_else_is_sent_unless_it_is_allowed(name: str) -> None:
    body = message(f"{name}Request")()
    assert (why_it_writes(name, body) is None) == (name in READING)


@pytest.mark.parametrize(
    ("name", "version", "form", "writes"),
    [
        ("Metadata", 12, {"topics": None}, False),
        ("Metadata", 12, {"topics": []}, False),
        ("Metadata", 12, {"topics": [{"name": "a"}]}, True),
        ("Metadata", 12, {"topics": [{"name": "a"}], "allowAutoTopicCreation": False}, False),
        # Below version 4, the broker may create a topic that the request names.
        ("Metadata", 3, {"topics": [{"name": "a"}]}, True),
        ("Metadata", 0, {"topics": []}, False),
        ("Fetch", 12, {}, False),
        ("Fetch", 12, {"replicaId": 2}, True),
        ("Fetch", 17, {"replicaState": {"replicaId": 2}}, True),
        ("DeleteTopics", 6, {}, True),
    ],
)
def test_what_reads_may_write_by_its_body(
    name: str,
    version: int,
    form: dict[str, Any],
    writes: bool,  # noqa: FBT001 - a parameter
) -> None:
    with answering() as (address, answers), Broker.connect(address) as broker:
        if writes:
            with pytest.raises(WriteRefusedError, match=name):
                broker.call(name, form, version, allow_writes=False)
            assert answers.asked == []
            broker.call(name, form, version)
        else:
            broker.call(name, form, version, allow_writes=False)
    assert answers.names() == [name]


# The changes that these "reading" APIs make in a cluster if a list is null or empty, as measured
# on 3.9.2 and 4.4.0.
DANGEROUS = [
    ("FetchSnapshot", 0, {}, "terminates a Kafka 3.9.2 controller"),
    ("FetchSnapshot", 0, {"topics": [{"name": "__cluster_metadata", "partitions": []}]}, ""),
    (
        "DeleteAcls",
        3,
        {"filters": [{"resourceNameFilter": None, "principalFilter": None}]},
        "deletes all ACLs",
    ),
    ("DeleteAcls", 3, {"filters": [{"resourceNameFilter": "orders"}]}, ""),
    ("DeleteAcls", 3, {"filters": [{"principalFilter": "User:a"}]}, ""),
    ("ElectLeaders", 2, {"topicPartitions": None}, "every partition of the cluster"),
    ("ElectLeaders", 2, {"topicPartitions": []}, ""),
    (
        "AlterClientQuotas",
        1,
        {"entries": [{"entity": [{"entityType": "user", "entityName": None}]}]},
        "the default",
    ),
    (
        "AlterClientQuotas",
        1,
        {"entries": [{"entity": [{"entityType": "user", "entityName": "a"}]}]},
        "",
    ),
    (
        "AlterConfigs",
        2,
        {"resources": []},
        "every setting that it omits for its resources",
    ),
    ("InitProducerId", 4, {"transactionalId": "t"}, "the broker fences the producer"),
    ("InitProducerId", 4, {"transactionalId": None}, ""),
    (
        "ConsumerGroupHeartbeat",
        1,
        {"groupId": "g"},
        "a classic group with that name will be converted",
    ),
    ("ConsumerGroupHeartbeat", 1, {"groupId": "g", "memberEpoch": 4}, ""),
    ("ShareGroupHeartbeat", 1, {"groupId": "g"}, "joins the group"),
    ("StreamsGroupHeartbeat", 0, {"groupId": "g"}, "joins the group"),
    ("LeaveGroup", 5, {"groupId": "g"}, "members that belong to other clients"),
    ("DeleteGroups", 2, {"groupsNames": ["g"]}, "are lost"),
    ("WriteTxnMarkers", 1, {}, "ends the transactions"),
]


@pytest.mark.parametrize(("name", "version", "form", "told"), DANGEROUS)
def test_what_a_request_does_to_others_is_said_before_it_is_sent(
    name: str, version: int, form: dict[str, Any], told: str
) -> None:
    with answering() as (address, answers), Broker.connect(address) as broker:
        with pytest.raises(WriteRefusedError, match=f"{name} may change something") as caught:
            broker.call(name, form, version, allow_writes=False)
        assert answers.asked == []
    said = str(caught.value)
    assert (told in said) if told else said == f"{name} may change something"


def test_every_danger_is_of_an_api_that_writes_and_can_be_asked_of_any_body() -> None:
    assert set(DANGERS) <= APIS - READING
    assert set(REMARKS) <= READING
    for name in DANGERS:
        assert (why_it_writes(name, message(f"{name}Request")()) or "").startswith(f"{name} may")
    for name in READING:
        remark_on(name, message(f"{name}Request")())


@pytest.mark.parametrize(
    ("name", "fields", "told"),
    [
        ("FindCoordinator", {}, "create that coordinator's internal topic"),
        ("GetTelemetrySubscriptions", {}, "registers a client instance"),
        ("Fetch", {"session_epoch": 0}, "1,000 fetch sessions"),
        ("Fetch", {}, None),
        ("Metadata", {}, None),
    ],
)
def test_what_a_reading_request_leaves_behind_is_told(
    name: str, fields: dict[str, Any], told: str | None
) -> None:
    said = remark_on(name, message(f"{name}Request")(**fields))
    assert said is None if told is None else told in (said or "")
