"""Consumer groups: their generations and the proven causes of each generation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs
from pyspark.sql.window import Window

from flexwire.answers.asking import groups as event
from flexwire.answers.asking.answer import Answer, DaySums, returns
from flexwire.answers.asking.groups import (
    CLASSIC_APIS,
    EVENTS_OF_DAYS,
    JOIN,
    PROTOCOL,
    PROTOCOLS,
    classic_beats,
    classic_exchanges,
    events,
    events_of_days,
    heartbeat_epochs,
    heartbeat_exchanges,
    joined_causes,
    joined_events,
    session_expiry,
    with_history,
)
from flexwire.columnar.record_columns import MOMENT
from flexwire.facts.answers import AnswerPicture
from flexwire.tables.output import MESSAGES
from flexwire.tables.row_filter import FRAMES
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables

UNKNOWN: Final = "unknown"

COLUMNS: Final = (
    Column("group_id", pa.string(), "the group", heading="Group", is_about=True),
    Column(
        "protocol", pa.string(),
           '"classic" (JoinGroup), or "consumer", "share" or "streams" (heartbeats with an epoch)',
    heading="Protocol",
),
    Column("generation", pa.int32(), "the generation, or the group's epoch",
           heading="Generation", is_about=True),
    Column("time", MOMENT,
           "when the group reached the generation: the time of the last response to a JoinGroup, "
           "or of the first response that contains the epoch",
           heading="When"),
    Column(
        "rebalance_us", pa.int64(), "the time from the first JoinGroup to the last response, in "
        "microseconds", "for epochs",
    heading="Took",
),
    Column("members", pa.int64(),
           "the number of members in the response to the leader, or the number of members that "
           "sent the epoch",
           "if the leader's response was not captured", heading="Members"),
    Column(
        "cause", pa.string(),
           'the earliest proven cause: "new member", "member left", "session expired", "leader '
           'rejoined" or "metadata changed"; otherwise "unknown"',
    heading="Cause", is_about=True,
),
    Column("causes", pa.list_(pa.string()), "all proven causes, in alphabetical order"),
    Column("new_members", pa.int64(), "the number of new members that were seen"),
    Column("left_members", pa.int64(), "the number of members that were seen to leave"),
    Column("expired_members", pa.int64(), "the number of members whose session was seen to "
           "expire"),
    Column("reasons", pa.list_(pa.string()),
           "the reasons that clients sent, in alphabetical order",
           heading="Clients' reasons"),
)  # fmt: skip

_NEW, _LEFT, _EXPIRED = "new member", "member left", "session expired"
_GROUP: Final = ("group_id", "protocol")


@returns(COLUMNS)
def groups(tables: AnalysisTables) -> DataFrame | None:
    """Return the generations of each group, and the causes of the rebalances that started them.

    The answer states a cause only if the captured traffic proves it.

    "new member": a member joined without a member id or with an id that it had just received, or it
    was not in the leader's last list of members. A static member that restarts counts as a new
    member. "member left": after the previous generation, a member sent LeaveGroup, or a heartbeat
    with the epoch for leaving. "session expired": a member of the previous generation is missing
    and did not leave, and its last heartbeat was at least a session timeout ago. "leader rejoined"
    and "metadata changed": the first member to join was the leader, or another member with a
    changed subscription, and no member had been told to rejoin. If the traffic proves no cause, the
    cause is "unknown". An unknown cause occurred either on a connection that was not captured or
    inside the broker.
    """
    filters = [*classic_exchanges(tables), *heartbeat_exchanges(tables)]
    if not filters:
        return None
    others = [*heartbeat_epochs(tables)]
    if filters[0].api_name == JOIN:
        others += classic_beats(tables)
    return _of_events(events(tables, filters, others))


def _total(parts: DataFrame, _tables: AnalysisTables) -> DataFrame:
    """Return the rows of the answer from the daily events."""
    return _of_events(joined_events(parts)).select(*(column.name for column in COLUMNS))


def _of_events(group_events: DataFrame) -> DataFrame:
    """Return the answer's rows, computed from all events."""
    # Later steps process one group at a time, so rows do not have to be moved again.
    rows = with_history(group_events.repartition(*_GROUP))
    each = _with_generation(_proven(rows)).groupBy(*_GROUP, "generation")
    return each.agg(*_sums()).where("is_there")


def _message_tables() -> list[str]:
    """Return the tables that contain the events of a day."""
    apis = (*CLASSIC_APIS, *PROTOCOLS.values())
    messages = (f"{api}{direction}" for api in apis for direction in ("Request", "Response"))
    return [FRAMES, *(f"{MESSAGES}/{message}" for message in messages)]


