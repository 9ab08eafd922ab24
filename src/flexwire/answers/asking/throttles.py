"""Throttled responses, and how long the requests after them waited for it.

A broker that throttles a client responds at once and says for how long. It then reads nothing from
the connection until that time is over (KIP-219, Kafka 2.0). So the response has a normal latency,
and the next request of the connection waits unless its client does.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.window import Window

from flexwire.schema.catalog import catalog
from flexwire.tables.keys import connection_key, frame_key
from flexwire.tables.throttle_places import THROTTLE, throttled_messages

if TYPE_CHECKING:
    from flexwire.answers.asking.reading import AnalysisTables


def throttles(tables: AnalysisTables) -> DataFrame | None:
    """Return a row for each throttled response, or None if the tables surely have none.

    A row has the key of its frame, ``api_name``, ``client_id``, ``time``, ``size`` and
    ``throttle_us``, which is above 0.
    """
    found = [
        one
        for name in throttled_messages()
        if not tables.hold_only(name, [("body", THROTTLE)], 0)
        and (one := _throttles_of(tables, name)) is not None
    ]
    return reduce(DataFrame.unionByName, found) if found else None


def _throttles_of(tables: AnalysisTables, message: str) -> DataFrame | None:
    table = tables.message(message)
    if table is None:
        return None
    throttle = F.col(f"body.{THROTTLE}").cast("bigint") * 1000
    return table.where(throttle > 0).select(
        *frame_key(table.columns),
        F.lit(catalog().entry(message).type.api_name(message)).alias("api_name"),
        "client_id",
        "time",
        "size",
        throttle.alias("throttle_us"),
    )


def throttled_waits(tables: AnalysisTables, throttled: DataFrame) -> DataFrame:
    """Return a row for each response whose request waited because of an earlier throttled one.

    ``throttled`` are the rows of `throttles`. A row has the key of its frame; ``throttled_us``,
    which is above 0 and no more than the latency; ``is_pipelined``, which is true if the request
    was sent before the throttled response came; and ``cause``, the ``api_name`` and ``client_id``
    of that response.

    The wait is the part of the latency in which the broker read nothing from the connection. A
    broker that responds again before the time is over did not stop to read, so that time counts
    for nothing: brokers before 2.0 wait before they respond. A request log's latency begins when
    the broker has read the request, so it has no such wait.
    """
    frames = tables.frames
    key, connection = frame_key(frames.columns), connection_key(frames.columns)
    # Of connections without a throttled response nothing is sorted.
    captured = throttled.where("size is not null")
    some = frames.where("direction = 'response' and size is not null").join(
        captured.select(*connection).distinct(), [*connection], "left_semi"
    )
    rows = some.select(
        *key, "api_name", "client_id", F.unix_micros("time").alias("at"), "latency_us"
    ).join(captured.select(*key, "throttle_us"), [*key], "left")
    in_order = Window.partitionBy(*connection).orderBy("frame_index")
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    following = F.coalesce(F.lead("at").over(in_order), F.col("at") + F.col("throttle_us"))
    muted = F.when(F.col("at") + F.col("throttle_us") <= following, F.col("throttle_us"))
    rows = rows.withColumn("muted_us", F.coalesce(muted, F.lit(0)))
    cause = F.when(F.col("muted_us") > 0, F.struct("at", "api_name", "client_id"))
    rows = rows.withColumns(
        {
            "muted_before": F.coalesce(F.sum("muted_us").over(before), F.lit(0)),
            "cause": F.last(cause, ignorenulls=True).over(before),
        }
    )
    asked = rows.where("cause is not null and latency_us is not null").withColumns(
        {"moment": F.col("at") - F.col("latency_us"), "is_asked": F.lit(col=True)}
    )
    pauses = rows.where("muted_us > 0").select(
        *connection,
        F.col("at").alias("moment"),
        F.struct("at", "muted_before", "muted_us").alias("pause"),
        F.lit(col=False).alias("is_asked"),
    )
    both = asked.unionByName(pauses, allowMissingColumns=True)
    until = Window.partitionBy(*connection).orderBy("moment", "is_asked", "frame_index")
    until = until.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    last = F.last("pause", ignorenulls=True).over(until)
    both = both.withColumn("last", last).where("is_asked")
    # How long the broker read nothing before the request was sent, and before it was answered.
    of_last = F.least(F.col("moment") - F.col("last.at"), F.col("last.muted_us"))
    earlier = F.coalesce(F.col("last.muted_before") + of_last, F.lit(0))
    waited = both.withColumn("throttled_us", F.col("muted_before") - earlier)
    return waited.where("throttled_us > 0").select(
        *key,
        "throttled_us",
        (F.col("moment") < F.col("cause.at")).alias("is_pipelined"),
        F.struct("cause.api_name", "cause.client_id").alias("cause"),
    )
