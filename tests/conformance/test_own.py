"""Requests about a run's own objects go to the right broker, with values from its responses."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.codec import message
from flexwire.conformance import Asking, Kind, conform, plan_with_hostile
from flexwire.conformance.writing import PREFIX, OwnNames
from flexwire.protocol import read_request
from flexwire.protocol.apis import api_key_of
from flexwire.protocol.audit.evidence import offered_versions
from flexwire.wire.varint import uuid_text
from tests.conformance.brokers import RELEASE, KafkaLike, kafka_like
from tests.protocol.payloads import frame, response_payload

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from flexwire.protocol import RequestFrame

    Answers = Mapping[str, Callable[[RequestFrame], dict[str, Any] | None]]

OWN = f"{PREFIX}0123456789abcdef"
GROUP_APIS = ("OffsetCommit", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "DeleteGroups")
NOT_COORDINATOR = 16
NOT_LEADER = 6


def answering(answers: Answers) -> Any:
    """Plant values in fields of some APIs' responses; a function returns the values."""

    def planted(request: RequestFrame, _: bytes, answer: bytes) -> bytes:
        told_by = answers.get(request.api_name)
        fields = None if told_by is None else told_by(request)
        if fields is None:
            return frame(answer)
        kind: Any = message(f"{request.api_name}Response")
        told = request.correlation_id
        body = kind.of(**fields)
        return frame(
            response_payload(request.api_key, request.api_version, body, correlation_id=told)
        )

    return planted


def newest(fields: Callable[[], dict[str, Any]]) -> Callable[[RequestFrame], Any]:
    """Return fields for only the newest version, which a lookup uses."""

    def told(request: RequestFrame) -> dict[str, Any] | None:
        highest = offered_versions(request.api_key, RELEASE).highest
        return fields() if request.api_version == highest else None

    return told


def asking(*apis: str) -> Asking:
    return Asking(RELEASE, frozenset(map(api_key_of, apis)), own=OWN)


def bodies(broker: KafkaLike, api: str) -> list[Any]:
    """Return the requests for an API that a broker received in versions that it has, in order."""
    found: list[Any] = []
    for name, version, payload in broker.asked:
        if name == api and version in offered_versions(api_key_of(api), RELEASE):
            at = read_request(payload).body_offset
            found.append(message(f"{api}Request").decode(payload[at:], version))
    return found


def coordinator_at(address: str) -> Any:
    host, port = address.split(":")

    def told() -> dict[str, Any]:
        found = {"key": OWN, "node_id": 2, "host": host, "port": int(port)}
        return {"coordinators": [found]}

    return answering({"FindCoordinator": newest(told)})


def test_requests_about_a_group_go_to_its_coordinator() -> None:
    with kafka_like() as (other, second), kafka_like(coordinator_at(other)) as (address, first):
        run = conform(address, asking(*GROUP_APIS, "CreateTopics"))
    asked = {name for name, _, _ in second.asked} - {"ApiVersions"}
    assert asked == {*GROUP_APIS}
    here = {name for name, _, _ in first.asked} - {"ApiVersions"}
    # A version that is not offered is sent to the tested broker.
    assert here - {"FindCoordinator", "CreateTopics", "DeleteTopics"} <= {*GROUP_APIS}
    for api in GROUP_APIS:
        offered = offered_versions(api_key_of(api), RELEASE)
        assert not [one for name, one, _ in first.asked if name == api and one in offered]
    assert run.deviations == ()
    # One lookup is for the cases, and another one for the removal of the group.
    assert sum(name == "FindCoordinator" for name, _, _ in first.asked) <= 3


def test_a_coordinator_that_is_not_reached_is_replaced_by_the_tested_broker() -> None:
    with kafka_like() as (gone, _):
        pass
    with kafka_like(coordinator_at(gone)) as (address, first):
        run = conform(address, asking("OffsetCommit"))
    assert run.deviations == ()
    assert {name for name, _, _ in first.asked} >= {"OffsetCommit", "DeleteGroups"}