def _proven(group_events: DataFrame) -> DataFrame:
    """Return a row for each generation in an event, and for each cause that an event proves."""
    kind, number = F.col("kind"), F.col("generation")
    is_named = (kind == event.JOIN_EVENT) | (
        kind.isin(event.EPOCH, event.COME) & (F.col("generation") > 0)
    )
    proofs = [
        F.when(is_named, _is_told(number, F.col("at"))),
        F.when(kind == event.LEAVE_EVENT, _is_told(F.lit(None), F.col("asked"), _LEFT)),
        F.when((kind == event.COME) & F.col("is_good"), _is_told(number, F.col("asked"), _NEW)),
    ]
    proofs += [
        F.when((kind == event.JOIN_EVENT) & proof, _is_told(number, F.col("asked"), cause))
        for cause, proof in joined_causes().items()
    ]
    ended = session_expiry()
    proofs.append(
        F.when(
            (kind == event.JOIN_EVENT) & ended.isNotNull(), _is_told(number + 1, ended, _EXPIRED)
        )
    )
    each = group_events.select(
        *_GROUP, kind, "member_id", "asked", "answered", "listed", "reason",
        F.inline(F.array_compact(F.array(*proofs))),
    )  # fmt: skip
    is_there = F.col("cause").isNull()
    gives_reason = is_there | (F.col("kind") == event.LEAVE_EVENT)
    return each.withColumns({"is_there": is_there, "reason": F.when(gives_reason, F.col("reason"))})


def _is_told(generation: SparkColumn, time: SparkColumn, cause: str | None = None) -> SparkColumn:
    return F.struct(
        generation.cast("bigint").try_cast("int").alias("generation"),
        time.alias("sign_time"),
        F.lit(cause).cast("string").alias("cause"),
    )


def _with_generation(proven: DataFrame) -> DataFrame:
    """Add the generation that each event caused.

    An event without a generation caused the next generation.
    """
    # A generation appears in the traffic after the events that caused it.
    order = (F.desc("sign_time"), F.desc("is_there"), F.desc("generation"))
    later = Window.partitionBy(*_GROUP).orderBy(*order)
    later = later.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    following = F.last(F.when(F.col("is_there"), F.col("generation")), ignorenulls=True)
    number = F.coalesce("generation", following.over(later))
    return proven.withColumn("generation", number).where("generation is not null")


def _sums() -> list[SparkColumn]:
    """Return the answer's columns for a generation, and whether the generation is known."""
    is_there, is_classic = F.col("is_there"), F.col("protocol") == PROTOCOL
    joins = is_there & is_classic
    took = F.unix_micros(F.max(F.when(joins, F.col("answered")))) - F.unix_micros(
        F.min(F.when(joins, F.col("asked")))
    )
    listed = F.max(F.when(joins, F.col("listed")))
    named = F.collect_set(F.when(is_there & ~is_classic, F.col("member_id")))
    topic_count = F.when(listed.isNotNull(), F.size(listed))
    number = F.when(F.first("protocol") == PROTOCOL, topic_count)
    earliest = F.when(~is_there, F.struct("sign_time", "cause"))
    return [
        F.max("is_there").alias("is_there"),
        F.max(F.when(is_there, F.col("sign_time"))).alias("time"),
        took.alias("rebalance_us"),
        number.otherwise(F.size(named)).cast("bigint").alias("members"),
        F.coalesce(F.min_by("cause", earliest), F.lit(UNKNOWN)).alias("cause"),
        F.array_sort(F.collect_set("cause")).alias("causes"),
        F.array_sort(F.collect_set("reason")).alias("reasons"),
        *(
            F.size(F.collect_set(F.when(F.col("cause") == cause, F.col("member_id"))))
            .cast("bigint")
            .alias(name)
            for cause, name in (
                (_NEW, "new_members"), (_LEFT, "left_members"), (_EXPIRED, "expired_members"),
            )
        ),
    ]  # fmt: skip


ANSWER: Final = Answer(
    name="groups",
    place=110,
    question="Which groups rebalance, how often, and why?",
    meaning="Each generation of each group, with the proven causes of the rebalance that started "
    'the generation. If the traffic proves no cause, the cause is "unknown".',
    advice="If members leave and join repeatedly, check whether they restart, and check the poll "
    "timeout. If sessions expire, check whether the client pauses, and check the session "
    "timeout.",
    row="a generation of a group",
    columns=COLUMNS,
    order=("-rebalance_us", "group_id", "protocol", "-generation"),
    ask=groups,
    picture=AnswerPicture("Duration of rebalances", "rebalance_us"),
    sums=DaySums(
        version=1,
        tables=_message_tables,
        columns=EVENTS_OF_DAYS,
        part=events_of_days,
        total=_total,
    ),
)
