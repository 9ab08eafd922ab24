"""The records in `__consumer_offsets` show which groups can move to the consumer protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from flexwire.codec import message
from flexwire.spark.analyze import analyze
from tests.spark.internal_topics.made import MadeTopic, commit, int16, keyed

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def assignment(user_data: bytes | None) -> bytes:
    body = message("ConsumerProtocolAssignment")(user_data=user_data)
    return int16(1) + body.encode(1)


def classic(group: str, protocol: str, *assignments: bytes) -> tuple[bytes, bytes | None]:
    member: Any = message("GroupMetadataValue")
    members = [
        member.MemberMetadata(
            member_id=f"m-{number}",
            client_id=f"c-{number % 2}",
            client_host="/h",
            subscription=b"",
            assignment=one,
        )
        for number, one in enumerate(assignments)
    ]
    value = {"protocol_type": protocol, "generation": 4, "members": members}
    if members:
        value["protocol"] = "range"
    return keyed(2, "GroupMetadata", {"group": group}, value)


def written(root: Path) -> Path:
    made = MadeTopic("__consumer_offsets")
    plain = assignment(None)
    made.add(*classic("plain", "consumer", plain, plain, plain))
    made.add(*classic("empty data", "consumer", plain, assignment(b"")))
    made.add(*classic("streams", "consumer", plain, assignment(b"\1")))
    made.add(*classic("connect", "connect", b"\1\2\3"))
    made.add(*classic("odd", "consumer", b"\0"))
    made.add(*classic("idle", "consumer"))
    # The group was classic, and a member converted it.
    made.add(*classic("moved", "consumer", assignment(b"\1")))
    made.add(*keyed(2, "GroupMetadata", {"group": "moved"}, None))
    made.add(*keyed(3, "ConsumerGroupMetadata", {"group_id": "moved"}, {"epoch": 6}))
    key = {"group_id": "moved", "member_id": "m"}
    made.add(*keyed(5, "ConsumerGroupMemberMetadata", key, {"client_id": "c"}))
    # There are no rows for these groups: one only commits, one is gone, and one is a share group.
    made.add(*commit(0, 5, "commits"))
    made.add(*classic("gone", "consumer", plain))
    made.add(*keyed(2, "GroupMetadata", {"group": "gone"}, None))
    made.add(*keyed(11, "ShareGroupMetadata", {"group_id": "shares"}, {"epoch": 6}))
    return made.write(root)


@pytest.mark.long
def test_only_what_is_written_blocks_a_group(spark: SparkSession, tmp_path: Path) -> None:
    done = analyze(
        [written(tmp_path / "logs")], tmp_path / "out", spark=spark, answers=["group_protocols"]
    )
    rows = done.output.table("answers/group_protocols").to_pylist()
    told = ("verdict", "type", "protocol_type", "assignor", "members", "has_user_data")
    known, blocked = "cannot say", "blocked"
    assert {row["group"]: tuple(row[name] for name in told) for row in rows} == {
        "plain": (known, "classic", "consumer", "range", 3, False),
        "empty data": (known, "classic", "consumer", "range", 2, False),
        "streams": (blocked, "classic", "consumer", "range", 2, True),
        "connect": (blocked, "classic", "connect", "range", 1, None),
        "odd": (blocked, "classic", "consumer", "range", 1, None),
        "idle": (known, "classic", "consumer", None, 0, None),
        "moved": ("uses it already", "consumer", None, None, 1, None),
    }
    assert all(row["is_known"] and row["reason"] for row in rows)
    # The most serious verdicts come first.
    assert [row["group"] for row in rows[:2]] == ["connect", "odd"]
    by_group = {row["group"]: row for row in rows}
    assert by_group["plain"]["client_ids"] == ["c-0", "c-1"]
    assert by_group["moved"]["client_ids"] == ["c"]
    assert "consumer_protocol" in by_group["plain"]["remedy"]
    assert (by_group["moved"]["remedy"], by_group["streams"]["source"]) == (None, "KAFKA-18134")


@pytest.mark.long
def test_what_compaction_removed_is_not_judged(spark: SparkSession, tmp_path: Path) -> None:
    """At a moment before the remaining record, a group may have been in a different state."""
    made = MadeTopic("__consumer_offsets")
    made.removed = {0}
    made.add(*classic("plain", "consumer", assignment(b"\1")))
    end = made.add(*commit(0, 5, "commits"))
    made.add(*classic("plain", "consumer", assignment(None)))
    root = made.write(tmp_path / "logs")
    done = analyze(
        [root], tmp_path / "out", spark=spark, answers=["group_protocols"],
        as_of={"__consumer_offsets-0": end},
    )  # fmt: skip
    rows = done.output.table("answers/group_protocols").to_pylist()
    assert [(row["group"], row["verdict"], row["is_known"]) for row in rows] == [
        ("plain", "cannot say", False)
    ]
    assert "compaction" in rows[0]["reason"]
