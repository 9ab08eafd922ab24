"""Throttling: which clients a broker slows down by quotas, for which APIs, and who ignores it."""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, address, returns
from flexwire.answers.asking.throttled import throttled_waits, throttles
from flexwire.columnar.record_columns import MOMENT
from flexwire.facts.answers import AnswerPicture
from flexwire.tables.keys import frame_key
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables

_BY: Final = ("client_id", "address", "broker", "api_name")
COLUMNS: Final = (
    Column("client_id", pa.string(), "the client id", "if the client sent no client id",
           heading="Client id", is_about=True),
    Column("address", pa.string(), "the client's host", heading="Host"),
    Column("broker", pa.string(), "the broker's end of the connection", heading="Broker"),
    Column("api_name", pa.string(), 'the API whose responses throttle: "Produce"',
           heading="API", is_about=True),
    Column("responses", pa.int64(), "how many responses of this API the client got from the broker",
           heading="Responses"),
    Column("throttled", pa.int64(), "how many of these responses throttle the client",
           heading="Throttled"),
    Column("throttled_share", pa.float64(), "their share", heading="Of these"),
    Column("throttle_us", pa.int64(), "the sum of the throttle times, in microseconds",
           heading="In all"),
    Column("max_throttle_us", pa.int64(), "the longest throttle time", heading="Longest"),
    Column("first_time", MOMENT, "when the first throttling response was captured"),
    Column("last_time", MOMENT, "when the last throttling response was captured"),
    Column("early_requests", pa.int64(),
           "requests that the client sent on the connection after such a response, before its "
           "throttle time was over", "in request logs", heading="Sent early"),
    Column("pipelined_requests", pa.int64(),
           "requests that the client had sent before such a response came, and that also wait",
           "in request logs", heading="Pipelined"),
    Column("waited_us", pa.int64(),
           "how long both kinds of requests waited at the broker because of the throttling",
           "in request logs", heading="Waited"),
)  # fmt: skip


@returns(COLUMNS)
def throttling(tables: AnalysisTables) -> DataFrame | None:
    """Return throttled responses by client, broker and API.

    The ``throttle_time_ms`` of a response is the time for which the broker throttles the client. It
    is the longer of two throttle times, for bytes and for request time, and the response does not
    say which one. Some kinds of throttling are not in responses: throttling of replication, of
    connection rates, and of requests with acks 0.

    A client of Kafka 2.0 or later waits for that time before it sends again. If a client does not
    wait, its requests count as ``early_requests``, and the broker leaves them in the socket. The
    answer `latency` excludes this wait. Requests that were never answered are missing. Requests to
    a broker that responded again before the time was over are missing too: before 2.0, a broker
    waits before it responds.
    """
    throttled = throttles(tables)
    if throttled is None:
        return None
    frames = tables.frames
    key = frame_key(frames.columns)
    responses = frames.where("direction = 'response' and api_name is not null")
    who = responses.select(
        *key, "client_id", address(F.col("client")), "broker", "api_name", "latency_us"
    )
    every = who.groupBy(*_BY).agg(F.count("*").alias("responses"))
    throttled_of_client = throttled.drop("client_id", "api_name").join(who, [*key])
    counts = throttled_of_client.groupBy(*_BY).agg(
        F.count("*").alias("throttled"),
        F.sum("throttle_us").alias("throttle_us"),
        F.max("throttle_us").alias("max_throttle_us"),
        F.min("time").alias("first_time"),
        F.max("time").alias("last_time"),
        F.max(F.col("size").isNotNull()).alias("is_captured"),
    )
    waits = throttled_waits(tables, throttled).join(who.drop("client_id", "api_name"), [*key])
    waits = waits.select("address", "broker", "throttled_us", "is_pipelined", "cause.*")
    waited = waits.groupBy(*_BY).agg(
        F.count_if(~F.col("is_pipelined")).alias("early_requests"),
        F.count_if("is_pipelined").alias("pipelined_requests"),
        F.sum("throttled_us").alias("waited_us"),
    )
    rows = _with(_with(counts, every), waited)
    share = F.col("throttled") / F.col("responses")
    of_captures = {
        name: F.when(F.col("is_captured"), F.coalesce(name, F.lit(0).cast("bigint")))
        for name in ("early_requests", "pipelined_requests", "waited_us")
    }
    return rows.withColumns({"throttled_share": share, **of_captures})


def _with(rows: DataFrame, others: DataFrame) -> DataFrame:
    """Add columns from other rows with the same client, broker and API."""
    # If a client sent no client id, the value is null on both sides.
    renamed = others.withColumnsRenamed({name: f"other_{name}" for name in _BY})
    same = [F.col(name).eqNullSafe(F.col(f"other_{name}")) for name in _BY]
    return rows.join(renamed, reduce(and_, same), "left").drop(*(f"other_{name}" for name in _BY))


ANSWER: Final = Answer(
    name="throttling",
    place=30,
    question="Which clients are throttled, and at which API?",
    meaning=(
        "Responses that throttle their client, by client, broker and API. The traffic does not "
        "show which quota applied. A client that sends early does not wait until the throttle time "
        "is over, although it should."
    ),
    advice=(
        "Raise the quota of the client, or make the client send less. In producers, use larger "
        "batches and a codec. In consumers, use fewer fetches. If a client sends early, use a "
        "newer release of its library. The answer cluster_quotas lists the quotas, from the log of "
        "a controller."
    ),
    row="a client id at a host, broker and API",
    columns=COLUMNS,
    order=("-throttle_us", "-throttled", *_BY),
    ask=throttling,
    picture=AnswerPicture("How long clients were throttled", "throttle_us"),
)
