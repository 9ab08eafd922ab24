"""Every message and field that a view names is in the catalog under this name."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.columnar import message_type
from flexwire.protocol.internal_topics import InternalTopic, state_names
from flexwire.tables.typed_records import TypedRecords

if TYPE_CHECKING:
    import pyarrow as pa

pytestmark = pytest.mark.spark


def view(name: str) -> Any:
    """Return the file of a view, which is named like the package's function."""
    return import_module(f"flexwire.answers.state.{name}")


def fields(kind: pa.DataType) -> list[str]:
    return [one.name for one in kind]


def test_records_and_keys_are_in_the_catalog() -> None:
    commits, groups, partitions = map(view, ("commits", "groups", "partitions"))
    share_state, remote_segments = map(view, ("share_state", "remote_segments"))
    named = {
        InternalTopic.CONSUMER_OFFSETS: (*commits.RECORDS, *groups.RECORDS),
        InternalTopic.TRANSACTIONS: (partitions.RECORD,),
        InternalTopic.SHARE_STATE: share_state.RECORDS,
        InternalTopic.REMOTE_LOG: remote_segments.RECORDS,
    }
    # The view refuses a record that does not belong to the topic.
    kinds = {topic: TypedRecords(topic, records).schema for topic, records in named.items()}
    typed = kinds[InternalTopic.CONSUMER_OFFSETS]
    for record in commits.RECORDS:
        kind = typed.field(record).type
        assert {*commits.KEY} <= {*fields(kind.field("key").type)}
        assert {*commits.VALUE} <= {*fields(kind.field("value").type)}
    share = kinds[InternalTopic.SHARE_STATE]
    for record in share_state.RECORDS:
        assert {*share_state.KEY} <= {*fields(share.field(record).type.field("key").type)}
    remote = kinds[InternalTopic.REMOTE_LOG]
    for record in remote_segments.RECORDS:
        assert {remote_segments.ID, remote_segments.STATE} <= {*fields(remote.field(record).type)}


def test_states_and_opened_fields_are_kafka_s() -> None:
    states = {*state_names(view("partitions").VALUE)}
    assert {*view("partitions").OPEN} < states
    for name, (message, field) in view("groups").OPENED.items():
        assert field in fields(message_type(message))
        members = message_type("GroupMetadataValue").field("members").type.value_type
        assert name in fields(members)
