"""What may change something on a broker is sent only where the caller says so."""

from __future__ import annotations

from typing import Any

import pytest

from flexwire.codec import message
from flexwire.errors import WriteRefusedError
from flexwire.net.calling import Broker
from flexwire.net.calling.writing import CONDITIONS, READING, why_it_writes
from flexwire.protocol.apis import request_entries
from flexwire.schema.catalog import catalog
from tests.net.answering import answering

APIS = {
    entry.name.removesuffix("Request")
    for key in catalog().api_keys()
    for entry in request_entries(key)
}
# As Kafka's own documentation of its APIs has them; whoever adds one to READING thinks twice.
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
        # Before version 4 a topic that is named is created, where the broker does that.
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
