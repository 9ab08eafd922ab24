"""Which tagged fields were on the wire, known and unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.capture.pairing.state import WITHHELD_BYTES
from flexwire.facts.facts import TaggedFieldUse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FIELD = ("message", "path", "tag", "name")


def gather_tagged_fields(frames: DataFrame, outcomes: DataFrame) -> tuple[TaggedFieldUse, ...]:
    """The tagged fields of messages, from ``outcomes``, and of their headers, from ``frames``.

    Of known fields only those count that do not have their default: Kafka writes no others.
    """
    both = _of_messages(outcomes).unionByName(_of_headers(frames))
    rows = (
        both.groupBy(*_FIELD)
        .agg(
            F.collect_set("version").alias("versions"),
            F.sum("times").alias("times"),
            F.sum("bytes").alias("bytes"),
        )
        .collect()
    )
    return tuple(
        TaggedFieldUse(**{**row.asDict(), "versions": tuple(sorted(row.versions))}) for row in rows
    )


def _of_messages(outcomes: DataFrame) -> DataFrame:
    uses = outcomes.select(
        "message", F.col("body_version").alias("version"), F.explode("tagged_fields").alias("use")
    )
    return uses.select("message", "version", "use.*")


def _of_headers(frames: DataFrame) -> DataFrame:
    header = F.when(F.col("direction") == "request", "RequestHeader").otherwise("ResponseHeader")
    uses = frames.select(
        header.alias("message"),
        F.col("header_version").alias("version"),
        F.explode("header_unknown_tagged_fields").alias("field"),
    )
    shown = F.col("field.data") != F.lit(WITHHELD_BYTES)
    return uses.select(
        "message",
        "version",
        F.lit("").alias("path"),
        F.col("field.tag").alias("tag"),
        F.lit(None).cast("string").alias("name"),
        F.lit(1).cast("bigint").alias("times"),
        F.when(shown, F.length("field.data")).cast("bigint").alias("bytes"),
    )
