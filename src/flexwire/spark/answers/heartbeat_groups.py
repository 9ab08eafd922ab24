"""Groups whose heartbeats have an epoch (KIP-848 and after): epochs, and what led there."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.spark.answers.exchanges import exchanges

if TYPE_CHECKING:
    from flexwire.spark.answers.reading import AnalysisTables

PROTOCOLS: Final = {
    "consumer": "ConsumerGroupHeartbeat",
    "share": "ShareGroupHeartbeat",
    "streams": "StreamsGroupHeartbeat",
}
"""By protocol the API of its heartbeats, all of which have ``group_id`` and ``member_epoch``."""

# What a member says with its epoch: it joins with 0, and leaves with less.
_JOINS: Final = "body.member_epoch = 0"
_LEAVES: Final = "body.member_epoch < 0"


def heartbeat_generations(tables: AnalysisTables) -> DataFrame | None:
    """The epochs that members named, or were told when they joined; None where there are none."""
    parts = [one for protocol in PROTOCOLS for one in _epochs(tables, protocol)]
    if not parts:
        return None
    named = reduce(DataFrame.unionByName, parts).where("generation > 0")
    return named.groupBy("group_id", "protocol", "generation").agg(
        F.min("time").alias("time"),
        F.lit(None).cast("bigint").alias("rebalance_us"),
        F.count_distinct("member_id").alias("members"),
        F.array().cast("array<string>").alias("reasons"),
    )


def heartbeat_signs(tables: AnalysisTables) -> DataFrame | None:
    """Members that joined, and the epoch that they were told, and members that left."""
    parts: list[DataFrame] = []
    for protocol, api_name in PROTOCOLS.items():
        joins = exchanges(tables, api_name, request=F.expr(_JOINS))
        if joins is not None:
            came = joins.where("response.error_code = 0")
            parts.append(_sign(came, protocol, "new member", "request", "response.member_epoch"))
        requests = tables.message(f"{api_name}Request")
        if requests is not None:
            left = requests.where(_LEAVES).withColumn("asked", F.col("time"))
            parts.append(_sign(left, protocol, "member left", "body", "null"))
    return reduce(DataFrame.unionByName, parts) if parts else None


def _epochs(tables: AnalysisTables, protocol: str) -> list[DataFrame]:
    api_name = PROTOCOLS[protocol]
    found = []
    requests = tables.message(f"{api_name}Request")
    if requests is not None:
        found.append(_named(requests, protocol, "body", "body.member_epoch", "time"))
    joins = exchanges(tables, api_name, request=F.expr(_JOINS))
    if joins is not None:
        told = "response.member_epoch"
        found.append(_named(joins, protocol, "request", told, "answered"))
    return found


def _named(rows: DataFrame, protocol: str, body: str, epoch: str, time: str) -> DataFrame:
    return rows.select(
        F.col(f"{body}.group_id").alias("group_id"),
        F.lit(protocol).alias("protocol"),
        F.col(epoch).alias("generation"),
        F.col(f"{body}.member_id").alias("member_id"),
        F.col(time).alias("time"),
    )


def _sign(rows: DataFrame, protocol: str, cause: str, body: str, generation: str) -> DataFrame:
    return rows.select(
        F.col(f"{body}.group_id").alias("group_id"),
        F.lit(protocol).alias("protocol"),
        F.expr(generation).cast("int").alias("generation"),
        F.lit(cause).alias("cause"),
        F.col(f"{body}.member_id").alias("member_id"),
        F.col("asked").alias("sign_time"),
        F.lit(None).cast("string").alias("reason"),
    )
