"""Latency: how long clients waited for brokers, by API, broker and client."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs
from pyspark.sql.window import Window

from flexwire.answers.asking.answer import Answer, address
from flexwire.answers.asking.messages import record_bytes_of, throttled_waits, throttles
from flexwire.answers.asking.percentiles import at_rank, ranked, rounded
from flexwire.arguments import to_int
from flexwire.columnar.record_columns import MOMENT
from flexwire.facts.answers import AnswerPicture
from flexwire.facts.facts import least_of
from flexwire.tables.keys import connection_key, frame_key
from flexwire.tables.schema import Column
from flexwire.tables.spec_places import CARRYING_RESPONSES

if TYPE_CHECKING:
    from flexwire.answers.asking.answer import AnalysisTables

# The fields of a request for records that tell how long the broker may wait for records.
MAX_WAIT: Final = "max_wait_ms"
MIN_BYTES: Final = "min_bytes"

_PERCENTS: Final = (50, 90, 99)

COLUMNS: Final = (
    Column("api_name", pa.string(), 'the API: "Fetch"', heading="API", is_about=True),
    Column("broker", pa.string(), "the broker's end of the connection",
           heading="Broker", is_about=True),
    Column("client_id", pa.string(), "the client id", "if the client sent none",
           heading="Client id", is_about=True),
    Column("address", pa.string(), "the client's host"),
    Column(
        "waited", pa.bool_(),
           "whether these are requests for records that were answered after their max wait with "
           "fewer bytes than they asked for, so that the broker waited as requested",
    heading="Waited for records",
),
    Column("responses", pa.int64(), "how many responses", heading="Responses"),
    Column("p50_us", pa.int64(), "the median latency in microseconds: half of them took no longer",
           heading="Half within"),
    *(
        Column(f"p{percent}_us", pa.int64(), f"{percent} in a hundred took no longer",
               f"for fewer than {least_of(percent)} responses: it would be the slowest",
               heading=f"{percent} % within")
        for percent in _PERCENTS[1:]
    ),
    Column("max_us", pa.int64(), "the slowest", heading="Slowest"),
    Column("slowest_connection", pa.string(), "the connection of the slowest response",
           heading="Its connection"),
    Column("slowest_frame_index", pa.int64(), "the response's frame_index there",
           heading="Its frame"),
    Column("slowest_time", MOMENT, "when its response was captured"),
    Column("throttled", pa.int64(), "how many of the requests waited because the broker had "
           "throttled the client on their connection", heading="Throttled"),
    Column("throttled_us", pa.int64(),
           "how long these requests waited in total; no latency here includes this time",
           heading="Waited for that"),
    Column("pipelined", pa.int64(), (
        "how many of them were sent before the throttled response came; their latency includes "
        "the wait until then"
    )),
)  # fmt: skip
SLOWEST_COLUMNS: Final = (
    *COLUMNS[:5],
    Column("rank", pa.int32(), "1 for the slowest of its row in `latency`"),
    Column("latency_us", pa.int64(), "how long it took, in microseconds, without ``throttled_us``"),
    Column("connection", pa.string(), "its connection"),
    Column("frame_index", pa.int64(), "the response's frame_index there"),
    Column("time", MOMENT, "when its response was captured"),
    Column("throttled_us", pa.int64(), "how long its request waited because the broker had "
           "throttled the client; 0 if it had not"),
)  # fmt: skip

_BY: Final = tuple(column.name for column in COLUMNS[:5])


def latency(tables: AnalysisTables) -> DataFrame:
    """Return how long requests took, for each API, broker and client.

    A latency is the time from the request's last byte to the response's, at the place of the
    capture. Count and maximum are exact. A percentile is exact below 100 ms, and rounded down to
    five digits from there on. A percentile that would be the slowest response is null.

    If a broker held a request for records for its whole max wait, because there were too few
    records, the request has a row of its own (``waited``). Other intentional waits are unknown: a
    fetch that got its records late, a JoinGroup that waits for other members, a Produce that waits
    for replicas.

    A broker that throttles a client responds at once, and then reads nothing from the connection
    for the throttle time. A request that arrives in that time waits. Its latency excludes this
    wait, which is in ``throttled_us``.
    """
    slowest = F.max(F.struct("latency_us", "time", "connection", "frame_index"))
    parts = (
        _responses(tables)
        .groupBy(*_BY, rounded("latency_us").alias("rounded_us"))
        .agg(
            F.count("*").alias("responses"),
            slowest.alias("slowest"),
            F.count_if(F.col("throttled_us") > 0).alias("throttled"),
            F.sum("throttled_us").alias("throttled_us"),
            F.count_if("is_pipelined").alias("pipelined"),
        )
    )
    sums = ("responses", "throttled", "throttled_us", "pipelined")
    rows = (
        ranked(parts, _BY, "rounded_us", "responses")
        .groupBy(*_BY)
        .agg(
            *(F.sum(name).alias(name) for name in sums),
            F.max("slowest").alias("slowest"),
            *(at_rank("rounded_us", percent).alias(f"at_{percent}") for percent in _PERCENTS),
        )
    )
    return rows.select(
        *_BY,
        "responses",
        F.col("at_50").alias("p50_us"),
        *(
            F.when(F.col("responses") >= least_of(percent), F.col(f"at_{percent}")).alias(
                f"p{percent}_us"
            )
            for percent in _PERCENTS[1:]
        ),
        F.col("slowest.latency_us").alias("max_us"),
        F.col("slowest.connection").alias("slowest_connection"),
        F.col("slowest.frame_index").alias("slowest_frame_index"),
        F.col("slowest.time").alias("slowest_time"),
        "throttled",
        "throttled_us",
        "pipelined",
    )


def slowest(tables: AnalysisTables, most: int = 5) -> DataFrame:
    """Return the slowest responses of each row of `latency`, so that you can look them up."""
    order = (F.desc("latency_us"), "time", "connection", "frame_index")
    rank = F.row_number().over(Window.partitionBy(*_BY).orderBy(*order))
    ranked = _responses(tables).withColumn("rank", rank)
    rows = ranked.where(F.col("rank") <= to_int(most, "most", least=1))
    return rows.select(*(column.name for column in SLOWEST_COLUMNS))


def _responses(tables: AnalysisTables) -> DataFrame:
    """Return the responses to known requests, with `_BY`, and how long the requests waited."""
    key = frame_key(tables.frames.columns)
    responses = tables.frames.where(
        "direction = 'response' and latency_us is not null and api_name is not null"
    )
    # A connection may reuse a correlation id, but not at the same moment.
    sent_at = F.timestamp_micros(F.unix_micros("time") - F.col("latency_us"))
    responses = responses.select(
        *key, "api_name", "broker", "client_id", "client", "message", "latency_us", "time",
        "correlation_id", sent_at.alias("asked"),
    )  # fmt: skip
    responses = _without_throttling(responses, tables)
    waiting = [message for message in CARRYING_RESPONSES if tables.message(message) is not None]
    parts = [
        responses.where(~F.col("message").isin(waiting)).withColumn("waited", F.lit(col=False)),
        *(
            _fetches(responses.where(F.col("message") == message), tables, message)
            for message in waiting
        ),
    ]
    every = reduce(DataFrame.unionByName, parts)
    return every.withColumn("address", address(F.col("client")))


def _without_throttling(responses: DataFrame, tables: AnalysisTables) -> DataFrame:
    """Add ``throttled_us`` to responses, and subtract it from their ``latency_us``."""
    throttled = throttles(tables)
    nothing = F.lit(0).cast("bigint")
    if throttled is None:
        return responses.withColumns({"throttled_us": nothing, "is_pipelined": F.lit(col=False)})
    waits = throttled_waits(tables, throttled).drop("cause")
    with_waits = responses.join(waits, [*frame_key(responses.columns)], "left")
    throttled_us = F.coalesce("throttled_us", nothing)
    return with_waits.withColumns(
        {"throttled_us": throttled_us, "latency_us": F.col("latency_us") - throttled_us}
    )


def _fetches(frames: DataFrame, tables: AnalysisTables, message: str) -> DataFrame:
    """Return the responses of an API that carries records, and whether the broker waited fully."""
    requests = tables.message(message.removesuffix("Response") + "Request")
    responses = tables.message(message)
    if requests is None or responses is None:
        return frames.withColumn("waited", F.lit(col=False))
    connection, key = connection_key(frames.columns), frame_key(frames.columns)
    requested = requests.select(
        *connection,
        "correlation_id",
        F.col("time").alias("asked"),
        F.col(f"body.{MAX_WAIT}").cast("bigint").alias("max_wait_ms"),
        F.col(f"body.{MIN_BYTES}").alias("min_bytes"),
    )
    got = record_bytes_of(message, responses).alias("record_bytes")
    answers = responses.select(*key, got)
    joined = frames.join(requested, [*connection, "correlation_id", "asked"], "left")
    joined = joined.join(answers, [*key], "left")
    waited = (F.col("latency_us") >= F.col("max_wait_ms") * 1000) & (
        F.col("record_bytes") < F.col("min_bytes")
    )
    joined = joined.withColumn("waited", F.coalesce(waited, F.lit(False)))
    return joined.select(*frames.columns, "waited")


ANSWER: Final = Answer(
    name="latency",
    place=20,
    question="Which requests are slow, and which clients send them?",
    meaning=(
        "The time from a request's last byte to its response's last byte, at the place of the "
        "capture. Fetches that waited for records, as requested, have their own rows. The time "
        "for which a request waited because its client was throttled is left out."
    ),
    advice="Compare brokers for the same API and client. To look up the slowest response, use its "
    "connection and frame in the table of frames.",
    row="an API, broker and client",
    columns=COLUMNS,
    order=("waited", "-p99_us", "-max_us", "api_name", "broker", "client_id", "address"),
    ask=latency,
    picture=AnswerPicture("The slowest response", "max_us"),
)
