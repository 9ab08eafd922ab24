"""Which groups can move to the consumer protocol, and what prevents others from moving."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, DaySums, returns
from flexwire.answers.asking.day_exchanges import (
    HALF,
    OF_HALF,
    exchanges_of_days,
    joined_halves,
    no_half,
)
from flexwire.answers.asking.day_sums import DAY, all_of, day_of_time, filled
from flexwire.answers.asking.messages import ExchangeFilter, exchanges_of
from flexwire.answers.asking.software import (
    CONNECTION,
    SOFTWARE,
    connection_columns,
    with_clients,
)
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
from flexwire.tables.output import MESSAGES
from flexwire.tables.row_filter import FRAMES
from flexwire.tables.schema import Column, schema_of
from flexwire.tasks import begin_task, map_in_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables
    from flexwire.protocol.audit.consumer_protocol import GroupJudgement

_JOIN, _SYNC, _BEAT = "JoinGroup", "SyncGroup", "ConsumerGroupHeartbeat"
_MEMBER: Final = pa.schema(
    [
        ("software", pa.string()),
        ("version", pa.string()),
        ("assignors", pa.list_(pa.string())),
        ("session_timeout_ms", pa.int32()),
    ]
)
_SOFTWARE_OF_MEMBER: Final = dict(zip(_MEMBER.names, SOFTWARE, strict=False))
_SUMS: Final = pa.schema(
    [
        (DAY, pa.date32()),
        (HALF, OF_HALF),
        *((name, pa.string()) for name in (*CONNECTION, "group_id")),
        ("member", pa.struct([*_MEMBER])),
        ("client_ids", pa.list_(pa.string())),
        ("protocol_type", pa.string()),
        ("assignments", pa.list_(pa.binary())),
        ("uses_it", pa.bool_()),
        ("refusals", pa.list_(pa.int32())),
        ("last_time", MOMENT),
    ]
)
_OF_BEAT: Final = "struct<group_id: string>"
_TRAITS: Final = {
    **dict.fromkeys(CONNECTION, "string"),
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
    Column("reason", pa.string(), "the reason for the verdict", heading="Why"),
    Column("remedy", pa.string(), "the recommended action", "if no action is needed",
           heading="What to do"),
    Column("source", pa.string(),
           "the source of this verdict, with the date on which the source was last checked",
           "if the verdict needs no source"),
    Column("software", pa.list_(pa.string()),
           "the names and versions of the client software that the group's members use",
           heading="Software"),
    Column("client_ids", pa.list_(pa.string()), "the client ids of the group's members",
           heading="Client ids"),
    Column("protocol_type", pa.string(), "the type of the group's protocol",
           "if the capture contains no JoinGroup, and no SyncGroup of version 5 or later with "
           "assignments",
           heading="Protocol type"),
    Column("assignors", pa.list_(pa.string()), "the assignors that members offered",
           heading="Assignors"),
    Column("has_user_data", pa.bool_(), "whether an assignment carried user data",
           "if no assignment was seen"),
    Column("last_time", MOMENT, "when a member of the group was last seen", heading="Last seen"),
)  # fmt: skip


@returns(COLUMNS)
def consumer_protocol(tables: AnalysisTables) -> DataFrame | None:
    """Return a verdict for each group on moving to the consumer protocol (KIP-848).

    JoinGroup shows the protocol type, the assignors and the session timeout. SyncGroup shows the
    user data of assignments, and ApiVersions shows the software. The traffic shows neither the
    broker's policy and limits nor whether a consumer subscribes by a pattern. If a member that uses
    the new protocol joined the group, the broker's response shows whether the broker converted the
    group. docs/consumer-protocol.md lists the rules and compares them with a broker's reactions.
    """
    groups = group_facts(tables)
    return None if groups is None else judge_groups(groups, judge_facts, COLUMNS)


def group_facts(tables: AnalysisTables) -> DataFrame | None:
    """Return the facts about each group that `judge_facts` uses."""
    parts = _of_requests(tables)
    answered = exchanges_of(tables, [_beats_and_codes()])
    if answered is not None:
        parts.append(_responses(answered))
    return _facts(_summed(parts), tables) if parts else None


def _part(tables: AnalysisTables) -> DataFrame | None:
    """Return the facts about each group on each day.

    If the frames of a ``member`` do not contain its software name, the row contains the connection,
    because a later analysis may learn the name. A row with `HALF` is either a heartbeat that joins
    and has no response on its day, or a response to a heartbeat from an earlier day.
    """
    parts = _of_requests(tables)
    answered = exchanges_of_days(tables, [_beats_and_codes()], _OF_BEAT, "smallint")
    if answered is not None:
        parts.append(_responses(answered))
    if not parts:
        return None
    # One assignment of each kind is enough, because all assignments of the same kind show the same
    # facts.
    return map_in_arrow(_summed(parts).select(*_SUMS.names), _keep_some_assignments, _SUMS)


def _total(parts: DataFrame, tables: AnalysisTables) -> DataFrame:
    """Return the answer's rows, computed from sums."""
    of_days = parts.where(F.col(HALF).isNull())
    names = [name for name in _SUMS.names if name != HALF]
    over_midnight = joined_halves(parts, names, of_request={"group_id", "client_ids"})
    facts = _facts(filled([of_days, over_midnight]), tables)
    return judge_groups(facts, judge_facts, COLUMNS)


