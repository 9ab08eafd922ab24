"""Latency: how long clients waited for brokers, by API, broker and client."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.window import Window

from flexwire.arguments import to_int
from flexwire.columnar.record_schema import MOMENT
from flexwire.report.answer_facts import Picture, ShownColumn
from flexwire.spark.answers.answer import Answer
from flexwire.spark.answers.carried import ANSWERED_WITH, record_bytes_of
from flexwire.spark.answers.clients import address
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from flexwire.spark.answers.reading import AnalysisTables

# With these fields a request that asks for records says how long the broker may wait for some.
MAX_WAIT: Final = "max_wait_ms"
MIN_BYTES: Final = "min_bytes"
ACCURACY: Final = 10_000
"""A percentile's rank is off by at most one in so many."""

COLUMNS: Final = (
    Column("api_name", pa.string(), 'the API: "Fetch"'),
    Column("broker", pa.string(), "the broker's end of the connection"),
    Column("client_id", pa.string(), "the client id", "where the client sent none"),
    Column("address", pa.string(), "the client's host"),
    Column(
        "waited", pa.bool_(), "whether these are requests for records that were answered after "
        "their max wait with fewer bytes than they asked for: the broker waited as it was told to",
    ),
    Column("responses", pa.int64(), "how many responses"),
    Column("p50_us", pa.int64(), "half of them took no longer, in microseconds"),
    Column("p90_us", pa.int64(), "90 in a hundred took no longer"),
    Column("p99_us", pa.int64(), "99 in a hundred took no longer"),
    Column("max_us", pa.int64(), "the slowest one"),
    Column("slowest_connection", pa.string(), "the connection of the slowest"),
    Column("slowest_frame_index", pa.int64(), "the response's frame_index there"),
    Column("slowest_time", MOMENT, "when its response was captured"),
)  # fmt: skip
SLOWEST_COLUMNS: Final = (
    *COLUMNS[:5],
    Column("rank", pa.int32(), "1 for the slowest of its row in `latency`"),
    Column("latency_us", pa.int64(), "how long it took, in microseconds"),
    Column("connection", pa.string(), "its connection"),
    Column("frame_index", pa.int64(), "the response's frame_index there"),
    Column("time", MOMENT, "when its response was captured"),
)

_BY: Final = tuple(one.name for one in COLUMNS[:5])


def latency(tables: AnalysisTables) -> DataFrame:
    """How long requests took, a row for each API, broker and client.

    It is from the request's last byte to the response's, where the capture was made. Percentiles
    are latencies that were seen; the rank of each is off by at most one in `ACCURACY`, and count
    and most are exact. Requests for records that a broker held for all of their max wait, because
    there were not enough, are in rows of their own (``waited``). It does not know of others how
    long the broker held them on purpose: a fetch that got its records late, a JoinGroup that
    waits for other members, a Produce that waits for replicas.
    """
    slowest = F.max(F.struct("latency_us", "time", "connection", "frame_index"))
    percentiles = F.percentile_approx("latency_us", [0.5, 0.9, 0.99], ACCURACY)
    each = _responses(tables).groupBy(*_BY)
    found = each.agg(
        F.count("*").alias("responses"), percentiles.alias("at"), slowest.alias("slowest")
    )
    return found.select(
        *_BY,
        "responses",
        *(
            F.col("at")[place].alias(name)
            for place, name in enumerate(("p50_us", "p90_us", "p99_us"))
        ),
        F.col("slowest.latency_us").alias("max_us"),
        F.col("slowest.connection").alias("slowest_connection"),
        F.col("slowest.frame_index").alias("slowest_frame_index"),
        F.col("slowest.time").alias("slowest_time"),
    )


def slowest(tables: AnalysisTables, most: int = 5) -> DataFrame:
    """The slowest responses of each row of `latency`, up to so many, to be looked up."""
    order = (F.desc("latency_us"), "time", "connection", "frame_index")
    rank = F.row_number().over(Window.partitionBy(*_BY).orderBy(*order))
    ranked = _responses(tables).withColumn("rank", rank)
    found = ranked.where(F.col("rank") <= to_int(most, "most", least=1))
    return found.select(*(one.name for one in SLOWEST_COLUMNS))


def _responses(tables: AnalysisTables) -> DataFrame:
    """The responses whose requests are known, with `_BY`."""
    told = tables.frames.where(
        "direction = 'response' and latency_us is not null and api_name is not null"
    )
    told = told.select(
        "api_name", "broker", "client_id", "client", "message",
        "latency_us", "connection", "frame_index", "time", "correlation_id",
    )  # fmt: skip
    waiting = [one for one in ANSWERED_WITH if tables.message(one) is not None]
    parts = [
        told.where(~F.col("message").isin(waiting)).withColumn("waited", F.lit(col=False)),
        *(_fetches(told.where(F.col("message") == one), tables, one) for one in waiting),
    ]
    every = reduce(DataFrame.unionByName, parts)
    return every.withColumn("address", address(F.col("client")))


def _fetches(told: DataFrame, tables: AnalysisTables, message: str) -> DataFrame:
    """The responses of an API that carries records, and whether the broker waited all of it."""
    requests = tables.message(message.removesuffix("Response") + "Request")
    responses = tables.message(message)
    if requests is None or responses is None:
        return told.withColumn("waited", F.lit(col=False))
    asked = requests.select(
        "connection",
        "correlation_id",
        F.col("time").alias("asked"),
        F.col(f"body.{MAX_WAIT}").cast("bigint").alias("max_wait_ms"),
        F.col(f"body.{MIN_BYTES}").alias("min_bytes"),
    )
    got = record_bytes_of(message, responses).alias("record_bytes")
    answers = responses.select("connection", "frame_index", got)
    # A correlation id may come again on a connection; at that moment it does not.
    moment = F.timestamp_micros(F.unix_micros("time") - F.col("latency_us"))
    joined = told.withColumn("asked", moment).join(
        asked, ["connection", "correlation_id", "asked"], "left"
    )
    joined = joined.join(answers, ["connection", "frame_index"], "left")
    waited = (F.col("latency_us") >= F.col("max_wait_ms") * 1000) & (
        F.col("record_bytes") < F.col("min_bytes")
    )
    joined = joined.withColumn("waited", F.coalesce(waited, F.lit(False)))
    return joined.select(*told.columns, "waited")


ANSWER: Final = Answer(
    "latency",
    question="Which requests are slow, and whose?",
    meaning="From the request's last byte to the response's, where the capture was made; fetches "
    "that waited for records as they were told to are in rows of their own.",
    advice="Compare brokers for the same API and client; look up the slowest response by its "
    "connection and frame in the table of frames.",
    row="an API, broker and client",
    columns=COLUMNS,
    order=("waited", "-p99_us", "-max_us", "api_name", "broker", "client_id", "address"),
    shown=(
        ShownColumn("api_name", "API", is_about=True),
        ShownColumn("broker", "Broker", is_about=True),
        ShownColumn("client_id", "Client id", is_about=True),
        ShownColumn("waited", "Waited for records", "flag"),
        ShownColumn("responses", "Responses", "count"),
        ShownColumn("p50_us", "Half within", "us"),
        ShownColumn("p90_us", "90 % within", "us"),
        ShownColumn("p99_us", "99 % within", "us"),
        ShownColumn("max_us", "Slowest", "us"),
        ShownColumn("slowest_connection", "Its connection"),
        ShownColumn("slowest_frame_index", "Its frame", "count"),
    ),
    ask=latency,
    picture=Picture("Where 99 in a hundred responses are in time", "p99_us"),
)
