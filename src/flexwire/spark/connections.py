"""The table of connections, and what it means for their frames that one is not Kafka.

Whether a connection is Kafka is known when it has ended, and its frames are given out before: to
hold them back would take as much memory as it has bytes. So the frames are joined with it here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.spark.frames import CONNECTION, FAILED, FRAME

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

NOT_KAFKA = "not Kafka"
"""The outcome of frames of a connection that is not Kafka."""

_UNBELIEVED = "nothing on this connection reads as Kafka"
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
    "expects_response",
)


def connections_table(wire: DataFrame) -> DataFrame:
    """Every connection once, those over which nothing was sent too.

    Its bytes and frames are those of `frames_table`, by direction.
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
        "connection", "facts.is_kafka", "facts.reads_as_kafka"
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
    return joined.withColumns(kept).drop("is_kafka", "reads_as_kafka")


def _error(is_other: Column, is_unread: Column) -> Column:
    unbelieved = F.coalesce("error", F.lit(_UNBELIEVED))
    return F.when(is_other, None).when(is_unread, unbelieved).otherwise(F.col("error"))
