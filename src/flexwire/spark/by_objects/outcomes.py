"""The table of frames: each frame's facts, with what became of it when it was decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.capture.pairing.state import FAILED
from flexwire.tables.frames import DECODED, LENIENT, OF_BODY
from flexwire.tables.keys import FRAME_KEY

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

# Where a client says what software it is, since version 3 (KIP-511).
SOFTWARE_MESSAGE = "ApiVersionsRequest"
SOFTWARE = pa.schema(
    [
        ("connection", pa.string()),
        ("client_software_name", pa.string()),
        ("client_software_version", pa.string()),
    ]
)
_CONNECTION = r"^(.*)>(.*?)(#\d+)?$"


def frames_table(frames: DataFrame, outcomes: DataFrame, software: DataFrame) -> DataFrame:
    """Every frame once, from the paired ``frames``, the message tables' ``outcomes``, `software`.

    ``outcome`` is "decoded", "lenient" (the body breaks its spec, as ``error`` says, and decodes as
    Kafka's Java reads it), "failed" (framing, header or body; ``error`` has the reason and
    ``bytes`` the bytes), "unpaired" (a response without its request), "token" (of a SASL exchange,
    which has no message) or "not Kafka" (of a connection that is not, so nothing but its size is
    told). ``withheld_credentials`` counts the fields that were replaced,
    or is 1 where all bytes were kept out. ``latency_us`` stands on responses, ``answered`` on
    requests.
    """
    decoded = frames.where("body is not null").drop("payload")
    # These come from the message's table, where the body told them.
    known = decoded.drop(
        "header_version",
        "header_unknown_tagged_fields",
        "withheld_credentials",
        "error",
        "outcome",
    )
    results = outcomes.select(*FRAME_KEY, *OF_BODY)
    with_results = known.join(results, list(FRAME_KEY))
    broken = F.when(F.col("body_version").isNull(), FAILED).otherwise(LENIENT)
    with_results = with_results.withColumn(
        "outcome", F.when(F.col("error").isNull(), DECODED).otherwise(broken)
    )
    others = frames.where("body is null").withColumnRenamed("payload", "bytes")
    every = with_results.unionByName(others, allowMissingColumns=True)
    return every.join(software, "connection", "left").select(*_columns())


def _columns() -> list[Column | str]:
    return [
        "time",
        "connection",
        F.regexp_extract("connection", _CONNECTION, 1).alias("client"),
        F.regexp_extract("connection", _CONNECTION, 2).alias("broker"),
        "direction",
        "frame_index",
        "message",
        "api_key",
        F.regexp_replace("message", "(Request|Response)$", "").alias("api_name"),
        "api_version",
        "body_version",
        "correlation_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "header_version",
        "header_unknown_tagged_fields",
        "size",
        "latency_us",
        "answered",
        "outcome",
        "error",
        F.when(F.col("outcome") != DECODED, F.col("bytes")).alias("bytes"),
        "withheld_credentials",
        "source",
    ]


def software_of(api_versions: DataFrame) -> DataFrame:
    """The software of each connection's client, as its first ApiVersions request that names it.

    It holds for the whole connection, its earlier frames included: it is the same client.
    """
    told = api_versions.where("body.client_software_name != ''")
    first = F.min_by("body", "frame_index")
    return (
        told.groupBy("connection")
        .agg(first.alias("body"))
        .select(
            "connection",
            F.col("body.client_software_name").alias("client_software_name"),
            F.nullif("body.client_software_version", F.lit("")).alias("client_software_version"),
        )
    )