def _summed(parts: list[DataFrame]) -> DataFrame:
    """Return the facts by day and group, with separate rows for members and halves of exchanges."""
    return (
        all_of(parts)
        .groupBy(DAY, HALF, *CONNECTION, "group_id", "member")
        .agg(
            F.collect_set("client_id").alias("client_ids"),
            F.max("protocol_type").alias("protocol_type"),
            F.array_distinct(F.flatten(F.collect_list("assignments"))).alias("assignments"),
            F.bool_or("uses_it").alias("uses_it"),
            F.collect_set("refusal").alias("refusals"),
            F.max("time").alias("last_time"),
        )
    )


def _facts(sums: DataFrame, tables: AnalysisTables) -> DataFrame:
    """Return the facts about each group from sums of whole exchanges."""
    # The software columns have the same names as in frames.
    names = [_SOFTWARE_OF_MEMBER.get(name, name) for name in _MEMBER.names]
    fields = zip(names, _MEMBER.names, strict=True)
    own = sums.withColumns({name: F.col(f"member.{field}") for name, field in fields})
    known = with_clients(own, tables)
    fields = zip(names, _MEMBER.names, strict=True)
    whole = F.struct(*(F.col(name).alias(field) for name, field in fields))
    member = F.when(F.col("member").isNotNull(), whole)
    return (
        known.withColumn("member", member)
        .groupBy("group_id")
        .agg(
            F.array_sort(F.collect_set("member")).alias("members"),
            F.array_sort(_union_of("client_ids")).alias("client_ids"),
            F.max("protocol_type").alias("protocol_type"),
            _union_of("assignments").alias("assignments"),
            F.bool_or("uses_it").alias("uses_it"),
            F.array_sort(_union_of("refusals")).alias("refusals"),
            F.max("last_time").alias("last_time"),
        )
    )


def _union_of(name: str) -> SparkColumn:
    return F.array_distinct(F.flatten(F.collect_list(name)))


def _of_requests(tables: AnalysisTables) -> list[DataFrame]:
    """Return the facts that requests contain."""
    facts = (_joins(tables), _assignments(tables), _beats(tables))
    return [rows for rows in facts if rows is not None]


def _joins(tables: AnalysisTables) -> DataFrame | None:
    """Return the facts that each JoinGroup request contains."""
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
    """Return the heartbeats of members that ask for the consumer protocol.

    A member that has an epoch already uses this protocol.
    """
    requests = tables.message(f"{_BEAT}Request")
    if requests is None:
        return None
    has_epoch = F.col("body.member_epoch") > 0
    return _with_software(tables, requests.where("body is not null"), _BEAT, {}, uses_it=has_epoch)


def _beats_and_codes() -> ExchangeFilter:
    """Return heartbeats of members that join with the consumer protocol, and the error codes."""
    is_join = F.col("body.group_id").isNotNull() & (F.col("body.member_epoch") == 0)
    request = F.struct(F.col("body.group_id").alias("group_id"))
    return ExchangeFilter(_BEAT, request, F.col("body.error_code"), request=is_join)


def _responses(joins: DataFrame) -> DataFrame:
    """Return the responses of brokers to joining members, and the known halves of exchanges."""
    joins = joins.withColumnRenamed("request", "body").withColumnRenamed("answered", "time")
    response = F.col("response")
    return _traits(
        joins,
        **{name: F.col(name) for name in (DAY, HALF) if name in joins.columns},
        uses_it=response == NO_ERROR,
        refusal=F.when(response.isin(*REFUSALS), response),
    )


def _with_software(
    tables: AnalysisTables,
    requests: DataFrame,
    api_name: str,
    joined: dict[str, Any],
    **traits: Any,
) -> DataFrame:
    """Add to the traits of requests the software name that the connection's client sent.

    ``joined`` contains the other fields of a member.
    """
    frames = tables.frames.where(
        (F.col("api_name") == api_name) & (F.col("direction") == "request")
    )
    key = frame_key(frames.columns)
    named = frames.select(*key, *SOFTWARE)
    missing = F.lit(None)
    member = F.struct(
        *(F.col(name).alias(own) for own, name in _SOFTWARE_OF_MEMBER.items()),
        joined.get("assignors", missing).alias("assignors"),
        joined.get("session_timeout_ms", missing).alias("session_timeout_ms"),
    )
    lacks_name = F.col(SOFTWARE[0]).isNull() | F.col(SOFTWARE[1]).isNull()
    _, *connection = connection_columns(requests)
    key_of_others = {
        name: F.when(lacks_name, column)
        for name, column in zip(CONNECTION, connection, strict=True)
    }
    rows = requests.join(named, [*key], "left")
    return _traits(rows, member=member, **key_of_others, **traits)


