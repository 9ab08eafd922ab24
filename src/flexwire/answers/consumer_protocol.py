"""Which groups can move to the consumer protocol, and what prevents it."""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, returns
from flexwire.answers.asking.messages import ExchangeFilter, exchanges_of
from flexwire.columnar.record_columns import MOMENT
from flexwire.errors import CodecError, UnknownMessageError
from flexwire.protocol.audit.consumer_protocol import (
    REFUSALS,
    GroupMember,
    GroupTraits,
    judge_group,
)
from flexwire.protocol.error_codes import NO_ERROR
from flexwire.protocol.nested_messages import CONSUMERS, GROUP_MESSAGES, read_versioned
from flexwire.tables.keys import frame_key
from flexwire.tables.schema import Column, schema_of
from flexwire.tasks import begin_task, map_in_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexwire.answers.asking.answer import AnalysisTables
    from flexwire.protocol.audit.consumer_protocol import GroupJudgement

_JOIN, _SYNC, _BEAT = "JoinGroup", "SyncGroup", "ConsumerGroupHeartbeat"
_TRAITS: Final = {
    "group_id": "string",
    "client_id": "string",
    "member": "struct<software: string, version: string, assignors: array<string>, "
    "session_timeout_ms: int>",
    "protocol_type": "string",
    "assignments": "array<binary>",
    "uses_it": "boolean",
    "refusal": "int",
    "time": "timestamp",
}
COLUMNS: Final = (
    Column("group_id", pa.string(), "the group", heading="Group", is_about=True),
    Column("verdict", pa.string(), '"blocked", "cannot say", "moves after a setting", "moves as it '
           'is" or "uses it already"', heading="Verdict"),
    Column("reason", pa.string(), "why", heading="Why"),
    Column("remedy", pa.string(), "what to do", "if you need not do anything",
           heading="What to do"),
    Column("source", pa.string(), "the source of this verdict, and the date of the last check",
           "if the verdict needs no source"),
    Column("software", pa.list_(pa.string()),
           "the software of the group's members: name and version",
           heading="Software"),
    Column("client_ids", pa.list_(pa.string()), "the client ids of the group's members",
           heading="Client ids"),
    Column("protocol_type", pa.string(), "the type of the group's protocol",
           "if the capture has no JoinGroup, and no SyncGroup of version 5 or later with "
           "assignments",
           heading="Protocol type"),
    Column("assignors", pa.list_(pa.string()), "the assignors that members offered",
           heading="Assignors"),
    Column("has_user_data", pa.bool_(), "whether an assignment carried user data",
           "if no assignment was seen"),
    Column("last_time", MOMENT, "when a member was last seen", heading="Last seen"),
)  # fmt: skip


@returns(COLUMNS)
def consumer_protocol(tables: AnalysisTables) -> DataFrame | None:
    """Return a verdict for each group on moving to the consumer protocol (KIP-848).

    JoinGroup shows the protocol type, the assignors and the session timeout. SyncGroup shows the
    user data of assignments, and ApiVersions shows the software. The broker's policy and its limits
    are not in the traffic, and neither is whether a consumer subscribes by a pattern. If a member
    with the new protocol joined the group, the broker's response shows whether the broker converted
    the group. docs/consumer-protocol.md lists the rules, and compares them with the reactions of a
    broker.
    """
    groups = group_facts(tables)
    return None if groups is None else judge_groups(groups, judge_facts, COLUMNS)


def group_facts(tables: AnalysisTables) -> DataFrame | None:
    """Return the facts about each group that `judge_facts` uses."""
    facts = (_joins(tables), _assignments(tables), _beats(tables), _responses(tables))
    parts = [rows for rows in facts if rows is not None]
    if not parts:
        return None
    return (
        reduce(DataFrame.unionByName, parts)
        .groupBy("group_id")
        .agg(
            F.array_sort(F.collect_set("member")).alias("members"),
            F.array_sort(F.collect_set("client_id")).alias("client_ids"),
            F.max("protocol_type").alias("protocol_type"),
            F.flatten(F.collect_set("assignments")).alias("assignments"),
            F.bool_or("uses_it").alias("uses_it"),
            F.array_sort(F.collect_set("refusal")).alias("refusals"),
            F.max("time").alias("last_time"),
        )
    )


def _joins(tables: AnalysisTables) -> DataFrame | None:
    """Return the facts in each JoinGroup request."""
    requests = tables.message(f"{_JOIN}Request")
    if requests is None:
        return None
    return _with_software(
        tables,
        requests.where("body is not null"),
        _JOIN,
        {
            "assignors": F.col("body.protocols.name"),
            "session_timeout_ms": F.col("body.session_timeout_ms"),
        },
        protocol_type=F.col("body.protocol_type"),
    )


def _assignments(tables: AnalysisTables) -> DataFrame | None:
    """Return the assignments that leaders sent. Only leaders' requests contain assignments."""
    requests = tables.message(f"{_SYNC}Request")
    if requests is None:
        return None
    assignments = F.col("body.assignments.assignment")
    sent = requests.where(F.size(assignments) > 0)
    return _traits(
        sent,
        protocol_type=F.col("body.protocol_type"),
        assignments=F.array_distinct(assignments),
    )


def _beats(tables: AnalysisTables) -> DataFrame | None:
    """Return the members that request the consumer protocol.

    A member with an epoch already uses this protocol.
    """
    requests = tables.message(f"{_BEAT}Request")
    if requests is None:
        return None
    has_epoch = F.col("body.member_epoch") > 0
    return _with_software(tables, requests.where("body is not null"), _BEAT, {}, uses_it=has_epoch)


