"""Brokers accept or refuse a consumer-protocol member that joins a classic group (KIP-848)."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.protocol.audit.consumer_protocol import GroupMember, GroupTraits, judge_group
from flexwire.protocol.error_codes import (
    ERROR_NAMES,
    MEMBER_ID_REQUIRED,
    NO_ERROR,
)
from tests.kafka.asking import ask, until
from tests.protocol.payloads import make
from tools.broker import broker

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
GROUP_ID_NOT_FOUND = next(
    code for code, name in ERROR_NAMES.items() if name == "GROUP_ID_NOT_FOUND"
)


def traits(kind: str, assignor: str, user_data: bool | None) -> GroupTraits:  # noqa: FBT001 - three values, one of them unknown
    java = GroupMember("apache-kafka-java", "4.1.0", (assignor,), 45_000)
    return GroupTraits(kind, (java,), user_data)


GROUPS = {
    "plain": traits("consumer", "range", user_data=False),
    "sticky": traits("consumer", "sticky", user_data=False),
    "user-data": traits("consumer", "range", user_data=True),
    "connect": traits("connect", "range", user_data=None),
}


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()


def classic_member(address: str, release: str, group: str, traits: GroupTraits) -> None:
    """Run one member as the leader of a classic group, with the assignment that the traits
    describe.
    """
    (member,) = traits.members
    topics = make("ConsumerProtocolSubscription", topics=["orders"])
    metadata = text(b"\0\1" + topics.encode(1))
    join: dict[str, Any] = {
        "groupId": group,
        "sessionTimeoutMs": member.session_timeout_ms,
        "rebalanceTimeoutMs": 60_000,
        "memberId": "",
        "groupInstanceId": None,
        "protocolType": traits.protocol_type,
        "protocols": [{"name": member.assignors[0], "metadata": metadata}],
        "reason": None,
    }
    first: dict[str, Any] = {}

    def has_coordinator() -> bool:
        # The first request creates the groups' topic.
        found = ask(address, "FindCoordinator", release, keyType=0, coordinatorKeys=[group])
        return bool(found["coordinators"][0]["errorCode"] == NO_ERROR)

    until(has_coordinator, "the group has no coordinator")

    def is_told_its_id() -> bool:
        # Before it answers, the coordinator loads the partition of its topic.
        first.update(ask(address, "JoinGroup", release, **join))
        return bool(first["errorCode"] == MEMBER_ID_REQUIRED)

    until(is_told_its_id, "the coordinator gave no member id")
    joined = ask(address, "JoinGroup", release, **join | {"memberId": first["memberId"]})
    assert joined["errorCode"] == NO_ERROR
    user_data = b"of its own" if traits.has_user_data else b""
    assignment = make("ConsumerProtocolAssignment", user_data=user_data).encode(1)
    given = {"memberId": first["memberId"], "assignment": text(b"\0\1" + assignment)}
    synced = ask(
        address, "SyncGroup", release, groupId=group, generationId=joined["generationId"],
        memberId=first["memberId"], groupInstanceId=None, protocolType=traits.protocol_type,
        protocolName=member.assignors[0], assignments=[given],
    )  # fmt: skip
    assert synced["errorCode"] == NO_ERROR


def comes(address: str, release: str, group: str) -> int:
    """Return the error for a member of the consumer protocol that joins the group."""
    answer = ask(
        address, "ConsumerGroupHeartbeat", release, groupId=group,
        memberId="AAAAAAAAAAAAAAAAAAAAAQ", memberEpoch=0, instanceId=None, rackId=None,
        rebalanceTimeoutMs=60_000, subscribedTopicNames=["orders"], subscribedTopicRegex=None,
        serverAssignor=None, topicPartitions=[],
    )  # fmt: skip
    return int(answer["errorCode"])


@pytest.mark.parametrize("release", ["4.0.2", "4.4.0"])
def test_a_broker_converts_what_is_not_blocked_and_refuses_what_is(
    release: str, tmp_path: Path
) -> None:
    with broker(release, tmp_path / "broker") as address:
        said = {}
        for group, traits in GROUPS.items():
            classic_member(address, release, group, traits)
            said[group] = comes(address, release, group)
        verdicts = {group: judge_group(traits).verdict for group, traits in GROUPS.items()}
        assert said == {
            group: GROUP_ID_NOT_FOUND if verdict == "blocked" else NO_ERROR
            for group, verdict in verdicts.items()
        }
        assert {*verdicts.values()} == {"moves as it is", "moves after a setting", "blocked"}
        kinds = ask(address, "ListGroups", release, statesFilter=[], typesFilter=[])["groups"]
        assert {one["groupId"]: one["groupType"] for one in kinds} == {
            group: "classic" if code else "consumer" for group, code in said.items()
        }
