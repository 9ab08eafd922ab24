"""Views of logs return the state that was computed by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.answers.state import (
    InternalLog,
    group_members,
    groups,
    hanging_transactions,
    last_commits,
    open_log,
    open_transactions,
    remote_segments,
    share_state,
    transactional_commits,
    transactions,
    unreadable,
    unused_groups,
    unused_topics,
)
from flexwire.codec import message
from flexwire.errors import ArgumentError
from tests.capture.made_logs import TIME
from tests.spark.internal_topics.made import (
    MadeTopic,
    commit,
    int16,
    keyed,
    written_transaction,
)

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
# Each view starts some Spark jobs, which take a second or two.
long = pytest.mark.cluster


def commits_log(root: Path, removed: Collection[int] = ()) -> Path:
    made = MadeTopic("__consumer_offsets")
    made.removed = removed
    made.add(*commit(0, 5))
    made.add(*commit(0, 6), producer=7)
    # This commit was written after the transaction's, so it wins although the transaction ends
    # later.
    made.add(*commit(0, 4))
    assert made.end(7, commit=True) == 3
    made.add(*commit(1, 9), producer=8)
    made.end(8, commit=False)
    made.add(*commit(2, 3), producer=9)
    made.add(*commit(3, 1))
    made.add(*commit(3, None))
    # A tombstone also removes a pending commit, even if the commit's transaction ends later.
    made.add(*commit(4, 2), producer=7)
    made.add(*commit(4, None))
    assert made.end(7, commit=True) == 11
    made.add(*commit(5, 8), producer=7)
    made.end(7, commit=True)
    made.add(*commit(5, None))
    made.add(*commit(6, 1))
    made.add(*commit(6, 2), producer=7)
    assert made.end(7, commit=True) == 17
    made.add(int16(1) + b"\0\5gr", b"\0\1")
    return made.write(root)


def found(log: InternalLog) -> dict[int, Any]:
    """Return the offset and the pending commit of each partition, with None for unknown values."""
    rows = last_commits(log).collect()
    assert {(row.group, row.topic) for row in rows} == {("g", "orders")}
    return {
        row.partition: (row.offset, [one.offset for one in row.pending or []])
        if row.is_known
        else None
        for row in rows
    }


@pytest.mark.long
def test_commits_of_transactions_count_from_their_markers_on(
    spark: SparkSession, tmp_path: Path
) -> None:
    root = commits_log(tmp_path)
    log = open_log(spark, root, "__consumer_offsets")
    assert found(log) == {0: (4, []), 2: (None, [3]), 6: (2, [])}


@pytest.mark.long
def test_each_commit_of_a_transaction_has_its_outcome(spark: SparkSession, tmp_path: Path) -> None:
    log = open_log(spark, commits_log(tmp_path), "consumer-offsets")
    rows = transactional_commits(log).collect()
    assert {row.log_offset: (row.partition, row.outcome, row.end_offset) for row in rows} == {
        1: (0, "committed", 3),
        4: (1, "aborted", 5),
        6: (2, "pending", None),
        9: (4, "committed", 11),
        12: (5, "committed", 13),
        16: (6, "committed", 17),
    }
    [wrong] = unreadable(log, ["OffsetCommit"]).collect()
    assert (wrong.offset, wrong.type) == (18, 1)
    assert "declared length 5" in wrong.error or "length 5" in wrong.error


@long
def test_an_earlier_moment_by_offset_and_time(spark: SparkSession, tmp_path: Path) -> None:
    root = commits_log(tmp_path)
    by_offset = open_log(spark, root, "consumer-offsets", offsets={0: 2})
    assert found(by_offset) == {0: (5, [6])}
    time = datetime.fromtimestamp((TIME + 7) / 1000, UTC)
    by_time = open_log(spark, root, "consumer-offsets", time=time)
    assert by_time.until == {0: 8}
    assert found(by_time) == {0: (4, []), 2: (None, [3]), 3: (1, [])}
    with pytest.raises(ArgumentError, match="time: expected a datetime with a time zone"):
        open_log(spark, root, "consumer-offsets", time=time.replace(tzinfo=None))


@long
def test_where_the_log_was_compacted_an_earlier_moment_may_be_unknown(
    spark: SparkSession, tmp_path: Path
) -> None:
    root = commits_log(tmp_path, removed=(0, 1, 4, 7, 8))
    log = open_log(spark, root, "consumer-offsets", offsets={0: 7})
    assert (log.until, log.cleaned, log.whole, log.incomplete) == ({0: 7}, {0: 9}, {0: 0}, (0,))
    # The other groups have later records, and may also have had other records before offset 7. The
    # commit that was pending at 7 may have replaced another commit.
    assert found(log) == {0: (4, []), 2: None, 4: None, 5: None, 6: None}
    assert {row.pending for row in last_commits(log).collect()} == {None}
    now = open_log(spark, root, "consumer-offsets")
    assert found(now) == {0: (4, []), 2: (None, [3]), 6: (2, [])}
    # After the last gap, no record is missing.
    later = open_log(spark, root, "consumer-offsets", offsets={0: 9})
    assert (later.holed, later.incomplete) == ((0,), ())
    assert found(later) == {0: (4, []), 2: None, 4: None, 5: None, 6: None}
    # The same holds for a moment before the first gap.
    at_first = open_log(spark, commits_log(tmp_path, (3, 4)), "consumer-offsets", offsets={0: 3})
    assert (at_first.holed, at_first.incomplete, found(at_first)) == ((), (), {0: (4, [6])})


@long
def test_a_time_within_a_hole_is_not_known(spark: SparkSession, tmp_path: Path) -> None:
    root = commits_log(tmp_path, removed=(8,))
    time = datetime.fromtimestamp((TIME + 7) / 1000, UTC)
    log = open_log(spark, root, "consumer-offsets", time=time)
    # Missing records may have been written before or after that time.
    assert (log.until, log.incomplete) == ({0: 9}, (0,))
    [before] = open_log(
        spark, root, "consumer-offsets", time=time - timedelta(milliseconds=1)
    ).until.values()
    assert before == 7


@long
def test_rows_of_another_source(spark: SparkSession, tmp_path: Path) -> None:
    log = open_log(spark, commits_log(tmp_path), "consumer-offsets")
    with pytest.raises(ArgumentError, match="ends: expected the ends of transactions"):
        InternalLog(log.rows, "consumer-offsets")
    committed = log.rows.where("offset not in (4, 6)").drop(
        "is_transactional", "producer_id", "producer_epoch"
    )
    rows = last_commits(InternalLog(committed, "consumer-offsets")).collect()
    assert {row.partition: row.offset for row in rows} == {0: 4, 6: 2}
    assert {row.pending for row in rows} == {None}


@long
def test_transactions_and_those_that_hang(spark: SparkSession, tmp_path: Path) -> None:
    made = MadeTopic("__transaction_state")
    made.add(*written_transaction("ended", 1, 7, {"orders": [0]}))
    made.add(*written_transaction("ended", 4, 7, {}))
    made.add(*written_transaction("open", 1, 8, {"orders": [1, 0], "paid": [2]}))
    made.add(*keyed(0, "TransactionLog", {"transactional_id": "gone"}, None))
    made.add(*written_transaction("newer", 77, 9, {}))
    root = made.write(tmp_path)
    data = MadeTopic("orders")
    data.add(b"k", b"v", producer=7)
    data.end(7, commit=True)
    data.add(b"k", b"v", producer=8)
    data.add(b"k", b"v", producer=11)
    data.segment.write(tmp_path / data.name)
    view = transactions(open_log(spark, root, "__transaction_state"))
    rows = {row.transactional_id: row for row in view.collect()}
    assert {name: row.state for name, row in rows.items()} == {
        "ended": "CompleteCommit",
        "open": "Ongoing",
        "newer": "77",
    }
    assert rows["open"].partitions == [("orders", 0), ("orders", 1), ("paid", 2)]
    started = datetime.fromtimestamp(TIME / 1000, UTC)
    opened = open_transactions(spark, tmp_path, ["orders"])
    before = hanging_transactions(view, started + timedelta(seconds=60), opened).collect()
    assert [(row.producer_id, row.first_offset, row.state) for row in before] == [(11, 3, None)]
    after = hanging_transactions(view, started + timedelta(seconds=61), opened).collect()
    assert {(row.producer_id, row.topic, row.partition, row.first_offset) for row in after} == {
        (11, "orders", 0, 3),
        (8, "orders", 0, 2),
        (8, "orders", 1, None),
        (8, "paid", 2, None),
    }


def subscription(*topics: str) -> bytes:
    return int16(1) + message("ConsumerProtocolSubscription")(topics=[*topics]).encode(1)


def classic(subscribed: bytes, protocol: str = "consumer") -> tuple[bytes, bytes | None]:
    of: Any = message("GroupMetadataValue")
    one = of.MemberMetadata(
        member_id="m", client_id="c", client_host="/h", subscription=subscribed, assignment=b"\0"
    )
    value = {"protocol_type": protocol, "generation": 4, "protocol": "range", "members": [one]}
    return keyed(2, "GroupMetadata", {"group": protocol}, value)


@long
def test_groups_of_each_type(spark: SparkSession, tmp_path: Path) -> None:
    made = MadeTopic("__consumer_offsets")
    made.add(*classic(subscription("orders", "paid")))
    made.add(*classic(subscription("orders"), "connect"))
    for number, name in ((3, "Consumer"), (11, "Share"), (17, "Streams")):
        made.add(*keyed(number, f"{name}GroupMetadata", {"group_id": name}, {"epoch": 6}))
    for number, name in ((5, "Consumer"), (10, "Share"), (19, "Streams")):
        record = f"{name}GroupMemberMetadata"
        for member in ("stays", "left"):
            key = {"group_id": name, "member_id": member}
            made.add(*keyed(number, record, key, {"client_id": f"c-{name}"}))
        made.add(*keyed(number, record, {"group_id": name, "member_id": "left"}, None))
    made.add(*keyed(3, "ConsumerGroupMetadata", {"group_id": "gone"}, {"epoch": 1}))
    made.add(*keyed(3, "ConsumerGroupMetadata", {"group_id": "gone"}, None))
    log = open_log(spark, made.write(tmp_path), "consumer-offsets")
    assert {row.group: (row.type, row.epoch, row.members) for row in groups(log).collect()} == {
        "consumer": ("classic", 4, 1),
        "connect": ("classic", 4, 1),
        "Consumer": ("consumer", 6, 1),
        "Share": ("share", 6, 1),
        "Streams": ("streams", 6, 1),
    }
    members = {row.group: row for row in group_members(log).collect()}
    assert {name: (row.member_id, row.client_id) for name, row in members.items()} == {
        "consumer": ("m", "c"),
        "connect": ("m", "c"),
        "Consumer": ("stays", "c-Consumer"),
        "Share": ("stays", "c-Share"),
        "Streams": ("stays", "c-Streams"),
    }
    assert members["consumer"].topics == ["orders", "paid"]
    # The assignment is cut off, and Connect's assignments have a different format.
    assert members["consumer"].assigned is None
    assert members["connect"].topics is None


@long
def test_share_state_is_the_last_snapshot_and_the_updates_after_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    snapshot_of: Any = message("ShareSnapshotValue")
    update_of: Any = message("ShareUpdateValue")
    place = {"group_id": "g", "partition": 1}
    made = MadeTopic("__share_group_state")

    def snapshot(epoch: int, start: int) -> None:
        batch = snapshot_of.StateBatch(first_offset=start, last_offset=start + 9)
        value = {"snapshot_epoch": epoch, "start_offset": start, "state_batches": [batch]}
        made.add(*keyed(0, "ShareSnapshot", place, value))

    def update(epoch: int, start: int, first: int, group: str = "g") -> None:
        batch = update_of.StateBatch(first_offset=first, last_offset=first, delivery_state=2)
        value = {"snapshot_epoch": epoch, "start_offset": start, "state_batches": [batch]}
        made.add(*keyed(1, "ShareUpdate", place | {"group_id": group}, value))

    snapshot(0, 0)
    update(0, 5, 7)
    snapshot(1, 10)
    # The log does not contain this snapshot.
    made.add(*keyed(0, "ShareSnapshot", place | {"group_id": "other"}, {"snapshot_epoch": 1}))
    update(2, 90, 90, "other")
    update(1, 12, 14)
    update(1, -1, 15)
    made.add(*keyed(1, "ShareUpdate", {"group_id": "lost", "partition": 0}, {"snapshot_epoch": 0}))
    log = open_log(spark, made.write(tmp_path), "share-state")
    rows = {row.group_id: row for row in share_state(log).collect()}
    assert not rows["lost"].is_known
    assert not rows["other"].is_known
    row = rows["g"]
    assert (row.start_offset, row.snapshot_epoch, row.updates, row.log_offset) == (12, 1, 2, 6)
    assert [one.first_offset for one in row.state_batches] == [10, 14, 15]
    assert row.is_known


@pytest.mark.long
def test_groups_and_topics_that_nobody_uses(spark: SparkSession) -> None:
    """Groups and topics with a recent, pending or unknown commit are left out."""
    since = datetime(2026, 1, 15, tzinfo=UTC)
    old, late = since - timedelta(microseconds=1), since + timedelta(days=1)
    committed = {
        "idle": (old, [], True),
        "without a group": (old, [], True),
        "recent": (late, [], True),
        "just now": (since, [], True),
        "pending": (old, [7], True),
        "perhaps pending": (old, None, True),
        "unknown": (old, [], False),
        "with members": (old, [], True),
        "recent group": (old, [], True),
        "unknown group": (old, [], True),
    }
    commits = spark.createDataFrame(
        [(name, name, 5, *values) for name, values in committed.items()],
        "group string, topic string, offset bigint, commit_time timestamp, pending array<int>, "
        "is_known boolean",
    )
    made = [
        ("idle", 0, old, True),
        ("without commits", 0, old, True),
        ("with members", 1, old, True),
        ("recent group", 0, late, True),
        ("unknown group", 0, old, False),
    ]
    of_groups = spark.createDataFrame(
        [(name, "consumer", *values) for name, *values in made],
        "group string, type string, members int, time timestamp, is_known boolean",
    )
    unused = unused_groups(of_groups, commits, since).collect()
    assert {row.group: row.partitions for row in unused} == {
        "idle": 1,
        "without a group": 1,
        "without commits": 0,
    }
    of_topics = spark.createDataFrame([(name,) for name in ("never", *committed)], "topic string")
    topics = unused_topics(of_topics, commits, since).collect()
    theirs = ("with members", "recent group", "unknown group")
    expected = dict.fromkeys(("idle", "without a group", *theirs), 1) | {"never": 0}
    assert {row.topic: row.groups for row in topics} == expected


@pytest.mark.long
def test_remote_segments(spark: SparkSession, tmp_path: Path) -> None:
    first: Any = message("RemoteLogSegmentMetadataRecord")
    later: Any = message("RemoteLogSegmentMetadataUpdateRecord")
    made = MadeTopic("__remote_log_metadata")

    def add(of: Any, api_key: int, number: int, state: int, **fields: Any) -> None:
        name: dict[str, Any] = {"name": "orders", "partition": 2}
        form = of().to_json(0)["remoteLogSegmentId"]
        form |= {"topicIdPartition": form["topicIdPartition"] | name}
        form |= {"id": f"{'A' * 20}{number}A"}
        value = of.from_json(of().to_json(0) | {"remoteLogSegmentId": form}, 0)
        value.remote_log_segment_state = state
        for field, content in fields.items():
            setattr(value, field, content)
        made.add(None, bytes([1, api_key, 0]) + value.encode(0))

    for number in range(3):
        add(first, 0, number, 0, start_offset=number * 10, end_offset=number * 10 + 9)
    add(later, 1, 1, 1, broker_id=4)
    add(later, 1, 2, 3)
    add(later, 1, 7, 1)
    log = open_log(spark, made.write(tmp_path), "__remote_log_metadata")
    rows = remote_segments(log).orderBy("log_offset").collect()
    assert [(row.start_offset, row.end_offset, row.state, row.is_known) for row in rows] == [
        (0, 9, "COPY_SEGMENT_STARTED", True),
        (10, 19, "COPY_SEGMENT_FINISHED", True),
        (None, None, "COPY_SEGMENT_FINISHED", False),
    ]
    assert (rows[0].topic, rows[0].partition, rows[1].broker_id) == ("orders", 2, 4)
