"""Requests joined with their responses, over whatever files their frames lie in.

Which request a response answers is decided where the connection's frames stream by, in one task and
in order: a `flexwire.protocol.conversation.Conversation` gives both the number of their pair. Here
rows are joined by it, however far apart they are, and each gets what its counterpart says.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.capture.pairing.state import NOT_KAFKA, UNPAIRED, UNPAIRED_REASON
from flexwire.spark.by_objects.connections import judged_frames
from flexwire.spark.by_objects.frames import FRAME
from flexwire.tables.keys import FRAME_KEY

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PAIR = ("connection", "pair")
# What a response has from its request.
_GIVEN = ("api_key", "api_version", "client_id")


def pair_frames(wire: DataFrame) -> DataFrame:
    """Every frame without its payload, with what its counterpart says.

    A response gets api key, version, client id and message from its request, and ``latency_us``
    from the request's last byte to its own; without its request its ``outcome`` is `UNPAIRED`. A
    request gets ``answered``, which is null when it expects no response, and where the capture
    lacks a part of the request and has no response to it. A frame of a connection that is not
    Kafka has its size and the ``outcome`` `NOT_KAFKA`, and no counterpart.
    """
    judged = judged_frames(wire)
    requests = judged.where(F.col("direction") == "request")
    responses = judged.where(F.col("direction") == "response")
    return _with_answers(requests, responses).unionByName(_with_requests(responses, requests))


def with_payloads(
    paired: DataFrame, wire: DataFrame, *, show_credentials: bool = False
) -> DataFrame:
    """The paired frames with their payloads again; ``body`` is the message to decode, if any.

    Where a frame has no body, its bytes may be credentials: of a response without its request, of
    what is not Kafka, and of a connection on which authentication may be under way. Those are
    withheld unless ``show_credentials``.
    """
    payloads = wire.where(F.col("kind") == FRAME).select(*FRAME_KEY, "payload")
    body = F.when(F.col("outcome").isNull(), F.col("message"))
    joined = paired.join(payloads, list(FRAME_KEY)).withColumn("body", body)
    if show_credentials:
        return joined
    is_withheld = F.col("outcome").isin(UNPAIRED, NOT_KAFKA) | F.col("is_guarded")
    is_withheld = F.coalesce(F.col("outcome").isNotNull() & is_withheld, F.lit(False))
    # What is not Kafka is counted as such.
    is_counted = is_withheld & (F.length("payload") > 0) & (F.col("outcome") != NOT_KAFKA)
    withheld = F.when(is_counted, 1).otherwise(F.col("withheld_credentials"))
    return joined.withColumns(
        {"payload": F.when(~is_withheld, F.col("payload")), "withheld_credentials": withheld}
    )


def _with_answers(requests: DataFrame, responses: DataFrame) -> DataFrame:
    answers = responses.where(F.col("pair").isNotNull())
    answers = answers.select(*_PAIR, F.lit(True).alias("has_answer"))
    is_whole = F.col("pair").isNotNull() & F.col("outcome").isNull()
    return requests.join(answers, list(_PAIR), "left").select(
        *[name for name in requests.columns if name != "pair"],
        F.coalesce("has_answer", F.when(is_whole, F.lit(False))).alias("answered"),
        F.lit(None).cast("bigint").alias("latency_us"),
    )


def _with_requests(responses: DataFrame, requests: DataFrame) -> DataFrame:
    given = requests.where(F.col("pair").isNotNull()).select(
        *_PAIR,
        *_GIVEN,
        F.col("message").alias("request_message"),
        F.col("time").alias("request_time"),
    )
    # "ListOffsetRequest" is answered by "ListOffsetResponse".
    message = F.regexp_replace("request_message", "Request$", "Response")
    latency = F.unix_micros("time") - F.unix_micros("request_time")
    unpaired = F.col("outcome").isNull() & F.col("request_message").isNull()
    own = responses.drop(*_GIVEN, "message")
    joined = own.join(given, list(_PAIR), "left")
    reason = F.format_string(UNPAIRED_REASON, "correlation_id")
    return joined.select(
        *[name for name in own.columns if name not in ("outcome", "error", "pair")],
        F.when(unpaired, F.lit(UNPAIRED)).otherwise(F.col("outcome")).alias("outcome"),
        F.when(unpaired, reason).otherwise(F.col("error")).alias("error"),
        message.alias("message"),
        *_GIVEN,
        F.lit(None).cast("boolean").alias("answered"),
        latency.alias("latency_us"),
    )
