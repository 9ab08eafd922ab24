"""What happens in groups, of whatever protocol: one row an event, all of them read once."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.answers.asking.exchanges import exchanges_of
from flexwire.protocol.error_codes import MEMBER_ID_REQUIRED, NO_ERROR

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column

    from flexwire.answers.asking.exchanges import Wanted
    from flexwire.answers.asking.reading import AnalysisTables

JOIN: Final = "join"
TOLD: Final = "told"
BEAT: Final = "beat"
LEAVE: Final = "leave"
EPOCH: Final = "epoch"
COME: Final = "come"
"""Kinds of events: a JoinGroup; members told to join again, heard of, or leaving; an epoch that a
member named, and one that it was told as it joined."""

_ASKED: Final = {
    "kind": "string",
    "protocol": "string",
    "group_id": "string",
    "members": "array<struct<member_id: string, reason: string>>",
    "generation": "bigint",
    "asks_for_id": "boolean",
    "subscription": "bigint",
    "session_timeout_ms": "int",
}
_TOLD: Final = {
    "error_code": "int",
    "member_id": "string",
    "generation": "bigint",
    "leader": "string",
    "listed": "array<string>",
}
_EVENT: Final = {
    "group_id": "string",
    "protocol": "string",
    "kind": "string",
    "generation": "bigint",
    "member_id": "string",
    "asked": "timestamp",
    "answered": "timestamp",
    "is_good": "boolean",
    "is_given": "boolean",
    "joined": "boolean",
    "leader": "string",
    "listed": "array<string>",
    "subscription": "bigint",
    "session_timeout_ms": "int",
    "reason": "string",
}


def asked(**columns: Column) -> Column:
    """What a request asks; what is not given is null."""
    return F.struct(*_typed(_ASKED, columns))


def told(**columns: Column) -> Column:
    """What a response tells; what is not given is null."""
    return F.struct(*_typed(_TOLD, columns))


def members(member_id: Column, reason: Column | None = None) -> Column:
    """The one member that a request is of."""
    why = F.lit(None).cast("string") if reason is None else reason
    return F.array(F.struct(member_id.alias("member_id"), why.alias("reason")))


def events_of(rows: DataFrame, **columns: Column) -> DataFrame:
    """Events of rows, of which these columns are known."""
    return rows.select(*_typed(_EVENT, columns))


def events(
    tables: AnalysisTables, wanted: Sequence[Wanted], others: Sequence[DataFrame]
) -> DataFrame:
    """All events: of exchanges, and others; all of a group are in one partition."""
    found = exchanges_of(tables, wanted)
    parts = [*others] if found is None else [_of_exchanges(found), *others]
    # What follows asks by group, and by what is in it: nothing is sent about again.
    return reduce(DataFrame.unionByName, parts).repartition("group_id", "protocol")


def _of_exchanges(found: DataFrame) -> DataFrame:
    each = found.select("asked", "answered", "request", "response", F.inline("request.members"))
    code, is_join = F.col("response.error_code"), F.col("request.kind") == JOIN
    is_good = code == NO_ERROR
    # Only a member without an id is told so: its id is new when it comes back with it.
    is_given = (code == MEMBER_ID_REQUIRED) | (is_good & F.col("request.asks_for_id"))
    made = events_of(
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
    return made.where(F.coalesce(F.col("joined") | F.col("is_given"), F.lit(True)))


def _typed(kinds: Mapping[str, str], columns: Mapping[str, Column]) -> list[Column]:
    return [columns.get(name, F.lit(None)).cast(kind).alias(name) for name, kind in kinds.items()]
