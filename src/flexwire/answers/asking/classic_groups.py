"""Groups of JoinGroup, SyncGroup and Heartbeat: what happens in them, and what that proves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.window import Window

from flexwire.answers.asking import group_events as event
from flexwire.answers.asking.exchanges import Wanted
from flexwire.protocol.error_codes import NO_ERROR, REBALANCE_IN_PROGRESS
from flexwire.tables.spec_places import error_places

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from flexwire.answers.asking.reading import AnalysisTables

PROTOCOL: Final = "classic"
JOIN: Final = "JoinGroup"
LEAVE: Final = "LeaveGroup"
HEARTBEAT: Final = "Heartbeat"
SYNC: Final = "SyncGroup"
COMMIT: Final = "OffsetCommit"
COMMIT_GENERATION: Final = "generation_id_or_member_epoch"

GROUP: Final = ("group_id", "protocol")


def classic_exchanges(tables: AnalysisTables) -> list[Wanted]:
    """The exchanges that tell of generations, and of what led to them; none without JoinGroup."""
    if tables.message(f"{JOIN}Request") is None or tables.message(f"{JOIN}Response") is None:
        return []
    return [_joins(), _leaves(), *_told_to_rebalance(tables)]


def classic_beats(tables: AnalysisTables) -> list[DataFrame]:
    """When members were last heard of in a generation."""
    beats = tables.message(f"{HEARTBEAT}Request")
    if beats is None:
        return []
    names = ("group_id", "generation_id", "member_id")
    last = beats.groupBy(*(F.col(f"body.{one}").alias(one) for one in names))
    return [
        event.events_of(
            last.agg(F.max("time").alias("beat")),
            group_id=F.col("group_id"),
            protocol=F.lit(PROTOCOL),
            kind=F.lit(event.BEAT),
            generation=F.col("generation_id"),
            member_id=F.col("member_id"),
            answered=F.col("beat"),
        )
    ]


def _joins() -> Wanted:
    """The members that joined a generation, and what they knew and said when they asked."""
    asked_id = F.col("body.member_id")
    # A member whose protocols, byte by byte, are not what they were starts a rebalance.
    subscription = F.xxhash64("body.protocols.name", "body.protocols.metadata")
    is_leader = F.col("body.leader") == F.col("body.member_id")
    # Wide enough for the one after the greatest that a client may send.
    generation = F.col("body.generation_id").cast("bigint")
    return Wanted(
        JOIN,
        event.asked(
            kind=F.lit(event.JOIN),
            protocol=F.lit(PROTOCOL),
            group_id=F.col("body.group_id"),
            members=event.members(asked_id, F.col("body.reason")),
            asks_for_id=asked_id == "",
            subscription=subscription,
            session_timeout_ms=F.col("body.session_timeout_ms"),
        ),
        event.told(
            error_code=F.col("body.error_code"),
            member_id=F.col("body.member_id"),
            generation=F.when(F.col("body.error_code") == NO_ERROR, generation),
            leader=F.col("body.leader"),
            listed=F.when(is_leader, F.col("body.members.member_id")),
        ),
    )


def _leaves() -> Wanted:
    """The members that left, before whatever generation that led to."""
    some = F.transform(
        "body.members",
        lambda one: F.struct(one["member_id"].alias("member_id"), one["reason"].alias("reason")),
    )
    return Wanted(
        LEAVE,
        event.asked(
            kind=F.lit(event.LEAVE),
            protocol=F.lit(PROTOCOL),
            group_id=F.col("body.group_id"),
            members=F.coalesce(some, event.members(F.col("body.member_id"))),
        ),
        event.told(error_code=F.col("body.error_code")),
        response=F.col("body.error_code") == NO_ERROR,
    )


def _told_to_rebalance(tables: AnalysisTables) -> list[Wanted]:
    """Where a member of the generation before was told that there is to be another."""
    code = F.col("body.error_code") == REBALANCE_IN_PROGRESS
    asked = {
        HEARTBEAT: ("generation_id", code),
        SYNC: ("generation_id", code),
        COMMIT: (COMMIT_GENERATION, _has_partition_error()),
    }
    return [
        Wanted(
            api_name,
            event.asked(
                kind=F.lit(event.TOLD),
                protocol=F.lit(PROTOCOL),
                group_id=F.col("body.group_id"),
                members=event.members(F.lit(None).cast("string")),
                generation=F.col(f"body.{generation}").cast("bigint") + 1,
            ),
            event.told(),
            response=is_told,
        )
        for api_name, (generation, is_told) in asked.items()
        if not _has_no_error(tables, api_name)
    ]


def _has_no_error(tables: AnalysisTables, api_name: str) -> bool:
    """Whether it is known of the responses of an API that none has an error."""
    message = f"{api_name}Response"
    codes = [("body", *one.path) for one in error_places(message)]
    return tables.hold_only(message, codes, NO_ERROR)


def _has_partition_error() -> Column:
    codes = F.flatten("body.topics.partitions").getField("error_code")
    return F.exists(codes, lambda code: code == REBALANCE_IN_PROGRESS)


def with_what_was_before(events: DataFrame) -> DataFrame:
    """Events with what is known of their member, and of the generations before and after."""
    is_join = F.col("kind") == event.JOIN
    of_member = Window.partitionBy(*GROUP, "member_id").orderBy("asked")
    before = of_member.rowsBetween(Window.unboundedPreceding, -1)
    all_of_member = Window.partitionBy(*GROUP, "member_id")
    is_given = F.coalesce(F.max("is_given").over(before), F.lit(False)) | F.col("is_given")
    joined_before = F.coalesce(F.max("joined").over(before), F.lit(False))

    def last(name: str) -> Column:
        return F.last(F.when(F.col("joined"), F.col(name)), ignorenulls=True).over(before)

    known = events.withColumns(
        {
            "is_new": is_given & ~joined_before,
            "last_generation": last("generation"),
            "last_subscription": last("subscription"),
            "has_left": F.max(F.col("kind") == event.LEAVE).over(all_of_member),
        }
    ).where(~is_join | F.col("joined"))
    here = Window.partitionBy(*GROUP, "generation")
    first = F.min(F.when(is_join, F.struct("asked", "member_id"))).over(here)
    answered = F.col("answered")
    known = known.withColumns(
        {
            "started": F.min(F.when(is_join, F.col("asked"))).over(here),
            "told": F.min(F.when(F.col("kind") == event.TOLD, answered)).over(here),
            "listed": F.max("listed").over(here),
            "is_first": first == F.struct("asked", "member_id"),
            "at": F.coalesce(
                F.max(F.when(is_join, answered)).over(here),
                F.min(F.when(F.col("kind").isin(event.EPOCH, event.COME), answered)).over(here),
            ),
            "beat": F.max(F.when(F.col("kind") == event.BEAT, answered)).over(
                Window.partitionBy(*GROUP, "generation", "member_id")
            ),
        }
    ).where(F.col("kind") != event.BEAT)
    by_generation = Window.partitionBy(*GROUP).orderBy("generation")
    one_before, one_after = by_generation.rangeBetween(-1, -1), by_generation.rangeBetween(1, 1)
    return known.withColumns(
        {
            "listed_before": F.max("listed").over(one_before),
            "leader_before": F.max("leader").over(one_before),
            "listed_after": F.max("listed").over(one_after),
            "started_after": F.min("started").over(one_after),
            "told_after": F.min("told").over(one_after),
        }
    )


def joined_causes() -> dict[str, Column]:
    """By cause whether a join proves it of its generation.

    Of those who are new, and of the first to join without being told to, who was there before.
    """
    is_listed = F.array_contains("listed_before", F.col("member_id"))
    is_unasked = F.coalesce(F.col("told") > F.col("started"), F.lit(True)) & F.col("is_first")
    is_unasked &= F.col("last_generation") == F.col("generation") - 1
    is_leader = F.col("member_id") == F.col("leader_before")
    is_changed = ~is_leader & (F.col("subscription") != F.col("last_subscription"))
    return {
        "new member": F.col("is_new") | ~F.coalesce(is_listed, F.lit(True)),
        "leader rejoined": is_unasked & is_leader,
        "metadata changed": is_unasked & is_changed,
    }


def expired() -> Column:
    """When a member's session expired; null unless it is proven of the generation after.

    It is gone there, did not leave, and was silent for its session timeout.
    """
    gone = F.array_contains(F.array_except("listed", "listed_after"), F.col("member_id"))
    alive = F.greatest(F.unix_micros("answered"), F.unix_micros("beat"))
    ended = F.timestamp_micros(alive + F.col("session_timeout_ms").cast("bigint") * 1000)
    is_over = ended <= F.least("started_after", "told_after")
    is_proven = gone & ~F.col("has_left") & F.col("started_after").isNotNull() & is_over
    return F.when(is_proven, ended)
