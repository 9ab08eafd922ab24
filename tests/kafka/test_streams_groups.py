"""Views of Kafka Streams groups (KIP-1071) agree with the broker."""

from __future__ import annotations

import time
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from flexwire.answers.state import group_members, groups, open_log, unreadable
from flexwire.answers.state.groups import RECORDS
from tests.kafka.asking import ask
from tests.kafka.coordinating import MOST_SECONDS
from tools.broker import VERSIONS, broker

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]
# Other releases do not support such groups.
VERSION = VERSIONS[-1]
GROUP, GONE, SOURCE, PARTITIONS = "g-streams", "g-gone", "flow-in", 4
LEAVES = -1
# A coordinator's topic is created on request, and read before the coordinator answers.
LOADING = (14, 15, 16)
# Fields that a heartbeat may leave out.
UNSAID = (
    "instanceId",
    "rackId",
    "topology",
    "processId",
    "userEndpoint",
    "clientTags",
    "taskOffsets",
    "taskEndOffsets",
)
TOPOLOGY = {
    "epoch": 0,
    "subtopologies": [
        {
            "subtopologyId": "0",
            "sourceTopics": [SOURCE],
            "sourceTopicRegex": [],
            "stateChangelogTopics": [],
            "repartitionSinkTopics": [],
            "repartitionSourceTopics": [],
            "copartitionGroups": [],
        }
    ],
}


class Member:
    """A member that sends heartbeats as Kafka Streams does, and accepts its assigned tasks."""

    def __init__(self, address: str, group: str) -> None:
        self.address, self.group = address, group
        self.member, self.epoch = str(uuid.uuid4()), 0
        self.tasks: list[dict[str, Any]] = []
        self.process = str(uuid.uuid4())

    def beat(self, **fields: Any) -> None:
        own: dict[str, Any] = {
            "groupId": self.group,
            "memberId": self.member,
            "memberEpoch": self.epoch,
            "endpointInformationEpoch": 0,
            "activeTasks": self.tasks,
            "standbyTasks": [],
            "warmupTasks": [],
            "rebalanceTimeoutMs": -1,
            "shutdownApplication": False,
            **dict.fromkeys(UNSAID),
        }
        if not self.epoch:
            first = {"processId": self.process, "clientTags": [], "rebalanceTimeoutMs": 600_000}
            own |= {"topology": TOPOLOGY, **first}
        end = time.monotonic() + MOST_SECONDS
        while True:
            said = ask(self.address, "StreamsGroupHeartbeat", VERSION, **own | fields)
            if said["errorCode"] not in LOADING or time.monotonic() > end:
                break
            time.sleep(0.2)
        assert said["errorCode"] == 0, said
        self.epoch = said["memberEpoch"]
        if said["activeTasks"] is not None:
            self.tasks = said["activeTasks"]

    def leave(self) -> None:
        self.beat(memberEpoch=LEAVES, activeTasks=None, standbyTasks=None, warmupTasks=None)


def settled(members: list[Member]) -> None:
    """Send heartbeats until all members are in one epoch and have all tasks."""
    end = time.monotonic() + MOST_SECONDS
    while True:
        for one in members:
            one.beat()
        has = sorted(
            number for one in members for task in one.tasks for number in task["partitions"]
        )
        is_stable = described(members[0])["groupState"] == "Stable"
        if is_stable and has == [*range(PARTITIONS)]:
            return
        assert time.monotonic() < end, "the group is not stable"
        time.sleep(0.5)


def described(member: Member) -> dict[str, Any]:
    asked: dict[str, Any] = {"groupIds": [member.group], "includeAuthorizedOperations": False}
    asked["includeTopologyDescription"] = False
    [group] = ask(member.address, "StreamsGroupDescribe", VERSION, **asked)["groups"]
    assert group["errorCode"] == 0, group
    return dict(group)


def agree(spark: SparkSession, logs: Path, said: dict[str, Any]) -> None:
    log = open_log(spark, logs, "__consumer_offsets")
    assert unreadable(log, RECORDS).count() == 0
    [row] = groups(log).collect()
    assert (row.group, row.type, row.epoch, row.is_known) == (
        *(GROUP, "streams", said["groupEpoch"]),
        True,
    )
    assert row.members == len(said["members"])
    found = {one.member_id: one for one in group_members(log).collect()}
    told = {one["memberId"]: one for one in said["members"]}
    assert {*found} == {*told}
    for name, one in told.items():
        ours = found[name]
        assert (ours.client_id, ours.client_host, ours.member_epoch, ours.instance_id) == (
            *(one["clientId"], one["clientHost"], one["memberEpoch"]),
            one.get("instanceId"),
        )
        assert [(task.subtopology_id, task.partition) for task in ours.assigned or []] == [
            (task["subtopologyId"], number)
            for task in one["assignment"]["activeTasks"]
            for number in sorted(task["partitions"])
        ]


def test_members_that_come_and_go(spark: SparkSession, tmp_path: Path) -> None:
    # No member sends heartbeats while views are computed.
    long = {f"group.streams.{one}session.timeout.ms": "600000" for one in ("", "max.")}
    settings = {"group.streams.initial.rebalance.delay.ms": "0", **long}
    with broker(VERSION, tmp_path, settings) as address:
        admin = AdminClient({"bootstrap.servers": address, "log_level": 2})
        [created] = admin.create_topics([NewTopic(SOURCE, PARTITIONS, 1)]).values()
        created.result(MOST_SECONDS)
        finds: dict[str, Any] = {"keyType": 0, "coordinatorKeys": [GROUP]}
        ask(address, "FindCoordinator", VERSION, **finds)
        gone = Member(address, GONE)
        gone.beat()
        gone.leave()
        for deleted in admin.delete_consumer_groups([GONE]).values():
            deleted.result(MOST_SECONDS)
        one, other = Member(address, GROUP), Member(address, GROUP)
        settled([one])
        agree(spark, tmp_path / "data", described(one))
        settled([one, other])
        said = described(one)
        assert len(said["members"]) == 2
        agree(spark, tmp_path / "data", said)
        one.leave()
        settled([other])
        said = described(other)
        assert len(said["members"]) == 1
        agree(spark, tmp_path / "data", said)
        other.leave()
        agree(spark, tmp_path / "data", described(other))
