"""Every request in the catalog is sent as given, and its answer is read."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

from flexwire import tap
from flexwire.client import Broker, BrokerAnswer, Cluster
from flexwire.client.broker import parse_header_tag, usable_versions
from flexwire.codec import message
from flexwire.errors import (
    ArgumentError,
    CallError,
    EncodeError,
    JsonFormError,
    UnknownMessageError,
)
from flexwire.protocol.apis import request_entries
from flexwire.protocol.audit.evidence import read_versions
from flexwire.protocol.headers import UNSUPPORTED_VERSION
from flexwire.schema.catalog import catalog
from flexwire.versions import Versions
from tests.net.answering import Answers, answering, served
from tests.net.broker import Broker as Fake
from tests.protocol.payloads import make, response_payload

if TYPE_CHECKING:
    from flexwire.protocol import RequestFrame

REQUESTS = [request_entries(key)[0] for key in sorted(catalog().api_keys())]


def test_every_request_is_sent_and_its_answer_read() -> None:
    with answering() as (address, answers), Broker.connect(address) as broker:
        for entry in REQUESTS:
            version = entry.versions.highest
            answer = broker.call(entry.name, {}, version)
            assert answer.api_name == entry.name.removesuffix("Request")
            assert answers.headers[-1].client_id == "flexwire"
            assert answers.asked[-1] == (
                answer.api_name,
                version,
                answer.request.to_json(version),
            )
            assert answer.response is not None
            back = type(answer.response).from_json(answer.to_json(), version)
            assert back == answer.response


def test_the_first_header_has_no_client_id() -> None:
    with answering() as (address, answers), Broker.connect(address) as broker:
        broker.call("ControlledShutdown", {}, 0)
    assert answers.headers[0].client_id is None


def test_an_old_name_is_the_same_api() -> None:
    with answering() as (address, answers), Broker.connect(address) as broker:
        broker.call("ListOffset", {}, 2)
        broker.call("AlterIsr", {}, 0)
    assert answers.names() == ["ListOffsets", "AlterPartition"]


def test_fields_that_are_left_out_have_the_defaults_of_their_spec() -> None:
    with answering() as (address, answers), Broker.connect(address) as broker:
        broker.call("CreateTopics", {"topics": [{"name": "a"}]}, 7)
        broker.call("Metadata", {"topics": None}, 12)
    [(_, _, topics), (_, _, metadata)] = answers.asked
    spec = make("CreateTopicsRequest", topics=[{"name": "a"}])
    assert topics == message("CreateTopicsRequest").decode(spec.encode(7), 7).to_json(7)
    assert metadata["topics"] is None
    assert metadata["allowAutoTopicCreation"] is True


@pytest.mark.parametrize(
    ("name", "version", "form", "where"),
    [
        ("Fetch", 16, {"topics": [{"topic": "a"}]}, "topics[0].topic"),
        ("Metadata", 12, {"topics": [{"nam": "a"}]}, "topics[0]"),
        ("Metadata", 12, {"topics": 7}, "topics"),
        ("Metadata", 12, [], ""),
        ("Produce", 9, {"topicData": [{"partitionData": [{"records": 7}]}]}, "records"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_path(
    name: str, version: int, form: Any, where: str
) -> None:
    with answering() as (address, answers), Broker.connect(address) as broker:
        with pytest.raises(JsonFormError, match=f"{name}Request v{version}") as caught:
            broker.call(name, form, version)
        assert where in caught.value.path
        assert broker.is_open
    assert answers.asked == []


def test_unknown_tagged_fields_go_out_in_header_and_body_and_come_back() -> None:
    tagged = [{"tag": 999, "data": base64.b64encode(b"x").decode()}]

    def says(form: dict[str, Any]) -> dict[str, Any]:
        return {"_unknownTaggedFields": form["_unknownTaggedFields"]}

    answers = Answers(ListGroups=says)
    with answering(answers) as (address, _), Broker.connect(address) as broker:
        body = {"_unknownTaggedFields": tagged}
        answer = broker.call("ListGroups", body, 4, header_tags={10042: b"a1"})
        refused = "the header of ListGroups v2 cannot contain tagged fields"
        with pytest.raises(CallError, match=refused):
            broker.call("ListGroups", {}, 2, header_tags={10042: b"a1"})
    shown = answer.to_json()
    assert shown is not None
    assert shown["_unknownTaggedFields"] == tagged
    header: Any = answers.headers[0].header
    assert header.unknown_tagged_fields == {10042: b"a1"}


@pytest.mark.parametrize("text", ["10042", "x=1", "4294967296=a", "1=hex:0", "1=hex:xy", "-1=a"])
def test_a_header_tag_is_a_number_and_a_value(text: str) -> None:
    with pytest.raises(ArgumentError, match="expected"):
        parse_header_tag(text)


def test_acks_0_does_not_wait() -> None:
    answers = Answers(Produce=None)
    with answering(answers) as (address, _), Broker.connect(address) as broker:
        answer = broker.call("Produce", {"acks": 0}, 9)
        assert answer.response is None
        assert answer.to_json() is None
        assert not answer.error_codes
        assert not answer.is_moved
        # The connection still works.
        assert broker.call("ListGroups", {}, 4).response is not None
    assert answers.names() == ["Produce", "ListGroups"]


def test_error_codes_are_named_wherever_they_stand_and_can_be_left_out() -> None:
    said = {
        "errorCode": 0,
        "brokers": [{"nodeId": 1, "host": "a", "port": 1}],
        "topics": [
            {"errorCode": 3, "name": "a", "partitions": [{"errorCode": 9999}, {"errorCode": 0}]}
        ],
    }
    with answering(Answers(Metadata=said)) as (address, _), Broker.connect(address) as broker:
        answer = broker.call("Metadata", {"topics": []}, 13)
    assert [str(one) for one in answer.error_codes] == [
        "topics[0].errorCode: 3 UNKNOWN_TOPIC_OR_PARTITION",
        "topics[0].partitions[0].errorCode: 9999 of no release",
    ]
    [topic] = (answer.to_json(names=True) or {})["topics"]
    assert list(topic)[:2] == ["errorCode", "_errorName"]
    assert topic["_errorName"] == "UNKNOWN_TOPIC_OR_PARTITION"
    assert [one.get("_errorName") for one in topic["partitions"]] == ["of no release", None]
    assert "_errorName" not in str(answer.to_json())
    assert "secret" not in repr(answer)
    assert "Metadata v13" in repr(answer)


# The version that is sent.


def test_the_latest_version_is_that_of_both() -> None:
    offered = {"ApiVersions": (0, 4), "Metadata": (3, 9), "Fetch": (4, 99)}
    with answering(Answers(offered)) as (address, answers), Broker.connect(address) as broker:
        assert broker.call("Metadata").version == 9
        assert broker.call("Fetch").version == catalog().entry("FetchRequest").versions.highest
        with pytest.raises(CallError, match="does not offer ListGroups"):
            broker.call("ListGroups")
        assert broker.call("ListGroups", {}, 3).version == 3
    assert answers.names().count("ApiVersions") == 1


def test_what_a_release_advertises_and_does_not_read_is_left_out() -> None:
    offered = {key: read_versions(key, "4.4.0") for key in catalog().api_keys()}
    offered = {key: versions for key, versions in offered.items() if versions}
    offered[0] = Versions(0, offered[0].highest)
    assert usable_versions(0, offered) == Versions(3, 13)
    # No release includes this API, so nothing is known about it.
    assert usable_versions(0, {0: Versions(0, 13), 3: Versions(5, 6)}) == Versions(0, 13)


def test_a_broker_that_knows_none_of_our_versions_is_said_so() -> None:
    offered = {"ApiVersions": (0, 4), "Metadata": (90, 99)}
    with answering(Answers(offered)) as (address, _), Broker.connect(address) as broker:
        with pytest.raises(
            CallError, match="offers Metadata 90-99, but flexwire knows none of these versions"
        ):
            broker.call("Metadata")
        with pytest.raises(UnknownMessageError):
            broker.call("Metadata", {}, 90)


@pytest.mark.parametrize("names_its_own", [True, False], ids=["KIP-511", "before"])
def test_a_broker_without_our_version_of_api_versions_answers_in_version_0(
    names_its_own: bool,  # noqa: FBT001 - a parameter for the test
) -> None:
    known = Answers({"ApiVersions": (0, 1), "Metadata": (0, 5)})

    def answer(request: RequestFrame, payload: bytes) -> bytes | None:
        if request.api_name == "ApiVersions" and request.api_version > 1:
            own = [{"api_key": 18, "min_version": 0, "max_version": 1}] if names_its_own else []
            body = make("ApiVersionsResponse", error_code=UNSUPPORTED_VERSION, api_keys=own)
            return response_payload(
                18, request.api_version, body, correlation_id=request.correlation_id, body_version=0
            )
        return known(request, payload)

    with served(Fake(answer)) as address, Broker.connect(address) as broker:
        assert broker.call("Metadata").version == 5
        by_hand = broker.call("ApiVersions", {}, 3)
    assert [version for _, version, _ in known.asked] == [int(names_its_own), 5]
    assert (by_hand.version, by_hand.response_version) == (3, 0)
    assert by_hand.error_codes[0].name == "UNSUPPORTED_VERSION"


def test_the_bootstrap_is_the_first_that_answers() -> None:
    with answering() as (address, _), Cluster(f"127.0.0.1:1,{address}") as cluster:
        assert cluster.call("ListGroups").response is not None
    cluster = Cluster("127.0.0.1:1,127.0.0.1:2")
    with pytest.raises(CallError, match=r"127.0.0.1:1 cannot be reached.*; 127.0.0.1:2"):
        cluster.call("ListGroups")


@pytest.mark.parametrize("address", ["nowhere", "", "a:b", "h:99999", "::1:9092"])
def test_an_address_is_host_and_port(address: str) -> None:
    with pytest.raises(CallError, match="expected host:port"):
        Broker.connect(address)


def test_a_body_is_that_of_the_request() -> None:
    with answering() as (address, _), Broker.connect(address) as broker:
        with pytest.raises(ArgumentError, match="the body of a ListGroupsRequest"):
            broker.call("ListGroups", make("MetadataRequest"), 4)
        with pytest.raises(UnknownMessageError, match="Metadata"):
            broker.call("Metadta", {}, 4)
        with pytest.raises(ArgumentError, match="version: expected an int, got 'newest'"):
            broker.call("Fetch", {}, "newest")


@pytest.mark.parametrize(
    "wrong",
    [
        {"address": 9092},
        {"address": ("a",)},
        {"address": ("a", "9092")},
        {"address": ("a", True)},
        {"security": None},
        {"timeout": 0},
        {"timeout": float("nan")},
        {"timeout": "1"},
        {"timeout": True},
        {"frame_limit": 0},
        {"frame_limit": 1.5},
        {"client_id": b"a"},
    ],
    ids=str,
)
def test_what_cannot_be_connected_with_is_refused(wrong: dict[str, Any]) -> None:
    given = {"address": "127.0.0.1:1", **wrong}
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        Broker.connect(**given)


@pytest.mark.parametrize("wrong", [7, [1], {"a": b""}, {1: "a"}, {-1: b""}, {1: None}], ids=str)
def test_header_tags_are_bytes_by_their_tags(wrong: Any) -> None:
    with answering() as (address, answers), Broker.connect(address) as broker:
        with pytest.raises((ArgumentError, EncodeError)):
            broker.call("ListGroups", {}, 4, header_tags=wrong)
        assert broker.is_open
    assert answers.asked == []


def test_a_body_that_is_nested_without_end_is_refused() -> None:
    deep: list[Any] = []
    for _ in range(5000):
        deep = [deep]
    with (
        answering() as (address, _),
        Broker.connect(address) as broker,
        pytest.raises(JsonFormError, match="nested too deeply"),
    ):
        broker.call("ListGroups", {"statesFilter": deep}, 4)


def test_an_answer_is_at_most_as_long_as_it_may_be() -> None:
    said = {"groups": [{"groupId": "x" * 1000}]}
    with answering(Answers(ListGroups=said)) as (address, _):
        with Broker.connect(address, frame_limit=1100) as broker:
            assert broker.call("ListGroups", {}, 4).response is not None
        with (
            Broker.connect(address, frame_limit=900) as broker,
            pytest.raises(CallError, match="longer than the limit of 900"),
        ):
            broker.call("ListGroups", {}, 4)


def test_what_is_sent_and_what_comes_can_be_watched() -> None:
    seen: list[BrokerAnswer] = []
    with answering() as (address, _), Broker.connect(address) as broker:
        answer = broker.call("ListGroups", {}, 4, watch=seen.append)
    assert [one.response_frame is not None for one in seen] == [False, True]
    assert seen[0].request_frame == answer.request_frame
    assert seen[1].response_frame == answer.response_frame


def test_the_room_gives_every_name_that_it_has() -> None:
    for name in tap.__all__:
        assert getattr(tap, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'Nobody'"):
        _ = tap.Nobody
