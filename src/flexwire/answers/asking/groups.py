"""The events in groups and what they mean: generations in JoinGroup, and epochs in heartbeats."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs
from pyspark.sql.window import Window

from flexwire.answers.asking.day_exchanges import (
    HALF,
    OF_HALF,
    exchanges_of_days,
    joined_halves,
)
from flexwire.answers.asking.day_sums import DAY, all_of, day_of_time, filled
from flexwire.answers.asking.messages import ExchangeFilter, exchanges_of
from flexwire.columnar.record_columns import MOMENT
from flexwire.protocol.error_codes import MEMBER_ID_REQUIRED, NO_ERROR, REBALANCE_IN_PROGRESS
from flexwire.tables.spec_places import error_places
from flexwire.tasks import spark_schema

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from flexwire.answers.asking.answer import AnalysisTables


JOIN_EVENT: Final = "join"
TOLD: Final = "told"
BEAT: Final = "beat"
LEAVE_EVENT: Final = "leave"
EPOCH: Final = "epoch"
COME: Final = "come"
"""The kinds of events: a member joins with JoinGroup, is told to rejoin, is seen, or leaves; a
member sends an epoch, or receives an epoch when it joins.
"""

_ASKED: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("kind", "protocol", "group_id")),
        ("members", pa.list_(pa.struct([("member_id", pa.string()), ("reason", pa.string())]))),
        ("generation", pa.int64()),
        ("asks_for_id", pa.bool_()),
        ("subscription", pa.int64()),
        ("session_timeout_ms", pa.int32()),
    ]
)
_TOLD: Final = pa.schema(
    [
        ("error_code", pa.int32()),
        ("member_id", pa.string()),
        ("generation", pa.int64()),
        ("leader", pa.string()),
        ("listed", pa.list_(pa.string())),
    ]
)
_EVENT: Final = pa.schema(
    [
        *((name, pa.string()) for name in ("group_id", "protocol", "kind")),
        ("generation", pa.int64()),
        ("member_id", pa.string()),
        *((name, MOMENT) for name in ("asked", "answered")),
        *((name, pa.bool_()) for name in ("is_good", "is_given", "joined")),
        ("leader", pa.string()),
        ("listed", pa.list_(pa.string())),
        ("subscription", pa.int64()),
        ("session_timeout_ms", pa.int32()),
        ("reason", pa.string()),
    ]
)


def request_columns(**columns: Column) -> Column:
    """Return the columns of a request, with null for missing columns."""
    return F.struct(*_typed(_ASKED, columns))


def response_columns(**columns: Column) -> Column:
    """Return the columns of a response, with null for missing columns."""
    return F.struct(*_typed(_TOLD, columns))


def members(member_id: Column, reason: Column | None = None) -> Column:
    """Return an array that contains the only member in a request."""
    why = F.lit(None).cast("string") if reason is None else reason
    return F.array(F.struct(member_id.alias("member_id"), why.alias("reason")))


def events_of(rows: DataFrame, **columns: Column) -> DataFrame:
    """Return events that are created from rows with these columns."""
    return rows.select(*_typed(_EVENT, columns))


def events(
    tables: AnalysisTables, filters: Sequence[ExchangeFilter], others: Sequence[DataFrame]
) -> DataFrame:
    """Return all events."""
    exchanges = exchanges_of(tables, filters)
    parts = [*others] if exchanges is None else [_of_exchanges(exchanges), *others]
    return all_of(parts)


EVENTS_OF_DAYS: Final = pa.schema(
    [
        (DAY, pa.date32()),
        (HALF, OF_HALF),
        *_EVENT,
        ("request", pa.struct([*_ASKED])),
        ("response", pa.struct([*_TOLD])),
    ]
)
"""The columns of `events_of_days`."""


def events_of_days(tables: AnalysisTables) -> DataFrame | None:
    """Return each day's events, and the halves of exchanges that span two days.

    A row with `HALF` contains only the times, the ``request`` and the ``response`` of an exchange.
    """
    parts = [
        rows.withColumn(DAY, day_of_time("answered"))
        for rows in (*heartbeat_epochs(tables, by_day=True), *classic_beats(tables, by_day=True))
    ]
    exchanges = exchanges_of_days(
        tables,
        [_joins(), _leaves(), *_told_on(tables), *_heartbeat_filters().values()],
        spark_schema(_ASKED),
        spark_schema(_TOLD),
    )
    if exchanges is not None:
        is_whole = F.col(HALF).isNull()
        whole = _of_exchanges(exchanges.where(is_whole)).withColumn(DAY, day_of_time("answered"))
        names = (DAY, HALF, "asked", "answered", "request", "response")
        parts += [whole, exchanges.where(~is_whole).select(*names)]
    return filled(parts) if parts else None


def joined_events(rows: DataFrame) -> DataFrame:
    """Return all events, from rows of `events_of_days`."""
    of_request = ("asked", "request")
    names = (*of_request, "answered", "response")
    exchanges = joined_halves(rows, names, of_request)
    whole = rows.where(F.col(HALF).isNull()).select(*_EVENT.names)
    return all_of([whole, _of_exchanges(exchanges)])


def _of_exchanges(exchanges: DataFrame) -> DataFrame:
    each = exchanges.select("asked", "answered", "request", "response", F.inline("request.members"))
    code, is_join = F.col("response.error_code"), F.col("request.kind") == JOIN_EVENT
    is_good = code == NO_ERROR
    # Only a member without an id receives this error. When it joins again, it has a new id.
    is_given = (code == MEMBER_ID_REQUIRED) | (is_good & F.col("request.asks_for_id"))
    group_events = events_of(
        each,
        group_id=F.col("request.group_id"),
        protocol=F.col("request.protocol"),
        kind=F.col("request.kind"),
        generation=F.coalesce("response.generation", "request.generation"),
        member_id=F.coalesce("response.member_id", "member_id"),
        asked=F.col("asked"),
        answered=F.col("answered"),
        is_good=is_good,
        is_given=F.when(is_join, is_given),
        joined=F.when(is_join, is_good),
        leader=F.col("response.leader"),
        listed=F.col("response.listed"),
        subscription=F.col("request.subscription"),
        session_timeout_ms=F.col("request.session_timeout_ms"),
        reason=F.nullif(F.col("reason"), F.lit("")),
    )
    return group_events.where(F.coalesce(F.col("joined") | F.col("is_given"), F.lit(True)))


def _typed(schema: pa.Schema, columns: Mapping[str, Column]) -> list[Column]:
    return [
        columns.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name)
        for field in spark_schema(schema)
    ]


PROTOCOL: Final = "classic"
JOIN: Final = "JoinGroup"
LEAVE: Final = "LeaveGroup"
HEARTBEAT: Final = "Heartbeat"
SYNC: Final = "SyncGroup"
COMMIT: Final = "OffsetCommit"
CLASSIC_APIS: Final = (JOIN, LEAVE, HEARTBEAT, SYNC, COMMIT)
"""The APIs of the classic protocol whose messages show events."""
COMMIT_GENERATION: Final = "generation_id_or_member_epoch"

GROUP: Final = ("group_id", "protocol")


def classic_exchanges(tables: AnalysisTables) -> list[ExchangeFilter]:
    """Return filters for exchanges about generations and their causes, if any JoinGroup exists."""
    if tables.message(f"{JOIN}Request") is None or tables.message(f"{JOIN}Response") is None:
        return []
    return [_joins(), _leaves(), *_told_to_rebalance(tables)]


def classic_beats(tables: AnalysisTables, *, by_day: bool = False) -> list[DataFrame]:
    """Return the time when each member of a generation was last seen, on each day or overall."""
    beats = tables.message(f"{HEARTBEAT}Request")
    if beats is None:
        return []
    names = ("group_id", "generation_id", "member_id")
    days = [day_of_time()] if by_day else []
    last = beats.groupBy(*days, *(F.col(f"body.{name}").alias(name) for name in names))
    return [
        events_of(
            last.agg(F.max("time").alias("beat")),
            group_id=F.col("group_id"),
            protocol=F.lit(PROTOCOL),
            kind=F.lit(BEAT),
            generation=F.col("generation_id"),
            member_id=F.col("member_id"),
            answered=F.col("beat"),
        )
    ]


def _joins() -> ExchangeFilter:
    """Return a filter for members that joined a generation, with facts from their requests."""
    asked_id = F.col("body.member_id")
    # A change of any byte in a member's protocols starts a rebalance.
    subscription = F.xxhash64("body.protocols.name", "body.protocols.metadata")
    is_leader = F.col("body.leader") == F.col("body.member_id")
    # This type can represent one more than the largest number that a client can send.
    generation = F.col("body.generation_id").cast("bigint")
    return ExchangeFilter(
        JOIN,
        request_columns(
            kind=F.lit(JOIN_EVENT),
            protocol=F.lit(PROTOCOL),
            group_id=F.col("body.group_id"),
            members=members(asked_id, F.col("body.reason")),
            asks_for_id=asked_id == "",
            subscription=subscription,
            session_timeout_ms=F.col("body.session_timeout_ms"),
        ),
        response_columns(
            error_code=F.col("body.error_code"),
            member_id=F.col("body.member_id"),
            generation=F.when(F.col("body.error_code") == NO_ERROR, generation),
            leader=F.col("body.leader"),
            listed=F.when(is_leader, F.col("body.members.member_id")),
        ),
    )


def _leaves() -> ExchangeFilter:
    """Return a filter for members that left, which caused the next generation."""
    some = F.transform(
        "body.members",
        lambda member: F.struct(
            member["member_id"].alias("member_id"), member["reason"].alias("reason")
        ),
    )
    return ExchangeFilter(
        LEAVE,
        request_columns(
            kind=F.lit(LEAVE_EVENT),
            protocol=F.lit(PROTOCOL),
            group_id=F.col("body.group_id"),
            members=F.coalesce(some, members(F.col("body.member_id"))),
        ),
        response_columns(error_code=F.col("body.error_code")),
        response=F.col("body.error_code") == NO_ERROR,
    )


def _told_to_rebalance(tables: AnalysisTables) -> list[ExchangeFilter]:
    """Return filters for the events in which a member was told to rejoin."""
    return [one for api_name, one in _told_filters().items() if not _has_no_error(tables, api_name)]


def _told_on(tables: AnalysisTables) -> list[ExchangeFilter]:
    """Return the filters of `_told_to_rebalance`, for single days."""
    # If a day's responses contain no errors, they are not read. The request filter remains,
    # because the error may arrive on a later day.
    return [
        replace(one, response=F.lit(col=False)) if _has_no_error(tables, api_name) else one
        for api_name, one in _told_filters().items()
    ]


def _told_filters() -> dict[str, ExchangeFilter]:
    code = F.col("body.error_code") == REBALANCE_IN_PROGRESS
    by_api = {
        HEARTBEAT: ("generation_id", code),
        SYNC: ("generation_id", code),
        COMMIT: (COMMIT_GENERATION, _has_partition_error()),
    }
    return {
        api_name: ExchangeFilter(
            api_name,
            request_columns(
                kind=F.lit(TOLD),
                protocol=F.lit(PROTOCOL),
                group_id=F.col("body.group_id"),
                members=members(F.lit(None).cast("string")),
                generation=F.col(f"body.{generation}").cast("bigint") + 1,
            ),
            response_columns(),
            response=is_told,
        )
        for api_name, (generation, is_told) in by_api.items()
    }


def _has_no_error(tables: AnalysisTables, api_name: str) -> bool:
    """Return whether it is known that none of an API's responses contains an error."""
    message = f"{api_name}Response"
    codes = [("body", *place.path) for place in error_places(message)]
    return tables.hold_only(message, codes, NO_ERROR)


