"""Groups whose heartbeats have an epoch (KIP-848 and after): what happens in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.answers.asking import group_events as event
from flexwire.answers.asking.exchanges import Wanted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.reading import AnalysisTables

PROTOCOLS: Final = {
    "consumer": "ConsumerGroupHeartbeat",
    "share": "ShareGroupHeartbeat",
    "streams": "StreamsGroupHeartbeat",
}
"""By protocol the API of its heartbeats, all of which have ``group_id`` and ``member_epoch``."""


def heartbeat_exchanges(tables: AnalysisTables) -> list[Wanted]:
    """Where members join, which they say with the epoch 0, and are told an epoch."""
    return [
        Wanted(
            api_name,
            event.asked(
                kind=F.lit(event.COME),
                protocol=F.lit(protocol),
                group_id=F.col("body.group_id"),
                members=event.members(F.col("body.member_id")),
            ),
            event.told(error_code=F.col("body.error_code"), generation=F.col("body.member_epoch")),
            request=F.col("body.member_epoch") == 0,
        )
        for protocol, api_name in PROTOCOLS.items()
        if tables.message(f"{api_name}Request") is not None
    ]


def heartbeat_epochs(tables: AnalysisTables) -> list[DataFrame]:
    """The epochs that members named, and those that leave, which an epoch below 0 says."""
    return [
        _epochs(requests, protocol)
        for protocol, api_name in PROTOCOLS.items()
        if (requests := tables.message(f"{api_name}Request")) is not None
    ]


def _epochs(requests: DataFrame, protocol: str) -> DataFrame:
    leaves = F.col("epoch") < 0
    named = requests.select(
        F.col("body.group_id").alias("group_id"),
        F.col("body.member_id").alias("member_id"),
        F.col("body.member_epoch").alias("epoch"),
        "time",
    )
    # A member names its epoch again and again; each time that one leaves counts.
    first = (
        named.where("epoch != 0")
        .withColumn("left", F.when(leaves, F.col("time")))
        .groupBy("group_id", "member_id", "epoch", "left")
        .agg(F.min("time").alias("time"))
    )
    return event.events_of(
        first,
        group_id=F.col("group_id"),
        protocol=F.lit(protocol),
        kind=F.when(leaves, event.LEAVE).otherwise(event.EPOCH),
        generation=F.when(~leaves, F.col("epoch")),
        member_id=F.col("member_id"),
        asked=F.col("left"),
        answered=F.col("time"),
    )
