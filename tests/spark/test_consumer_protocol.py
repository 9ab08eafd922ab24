"""Verdicts about groups, from JoinGroup, SyncGroup and heartbeats of traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flexwire.answers.consumer_protocol import ANSWER, consumer_protocol
from tests.protocol.payloads import make
from tests.spark.told import SECOND, Told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
JAVA, RDKAFKA = ("apache-kafka-java", "4.1.0"), ("librdkafka", "2.6.1")


class Groups:
    """Members that join groups, each on a connection of its own."""

    def __init__(self) -> None:
        self.told = Told()
        self._port = 4000

    def ask(
        self, api: str, software: tuple[str | None, str | None], client_id: str, body: Any
    ) -> None:
        self._port += 1
        end = f"10.0.0.9:{self._port}"
        at = self._port * SECOND
        self.told.connection(end, at, at + SECOND)
        self.told.exchange((client_id, end), api, at, asked=body)
        name, version = software
        # A response knows the software of its connection too.
        for frame in self.told.frames[-2:]:
            frame |= {"client_software_name": name, "client_software_version": version}

    def join(
        self, group: str, software: tuple[str | None, str | None] = JAVA, *,
        client_id: str = "shop", kind: str = "consumer", timeout: int = 45_000,
        assignors: tuple[str, ...] = ("range", "cooperative-sticky"),
    ) -> None:  # fmt: skip
        protocols = [{"name": name, "metadata": b"\0\0"} for name in assignors]
        body = {"group_id": group, "protocol_type": kind, "protocols": protocols}
        self.ask("JoinGroup", software, client_id, {**body, "session_timeout_ms": timeout})

    def sync(self, group: str, *assignments: bytes) -> None:
        given = [{"member_id": "m", "assignment": data} for data in assignments]
        self.ask("SyncGroup", JAVA, "shop", {"group_id": group, "assignments": given})


def assignment(user_data: bytes | None) -> bytes:
    body: bytes = make("ConsumerProtocolAssignment", user_data=user_data).encode(1)
    return b"\0\1" + body


def test_each_group_has_the_verdict_of_what_its_members_sent(spark: SparkSession) -> None:
    groups = Groups()
    groups.join("plain")
    groups.sync("plain", assignment(None), assignment(b""))
    # A follower sends no assignments.
    groups.sync("plain")
    groups.join("sticky", assignors=("sticky",), timeout=6_000)
    groups.join("streams", assignors=("stream",))
    groups.sync("streams", assignment(None), assignment(b"tasks"))
    groups.join("workers", kind="connect", assignors=("sessioned",))
    groups.sync("workers", b"\0\1anything")
    groups.join("mixed")
    groups.join("mixed", RDKAFKA, client_id="till")
    groups.join("silent", (None, None))
    groups.ask("ConsumerGroupHeartbeat", JAVA, "new", {"group_id": "new"})
    rows = {row.group_id: row for row in consumer_protocol(groups.told.tables(spark)).collect()}
    assert {group: row.verdict for group, row in rows.items()} == {
        "plain": "moves as it is",
        "sticky": "moves after a setting",
        "streams": "blocked",
        "workers": "blocked",
        "mixed": "blocked",
        "silent": "cannot say",
        "new": "uses it already",
    }
    assert {group: row.has_user_data for group, row in rows.items()} == {
        "plain": False,
        "streams": True,
        **dict.fromkeys(("sticky", "workers", "mixed", "silent", "new")),
    }
    assert rows["mixed"].software == ["apache-kafka-java 4.1.0", "librdkafka 2.6.1"]
    assert rows["mixed"].client_ids == ["shop", "till"]
    assert rows["workers"].protocol_type == "connect"
    assert rows["new"].protocol_type is None
    assert "partition.assignment.strategy and session.timeout.ms" in rows["sticky"].reason
    assert rows["plain"].assignors == ["range", "cooperative-sticky"]


def test_traffic_without_groups_has_no_answer(spark: SparkSession) -> None:
    told = Told()
    told.connection("10.0.1.1:4001", 0, SECOND)
    told.exchange(("billing", "10.0.1.1:4001"), "Metadata", 0)
    assert ANSWER.ask(told.tables(spark)).count() == 0