def _has_partition_error() -> Column:
    codes = F.flatten("body.topics.partitions").getField("error_code")
    return F.exists(codes, lambda code: code == REBALANCE_IN_PROGRESS)


def with_history(events: DataFrame) -> DataFrame:
    """Add the known facts about the member and the adjacent generations to each event."""
    is_join = F.col("kind") == JOIN_EVENT
    of_member = Window.partitionBy(*GROUP, "member_id").orderBy("asked")
    before = of_member.rowsBetween(Window.unboundedPreceding, -1)
    all_of_member = Window.partitionBy(*GROUP, "member_id")
    is_given = F.coalesce(F.max("is_given").over(before), F.lit(False)) | F.col("is_given")
    joined_before = F.coalesce(F.max("joined").over(before), F.lit(False))

    def last(name: str) -> Column:
        return F.last(F.when(F.col("joined"), F.col(name)), ignorenulls=True).over(before)

    rows = events.withColumns(
        {
            "is_new": is_given & ~joined_before,
            "last_generation": last("generation"),
            "last_subscription": last("subscription"),
            "has_left": F.max(F.col("kind") == LEAVE_EVENT).over(all_of_member),
        }
    ).where(~is_join | F.col("joined"))
    here = Window.partitionBy(*GROUP, "generation")
    first = F.min(F.when(is_join, F.struct("asked", "member_id"))).over(here)
    answered = F.col("answered")
    rows = rows.withColumns(
        {
            "started": F.min(F.when(is_join, F.col("asked"))).over(here),
            "told": F.min(F.when(F.col("kind") == TOLD, answered)).over(here),
            "listed": F.max("listed").over(here),
            "is_first": first == F.struct("asked", "member_id"),
            "at": F.coalesce(
                F.max(F.when(is_join, answered)).over(here),
                F.min(F.when(F.col("kind").isin(EPOCH, COME), answered)).over(here),
            ),
            "beat": F.max(F.when(F.col("kind") == BEAT, answered)).over(
                Window.partitionBy(*GROUP, "generation", "member_id")
            ),
        }
    ).where(F.col("kind") != BEAT)
    by_generation = Window.partitionBy(*GROUP).orderBy("generation")
    one_before, one_after = by_generation.rangeBetween(-1, -1), by_generation.rangeBetween(1, 1)
    return rows.withColumns(
        {
            "listed_before": F.max("listed").over(one_before),
            "leader_before": F.max("leader").over(one_before),
            "listed_after": F.max("listed").over(one_after),
            "started_after": F.min("started").over(one_after),
            "told_after": F.min("told").over(one_after),
        }
    )


