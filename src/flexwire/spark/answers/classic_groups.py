"""Groups of JoinGroup, SyncGroup and Heartbeat: their generations, and what led to each."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.window import Window

from flexwire.protocol.error_codes import MEMBER_ID_REQUIRED, NO_ERROR, REBALANCE_IN_PROGRESS
from flexwire.spark.answers.exchanges import exchanges
from flexwire.tables.error_places import error_places

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
    took = F.unix_micros(F.max("answered")) - F.unix_micros(F.min("asked"))
    listed = F.max("listed")
    number = F.col("generation").cast("int").alias("generation")
    return joins.groupBy("group_id", F.lit(PROTOCOL).alias("protocol"), number).agg(
        F.max("answered").alias("time"),
        took.alias("rebalance_us"),
        F.when(listed.isNotNull(), F.size(listed).cast("bigint")).alias("members"),
        F.collect_set("reason").alias("reasons"),
    )


def classic_signs(tables: AnalysisTables) -> DataFrame | None:
    """What led to generations, as far as it is proven: a row a sign, with its member."""
    joins = _joins(tables)
    if joins is None:
        return None
    joins = _with_generation_before(joins)
    told, left = _told_to_rebalance(tables), _left(tables)
    parts = [_joined(joins, told), _expired(tables, joins, told, left)]
    return reduce(DataFrame.unionByName, parts if left is None else [*parts, left])


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
        # Wide enough for the one after the greatest that a client may send.
        F.when(code == 0, F.col("response.generation_id").cast("bigint")).alias("generation"),
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


def _with_generation_before(joins: DataFrame) -> DataFrame:
    """The same with what is known of the generation before, of all generations at once."""
    here = Window.partitionBy("group_id", "generation")
    one_before = Window.partitionBy("group_id").orderBy("generation").rangeBetween(-1, -1)
    first = F.min(F.struct("asked", "member_id")).over(here)
    return joins.withColumns(
        {
            "started": F.min("asked").over(here),
            "listed": F.max("listed").over(here),
            "is_first": first == F.struct("asked", "member_id"),
            "listed_before": F.max("listed").over(one_before),
            "leader_before": F.max("leader").over(one_before),
        }
    )


def _sign(cause: Column, time: str, generation: str = "generation") -> tuple[Column, ...]:
    return (
        F.col("group_id"),
        F.lit(PROTOCOL).alias("protocol"),
        F.expr(generation).try_cast("int").alias("generation"),
        cause.alias("cause"),
        F.col("member_id"),
        F.col(time).alias("sign_time"),
        F.lit(None).cast("string").alias("reason"),
    )


def _joined(joins: DataFrame, told: DataFrame | None) -> DataFrame:
    """Those who are new, and the first to join without being told to, who was there before."""
    if told is None:
        told = joins.select("group_id", "generation", F.col("asked").alias("told")).where("false")
    known = joins.join(told, ["group_id", "generation"], "left")
    is_listed = F.array_contains("listed_before", F.col("member_id"))
    is_new = F.col("is_new") | ~F.coalesce(is_listed, F.lit(True))
    is_unasked = F.coalesce(F.col("told") > F.col("started"), F.lit(True)) & F.col("is_first")
    is_unasked &= F.col("last_generation") == F.col("generation") - 1
    is_leader = F.col("member_id") == F.col("leader_before")
    is_changed = ~is_leader & (F.col("subscription") != F.col("last_subscription"))
    causes = F.array(
        F.when(is_new, F.lit("new member")),
        F.when(is_unasked & is_leader, F.lit("leader rejoined")),
        F.when(is_unasked & is_changed, F.lit("metadata changed")),
    )
    signs = known.select("*", F.explode(causes).alias("proven")).where("proven is not null")
    return signs.select(*_sign(F.col("proven"), "asked"))


def _told_to_rebalance(tables: AnalysisTables) -> DataFrame | None:
    """By generation when a member of the one before was first told that there is to be another."""
    found = []
    for api_name in (HEARTBEAT, SYNC):
        if _has_no_error(tables, api_name):
            continue
        code = F.col("body.error_code") == REBALANCE_IN_PROGRESS
        one = exchanges(tables, api_name, response=code)
        if one is not None:
            found.append(_when_told(one, "generation_id"))
    commits = None
    if not _has_no_error(tables, COMMIT):
        commits = exchanges(tables, COMMIT, response=_has_partition_error())
    if commits is not None:
        found.append(_when_told(commits, COMMIT_GENERATION))
    if not found:
        return None
    every = reduce(DataFrame.unionByName, found)
    return every.groupBy("group_id", "generation").agg(F.min("answered").alias("told"))


def _has_no_error(tables: AnalysisTables, api_name: str) -> bool:
    """Whether it is known of the responses of an API that none has an error."""
    message = f"{api_name}Response"
    codes = [("body", *one.path) for one in error_places(message)]
    return tables.hold_only(message, codes, NO_ERROR)


def _has_partition_error() -> Column:
    codes = F.flatten("body.topics.partitions").getField("error_code")
    return F.exists(codes, lambda code: code == REBALANCE_IN_PROGRESS)


def _when_told(found: DataFrame, generation: str) -> DataFrame:
    return found.select(
        F.col("request.group_id").alias("group_id"),
        (F.col(f"request.{generation}").cast("bigint") + 1).alias("generation"),
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
    sign = _sign(F.lit("member left"), "asked", "null")[:-1]
    return each.select(*sign, reason.alias("reason"))


def _expired(
    tables: AnalysisTables, joins: DataFrame, told: DataFrame | None, left: DataFrame | None
) -> DataFrame:
    """Members that are gone, did not leave, and were silent for their session timeout."""
    gone = F.array_except("listed_before", "listed")
    lost = joins.where("is_first").select(
        "group_id", "generation", "started", F.explode(gone).alias("member_id")
    )
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
        those = left.select("group_id", "member_id")
        found = found.join(those, ["group_id", "member_id"], "left_anti")
    beats = tables.message(f"{HEARTBEAT}Request")
    alive = F.unix_micros("answered")
    if beats is not None:
        last = beats.groupBy(
            F.col("body.group_id").alias("group_id"),
            (F.col("body.generation_id").cast("bigint") + 1).alias("generation"),
            F.col("body.member_id").alias("member_id"),
        ).agg(F.max("time").alias("beat"))
        found = found.join(last, [*_MEMBER], "left")
        alive = F.greatest(alive, F.unix_micros("beat"))
    ended = F.timestamp_micros(alive + F.col("session_timeout_ms").cast("bigint") * 1000)
    found = found.withColumn("ended", ended).where("ended <= started")
    return found.select(*_sign(F.lit("session expired"), "ended"))