def test_a_topic_is_asked_of_its_leader_with_its_id() -> None:
    topic_id = uuid.UUID(bytes=bytes(range(16)))
    with kafka_like() as (other, second):
        host, port = other.split(":")

        def metadata() -> dict[str, Any]:
            partition = {"partition_index": 0, "leader_id": 2}
            topic = {"name": OWN, "topic_id": topic_id, "partitions": [partition]}
            broker = {"node_id": 2, "host": host, "port": int(port)}
            return {"topics": [topic], "brokers": [broker]}

        def created(_: RequestFrame) -> dict[str, Any]:
            return {"topics": [{"name": OWN}]}

        plant = answering({"Metadata": newest(metadata), "CreateTopics": created})
        apis = ("CreateTopics", "Produce", "DeleteRecords", "OffsetCommit")
        with kafka_like(plant) as (address, first):
            run = conform(address, asking(*apis))
    assert {name for name, _, _ in second.asked} >= {"Produce", "DeleteRecords"}
    produced = [one for one in bodies(second, "Produce") if one.topic_data[0].topic_id == topic_id]
    committed = [one for one in bodies(first, "OffsetCommit") if one.topics[0].topic_id == topic_id]
    assert produced
    assert committed
    # The report shows the request that was sent.
    sent = {one.case.name: one.case.body for one in run.results}
    assert sent["Produce 13, plain"]["topicData"][0]["topicId"] == uuid_text(topic_id)


def test_a_member_and_a_producer_are_what_the_broker_called_them() -> None:
    epochs = iter(range(1000))
    answers: Answers = {
        "JoinGroup": lambda _: {"member_id": "m-1", "generation_id": 7, "leader": "m-1"},
        "InitProducerId": lambda _: {"producer_id": 4000, "producer_epoch": next(epochs)},
    }
    apis = ("JoinGroup", "SyncGroup", "LeaveGroup", "InitProducerId", "AddOffsetsToTxn")
    with kafka_like(answering(answers)) as (address, broker):
        run = conform(address, asking(*apis))
    joined = [one.member_id for one in bodies(broker, "JoinGroup")]
    assert joined[0] == ""
    assert {*joined[1:]} == {"m-1"}
    synced = {(one.member_id, one.generation_id) for one in bodies(broker, "SyncGroup")}
    assert synced == {("m-1", 7)}
    added = {(one.producer_id, one.producer_epoch) for one in bodies(broker, "AddOffsetsToTxn")}
    [(producer, epoch)] = added
    assert producer == 4000
    assert epoch > 10
    # The member leaves before the group is removed, and the transaction is ended first.
    looks = {"ApiVersions", "FindCoordinator"}
    last = [name for name, _, _ in broker.asked if name not in looks][-3:]
    assert last == ["InitProducerId", "LeaveGroup", "DeleteGroups"]
    [left] = [one for one in run.left if one.startswith("transactional id")]
    assert left.startswith(f"transactional id {OWN}: no API removes a transactional id")


@pytest.mark.parametrize("times", [0, 1, 2])
def test_a_request_that_comes_too_early_is_sent_again(times: int) -> None:
    codes = iter([NOT_COORDINATOR] * times)

    def told(_: RequestFrame) -> dict[str, Any]:
        return {"error_code": next(codes, 0)}

    with kafka_like(answering({"Heartbeat": told})) as (address, broker):
        run = conform(address, asking("Heartbeat"))
    count = len([one for one in run.results if one.case.kind is not Kind.UNOFFERED])
    assert len([name for name, _, _ in broker.asked if name == "Heartbeat"]) in {
        count + times,
        count + times + 1,
    }
    assert {code for one in run.results for code in one.error_codes} == set()


def test_a_run_waits_a_limited_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flexwire.conformance.own.MOST_WAITED", 0.4)
    refuses: Answers = {"Heartbeat": lambda _: {"error_code": NOT_COORDINATOR}}
    with kafka_like(answering(refuses)) as (address, broker):
        run = conform(address, asking("Heartbeat"))
    cases = len([one for one in run.results if one.case.kind is not Kind.UNOFFERED])
    asked = len(bodies(broker, "Heartbeat"))
    # Two pauses of 0.2 seconds, each followed by a request.
    assert cases < asked <= cases + 2
    assert {code for one in run.results for code in one.error_codes} == {NOT_COORDINATOR}
    assert run.deviations == ()


def test_groups_that_members_name_have_names_of_their_own() -> None:
    names = OwnNames.of(OWN)
    assert len({OWN, *names}) == 5
    plan = plan_with_hostile(
        {key: offered_versions(key, RELEASE) for key in (42, 68, 76, 88)}, Asking(RELEASE, own=OWN)
    )
    groups = {case.body["groupId"] for case in plan.cases if case.writes and case.api_key > 42}
    assert groups == {names.consumers, names.sharers, names.streams}
