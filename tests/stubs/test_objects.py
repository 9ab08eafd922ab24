"""Message objects can be made from plain values, shown, compared and changed."""

from __future__ import annotations

import copy
import sys
from typing import Any
from uuid import UUID

import pytest

import flexwire.messages
from flexwire.codec import Message, MessageStruct, message
from flexwire.codec.samples import random_message
from flexwire.errors import ArgumentError, EncodeError
from flexwire.messages import FetchRequest, HeartbeatResponse, MetadataRequest
from flexwire.schema.catalog import catalog
from flexwire.schema.spec import FieldSpec, FieldType
from flexwire.versions import Versions
from tests.codec.made_up import everything
from tests.each import each

MadeUp: Any = everything()
Topic = MetadataRequest.MetadataRequestTopic


def test_repr_shows_what_is_not_default_and_what_every_version_has_without_a_default() -> None:
    assert repr(MetadataRequest()) == "MetadataRequest(topics=[])"
    request = MetadataRequest(
        topics=[Topic(name="orders", topic_id=UUID(int=5))],
        allow_auto_topic_creation=False,
        unknown_tagged_fields={42: b"x"},
    )
    assert repr(request) == (
        "MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic("
        "topic_id=UUID('00000000-0000-0000-0000-000000000005'), name='orders')], "
        "allow_auto_topic_creation=False, unknown_tagged_fields={42: b'x'})"
    )
    # The partition and the fetch offset are shown although they are 0. The log start offset was
    # added in a later version.
    partition = FetchRequest.FetchPartition(partition_max_bytes=0)
    assert repr(partition) == (
        "FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=0)"
    )
    # Every version with the structure has these fields, and the spec states their defaults.
    assert repr(FetchRequest.ReplicaState()) == "FetchRequest.ReplicaState()"
    assert repr(HeartbeatResponse()) == "HeartbeatResponse(error_code=0)"
    # A tagged field that has its default value is not written.
    fenced: Any = message("BrokerRegistrationChangeRecord")
    assert "fenced" in str(fenced.__struct_fields__)
    assert "fenced" not in repr(fenced())


@pytest.mark.slow
@each("name", catalog().names())
def test_repr_makes_an_equal_object(name: str) -> None:
    entry, made = catalog().entry(name), message(name)
    for seed, version in enumerate(entry.versions):
        if version in entry.versions:
            value = random_message(made, version, seed)
            known = {name: made, "UUID": UUID, "nan": float("nan"), "inf": float("inf")}
            assert eval(repr(value), known) == value  # noqa: S307 - the test itself made the text


def test_repr_of_an_object_in_itself_ends() -> None:
    request = MetadataRequest()
    request.topics = [request]  # type: ignore[list-item]  # the mistake that is tested
    assert repr(request) == "MetadataRequest(topics=[...])"


def test_equal_is_equal_by_value_and_class() -> None:
    assert FetchRequest(max_wait_ms=5) == FetchRequest(max_wait_ms=5)
    assert FetchRequest(max_wait_ms=5) != FetchRequest(max_wait_ms=6)
    assert FetchRequest(unknown_tagged_fields={9: b""}) != FetchRequest()
    assert MadeUp.Current() != MadeUp.Latest()


def test_structures_may_be_given_as_mappings() -> None:
    partitions: list[Any] = [{"partition": 0}, FetchRequest.FetchPartition(partition=1)]
    tagged = {"topic": "a", "partitions": tuple(partitions), "unknown_tagged_fields": {9: b"x"}}
    made = FetchRequest.of(max_wait_ms=5, replica_state={"replica_id": 3}, topics=[tagged])
    topic = FetchRequest.FetchTopic(
        topic="a",
        partitions=[FetchRequest.FetchPartition(partition=number) for number in range(2)],
        unknown_tagged_fields={9: b"x"},
    )
    state = FetchRequest.ReplicaState(replica_id=3)
    assert made == FetchRequest(max_wait_ms=5, replica_state=state, topics=[topic])
    assert FetchRequest.FetchTopic.of(**tagged) == topic
    assert MetadataRequest.of(topics=None) == MetadataRequest(topics=None)
    sent = MetadataRequest.of(topics=[{"name": "orders"}])
    assert MetadataRequest.decode(sent.encode(9), 9) == sent
    # The class keeps a mapping as it is, and can write it.
    kept = MetadataRequest(topics=[{"name": "orders"}])  # type: ignore[list-item]  # as it says
    assert kept != sent
    assert kept.encode(9) == sent.encode(9)