def _responses(tables: AnalysisTables) -> DataFrame | None:
    """Return the responses of brokers to members that join with the consumer protocol."""
    request = F.struct("body.group_id", "body.member_epoch")
    answered = exchanges_of(tables, [ExchangeFilter(_BEAT, request, F.col("body.error_code"))])
    if answered is None:
        return None
    joins = answered.where("request.group_id is not null and request.member_epoch = 0")
    joins = joins.withColumnRenamed("request", "body").withColumnRenamed("answered", "time")
    response = F.col("response")
    return _traits(
        joins, uses_it=response == NO_ERROR, refusal=F.when(response.isin(*REFUSALS), response)
    )


def _with_software(
    tables: AnalysisTables,
    requests: DataFrame,
    api_name: str,
    joined: dict[str, Any],
    **traits: Any,
) -> DataFrame:
    """Return traits of requests, with the software that was named on their connection.

    ``joined`` are the other fields of a member.
    """
    frames = tables.frames.where(
        (F.col("api_name") == api_name) & (F.col("direction") == "request")
    )
    key = frame_key(frames.columns)
    named = frames.select(*key, "client_software_name", "client_software_version")
    missing = F.lit(None)
    member = F.struct(
        F.col("client_software_name").alias("software"),
        F.col("client_software_version").alias("version"),
        joined.get("assignors", missing).alias("assignors"),
        joined.get("session_timeout_ms", missing).alias("session_timeout_ms"),
    )
    return _traits(requests.join(named, [*key], "left"), member=member, **traits)


def _traits(requests: DataFrame, **traits: Any) -> DataFrame:
    columns = {
        "group_id": F.col("body.group_id"),
        "client_id": F.col("client_id"),
        "time": F.col("time"),
        **traits,
    }
    return requests.select(
        *(columns.get(name, F.lit(None)).cast(kind).alias(name) for name, kind in _TRAITS.items())
    )


def judge_groups(
    groups: DataFrame,
    judge: Callable[[dict[str, Any]], dict[str, Any]],
    columns: tuple[Column, ...],
) -> DataFrame:
    """Return a row for each group, which ``judge`` makes from the group's facts."""
    schema = schema_of(columns)
    return map_in_arrow(groups, partial(_judge, judge, schema), schema)


def _judge(
    judge: Callable[[dict[str, Any]], dict[str, Any]],
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    begin_task()
    for batch in batches:
        yield pa.RecordBatch.from_pylist(list(map(judge, batch.to_pylist())), schema)


def judgement_columns(judgement: GroupJudgement) -> dict[str, str | None]:
    """Return the columns of a judgement; empty texts become null."""
    return {name: text or None for name, text in judgement._asdict().items()}


def judge_facts(group: dict[str, Any]) -> dict[str, Any]:
    """Return the row about a group, made from its row of `group_facts`."""
    assignments = read_assignments(group["assignments"], group["protocol_type"])
    members = tuple(
        GroupMember(
            member["software"],
            member["version"],
            tuple(member["assignors"] or ()),
            member["session_timeout_ms"],
        )
        for member in group["members"]
    )
    judgement = judge_group(
        GroupTraits(
            group["protocol_type"],
            members,
            assignments.has_user_data,
            assignments.is_unreadable,
            bool(group["uses_it"]),
            tuple(group["refusals"]),
        )
    )
    named = (" ".join(filter(None, (each.software, each.version))) for each in members)
    return {
        "group_id": group["group_id"],
        **judgement_columns(judgement),
        "software": sorted({*named} - {""}),
        "client_ids": group["client_ids"],
        "protocol_type": group["protocol_type"],
        "assignors": [*dict.fromkeys(name for each in members for name in each.assignors)],
        "has_user_data": assignments.has_user_data,
        "last_time": group["last_time"],
    }


class AssignmentFacts(NamedTuple):
    """The facts in the assignments of a group, for `GroupTraits`."""

    has_user_data: bool | None
    is_unreadable: bool


def read_assignments(assignments: list[bytes], protocol_type: str | None) -> AssignmentFacts:
    """Return whether consumers' assignments contain user data, and whether any is unreadable.

    A broker does not convert a group with an assignment that it cannot read. It treats an empty
    assignment as no assignment. If the protocol type is unknown, unreadable bytes prove nothing.
    """
    if protocol_type not in {None, CONSUMERS}:
        return AssignmentFacts(None, is_unreadable=False)
    name = GROUP_MESSAGES[CONSUMERS].assignment
    seen, is_unreadable = [], False
    for data in filter(None, assignments):
        try:
            assignment: Any = read_versioned(name, data)
        except (CodecError, UnknownMessageError):
            is_unreadable = protocol_type == CONSUMERS
        else:
            seen.append(bool(assignment.user_data))
    return AssignmentFacts(any(seen) if seen else None, is_unreadable)


ANSWER: Final = Answer(
    name="consumer_protocol",
    place=115,
    question=(
        "Which groups can move to the consumer protocol, and which move by default with Kafka 5.0?"
    ),
    meaning=(
        "A verdict for each group about the protocol of KIP-848. From Kafka 5.0 on, Java's "
        "KafkaConsumer uses this protocol by default. No other client does. The traffic does not "
        "show the policy, limits and assignors of the broker, or subscriptions by pattern."
    ),
    advice="Begin with the groups that are blocked. Change the settings of the other groups "
    "before you upgrade their clients to 5.0. To keep a Java consumer on the classic "
    "protocol, set group.protocol=classic.",
    row="a group",
    columns=COLUMNS,
    order=("verdict", "group_id"),
    # Only one library changes this default, so a reader examines the software first.
    shown=(
        *("group_id", "software", "verdict", "reason", "remedy"),
        *("client_ids", "protocol_type", "assignors", "last_time"),
    ),
    ask=consumer_protocol,
    of_state="group_protocols",
)
