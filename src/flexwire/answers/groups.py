"""Consumer groups: their generations, and what the traffic proves of why each began."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.window import Window

from flexwire.answers.asking import groups as event
from flexwire.answers.asking.answer import Answer, returns
from flexwire.answers.asking.groups import (
    JOIN,
    PROTOCOL,
    classic_beats,
    classic_exchanges,
    events,
    heartbeat_epochs,
    heartbeat_exchanges,
    joined_causes,
    session_expiry,
    with_history,
)
from flexwire.columnar.record_columns import MOMENT
from flexwire.facts.answers import AnswerPicture
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables

UNKNOWN: Final = "unknown"

COLUMNS: Final = (
    Column("group_id", pa.string(), "the group", heading="Group", is_about=True),
    Column(
        "protocol", pa.string(), '"classic" (JoinGroup), or "consumer", "share" or "streams": '
        "whose heartbeats have an epoch",
    heading="Protocol",
),
    Column("generation", pa.int32(), "the generation that began, or the group's epoch",
           heading="Generation", is_about=True),
    Column("time", MOMENT, "when it was there: the first response that names it, or the last of "
           "those to a JoinGroup", heading="When"),
    Column(
        "rebalance_us", pa.int64(), "from the first JoinGroup to the last response, in "
        "microseconds", "of epochs",
    heading="Took",
),
    Column("members", pa.int64(), "how many members the leader was told, or named the epoch",
           "where the leader's response was not captured", heading="Members"),
    Column(
        "cause", pa.string(), 'the earliest of the causes that are proven: "new member", "member '
        'left", "session expired", "leader rejoined" or "metadata changed"; else "unknown"',
    heading="Cause", is_about=True,
),
    Column("causes", pa.list_(pa.string()), "all that are proven, by alphabet"),
    Column("new_members", pa.int64(), "the new members that were seen"),
    Column("left_members", pa.int64(), "the members that were seen to leave"),
    Column("expired_members", pa.int64(), "the members whose session was seen to expire"),
    Column("reasons", pa.list_(pa.string()), "what clients gave as their reasons, by alphabet",
           heading="Clients' reasons"),
)  # fmt: skip

_NEW, _LEFT, _EXPIRED = "new member", "member left", "session expired"
_GROUP: Final = ("group_id", "protocol")


@returns(COLUMNS)
def groups(tables: AnalysisTables) -> DataFrame | None:
    """The generations that each group came to, and the causes of these rebalances: a row each.

    A cause is named only if the traffic proves it. "new member": one joined without a member id, or
    with an id that it was just given, or is not among those that the leader was told before; a
    static member that starts again is one too. "member left": a LeaveGroup, or a heartbeat with
    the epoch that says so, after the generation before. "session expired": a member of the
    generation before is gone and did not leave, and its last heartbeat was its session timeout
    before. "leader rejoined" and "metadata changed": the first to join was the leader, or another
    member with another subscription than before, and nobody had been told to. Otherwise it is
    "unknown": what happened on connections that were not captured, and inside the broker.
    """
    filters = [*classic_exchanges(tables), *heartbeat_exchanges(tables)]
    if not filters:
        return None
    others = [*heartbeat_epochs(tables)]
    if filters[0].api_name == JOIN:
        others += classic_beats(tables)
    group_events = with_history(events(tables, filters, others))
    rows = _with_generation(_proven(group_events)).groupBy(*_GROUP, "generation").agg(*_sums())
    return rows.where("is_there")


def _proven(group_events: DataFrame) -> DataFrame:
    """A row for each generation that an event names, and each cause that it proves."""
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
    """The same with the generation that each led to: of those that do not say it, the next one."""
    # A generation is there after what led to it.
    order = (F.desc("sign_time"), F.desc("is_there"), F.desc("generation"))
    later = Window.partitionBy(*_GROUP).orderBy(*order)
    later = later.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    following = F.last(F.when(F.col("is_there"), F.col("generation")), ignorenulls=True)
    number = F.coalesce("generation", following.over(later))
    return proven.withColumn("generation", number).where("generation is not null")


def _sums() -> list[SparkColumn]:
    """The columns of an answer by generation, and whether it is there."""
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
    meaning="Every generation that a group came to, with the causes that its traffic proves; the "
    "rest is unknown.",
    advice="Where members leave and join again and again, look at restarts and at the poll "
    "timeout; where sessions expire, at pauses of the client and at the session timeout.",
    row="a generation of a group",
    columns=COLUMNS,
    order=("-rebalance_us", "group_id", "protocol", "-generation"),
    ask=groups,
    picture=AnswerPicture("How long rebalances took", "rebalance_us"),
)