@each("name", catalog().names())
def test_any_message_can_be_made_of_mappings(name: str) -> None:
    made = message(name)
    value = random_message(made, made.entry.versions.highest, 7)
    assert made.of(**mapping_of(value)) == value


def mapping_of(value: Any) -> Any:
    if isinstance(value, list):
        return [mapping_of(item) for item in value]
    if not isinstance(value, MessageStruct):
        return value
    return {name: mapping_of(getattr(value, name)) for name in value.__struct_fields__}


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (
            {"max_wiat_ms": 5},
            "FetchRequest has no field 'max_wiat_ms'; did you mean 'max_wait_ms'?",
        ),
        (
            {"topics": [{}, {"partitions": [{"fetchOffset": 5}]}]},
            (
                "FetchRequest.FetchPartition at topics[1].partitions[0] has no field 'fetchOffset'"
                "; did you mean 'fetch_offset'?"
            ),
        ),
        ({"topics": [{5: 5}]}, "FetchRequest.FetchTopic at topics[0] has no field 5"),
    ],
)
def test_a_slip_in_a_mapping_is_named(fields: dict[str, Any], told: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        FetchRequest.of(**fields)
    assert str(caught.value) == told


def test_what_is_no_structure_stays_as_it_is() -> None:
    endless: list[Any] = []
    endless.append(endless)
    for value in (7, "x", endless, {"a": 1}):
        assert FetchRequest.of(cluster_id=value).cluster_id is value
    wrong: list[Any] = [7, "x", {"topic": "a"}]
    for topics in wrong:
        assert FetchRequest.of(topics=topics).topics is topics
    with pytest.raises(EncodeError):
        FetchRequest.of(topics=endless).encode(12)


def test_objects_share_no_defaults() -> None:
    one, other = MadeUp(), MadeUp()
    one.topics.append(MadeUp.Topic())
    one.current.leader_id = 5
    one.unknown_tagged_fields[9] = b""
    assert other == MadeUp()


def test_replace_gives_a_changed_copy_and_leaves_the_original() -> None:
    request = FetchRequest(max_wait_ms=5, topics=[FetchRequest.FetchTopic(topic="a")])
    changed = request.replace(max_wait_ms=6)
    assert type(changed) is FetchRequest
    assert (request.max_wait_ms, changed.max_wait_ms) == (5, 6)
    assert changed.replace(max_wait_ms=5) == request
    # Values that are not replaced are the same objects, as with `copy.copy`.
    assert changed.topics is request.topics
    with pytest.raises(TypeError, match="max_wiat_ms"):
        request.replace(max_wiat_ms=6)
    if sys.version_info >= (3, 13):
        assert copy.replace(request, max_wait_ms=6) == changed


def names_on_a_message() -> list[str]:
    """Return the public attributes that every message class has besides its fields."""
    return [name for name in dir(Message) if not name.startswith("_")]


@pytest.mark.parametrize("name", [*names_on_a_message(), "definition", "entry"])
def test_no_field_hides_what_a_message_can_do(name: str) -> None:
    words = "".join(word.capitalize() for word in name.split("_"))
    assert FieldSpec(words, FieldType("int8"), Versions.ALL).attribute != name


def test_every_message_can_be_imported_by_its_name() -> None:
    assert dir(flexwire.messages) == sorted(catalog().names())
    for name in catalog().names():
        assert getattr(flexwire.messages, name) is message(name)
    with pytest.raises(ImportError):
        exec("from flexwire.messages import FetchReqest")  # noqa: S102 - the import is the test
    with pytest.raises(AttributeError, match="did you mean FetchRequest"):
        flexwire.messages.FetchReqest  # type: ignore[attr-defined]  # noqa: B018 - it must fail
