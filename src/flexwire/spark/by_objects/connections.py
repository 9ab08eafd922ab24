"""The table of connections, and what it means for their frames that one is not Kafka.

Whether a connection is Kafka is known when it has ended, and its frames are given out before: to
hold them back would take as much memory as it has bytes. So the frames are joined with it here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.capture.pairing.state import FAILED, NOT_KAFKA, UNBELIEVED
from flexwire.facts.facts import ConnectionFacts, OtherConnection
from flexwire.measures.connections import SHOWN
from flexwire.spark.by_objects.frames import CONNECTION, FRAME

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# What a frame says of itself, where it can be believed.
_READ = (
    "message",
    "api_key",
    "api_version",
    "correlation_id",
    "client_id",
    "header_version",
    "body_offset",
    "header_unknown_tagged_fields",
    "pair",
)


def connections_table(wire: DataFrame) -> DataFrame:
    """Every connection once, those over which nothing was sent too.

    Its bytes and frames are those of `frames_table`, by direction. What became of the bytes of its
    segments, and which are in no frame, is told as in `CapturedConnection`.
    """
    return wire.where(F.col("kind") == CONNECTION).select("connection", "facts.*")


def kafka_only(frames: DataFrame) -> DataFrame:
    """Of the table of frames those whose connection is Kafka."""
    return frames.where(F.col("outcome") != NOT_KAFKA)


def judged_frames(wire: DataFrame) -> DataFrame:
    """Every frame without its payload, and with what is known of its connection.

    A frame of a connection that is not Kafka has the outcome `NOT_KAFKA`, and says nothing but its
    size. Where a connection is Kafka because its end was given as a broker, and nothing on it reads
    as Kafka, its requests have failed and name nobody.
    """
    facts = wire.where(F.col("kind") == CONNECTION).select(
        "connection", "facts.is_kafka", "facts.reads_as_kafka", "facts.seen_from_start"
    )
    frames = wire.where(F.col("kind") == FRAME).drop("kind", "payload", "facts")
    joined = frames.join(facts, "connection", "left")
    is_other = ~F.coalesce("is_kafka", F.lit(True))
    is_unread = ~F.coalesce("reads_as_kafka", F.lit(True)) & (F.col("direction") == "request")
    is_nobody = is_other | is_unread
    kept = {name: F.when(~is_nobody, F.col(name)) for name in _READ}
    kept["outcome"] = (
        F.when(is_other, NOT_KAFKA).when(is_unread, FAILED).otherwise(F.col("outcome"))
    )
    kept["error"] = _error(is_other, is_unread)
    kept["withheld_credentials"] = F.when(is_other, 0).otherwise(F.col("withheld_credentials"))
    # A connection may have begun with authentication that the capture lacks.
    is_known = F.coalesce(F.col("seen_from_start") & F.col("reads_as_kafka"), F.lit(False))
    kept["is_guarded"] = F.col("is_guarded") | ~is_known
    return joined.withColumns(kept).drop("is_kafka", "reads_as_kafka", "seen_from_start")


def _error(is_other: Column, is_unread: Column) -> Column:
    unbelieved = F.coalesce("error", F.lit(UNBELIEVED))
    return F.when(is_other, None).when(is_unread, unbelieved).otherwise(F.col("error"))


def gather_connections(connections: DataFrame) -> ConnectionFacts:
    """The facts of all connections but those that the totals are about."""
    carried = F.col("request_bytes") + F.col("response_bytes")
    others = connections.where(~F.col("is_kafka") & (carried > 0))
    (counted,) = connections.agg(
        F.count_if(carried == 0).alias("silent"),
        F.count_if((carried > 0) & F.col("is_kafka") & ~F.col("reads_as_kafka")).alias("unread"),
    ).collect()
    (sums,) = others.agg(
        F.count("*").alias("not_kafka"),
        F.coalesce(F.sum(F.col("request_frames") + F.col("response_frames")), F.lit(0)).alias(
            "not_kafka_frames"
        ),
        F.coalesce(F.sum(carried), F.lit(0)).alias("not_kafka_bytes"),
    ).collect()
    largest = (
        others.orderBy(F.desc(carried), "connection")
        .limit(SHOWN)
        .select(
            "client",
            "broker",
            F.unix_micros("first_time").alias("first_time_us"),
            "request_bytes",
            "response_bytes",
            "evidence",
            "looks_like",
        )
    )
    shown = tuple(OtherConnection(**row.asDict()) for row in largest.collect())
    return ConnectionFacts(**counted.asDict(), **sums.asDict(), others=shown)
