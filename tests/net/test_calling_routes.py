"""A request is sent to the broker that the cluster names; failures cause another lookup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flexwire.client import Cluster, Route, cluster, parse_route
from flexwire.demo.cluster import MockCluster
from flexwire.errors import ArgumentError, CallError
from flexwire.tap import HostPort, parse_host_port
from tests.net.answering import Answers, answering

if TYPE_CHECKING:
    from collections.abc import Iterator

TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"
MOVED = {"topics": [{"partitions": [{"errorCode": 6}]}]}


class Nodes:
    """Run brokers 1 and 2, which name ``leader`` in responses about the cluster. It may change."""

    def __init__(self, addresses: dict[int, HostPort], answers: dict[int, Answers]) -> None:
        self.addresses = addresses
        self.answers = answers
        self.leader = 2
        for one in answers.values():
            one.says |= {
                "Metadata": self.metadata,
                "FindCoordinator": self.coordinator,
                "DescribeQuorum": self.quorum,
            }

    def metadata(self, form: dict[str, Any]) -> dict[str, Any]:
        partitions = [{"partitionIndex": 3, "leaderId": self.leader}]
        topics = [{**topic, "partitions": partitions} for topic in form["topics"]]
        return {"brokers": self.brokers(), "topics": topics, "controllerId": 1}

    def brokers(self) -> list[dict[str, Any]]:
        return [
            {"nodeId": node, "host": address.host, "port": address.port}
            for node, address in self.addresses.items()
        ]

    def coordinator(self, form: dict[str, Any]) -> dict[str, Any]:
        host, port = self.addresses[self.leader]
        found = {"nodeId": self.leader, "host": host, "port": port}
        return {"coordinators": [{"key": form["coordinatorKeys"][0], **found}]}

    def quorum(self, form: dict[str, Any]) -> dict[str, Any]:
        [topic] = form["topics"]
        assert topic["topicName"] == "__cluster_metadata"
        return {"topics": [{"partitions": [{"leaderId": self.leader}]}]}

    def asked(self, name: str) -> list[int]:
        """Return the nodes that received this request, ordered by node id."""
        return [
            node for node, one in self.answers.items() for asked in one.names() if asked == name
        ]


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Nodes]:
    monkeypatch.setattr(cluster, "_FIRST_PAUSE", 0)
    with answering() as (one, first), answering() as (two, second):
        addresses = {1: parse_host_port(one), 2: parse_host_port(two)}
        yield Nodes(addresses, {1: first, 2: second})


def at(nodes: Nodes, node: int = 1, **options: Any) -> Cluster:
    return Cluster(str(nodes.addresses[node]), **options)


@pytest.mark.parametrize(
    ("to", "node"),
    [
        ("any", 1),
        ("1", 1),
        ("2", 2),
        ("leader:a-b-3", 2),
        ("group:g:1", 2),
        ("transaction:t", 2),
        (f"share:g:{TOPIC_ID}:0", 2),
        ("controller", 2),
    ],
)
def test_a_request_goes_where_its_route_leads(nodes: Nodes, to: str, node: int) -> None:
    with at(nodes) as asked:
        answer = asked.call("ListGroups", to=to)
    assert answer.broker == nodes.addresses[node]
    assert nodes.asked("ListGroups") == [node]


def test_what_is_asked_for_a_coordinator_is_its_kind_and_key(nodes: Nodes) -> None:
    with at(nodes) as asked:
        for to in ("group:g", "transaction:t", f"share:g:{TOPIC_ID}:0"):
            asked.broker(to)
    forms = [form for name, _, form in nodes.answers[1].asked if name == "FindCoordinator"]
    assert [(form["keyType"], *form["coordinatorKeys"]) for form in forms] == [
        (0, "g"),
        (1, "t"),
        (2, f"g:{TOPIC_ID}:0"),
    ]


def test_no_topic_is_created_by_looking_for_a_leader(nodes: Nodes) -> None:
    with at(nodes) as asked:
        asked.broker("leader:a-3")
    [form] = [form for name, _, form in nodes.answers[1].asked if name == "Metadata"]
    assert form["allowAutoTopicCreation"] is False


def test_old_brokers_are_asked_in_their_versions(nodes: Nodes) -> None:
    nodes.answers[1].offered = {"Metadata": (0, 3), "FindCoordinator": (0, 0), "ListGroups": (0, 0)}
    host, port = nodes.addresses[2]
    nodes.answers[1].says["FindCoordinator"] = {"nodeId": 2, "host": host, "port": port}
    with at(nodes) as asked:
        assert asked.broker("leader:a-3").address == nodes.addresses[2]
        assert asked.broker("group:a").address == nodes.addresses[2]
        # A cluster without DescribeQuorum uses ZooKeeper, and its Metadata response names the
        # controller.
        assert asked.broker("controller").address == nodes.addresses[1]


def test_controllers_say_where_they_are_by_other_means(nodes: Nodes) -> None:
    brokers = [{"brokerId": one.pop("nodeId"), **one} for one in nodes.brokers()]
    nodes.answers[1].offered = {"DescribeQuorum": (0, 1), "DescribeCluster": (0, 2)}
    nodes.answers[1].says["DescribeCluster"] = {"brokers": brokers, "controllerId": 2}
    # Only the active controller answers this request.
    nodes.answers[1].says["DescribeQuorum"] = {"topics": [{"partitions": [{"errorCode": 6}]}]}
    with at(nodes, controllers=True) as asked:
        assert asked.broker("controller").address == nodes.addresses[2]
        assert asked.broker("1").address == nodes.addresses[1]
        with pytest.raises(CallError, match="does not offer Metadata"):
            asked.broker("leader:a-3")
    [*_, (_, _, form)] = [one for one in nodes.answers[1].asked if one[0] == "DescribeCluster"]
    assert form["endpointType"] == 2


def test_a_controller_that_is_not_a_broker_is_reached_on_its_own_listener(nodes: Nodes) -> None:
    host, port = nodes.addresses[2]
    listeners = [{"name": "CONTROLLER", "host": host, "port": port}]
    said = {
        "topics": [{"partitions": [{"leaderId": 3000}]}],
        "nodes": [{"nodeId": 3000, "listeners": listeners}],
    }
    nodes.answers[1].says["DescribeQuorum"] = said
    with at(nodes) as asked:
        assert asked.broker("controller").address == nodes.addresses[2]


@pytest.mark.parametrize(
    ("to", "why"),
    [
        ("9", "does not know node 9; known nodes: 1, 2"),
        ("leader:a-4", "knows no partition a-4"),
        ("leader:a-3", "does not know the leader of a-3: 5 LEADER_NOT_AVAILABLE"),
        ("group:g", "the coordinator of group g: 15 COORDINATOR_NOT_AVAILABLE"),
        ("controller", "the active controller: 31 CLUSTER_AUTHORIZATION_FAILED"),
    ],
)
def test_what_the_cluster_does_not_know_is_said(nodes: Nodes, to: str, why: str) -> None:
    topics = [{"name": "a", "partitions": [{"partitionIndex": 3, "errorCode": 5, "leaderId": -1}]}]
    says = nodes.answers[1].says
    if to.startswith("leader"):
        says["Metadata"] = {"brokers": nodes.brokers(), "topics": topics}
    says["FindCoordinator"] = {"coordinators": [{"key": "g", "errorCode": 15}]}
    says["DescribeQuorum"] = {"errorCode": 31}
    with at(nodes) as asked, pytest.raises(CallError, match=why):
        asked.call("ListGroups", to=to)


@pytest.mark.parametrize(
    "text",
    ["", "anyone", "-1", "leader:", "leader:a", "leader:-1", "leader:a-b", "group:", "share:g:x:0",
     "2147483648", "9" * 5000, "٣", "leader:a-٣", "controller:1"],
)  # fmt: skip
def test_a_route_is_one_of_these(text: str) -> None:
    with pytest.raises(ArgumentError, match="expected any, NODE_ID, leader:TOPIC-PARTITION"):
        parse_route(text)


def test_topics_may_have_dashes() -> None:
    assert parse_route("leader:a-1-2") == Route("leader", "a-1", 2)


# These tests cover requests that are sent again.


def test_an_answer_that_it_moved_is_given_as_it_is(nodes: Nodes) -> None:
    nodes.answers[2].says["ListOffsets"] = MOVED
    with at(nodes) as asked:
        answer = asked.call("ListOffsets", to="leader:a-3")
    assert [one.name for one in answer.error_codes] == ["NOT_LEADER_OR_FOLLOWER"]
    assert nodes.asked("ListOffsets") == [2]


def test_with_retries_it_is_looked_up_anew_and_sent_again(nodes: Nodes) -> None:
    def moved(_: dict[str, Any]) -> dict[str, Any]:
        nodes.leader = 1
        return MOVED

    nodes.answers[2].says["ListOffsets"] = moved
    with at(nodes) as asked:
        answer = asked.call("ListOffsets", to="leader:a-3", retries=5)
    assert answer.broker == nodes.addresses[1]
    assert not answer.error_codes
    assert nodes.asked("ListOffsets") == [1, 2]


def test_where_any_would_do_another_one_is_asked(nodes: Nodes) -> None:
    nodes.answers[1].says["ListOffsets"] = MOVED
    with at(nodes) as asked:
        assert asked.call("ListOffsets", retries=5).broker == nodes.addresses[2]
    assert nodes.asked("ListOffsets") == [1, 2]
    nodes.answers[2].says["ListOffsets"] = MOVED
    with at(nodes) as asked:
        assert asked.call("ListOffsets", retries=3).is_moved
    # Nodes take turns: the next is the one that was asked longest ago.
    assert nodes.asked("ListOffsets") == [1, 1, 1, 2, 2, 2]


def test_among_controllers_another_controller_is_asked(nodes: Nodes) -> None:
    brokers = [{"brokerId": one.pop("nodeId"), **one} for one in nodes.brokers()]
    nodes.answers[1].says |= {
        "DescribeCluster": {"brokers": brokers, "controllerId": 2},
        "DescribeQuorum": {"errorCode": 6},
    }
    nodes.answers[2].says["DescribeQuorum"] = {}
    with at(nodes, controllers=True) as asked:
        assert asked.call("DescribeQuorum", retries=1).broker == nodes.addresses[2]


def test_it_is_not_sent_without_end(nodes: Nodes) -> None:
    nodes.answers[2].says["ListOffsets"] = MOVED
    with at(nodes) as asked:
        answer = asked.call("ListOffsets", to="leader:a-3", retries=3)
    assert answer.is_moved
    assert nodes.asked("ListOffsets") == [2] * 4


def test_a_coordinator_that_is_not_there_yet_is_asked_for_again(nodes: Nodes) -> None:
    found = nodes.coordinator
    waits = iter([True, True])

    def later(form: dict[str, Any]) -> dict[str, Any]:
        return {"coordinators": [{"errorCode": 15}]} if next(waits, False) else found(form)

    nodes.answers[1].says["FindCoordinator"] = later
    with at(nodes) as asked:
        assert asked.call("ListGroups", to="group:g", retries=2).broker == nodes.addresses[2]


@pytest.mark.parametrize(("codes", "times"), [((6, 6), 3), ((6, 0), 1), ((6, 3), 3), ((3, 3), 1)])
def test_what_succeeded_in_part_is_not_written_twice(
    nodes: Nodes, codes: tuple[int, ...], times: int
) -> None:
    partitions = [{"index": at, "errorCode": code} for at, code in enumerate(codes)]
    nodes.answers[2].says["Produce"] = {"responses": [{"partitionResponses": partitions}]}
    with at(nodes) as asked:
        asked.call("Produce", to="leader:a-3", retries=2)
    assert len(nodes.asked("Produce")) == times


def test_brokers_that_are_not_ours_say_the_same() -> None:
    body = {"topics": [{"name": "orders", "partitions": [{"timestamp": -1}]}]}
    with MockCluster() as mock, Cluster(mock.bootstrap) as asked:
        mock.create_topic("orders", partitions=1)
        led = asked.call("ListOffsets", body, to="leader:orders-0")
        assert not led.error_codes
        answers = [asked.call("ListOffsets", body, to=node) for node in ("1", "2", "3")]
        names = [one.name for answer in answers for one in answer.error_codes]
        assert names == ["NOT_LEADER_OR_FOLLOWER"] * 2
        assert [one.broker for one in answers if not one.error_codes] == [led.broker]


def test_a_connection_that_ended_is_opened_anew(nodes: Nodes) -> None:
    with at(nodes) as asked:
        asked.broker().close()
        assert asked.call("ListGroups").response is not None