def joined_causes() -> dict[str, Column]:
    """Return for each cause whether a join proves that this cause led to the join's generation.

    The causes are new members, and known members that were the first to rejoin without being told
    to.
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


def session_expiry() -> Column:
    """Return the time when a member's session expired, or null if this is not proven.

    The proof is that the member is missing from the next generation, did not leave, and sent
    nothing for the length of its session timeout.
    """
    gone = F.array_contains(F.array_except("listed", "listed_after"), F.col("member_id"))
    alive = F.greatest(F.unix_micros("answered"), F.unix_micros("beat"))
    ended = F.timestamp_micros(alive + F.col("session_timeout_ms").cast("bigint") * 1000)
    is_over = ended <= F.least("started_after", "told_after")
    is_proven = gone & ~F.col("has_left") & F.col("started_after").isNotNull() & is_over
    return F.when(is_proven, ended)


PROTOCOLS: Final = {
    "consumer": "ConsumerGroupHeartbeat",
    "share": "ShareGroupHeartbeat",
    "streams": "StreamsGroupHeartbeat",
}
"""The heartbeat API of each protocol. All of them have ``group_id`` and ``member_epoch``."""


def heartbeat_exchanges(tables: AnalysisTables) -> list[ExchangeFilter]:
    """Return filters for joining members, which send epoch 0 and receive another epoch."""
    return [
        one
        for api_name, one in _heartbeat_filters().items()
        if tables.message(f"{api_name}Request") is not None
    ]


def _heartbeat_filters() -> dict[str, ExchangeFilter]:
    return {
        api_name: ExchangeFilter(
            api_name,
            request_columns(
                kind=F.lit(COME),
                protocol=F.lit(protocol),
                group_id=F.col("body.group_id"),
                members=members(F.col("body.member_id")),
            ),
            response_columns(
                error_code=F.col("body.error_code"), generation=F.col("body.member_epoch")
            ),
            request=F.col("body.member_epoch") == 0,
        )
        for protocol, api_name in PROTOCOLS.items()
    }


def heartbeat_epochs(tables: AnalysisTables, *, by_day: bool = False) -> list[DataFrame]:
    """Return the epochs that members sent, and the members that left (with an epoch below 0).

    The time of an epoch is the first time at which it was sent, on each day or on all days.
    """
    return [
        _epochs(requests, protocol, [day_of_time()] if by_day else [])
        for protocol, api_name in PROTOCOLS.items()
        if (requests := tables.message(f"{api_name}Request")) is not None
    ]


def _epochs(requests: DataFrame, protocol: str, days: Sequence[Column]) -> DataFrame:
    leaves = F.col("epoch") < 0
    named = requests.select(
        F.col("body.group_id").alias("group_id"),
        F.col("body.member_id").alias("member_id"),
        F.col("body.member_epoch").alias("epoch"),
        "time",
    )
    # A member repeats its epoch in many heartbeats. However, every time that a member leaves is
    # counted.
    first = (
        named.where("epoch != 0")
        .withColumn("left", F.when(leaves, F.col("time")))
        .groupBy(*days, "group_id", "member_id", "epoch", "left")
        .agg(F.min("time").alias("time"))
    )
    return events_of(
        first,
        group_id=F.col("group_id"),
        protocol=F.lit(protocol),
        kind=F.when(leaves, LEAVE_EVENT).otherwise(EPOCH),
        generation=F.when(~leaves, F.col("epoch")),
        member_id=F.col("member_id"),
        asked=F.col("left"),
        answered=F.col("time"),
    )