def _traits(requests: DataFrame, **traits: Any) -> DataFrame:
    columns = {
        "group_id": F.col("body.group_id"),
        "client_id": F.col("client_id"),
        "time": F.col("time"),
        DAY: day_of_time(),
        HALF: no_half(),
        **traits,
    }
    return requests.select(
        *(columns[name].alias(name) for name in (DAY, HALF)),
        *(columns.get(name, F.lit(None)).cast(kind).alias(name) for name, kind in _TRAITS.items()),
    )


def judge_groups(
    groups: DataFrame,
    judge: Callable[[dict[str, Any]], dict[str, Any]],
    columns: tuple[Column, ...],
) -> DataFrame:
    """Return a row for each group, which ``judge`` creates from the group's facts."""
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
    """Return the columns of a judgment, with nulls instead of empty strings."""
    return {name: text or None for name, text in judgement._asdict().items()}


def judge_facts(group: dict[str, Any]) -> dict[str, Any]:
    """Return the row for a group, from its facts in `group_facts`."""
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
    """The facts that the assignments of a group contain, for `GroupTraits`."""

    has_user_data: bool | None
    is_unreadable: bool


def read_assignments(assignments: list[bytes], protocol_type: str | None) -> AssignmentFacts:
    """Return whether consumers' assignments contain user data, and whether one is unreadable.

    A broker does not convert a group with an assignment that it cannot read. A broker treats an
    empty assignment as no assignment. If the protocol type is unknown, unreadable bytes prove
    nothing.
    """
    if protocol_type not in {None, CONSUMERS}:
        return AssignmentFacts(None, is_unreadable=False)
    kinds = {_has_user_data(data) for data in filter(None, assignments)}
    is_unreadable = None in kinds and protocol_type == CONSUMERS
    return AssignmentFacts(True in kinds if kinds - {None} else None, is_unreadable)


def _has_user_data(assignment: bytes) -> bool | None:
    """Return whether a consumer's assignment contains user data, or None if it is unreadable."""
    try:
        read: Any = read_versioned(GROUP_MESSAGES[CONSUMERS].assignment, assignment)
    except (CodecError, UnknownMessageError):
        return None
    return bool(read.user_data)


def _keep_some_assignments(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield rows with one assignment of each kind that `read_assignments` distinguishes."""
    begin_task()
    place = _SUMS.get_field_index("assignments")
    for batch in batches:
        kept = [
            [*{_has_user_data(data): data for data in sorted(filter(None, assignments))}.values()]
            for assignments in batch["assignments"].to_pylist()
        ]
        columns = [batch[field.name].cast(field.type) for field in _SUMS]
        columns[place] = pa.array(kept, _SUMS.field(place).type)
        yield pa.RecordBatch.from_arrays(columns, schema=_SUMS)


def _tables() -> list[str]:
    """Return the tables that `_part` reads."""
    names = (f"{_JOIN}Request", f"{_SYNC}Request", f"{_BEAT}Request", f"{_BEAT}Response")
    return [FRAMES, *(f"{MESSAGES}/{name}" for name in names)]


ANSWER: Final = Answer(
    name="consumer_protocol",
    place=115,
    question=(
        "Which groups can move to the consumer protocol, and which move by default with Kafka 5.0?"
    ),
    meaning=(
        "A verdict on whether each group can move to the consumer protocol (KIP-848). Beginning "
        "with Kafka 5.0, Java's KafkaConsumer will use this protocol by default. No other client "
        "will use this protocol by default. The traffic does not show the broker's migration "
        "policy, its limits or its assignors. Nor does it show which members subscribe by pattern."
    ),
    advice="Begin with the groups that are blocked. Before you upgrade the clients of a group to "
    "Kafka 5.0, follow the advice in the group's row, under 'What to do'. To keep a Java consumer "
    "on the classic protocol, set group.protocol=classic.",
    row="a group",
    columns=COLUMNS,
    order=("verdict", "group_id"),
    # Only one library changes this default, so examine the software first.
    shown=(
        *("group_id", "software", "verdict", "reason", "remedy"),
        *("client_ids", "protocol_type", "assignors", "last_time"),
    ),
    ask=consumer_protocol,
    sums=DaySums(version=1, tables=_tables, columns=_SUMS, part=_part, total=_total),
    of_state="group_protocols",
)
