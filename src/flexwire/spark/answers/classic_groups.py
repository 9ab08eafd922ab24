"""Groups of JoinGroup, SyncGroup and Heartbeat: their generations, and what led to each."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.window import Window

from flexwire.protocol.error_codes import MEMBER_ID_REQUIRED, REBALANCE_IN_PROGRESS
from flexwire.spark.answers.exchanges import exchanges

if TYPE_CHECKING:
    from pyspark.sql import Column

    from flexwire.spark.answers.reading import AnalysisTables

PROTOCOL: Final = "classic"
JOIN: Final = "JoinGroup"
LEAVE: Final = "LeaveGroup"
HEARTBEAT: Final = "Heartbeat"
SYNC: Final = "SyncGroup"
COMMIT: Final = "OffsetCommit"
COMMIT_GENERATION: Final = "generation_id_or_member_epoch"

_MEMBER: Final = ("group_id", "generation", "member_id")


def classic_generations(tables: AnalysisTables) -> DataFrame | None:
    """The generations that responses to JoinGroup name; None where there are none."""
    joins = _joins(tables)
    if joins is None:
        return None
    return _rounds(joins).select(
        "group_id",
        F.lit(PROTOCOL).alias("protocol"),
        "generation",
        F.col("completed").alias("time"),
        (F.unix_micros("completed") - F.unix_micros("started")).alias("rebalance_us"),
        F.size("listed").cast("bigint").alias("members"),
        "reasons",
    )


def classic_signs(tables: AnalysisTables) -> DataFrame | None:
    """What led to generations, as far as it is proven: a row a sign, with its member."""
    joins = _joins(tables)
    if joins is None:
        return None
    rounds = _rounds(joins)
    told = _told_to_rebalance(tables)
    left = _left(tables)
    parts = [
        _new(joins, rounds),
        _unasked(joins, rounds, told),
        _expired(tables, joins, rounds, told, left),
        *([] if left is None else [left]),
    ]
    return reduce(DataFrame.unionByName, parts)


def _joins(tables: AnalysisTables) -> DataFrame | None:
    """The members that joined a generation, and what they knew and said when they asked."""
    found = exchanges(tables, JOIN)
    if found is None:
        return None
    # Only who gets an id at first is told so: its id is new when it comes back with it.
    code = F.col("response.error_code")
    asked_id = F.col("request.member_id")
    seen = found.select(
        F.col("request.group_id").alias("group_id"),
        F.col("response.member_id").alias("member_id"),
        "asked",
        "answered",
        (code == 0).alias("joined"),
        ((code == MEMBER_ID_REQUIRED) | ((code == 0) & (asked_id == ""))).alias("is_given"),
        F.when(code == 0, F.col("response.generation_id")).alias("generation"),
        F.col("response.leader").alias("leader"),
        F.when(
            F.col("response.leader") == F.col("response.member_id"),
            F.col("response.members.member_id"),
        ).alias("listed"),
        # A member whose protocols, byte by byte, are not what they were starts a rebalance.
        F.xxhash64("request.protocols.name", "request.protocols.metadata").alias("subscription"),
        F.col("request.session_timeout_ms").alias("session_timeout_ms"),
        F.nullif(F.col("request.reason"), F.lit("")).alias("reason"),
    ).where("joined or is_given")
    of_member = Window.partitionBy("group_id", "member_id").orderBy("asked")
    before = of_member.rowsBetween(Window.unboundedPreceding, -1)
    is_given = F.coalesce(F.max("is_given").over(before), F.lit(False)) | F.col("is_given")
    joined_before = F.coalesce(F.max("joined").over(before), F.lit(False))
    known = seen.withColumns(
        {
            "is_new": is_given & ~joined_before,
            "last_generation": F.last("generation", ignorenulls=True).over(before),
            "last_subscription": F.last(
                F.when(F.col("joined"), F.col("subscription")), ignorenulls=True
            ).over(before),
        }
    )
    return known.where("joined")


def _rounds(joins: DataFrame) -> DataFrame:
    """The generations, and the one before if it was seen: `previous`, `members_before`, ..."""
    of_round = joins.groupBy("group_id", "generation").agg(
        F.min("asked").alias("started"),
        F.max("answered").alias("completed"),
        F.max("listed").alias("listed"),
        F.max("leader").alias("leader"),
        F.min_by("member_id", F.struct("asked", "member_id")).alias("first_member"),
        F.collect_set("reason").alias("reasons"),
    )
    in_order = Window.partitionBy("group_id").orderBy("generation")
    follows = F.lag("generation").over(in_order) == F.col("generation") - 1
    return of_round.withColumns(
        {
            "listed_before": F.when(follows, F.lag("listed").over(in_order)),
            "leader_before": F.when(follows, F.lag("leader").over(in_order)),
        }
    )


def _sign(cause: str, time: str, generation: str = "generation") -> tuple[Column, ...]:
    return (
        F.col("group_id"),
        F.lit(PROTOCOL).alias("protocol"),
        F.expr(generation).cast("int").alias("generation"),
        F.lit(cause).alias("cause"),
        F.col("member_id"),
        F.col(time).alias("sign_time"),
        F.lit(None).cast("string").alias("reason"),
    )


def _new(joins: DataFrame, rounds: DataFrame) -> DataFrame:
    before = rounds.select("group_id", "generation", "listed_before")
    known = joins.join(before, ["group_id", "generation"])
    is_listed = F.coalesce(F.array_contains("listed_before", F.col("member_id")), F.lit(True))
    return known.where(F.col("is_new") | ~is_listed).select(*_sign("new member", "asked"))


def _unasked(joins: DataFrame, rounds: DataFrame, told: DataFrame | None) -> DataFrame:
    """The first who joins, was in the generation before, and was not told that there is another."""
    of_first = F.col("member_id") == F.col("first_member")
    first = joins.join(
        rounds.select("group_id", "generation", "started", "first_member", "leader_before"),
        ["group_id", "generation"],
    ).where(of_first & (F.col("last_generation") == F.col("generation") - 1))
    if told is not None:
        first = first.join(told, ["group_id", "generation"], "left").where(
            "told is null or told > started"
        )
    is_leader = F.col("member_id") == F.col("leader_before")
    is_changed = F.col("subscription") != F.col("last_subscription")
    leader = first.where(is_leader).select(*_sign("leader rejoined", "asked"))
    other = first.where(~is_leader & is_changed).select(*_sign("metadata changed", "asked"))
    return leader.unionByName(other)


def _told_to_rebalance(tables: AnalysisTables) -> DataFrame | None:
    """By generation when a member of the one before was first told that there is to be another."""
    found = []
    for api_name in (HEARTBEAT, SYNC):
        code = F.col("body.error_code") == REBALANCE_IN_PROGRESS
        one = exchanges(tables, api_name, response=code)
        if one is not None:
            found.append(_when_told(one, "generation_id"))
    commits = exchanges(tables, COMMIT, response=_has_partition_error())
    if commits is not None:
        found.append(_when_told(commits, COMMIT_GENERATION))
    if not found:
        return None
    every = reduce(DataFrame.unionByName, found)
    return every.groupBy("group_id", "generation").agg(F.min("answered").alias("told"))


def _has_partition_error() -> Column:
    codes = F.flatten("body.topics.partitions").getField("error_code")
    return F.exists(codes, lambda code: code == REBALANCE_IN_PROGRESS)


def _when_told(found: DataFrame, generation: str) -> DataFrame:
    return found.select(
        F.col("request.group_id").alias("group_id"),
        (F.col(f"request.{generation}") + 1).alias("generation"),
        "answered",
    )


def _left(tables: AnalysisTables) -> DataFrame | None:
    """The members that left, before whatever generation that led to."""
    found = exchanges(tables, LEAVE, response=F.expr("body.error_code = 0"))
    if found is None:
        return None
    nobody = F.lit(None).cast("string")
    only = F.struct(F.col("request.member_id").alias("member_id"), nobody.alias("reason"))
    some = F.transform(
        "request.members",
        lambda one: F.struct(one["member_id"].alias("member_id"), one["reason"].alias("reason")),
    )
    members = F.coalesce(some, F.array(only))
    each = found.select(F.col("request.group_id").alias("group_id"), "asked", F.inline(members))
    reason = F.nullif(F.col("reason"), F.lit(""))
    sign = _sign("member left", "asked", "null")[:-1]
    return each.select(*sign, reason.alias("reason"))


def _expired(
    tables: AnalysisTables,
    joins: DataFrame,
    rounds: DataFrame,
    told: DataFrame | None,
    left: DataFrame | None,
) -> DataFrame:
    """Members that are gone, did not leave, and were silent for their session timeout."""
    gone = F.array_except("listed_before", "listed")
    lost = rounds.select("group_id", "generation", "started", F.explode(gone).alias("member_id"))
    were = joins.select(
        "group_id",
        (F.col("generation") + 1).alias("generation"),
        "member_id",
        "session_timeout_ms",
        "answered",
    )
    found = lost.join(were, [*_MEMBER])
    if told is not None:
        found = found.join(told, ["group_id", "generation"], "left")
        found = found.withColumn("started", F.least("started", "told"))
    if left is not None:
        found = found.join(
            left.select("group_id", "member_id"), ["group_id", "member_id"], "left_anti"
        )
    beats = tables.message(f"{HEARTBEAT}Request")
    alive = F.unix_micros("answered")
    if beats is not None:
        last = beats.groupBy(
            F.col("body.group_id").alias("group_id"),
            (F.col("body.generation_id") + 1).alias("generation"),
            F.col("body.member_id").alias("member_id"),
        ).agg(F.max("time").alias("beat"))
        found = found.join(last, [*_MEMBER], "left")
        alive = F.greatest(alive, F.unix_micros("beat"))
    ended = F.timestamp_micros(alive + F.col("session_timeout_ms").cast("bigint") * 1000)
    found = found.withColumn("ended", ended).where("ended <= started")
    return found.select(*_sign("session expired", "ended"))
