"""Views agree with coordinators that replay the same log, whatever was written to it."""

from __future__ import annotations

import base64
import random
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.state import group_members, groups, open_log, share_state, transactions
from flexwire.answers.state.share_state import combined_batches
from flexwire.protocol.internal_topics import InternalTopic, state_names
from flexwire.protocol.record_types import record_keys, record_name
from tests.searching import TIMES, times
from tests.spark.internal_topics import group_replay
from tests.spark.internal_topics.group_logs import Author
from tests.spark.internal_topics.group_replay import CLASSIC, Group, Groups, Member
from tests.spark.internal_topics.made import MadeTopic
from tests.spark.internal_topics.state_replay import (
    STATES,
    UNSAID,
    Share,
    Transactions,
    encoded_transaction,
    fates,
    replay_share,
    share_log,
    transaction_log,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from flexwire.answers.state import InternalLog
    from tests.spark.internal_topics.group_logs import Written

spark_only = pytest.mark.spark
LOGS, RECORDS = times(8), 120


@pytest.fixture
def drawn() -> random.Random:
    """Draw the logs, which are always the same except in `make search`, which prints the seed."""
    seed = 33 if TIMES == 1 else random.randrange(2**32)
    sys.stdout.write(f"seed {seed}\n")
    return random.Random(seed)


def test_every_record_of_coordinators_has_a_replay() -> None:
    handled = {
        InternalTopic.CONSUMER_OFFSETS: {
            "OffsetCommit",
            "LegacyOffsetCommit",
            *group_replay.RECORDS,
        },
        InternalTopic.TRANSACTIONS: {"TransactionLog"},
        InternalTopic.SHARE_STATE: {"ShareSnapshot", "ShareUpdate"},
    }
    for topic, names in handled.items():
        assert {record_name(name) for name, _ in record_keys(topic.module).values()} == names


def replayed(log: list[Written], until: int) -> Groups:
    found = Groups()
    for one in log[:until]:
        found.replay(one.record, one.key, one.value)
    return found


def of_group(group: Group) -> tuple[Any, ...]:
    """Return a row of `groups`: type, protocol type, epoch, members, and whether it is known."""
    if group.value is not None:
        value = group.value
        return "classic", value["protocol_type"], value["generation"], len(value["members"]), True
    return group.kind, None, group.epoch, len(group.members), True


def of_member(kind: str, member: Member) -> tuple[Any, ...]:
    """Return the row of `group_members` for a member of a group that is not classic."""
    told, has = member.told or {}, member.has or {}
    fields = ("instance_id", "rack_id", "client_id", "client_host", "subscribed_topic_names")
    # If no record contains these values, Kafka uses null, an empty string or an empty list.
    missing = {"instance_id": "" if member.told and kind != "share" else None}
    lists = has.get("assigned_partitions") or has.get("active_tasks") or ()
    assigned = [
        (None, topic_id(one), one.get("subtopology_id"), number)
        for one in lists
        for number in sorted(one["partitions"])
    ]
    return (
        *(told.get(name, missing.get(name)) for name in fields),
        told.get("rebalance_timeout_ms"),
        assigned,
        has.get("member_epoch"),
        True,
    )


def topic_id(one: dict[str, Any]) -> str | None:
    """Return the topic id of an assignment as Kafka prints it."""
    if "topic_id" not in one:
        return None
    return base64.urlsafe_b64encode(one["topic_id"].bytes).decode().rstrip("=")


def of_classic_member(group: dict[str, Any], one: dict[str, Any]) -> tuple[Any, ...]:
    timeout = one["rebalance_timeout"]
    timeout = one["session_timeout"] if timeout < 0 else timeout
    instance, client = one["group_instance_id"], one["client_id"]
    return instance, None, client, "/h", None, timeout, None, group["generation"], True


Rows = dict[Any, tuple[Any, ...]]


def found(log: InternalLog) -> tuple[Rows, Rows]:
    """Return the views of groups and of members. The last value is whether a row is known."""
    of_groups = {
        row.group: (row.type, row.protocol_type, row.epoch, row.members, row.is_known)
        for row in unique(groups(log).collect(), "group")
    }
    of_members = {
        (row.group, row.member_id): (
            *(row.instance_id, row.rack_id, row.client_id, row.client_host, row.topics),
            row.rebalance_timeout_ms,
            None if row.assigned is None else [tuple(one) for one in row.assigned],
            row.member_epoch,
            row.is_known,
        )
        for row in unique(group_members(log).collect(), "group", "member_id")
    }
    return of_groups, of_members


def unique(rows: list[Any], *names: str) -> list[Any]:
    """Return the known rows, and those other rows for whose key no row is known."""
    known = [row for row in rows if row.is_known]
    keys = {tuple(row[name] for name in names) for row in known}
    assert len(keys) == len(known)
    return [row for row in rows if tuple(row[name] for name in names) not in keys] + known


def expected(truth: Groups) -> tuple[Rows, Rows]:
    of_groups = {name: of_group(group) for name, group in truth.by_id.items()}
    members = {
        (name, member): of_member(group.kind, one)
        for name, group in truth.by_id.items()
        for member, one in group.members.items()
    }
    members |= {
        (name, one["member_id"]): of_classic_member(group.value, one)
        for name, group in truth.by_id.items()
        if group.value is not None
        for one in group.value["members"]
    }
    return of_groups, members


def written(root: Path, logs: list[list[Written]], gone: list[set[int]] | None = None) -> None:
    for number, log in enumerate(logs):
        made = MadeTopic("__consumer_offsets", number)
        made.removed = gone[number] if gone else ()
        for one in log:
            made.add(*one.encoded())
        made.write(root)


def truth_at(logs: list[list[Written]], moments: dict[int, int]) -> Groups:
    truth = Groups()
    for number, log in enumerate(logs):
        truth.by_id |= replayed(log, moments.get(number, len(log))).by_id
    return truth


def read_otherwise(log: InternalLog) -> InternalLog:
    """Return the log, up to an earlier moment, as rows from any source."""
    return replace(log, files=None) if log.until else log


@pytest.mark.long
@spark_only
def test_groups_and_members_are_those_of_a_coordinator(
    drawn: random.Random, spark: SparkSession, tmp_path: Path
) -> None:
    logs = [Author(drawn, f"p{number}").write(RECORDS) for number in range(LOGS)]
    assert {one.record for log in logs for one in log} == group_replay.RECORDS
    written(tmp_path, logs)
    for moments in ({}, {number: drawn.randrange(len(log)) for number, log in enumerate(logs)}):
        log = read_otherwise(open_log(spark, tmp_path, "consumer-offsets", offsets=moments))
        assert found(log) == expected(truth_at(logs, moments))


def compacted(log: list[Written], bound: int, drawn: random.Random) -> set[int]:
    """Remove what a cleaner may remove up to ``bound``: replaced records and tombstones.

    The tombstones of classic groups remain. Without these tombstones, the replaced groups would
    exist again, also for a coordinator that loads the log.
    """
    last = {one.encoded()[0]: at for at, one in enumerate(log[:bound])}
    return {
        at
        for at, one in enumerate(log[:bound])
        if last[one.encoded()[0]] != at
        or (one.value is None and one.record != CLASSIC and drawn.random() < 0.5)
    }


@pytest.mark.long
@spark_only
def test_of_compacted_groups_only_what_is_true_is_known(
    drawn: random.Random, spark: SparkSession, tmp_path: Path
) -> None:
    logs = [
        Author(drawn, f"p{number}", is_mixed=number % 2 == 0).write(RECORDS)
        for number in range(LOGS)
    ]
    bounds = [len(log) * number // LOGS for number, log in enumerate(logs)]
    gone = [compacted(log, bound, drawn) for log, bound in zip(logs, bounds, strict=True)]
    written(tmp_path, logs, gone)
    known = unknown = 0
    for most in (RECORDS, RECORDS // 3):
        moments = {number: drawn.randrange(most) for number in range(LOGS)}
        log = open_log(spark, tmp_path, "consumer-offsets", offsets=moments)
        for rows, truth in zip(found(log), expected(truth_at(logs, moments)), strict=True):
            for key in {*rows, *truth}:
                name = key if isinstance(key, str) else key[0]
                if key not in rows and (name, None) not in rows:
                    assert int(name[1:].partition("-")[0]) in log.incomplete, key
                elif key in rows and rows[key][-1]:
                    assert rows[key] == truth.get(key), key
                    known += 1
                else:
                    unknown += 1
    assert min(known, unknown) > 0


@pytest.mark.long
@spark_only
def test_share_partitions_are_those_of_a_coordinator(
    drawn: random.Random, spark: SparkSession, tmp_path: Path
) -> None:
    logs = [share_log(drawn, f"p{number}", RECORDS) for number in range(LOGS)]
    for number, log in enumerate(logs):
        made = MadeTopic("__share_group_state", number)
        for one in log:
            made.add(*one.encoded())
        made.write(tmp_path)
    known = odd = 0
    for moments in ({}, {number: drawn.randrange(RECORDS) for number in range(LOGS)}):
        truth: dict[str, Share] = {}
        for number, log in enumerate(logs):
            for one in log[: moments.get(number, RECORDS)]:
                replay_share(truth, one)
        log_then = open_log(spark, tmp_path, "share-state", offsets=moments)
        view = share_state(read_otherwise(log_then))
        held = combined_batches(F.col("state_batches"), F.col("start_offset"))
        rows = {row.group_id: row for row in view.withColumn("held", held).collect()}
        assert {*rows} == {*truth}
        for group, row in rows.items():
            odd += truth[group].is_odd
            assert row.is_known or truth[group].is_odd, group
            if row.is_known:
                known += 1
                epochs = (row.snapshot_epoch, row.state_epoch, row.leader_epoch)
                place = (row.start_offset, row.delivery_complete_count)
                told = fates({}, [tuple(one) for one in row.held], UNSAID)
                assert (*epochs, *place, told, row.updates) == truth[group].told, group
    assert min(known, odd) > 0


@pytest.mark.long
@spark_only
def test_transactions_are_those_of_a_coordinator(
    drawn: random.Random, spark: SparkSession, tmp_path: Path
) -> None:
    logs = [transaction_log(drawn, f"p{number}", RECORDS) for number in range(LOGS)]
    for number, log in enumerate(logs):
        made = MadeTopic("__transaction_state", number)
        for one in log:
            made.add(*encoded_transaction(one))
        made.write(tmp_path)
    names = state_names("TransactionLogValue")
    assert len(names) == len(STATES)
    for moments in ({}, {number: drawn.randrange(RECORDS) for number in range(LOGS)}):
        truth = Transactions()
        for number, log in enumerate(logs):
            for name, value, _ in log[: moments.get(number, RECORDS)]:
                truth.replay(name, value)
        log_then = open_log(spark, tmp_path, "transactions", offsets=moments)
        rows = transactions(read_otherwise(log_then)).collect()
        assert {
            row.transactional_id: (
                *(row.producer_id, row.producer_epoch, row.timeout_ms, row.state),
                [tuple(one) for one in row.partitions],
                None if row.start_time is None else row.start_time.timestamp() * 1000,
                row.last_update_time.timestamp() * 1000,
                row.is_known,
            )
            for row in rows
        } == {
            name: (
                *(
                    value[one]
                    for one in ("producer_id", "producer_epoch", "transaction_timeout_ms")
                ),
                names[value["transaction_status"]],
                sorted(
                    (topic, number)
                    for topic, numbers in (value["transaction_partitions"] or {}).items()
                    for number in numbers
                ),
                None
                if value["transaction_start_timestamp_ms"] == UNSAID
                else value["transaction_start_timestamp_ms"],
                value["transaction_last_update_timestamp_ms"],
                True,
            )
            for name, value in truth.by_id.items()
        }
        assert len(rows) == len(truth.by_id)
