"""Views of internal topics agree with the broker's own answers about groups and transactions."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.answers.state import (
    end_offsets,
    group_members,
    groups,
    hanging_transactions,
    lag,
    last_commits,
    open_log,
    open_transactions,
    share_state,
    transactional_commits,
    transactions,
    unreadable,
    unused_groups,
)
from flexwire.answers.state.groups import RECORDS
from tests.kafka.coordinating import IDS, LASTING, TOPICS, Coordinated, Said
from tools.broker import VERSIONS, broker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, Row, SparkSession

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module", params=VERSIONS)
def said(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Said]:
    """Yield the answers of a broker of each release, and its logs at that moment."""
    directory = tmp_path_factory.mktemp(f"coordinated-{request.param}")
    with broker(request.param, directory) as address:
        made = Coordinated(address, request.param)
        yield made.make(directory / "data")
        made.close()


def by_place(commits: DataFrame) -> dict[tuple[str, str, int], Row]:
    found = commits.collect()
    assert all(row.is_known for row in found)
    return {(row.group, row.topic, row.partition): row for row in found}


def committed(commits: DataFrame) -> dict[tuple[str, str, int], tuple[int, int, str]]:
    return {
        place: (row.offset, row.leader_epoch, row.metadata)
        for place, row in by_place(commits).items()
        if row.offset is not None
    }


def test_last_commits_and_lag(spark: SparkSession, said: Said) -> None:
    log = open_log(spark, said.logs, "__consumer_offsets")
    rows = by_place(lag(last_commits(log), end_offsets(spark, said.logs, [*TOPICS])))
    found = {
        place: (row.offset, row.leader_epoch, row.metadata)
        for place, row in rows.items()
        if row.offset is not None
    }
    assert found == said.commits
    assert ("g-t-committed", "orders", 0) in found
    assert {place for place, row in rows.items() if row.pending} == said.unstable
    assert said.unstable == {("g-t-open", "orders", 0)}
    for (_, topic, partition), row in rows.items():
        end = said.ends[topic, partition]
        assert row.end_offset == end
        # The broker was running, and had written its high watermarks at most 5 seconds before.
        assert not row.is_watermark_exact
        readable = end if row.high_watermark is None else max(row.high_watermark, row.offset or 0)
        assert readable <= end
        assert row.lag == (None if row.offset is None else readable - row.offset)
    outcomes = transactional_commits(log).select("group", "outcome").distinct().collect()
    assert {(row.group, row.outcome) for row in outcomes} == {
        ("g-t-committed", "committed"),
        ("g-t-aborted", "aborted"),
        ("g-t-open", "pending"),
        ("g-classic", "committed"),
        ("g-classic", "aborted"),
    }


def test_commits_as_they_were_before(spark: SparkSession, said: Said) -> None:
    assert said.early != said.commits
    by_offset = open_log(spark, said.logs, "__consumer_offsets", offsets=said.early_ends)
    assert committed(last_commits(by_offset)) == said.early
    by_time = open_log(spark, said.logs, "__consumer_offsets", time=said.early_time)
    assert committed(last_commits(by_time)) == said.early


def test_groups_and_members(spark: SparkSession, said: Said) -> None:
    log = open_log(spark, said.logs, "__consumer_offsets")
    assert unreadable(log, RECORDS).count() == 0
    found = {row.group: row for row in groups(log).collect()}
    told = {one["groupId"]: one for one in said.groups}
    # Groups that only commit have no record of their own.
    only_commit = {
        name
        for name, one in told.items()
        if one["groupType"].lower() == "classic" and not one["protocolType"]
    }
    assert {*found} == {*told} - only_commit
    for name, row in found.items():
        assert row.type == told[name]["groupType"].lower()
        assert row.members == (0 if told[name]["groupState"] == "Empty" else 1)
    members = {row.group: row for row in group_members(log).collect()}
    assert {*members} == {name for name, row in found.items() if row.members}
    of_classic = next(one for one in said.classic if one["groupId"] == "g-classic")
    [one] = of_classic["members"]
    row = members["g-classic"]
    assert (row.member_id, row.client_id, row.client_host) == (
        one["memberId"],
        one["clientId"],
        one["clientHost"],
    )
    assert (found["g-classic"].protocol, row.topics) == (of_classic["protocolData"], ["orders"])
    assert [(part.topic, part.partition) for part in row.assigned] == [
        ("orders", number) for number in range(3)
    ]
    for group in [*said.consumers, *said.share]:
        if not group["errorCode"]:
            check_members(group, found[group["groupId"]], members[group["groupId"]])
    old = unused_groups(groups(log), last_commits(log), datetime.now(UTC))
    assert {row.group for row in old.collect()} == {"g-left", "g-simple", "g-t-committed"}


def check_members(group: dict[str, Any], found: Row, row: Row) -> None:
    """Compare the single member of a group that uses a new protocol."""
    [one] = group["members"]
    assert found.epoch == group["groupEpoch"]
    for ours, theirs in {
        "member_id": "memberId",
        "client_id": "clientId",
        "client_host": "clientHost",
        "member_epoch": "memberEpoch",
        "rack_id": "rackId",
        "instance_id": "instanceId",
    }.items():
        assert row[ours] == one.get(theirs)
    assert sorted(row.topics) == sorted(one["subscribedTopicNames"])
    assert [(part.topic_id, part.partition) for part in row.assigned] == sorted(
        (topic["topicId"], number)
        for topic in one["assignment"]["topicPartitions"]
        for number in topic["partitions"]
    )


def test_transactions_and_those_that_hang(spark: SparkSession, said: Said) -> None:
    view = transactions(open_log(spark, said.logs, "__transaction_state"))
    rows = {row.transactional_id: row for row in view.collect()}
    assert {*rows} == {*IDS}
    for one in said.transactions:
        row = rows[one["transactionalId"]]
        assert (row.state, row.timeout_ms, row.producer_id, row.producer_epoch) == (
            one["transactionState"],
            one["transactionTimeoutMs"],
            one["producerId"],
            one["producerEpoch"],
        )
        started = row.start_time.replace(tzinfo=row.start_time.tzinfo or local())
        assert round(started.timestamp() * 1000) == one["transactionStartTimeMs"]
        assert [(part.topic, part.partition) for part in row.partitions] == sorted(
            (topic["topic"], number) for topic in one["topics"] for number in topic["partitions"]
        )
    opened = open_transactions(spark, said.logs, [*TOPICS])
    found = {row.producer_id: row.first_offset for row in opened.collect()}
    starts = {one["producerId"]: one["currentTxnStartOffset"] for one in said.producers}
    assert found == {producer: at for producer, at in starts.items() if at >= 0}
    now = datetime.now(UTC)
    assert hanging_transactions(view, now, opened).count() == 0
    later = now + timedelta(milliseconds=LASTING["transaction.timeout.ms"])
    hanging = hanging_transactions(view, later, opened).collect()
    assert {(row.transactional_id, row.topic) for row in hanging} == {
        ("t-open", "__consumer_offsets"),
        ("t-open", "paid"),
    }
    # If no coordinator knows of this transaction, an operator must end it.
    alone = hanging_transactions(view.where("transactional_id != 't-open'"), now, opened).collect()
    assert [(row.state, row.topic, row.first_offset) for row in alone] == [
        (None, "paid", found[row.producer_id]) for row in alone
    ]
    assert len(alone) == 1


def local() -> Any:
    return datetime.now().astimezone().tzinfo


def test_share_state(spark: SparkSession, said: Said) -> None:
    if not said.share_offsets:
        return
    view = share_state(open_log(spark, said.logs, "__share_group_state"))
    found = {(row.topic_id, row.partition): row for row in view.collect()}
    assert all(row.is_known for row in found.values())
    told = {
        (topic["topicId"], one["partitionIndex"]): one
        for topic in said.share_offsets
        for one in topic["partitions"]
        if one["startOffset"] >= 0
    }
    assert {place: row.start_offset for place, row in found.items()} == {
        place: one["startOffset"] for place, one in told.items()
    }
    assert len(told) == TOPICS["orders"]
    assert {place: row.leader_epoch for place, row in found.items()} == {
        place: one["leaderEpoch"] for place, one in told.items()
    }
