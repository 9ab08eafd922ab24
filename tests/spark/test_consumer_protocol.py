"""Verdicts about groups are correct for JoinGroup, SyncGroup and heartbeats in traffic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flexwire.answers.consumer_protocol import ANSWER, consumer_protocol
from flexwire.protocol.error_codes import ERROR_NAMES
from tests.protocol.payloads import make
from tests.spark.told import SECOND, Told

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
JAVA, RDKAFKA = ("apache-kafka-java", "4.1.0"), ("librdkafka", "2.3.0")
CODES = {name: code for code, name in ERROR_NAMES.items()}
UNCONVERTED = CODES["GROUP_ID_NOT_FOUND"]


class Groups:
    """Add members that join groups, each on a connection of its own."""

    def __init__(self) -> None:
        self.told = Told()
        self._port = 4000

    def ask(
        self, api: str, software: tuple[str | None, str | None], client_id: str, body: Any,
        error_code: int | None = 0,
    ) -> None:  # fmt: skip
        self._port += 1
        end = f"10.0.0.9:{self._port}"
        at = self._port * SECOND
        self.told.connection(end, at, at + SECOND)
        is_answered = error_code is not None
        self.told.exchange(
            (client_id, end), api, at, 1000 if is_answered else None, asked=body,
            answer={"error_code": error_code},
        )  # fmt: skip
        name, version = software
        # The response's row also contains the connection's client software.
        for frame in self.told.frames[-1 - is_answered :]:
            frame |= {"client_software_name": name, "client_software_version": version}

    def join(
        self, group: str, software: tuple[str | None, str | None] = JAVA, *,
        client_id: str = "shop", kind: str = "consumer", timeout: int = 45_000,
        assignors: tuple[str, ...] = ("range", "cooperative-sticky"),
    ) -> None:  # fmt: skip
        protocols = [{"name": name, "metadata": b"\0\0"} for name in assignors]
        body = {"group_id": group, "protocol_type": kind, "protocols": protocols}
        self.ask("JoinGroup", software, client_id, {**body, "session_timeout_ms": timeout})

    def sync(self, group: str, *assignments: bytes, kind: str | None = None) -> None:
        given = [{"member_id": "m", "assignment": data} for data in assignments]
        body = {"group_id": group, "assignments": given, "protocol_type": kind}
        self.ask("SyncGroup", JAVA, "shop", body)


def assignment(user_data: bytes | None) -> bytes:
    body: bytes = make("ConsumerProtocolAssignment", user_data=user_data).encode(1)
    return b"\0\1" + body


@pytest.mark.long
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
    groups.join("odd", assignors=("own",))
    groups.sync("odd", b"\0")
    # A broker converts the group if its members are consumers, but nothing shows whether they are.
    groups.sync("unknown", b"\0")
    # The group uses the other library's assignors.
    groups.join("two")
    groups.join(
        "two", ("librdkafka", "2.12.0"), client_id="till", assignors=("range", "roundrobin")
    )
    # The capture does not contain this member's JoinGroup.
    groups.sync("adopted", b"\0\1anything", kind="connect")
    groups.join("mixed")
    groups.join("mixed", RDKAFKA, client_id="till")
    groups.join("silent", (None, None))
    for group, epoch, error_code in (
        ("new", 0, 0),
        ("going on", 3, None),
        ("refused", 0, UNCONVERTED),
        ("unanswered", 0, None),
        ("unlucky", 0, CODES["UNSUPPORTED_ASSIGNOR"]),
        ("early", 0, CODES["COORDINATOR_LOAD_IN_PROGRESS"]),
        ("left", -1, UNCONVERTED),
    ):
        groups.join(group)
        beat = {"group_id": group, "member_epoch": epoch}
        groups.ask("ConsumerGroupHeartbeat", JAVA, group, beat, error_code)
    groups.ask("ConsumerGroupHeartbeat", JAVA, "alone", {"group_id": "alone", "member_epoch": 0})
    rows = {row.group_id: row for row in consumer_protocol(groups.told.tables(spark)).collect()}
    assert {group: row.verdict for group, row in rows.items()} == {
        "plain": "moves as it is",
        "sticky": "moves after a setting",
        "streams": "blocked",
        "workers": "blocked",
        "adopted": "blocked",
        "mixed": "blocked",
        "silent": "cannot say",
        "new": "uses it already",
        "going on": "uses it already",
        "alone": "uses it already",
        "refused": "blocked",
        "odd": "blocked",
        "unknown": "cannot say",
        "two": "moves after a setting",
        "unlucky": "moves after a setting",
        **dict.fromkeys(("unanswered", "early", "left"), "moves as it is"),
    }
    assert {group: row.has_user_data for group, row in rows.items()} == {
        "plain": False,
        "streams": True,
        **dict.fromkeys(rows.keys() - {"plain", "streams"}),
    }
    assert rows["mixed"].software == ["apache-kafka-java 4.1.0", "librdkafka 2.3.0"]
    assert rows["mixed"].client_ids == ["shop", "till"]
    assert rows["workers"].protocol_type == rows["adopted"].protocol_type == "connect"
    assert rows["alone"].protocol_type is None
    assert "did not convert" in rows["refused"].reason
    assert "partition.assignment.strategy and session.timeout.ms" in rows["sticky"].reason
    assert rows["two"].reason.startswith("librdkafka")
    assert "UNSUPPORTED_ASSIGNOR" in rows["unlucky"].reason
    assert "consumer format" in rows["odd"].reason
    assert rows["plain"].assignors == ["range", "cooperative-sticky"]


def test_the_report_tells_the_software_of_a_group_first() -> None:
    """Only Java's KafkaConsumer changes its default in Kafka 5.0."""
    names = [column.name for column in ANSWER.shown_columns()]
    assert names[:3] == ["group_id", "software", "verdict"]
    assert {*names} == {column.name for column in ANSWER.columns if column.heading}


def test_traffic_without_groups_has_no_answer(spark: SparkSession) -> None:
    told = Told()
    told.connection("10.0.1.1:4001", 0, SECOND)
    told.exchange(("billing", "10.0.1.1:4001"), "Metadata", 0)
    assert ANSWER.ask(told.tables(spark)).count() == 0
