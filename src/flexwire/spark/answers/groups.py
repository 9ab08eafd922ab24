"""Consumer groups: their generations, and what the traffic proves of why each began."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.window import Window

from flexwire.columnar.record_schema import MOMENT
from flexwire.report.answer_facts import Picture, ShownColumn
from flexwire.spark.answers.answer import Answer
from flexwire.spark.answers.classic_groups import classic_generations, classic_signs
from flexwire.spark.answers.heartbeat_groups import heartbeat_generations, heartbeat_signs
from flexwire.spark.answers.nothing import no_rows
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from flexwire.spark.answers.reading import AnalysisTables

UNKNOWN: Final = "unknown"

COLUMNS: Final = (
    Column("group_id", pa.string(), "the group"),
    Column(
        "protocol", pa.string(), '"classic" (JoinGroup), or "consumer", "share" or "streams": '
        "whose heartbeats have an epoch",
    ),
    Column("generation", pa.int32(), "the generation that began, or the group's epoch"),
    Column("time", MOMENT, "when it was there: the first response that names it, or the last of "
           "those to a JoinGroup"),
    Column(
        "rebalance_us", pa.int64(), "from the first JoinGroup to the last response, in "
        "microseconds", "of epochs",
    ),
    Column("members", pa.int64(), "how many members the leader was told, or named the epoch",
           "where the leader's response was not captured"),
    Column(
        "cause", pa.string(), 'the earliest of the causes that are proven: "new member", "member '
        'left", "session expired", "leader rejoined" or "metadata changed"; else "unknown"',
    ),
    Column("causes", pa.list_(pa.string()), "all that are proven, by alphabet"),
    Column("new_members", pa.int64(), "the new members that were seen"),
    Column("left_members", pa.int64(), "the members that were seen to leave"),
    Column("expired_members", pa.int64(), "the members whose session was seen to expire"),
    Column("reasons", pa.list_(pa.string()), "what clients gave as their reasons, by alphabet"),
)  # fmt: skip

_NEW, _LEFT, _EXPIRED = "new member", "member left", "session expired"
_GROUP: Final = ("group_id", "protocol")


def groups(tables: AnalysisTables) -> DataFrame:
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
    parts = [one for one in (classic_generations(tables), heartbeat_generations(tables)) if one]
    if not parts:
        return no_rows(tables.frames, COLUMNS)
    generations = reduce(DataFrame.unionByName, parts)
    signs = [one for one in (classic_signs(tables), heartbeat_signs(tables)) if one]
    proven = _of_generation(reduce(DataFrame.unionByName, signs), generations)
    seen = proven.groupBy(*_GROUP, "generation").agg(
        F.min_by("cause", F.struct("sign_time", "cause")).alias("cause"),
        F.array_sort(F.collect_set("cause")).alias("causes"),
        F.array_sort(F.collect_set("reason")).alias("given"),
        *(
            F.count_distinct(F.when(F.col("cause") == cause, F.col("member_id"))).alias(name)
            for cause, name in (
                (_NEW, "new_members"), (_LEFT, "left_members"), (_EXPIRED, "expired_members"),
            )
        ),
    )  # fmt: skip
    rows = generations.join(seen, [*_GROUP, "generation"], "left")
    none, zero = F.array().cast("array<string>"), F.lit(0).cast("bigint")
    reasons = F.array_union(F.coalesce("reasons", none), F.coalesce("given", none))
    rows = rows.withColumns(
        {
            "cause": F.coalesce("cause", F.lit(UNKNOWN)),
            "causes": F.coalesce("causes", none),
            "reasons": F.array_sort(reasons),
            **{
                name: F.coalesce(name, zero)
                for name in ("new_members", "left_members", "expired_members")
            },
        }
    )
    return rows.select(*(one.name for one in COLUMNS))


def _of_generation(signs: DataFrame, generations: DataFrame) -> DataFrame:
    """The signs with the generation that they led to: of those that do not say it, the next one."""
    told = signs.where("generation is not null")
    ends = generations.select(
        *_GROUP, F.col("time").alias("sign_time"), F.col("generation").alias("next")
    )
    others = signs.where("generation is null").withColumn("next", F.lit(None).cast("int"))
    both = others.unionByName(ends, allowMissingColumns=True)
    # A generation is there after what led to it.
    later = (
        Window.partitionBy(*_GROUP).orderBy("sign_time").rowsBetween(0, Window.unboundedFollowing)
    )
    found = both.withColumn("generation", F.first("next", ignorenulls=True).over(later))
    found = found.where("cause is not null and generation is not null").drop("next")
    return told.unionByName(found)


ANSWER: Final = Answer(
    "groups",
    question="Which groups rebalance, how often, and why?",
    meaning="Every generation that a group came to, with the causes that its traffic proves; the "
    "rest is unknown.",
    advice="Where members leave and join again and again, look at restarts and at the poll "
    "timeout; where sessions expire, at pauses of the client and at the session timeout.",
    row="a generation of a group",
    columns=COLUMNS,
    order=("-rebalance_us", "group_id", "protocol", "-generation"),
    shown=(
        ShownColumn("group_id", "Group", is_about=True),
        ShownColumn("protocol", "Protocol"),
        ShownColumn("generation", "Generation", "count", is_about=True),
        ShownColumn("time", "When", "moment"),
        ShownColumn("rebalance_us", "Took", "us"),
        ShownColumn("members", "Members", "count"),
        ShownColumn("cause", "Cause", is_about=True),
        ShownColumn("reasons", "Clients' reasons"),
    ),
    ask=groups,
    picture=Picture("How long rebalances took", "rebalance_us"),
)
