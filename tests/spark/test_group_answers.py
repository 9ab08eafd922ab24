"""Rebalances have the causes that the test planned, and the lag is correct at each commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flexwire.answers import ANSWERS
from flexwire.answers.groups import groups
from flexwire.answers.lag import lag
from flexwire.tables.schema import schema_of
from flexwire.tasks import spark_schema
from tests.spark.told import SECOND, START_US, Told

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from flexwire.answers.asking.answer import AnalysisTables

pytestmark = pytest.mark.spark

MEMBER_ID_REQUIRED, REBALANCE_IN_PROGRESS = 79, 27
TOPIC_ID = "b" * 21 + "A"


class Group:
    """A classic group whose members are named by letters. Each member runs on its own host."""

    def __init__(self, told: Told, name: str) -> None:
        self._told = told
        self._name = name
        self._now = 0

    def _ask(self, member: str, api: str, asked: dict[str, Any], answer: dict[str, Any]) -> None:
        self._now += 10_000
        client = f"10.0.{len(self._name)}.{ord(member)}:5"
        asked = {"group_id": self._name} | asked
        self._told.exchange((f"app-{member}", client), api, self._now, 1_000, asked, answer)

    def join(
        self, member: str, generation: int, listed: str, topics: bytes = b"1", *,
        asked_id: str | None = None, reason: str | None = None, code: int = 0,
    ) -> None:  # fmt: skip
        """Make a member join. The first member in the list is the leader."""
        asked = {
            "member_id": member if asked_id is None else asked_id,
            "session_timeout_ms": 10_000,
            "protocols": [{"name": "range", "metadata": topics}],
            "reason": reason,
        }
        members = [{"member_id": one} for one in listed] if listed[:1] == member else []
        answer = {
            "error_code": code,
            "generation_id": generation,
            "leader": listed[:1],
            "member_id": member,
            "members": members,
        }
        self._ask(member, "JoinGroup", asked, answer)

    def beat(self, member: str, generation: int, code: int = 0, after: int = 0) -> None:
        self._now += after
        asked = {"generation_id": generation, "member_id": member}
        self._ask(member, "Heartbeat", asked, {"error_code": code})

    def leave(self, member: str, reason: str | None = None, *, is_old: bool = False) -> None:
        members = None if is_old else [{"member_id": member, "reason": reason}]
        asked = {"member_id": member if is_old else None, "members": members}
        self._ask(member, "LeaveGroup", asked, {"error_code": 0})


def _classic(told: Told) -> None:
    group = Group(told, "orders")
    # 1: "a" is given its id, and returns with it.
    group.join("a", -1, "", asked_id="", code=MEMBER_ID_REQUIRED)
    group.join("a", 1, "a")
    # 2: "b" joins without an id; "a" is told.
    group.beat("a", 1, REBALANCE_IN_PROGRESS)
    group.join("b", 2, "ab", asked_id="")
    group.join("a", 2, "ab")
    # 3: the leader joins without being told to, and says why.
    group.join("a", 3, "ab", reason="topics changed")
    group.join("b", 3, "ab")
    # 4: the other member has a different subscription.
    group.join("b", 4, "ab", b"2")
    group.join("a", 4, "ab")
    # 5: a member leaves, and gives its own reason.
    group.leave("b", "poll timeout")
    group.beat("a", 4, REBALANCE_IN_PROGRESS)
    group.join("a", 5, "a")
    # 6: "c" comes from a captured connection, with an id whose assignment was not captured.
    group.beat("a", 5, REBALANCE_IN_PROGRESS)
    group.join("c", 6, "ac")
    group.join("a", 6, "ac")
    # 7: "c" is silent for its session timeout, and is removed.
    group.beat("c", 6)
    group.beat("a", 6, after=5 * SECOND)
    group.beat("a", 6, REBALANCE_IN_PROGRESS, after=6 * SECOND)
    group.join("a", 7, "a")
    # 8: the broker tells "a" to join again, and nothing shows why.
    group.beat("a", 7, REBALANCE_IN_PROGRESS)
    group.join("a", 8, "a")
    # In another group, "z" leaves without a request, too soon to have expired.
    other = Group(told, "billing")
    other.join("z", 41, "yz")
    other.join("y", 41, "yz")
    other.beat("y", 41, REBALANCE_IN_PROGRESS)
    other.join("y", 42, "y")
    other.leave("y", is_old=True)
    other.join("x", 43, "x", asked_id="")
    # The largest value of the field.
    edge = Group(told, "edge")
    for generation in (-(2**31), 2**31 - 1):
        edge.join("e", generation, "")
        edge.beat("e", generation, REBALANCE_IN_PROGRESS)


def _epochs(told: Told) -> None:
    def beat(member: str, epoch: int, at: int, told_epoch: int) -> None:
        asked = {"group_id": "new", "member_id": member, "member_epoch": epoch}
        answer = {"error_code": 0, "member_epoch": told_epoch, "member_id": member}
        who = (member, f"10.1.1.{ord(member)}:5")
        told.exchange(who, "ConsumerGroupHeartbeat", at, 1_000, asked, answer)

    beat("a", 0, 0, 1)
    beat("b", 0, 1_000_000, 2)
    beat("a", 1, 3_000_000, 2)
    beat("a", 2, 6_000_000, 2)
    beat("b", -1, 7_000_000, -1)
    beat("a", 2, 8_000_000, 3)
    beat("a", 3, 9_000_000, 4)
    beat("a", 4, 10_000_000, 4)


def _commits(told: Told) -> None:
    def fetch(client: str, at: int, end: int, **topic: Any) -> None:
        partitions = [{"partition_index": 3, "high_watermark": end, "error_code": 0}]
        answer = {"responses": [topic | {"partitions": partitions}]}
        told.exchange(("app", client), "Fetch", at, 1_000, {}, answer)

    def commit(client: str, at: int, offset: int, topic: str = "orders") -> None:
        partitions = [{"partition_index": 3, "committed_offset": offset}]
        asked = {"group_id": "g", "topics": [{"name": topic, "partitions": partitions}]}
        told.exchange(("app", client), "OffsetCommit", at, 1_000, asked, {})

    told.exchange(("app", "10.2.0.1:1"), "Metadata", 0, 1_000, {}, {"topics": [
        {"name": "orders", "topic_id": TOPIC_ID, "partitions": []},
    ]})  # fmt: skip
    commit("10.2.0.1:1", 10_000, 100)
    fetch("10.2.0.1:2", 20_000, 150, topic_id=TOPIC_ID)
    commit("10.2.0.1:1", 30_000, 110)
    fetch("10.2.0.1:2", 40_000, 200, topic="orders")
    # One fetch failed, and another came from a different host.
    fetch("10.2.0.1:2", 42_000, -1, topic="orders")
    fetch("10.2.0.2:2", 44_000, 999, topic="orders")
    commit("10.2.0.1:1", 50_000, 195)
    commit("10.2.0.1:1", 50_500, 7, "payments")
    fetch("10.2.0.1:2", 60_000, 2**63 - 1, topic="edge")
    commit("10.2.0.1:1", 70_000, -(2**63), "edge")


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> AnalysisTables:
    told = Told()
    _classic(told)
    _epochs(told)
    _commits(told)
    return told.tables(spark)


@pytest.mark.long
def test_each_generation_has_the_cause_that_its_traffic_proves(tables: AnalysisTables) -> None:
    rows = groups(tables).collect()
    found = {(one.group_id, one.protocol, one.generation): one for one in rows}
    causes = {key: (one.cause, one.causes) for key, one in found.items()}

    def only(cause: str) -> tuple[str, list[str]]:
        return cause, [] if cause == "unknown" else [cause]

    assert causes == {
        ("orders", "classic", 1): only("new member"),
        ("orders", "classic", 2): only("new member"),
        ("orders", "classic", 3): only("leader rejoined"),
        ("orders", "classic", 4): only("metadata changed"),
        ("orders", "classic", 5): only("member left"),
        ("orders", "classic", 6): only("new member"),
        ("orders", "classic", 7): only("session expired"),
        ("orders", "classic", 8): only("unknown"),
        ("billing", "classic", 41): only("unknown"),
        ("billing", "classic", 42): only("unknown"),
        ("billing", "classic", 43): ("member left", ["member left", "new member"]),
        ("edge", "classic", -(2**31)): only("unknown"),
        ("edge", "classic", 2**31 - 1): only("unknown"),
        ("new", "consumer", 1): only("new member"),
        ("new", "consumer", 2): only("new member"),
        ("new", "consumer", 3): only("member left"),
        ("new", "consumer", 4): only("unknown"),
    }
    classic = {key[2]: one for key, one in found.items() if key[0] == "orders"}
    assert [classic[one].members for one in range(1, 9)] == [1, 2, 2, 2, 1, 2, 1, 1]
    assert (classic[3].reasons, classic[5].reasons) == (["topics changed"], ["poll timeout"])
    assert (classic[2].new_members, classic[5].left_members, classic[7].expired_members) == (
        1,
        1,
        1,
    )
    # The second member's response, 11 ms after the first member's request.
    assert classic[2].rebalance_us == 11_000
    assert classic[1].time.timestamp() * SECOND == START_US + 21_000
    assert found["new", "consumer", 2].members == 2
    assert found["new", "consumer", 1].rebalance_us is None


@pytest.mark.long
def test_lag_is_what_the_client_knew_of_the_end_when_it_committed(tables: AnalysisTables) -> None:
    rows = {one.topic: one for one in lag(tables).collect()}
    orders, payments, edge = rows.pop("orders"), rows.pop("payments"), rows.pop("edge")
    assert (edge.committed_offset, edge.high_watermark, edge.lag) == (-(2**63), 2**63 - 1, None)
    assert not rows
    assert (orders.group_id, orders.client_id, orders.address) == ("g", "app", "10.2.0.1")
    assert (orders.partition, orders.commits, orders.committed_offset) == (3, 3, 195)
    assert (orders.high_watermark, orders.lag, orders.max_lag) == (200, 5, 40)
    assert (payments.commits, payments.high_watermark, payments.lag, payments.max_lag) == (
        1, None, None, None,
    )  # fmt: skip


@pytest.mark.long
def test_their_answers_have_their_columns(spark: SparkSession, tables: AnalysisTables) -> None:
    empty = Told().tables(spark)
    for answer in (one for one in ANSWERS if one.ask in {groups, lag}):
        for given in (tables, empty):
            assert _types(answer.ask(given)) == [
                (one.name, one.dataType.simpleString())
                for one in spark_schema(schema_of(answer.columns))
            ]


@pytest.mark.cluster
def test_nothing_gives_no_row(spark: SparkSession) -> None:
    empty = Told().tables(spark)
    assert groups(empty).isEmpty()
    assert lag(empty).isEmpty()


def _types(found: DataFrame) -> list[tuple[str, str]]:
    return [(one.name, one.dataType.simpleString()) for one in found.schema]
