"""Throttling: which clients brokers slow down, for which APIs, and which clients do not wait."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, DaySums, address, returns
from flexwire.answers.asking.day_sums import DAY, day_of_time, filled, kept_columns
from flexwire.answers.asking.throttled import (
    paused_responses,
    pauses_for_later,
    throttled_waits,
    throttles,
    waits_of_days,
    with_earlier_waits,
    with_first_of_day,
)
from flexwire.columnar.record_columns import MOMENT
from flexwire.facts.answers import AnswerPicture
from flexwire.tables.keys import ANALYSIS, frame_key
from flexwire.tables.output import MESSAGES
from flexwire.tables.row_filter import FRAMES
from flexwire.tables.schema import Column
from flexwire.tables.spec_places import throttled_messages
from flexwire.tasks import spark_schema

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables

_BY: Final = ("client_id", "address", "broker", "api_name")
COLUMNS: Final = (
    Column("client_id", pa.string(), "the client id", "if the client sent no client id",
           heading="Client id", is_about=True),
    Column("address", pa.string(), "the client's host", heading="Host"),
    Column("broker", pa.string(), "the address and port of the broker", heading="Broker"),
    Column("api_name", pa.string(), 'the API of the responses, such as "Produce"',
           heading="API", is_about=True),
    Column("responses", pa.int64(),
           "the number of responses of this API that the client received from the broker",
           heading="Responses"),
    Column("throttled", pa.int64(), "how many of these responses throttle the client",
           heading="Throttled"),
    Column("throttled_share", pa.float64(),
           "the share of these responses that throttle the client", heading="Share throttled"),
    Column("throttle_us", pa.int64(), "the sum of the throttle times, in microseconds",
           heading="Total time"),
    Column("max_throttle_us", pa.int64(), "the longest throttle time", heading="Longest"),
    Column("first_time", MOMENT, "when the first throttling response was captured"),
    Column("last_time", MOMENT, "when the last throttling response was captured"),
    Column("early_requests", pa.int64(),
           "the number of requests that the client sent on the connection after such a response, "
           "but before the throttle time was over", "in request logs", heading="Sent early"),
    Column("pipelined_requests", pa.int64(),
           "the number of requests that the client had sent before such a response arrived, and "
           "that were delayed as well",
           "in request logs", heading="Pipelined"),
    Column("waited_us", pa.int64(),
           "how long ``early_requests`` and ``pipelined_requests`` waited at the broker because of "
           "the throttling",
           "in request logs", heading="Waited"),
)  # fmt: skip
_ENDS: Final = ("address", "broker")
_KEPT: Final = "kept"
_OF_KEPT: Final = pa.schema(
    [
        (ANALYSIS, pa.string()),
        ("connection", pa.string()),
        ("frame_index", pa.int64()),
        ("place", pa.int64()),
        ("time", MOMENT),
        ("asked", MOMENT),
        ("throttled_us", pa.int64()),
        ("is_pipelined", pa.bool_()),
        ("cause", pa.struct([("api_name", pa.string()), ("client_id", pa.string())])),
        ("throttle_us", pa.int64()),
        ("muted_us", pa.int64()),
    ]
)
_COUNTS: Final = pa.schema(
    [
        ("responses", pa.int64()),
        ("throttled", pa.int64()),
        ("throttle_us", pa.int64()),
        ("max_throttle_us", pa.int64()),
        ("first_time", MOMENT),
        ("last_time", MOMENT),
        ("is_captured", pa.bool_()),
        ("early_requests", pa.int64()),
        ("pipelined_requests", pa.int64()),
        ("waited_us", pa.int64()),
    ]
)
_SUMMED: Final = tuple(_COUNTS.names)
_SUMS: Final = pa.schema(
    [
        pa.field(DAY, pa.date32()),
        *(pa.field(name, pa.string()) for name in _BY),
        *_COUNTS,
        pa.field(_KEPT, pa.struct([*_OF_KEPT])),
    ]
)


@returns(COLUMNS)
def throttling(tables: AnalysisTables) -> DataFrame | None:
    """Return throttled responses by client, broker and API.

    The ``throttle_time_ms`` of a response is the time for which the broker throttles the client.
    The value is the longer of two throttle times, one for bytes and one for request time; the
    response does not indicate which. Some kinds of throttling do not appear in responses: the
    throttling of replication, of connection rates, and of requests with acks 0.

    A client of Kafka 2.0 or later waits for that time before it sends again. If a client does not
    wait, its requests count as ``early_requests``, and the broker leaves them unread in the socket.
    The answer `latency` excludes this wait. Requests that were never answered are not counted.
    Requests are also not counted if the broker responded again before the throttle time was over:
    brokers before 2.0 delay the response itself.
    """
    throttled = throttles(tables)
    if throttled is None:
        return None
    responses = _responses(tables).where("api_name is not null")
    key = frame_key(responses.columns)
    waits = throttled_waits(tables, throttled).join(responses.select(*key, *_ENDS), [*key])
    counts = _counts(responses, throttled, _BY)
    return _shown(filled([counts, _waited(waits, ())]))


def _tables() -> list[str]:
    """Return the tables that `_part` reads."""
    return [FRAMES, *(f"{MESSAGES}/{name}" for name in throttled_messages())]


def _part(tables: AnalysisTables) -> DataFrame:
    """Return the sums of each day, and the rows that later days need.

    A row with `_KEPT` is either a response whose request may have waited because of a throttled
    response on an earlier day, or a throttled response after which the broker may have read nothing
    until the next day.
    """
    responses = with_first_of_day(_responses(tables))
    throttled = throttles(tables)
    parts = [_counts(responses, throttled, (DAY, *_BY))]
    key = frame_key(responses.columns)
    is_kept = F.expr("is_affected and (is_known or is_first)")
    kept = responses.where(is_kept).withColumn("asked", F.when(F.col("is_known"), F.col("asked")))
    if throttled is not None:
        paused = paused_responses(tables, throttled)
        waits = waits_of_days(paused)
        of_day = responses.where(~is_kept & F.col("is_known")).select(*key, DAY, *_ENDS)
        parts.append(_waited(waits.join(of_day, [*key]), (DAY,)))
        pauses = pauses_for_later(paused).withColumn("place", F.col("frame_index"))
        of_pauses = kept_columns(pauses, _OF_KEPT).alias(_KEPT)
        parts.append(pauses.select(DAY, "client_id", "api_name", of_pauses))
        kept = kept.join(waits, [*key], "left")
    parts.append(kept.select(DAY, *_ENDS, kept_columns(kept, _OF_KEPT).alias(_KEPT)))
    return filled([_no_sums(tables.frames), *parts])


def _no_sums(table: DataFrame) -> DataFrame:
    """Return an empty table of sums, which can be created from any table."""
    kinds = spark_schema(_SUMS)
    nothing = (F.lit(None).cast(field.dataType).alias(field.name) for field in kinds)
    return table.where("false").select(*nothing)


def _total(parts: DataFrame, _tables: AnalysisTables) -> DataFrame:
    """Return the answer's rows, computed from the sums of all days."""
    kept = parts.where(F.col(_KEPT).isNotNull()).select(*_BY, f"{_KEPT}.*")
    waits = with_earlier_waits(kept)
    of_days = parts.where(F.col(_KEPT).isNull()).select(*_BY, *_SUMMED)
    return _shown(filled([of_days, _waited(waits.where("throttled_us > 0"), ())]))


def _has_none(tables: AnalysisTables) -> bool:
    """Return whether it is certain that no client is throttled; if so, no rows have to be read."""
    return throttles(tables) is None


def _responses(tables: AnalysisTables) -> DataFrame:
    """Return all responses, with their client, their day, and the time of their request.

    ``is_known`` is true if the response's request and API are known.
    """
    frames = tables.frames
    asked = F.timestamp_micros(F.unix_micros("time") - F.col("latency_us"))
    return frames.where("direction = 'response'").select(
        *frame_key(frames.columns), "client_id", address(F.col("client")), "broker", "api_name",
        "time", day_of_time().alias(DAY), asked.alias("asked"),
        F.col("size").isNotNull().alias("is_captured"),
        F.expr("latency_us is not null and api_name is not null").alias("is_known"),
    )  # fmt: skip


def _counts(responses: DataFrame, throttled: DataFrame | None, by: Sequence[str]) -> DataFrame:
    """Return the number of responses, and the number of responses that throttle the client."""
    rows = responses.where("api_name is not null")
    nothing = F.lit(None).cast("bigint").alias("throttle_us")
    key = frame_key(responses.columns)
    if throttled is None:
        rows = rows.select("*", nothing)
    else:
        rows = rows.join(throttled.select(*key, "throttle_us"), [*key], "left")
    is_throttled = F.col("throttle_us").isNotNull()
    return rows.groupBy(*by).agg(
        F.count("*").alias("responses"),
        F.count_if(is_throttled).alias("throttled"),
        F.sum("throttle_us").alias("throttle_us"),
        F.max("throttle_us").alias("max_throttle_us"),
        F.min(F.when(is_throttled, F.col("time"))).alias("first_time"),
        F.max(F.when(is_throttled, F.col("time"))).alias("last_time"),
        F.max(is_throttled & F.col("is_captured")).alias("is_captured"),
    )


def _waited(waits: DataFrame, more: Sequence[str]) -> DataFrame:
    """Return how long requests waited, grouped by the response that throttled their client."""
    waits = waits.select(*more, *_ENDS, "throttled_us", "is_pipelined", "cause.*")
    return waits.groupBy(*more, *_BY).agg(
        F.count_if(~F.col("is_pipelined")).alias("early_requests"),
        F.count_if("is_pipelined").alias("pipelined_requests"),
        F.sum("throttled_us").alias("waited_us"),
    )


def _shown(sums: DataFrame) -> DataFrame:
    """Return the rows of the answer from the sums of any days."""
    extremes = {"max_throttle_us": F.max, "last_time": F.max, "first_time": F.min}
    extremes["is_captured"] = F.max
    rows = sums.groupBy(*_BY).agg(
        *(extremes.get(name, F.sum)(name).alias(name) for name in _SUMMED)
    )
    share = F.col("throttled") / F.col("responses")
    of_captures = {
        name: F.when(F.col("is_captured"), F.coalesce(name, F.lit(0).cast("bigint")))
        for name in ("early_requests", "pipelined_requests", "waited_us")
    }
    shown = rows.where("throttled > 0").withColumns({"throttled_share": share, **of_captures})
    return shown.select(*(column.name for column in COLUMNS))


ANSWER: Final = Answer(
    name="throttling",
    place=30,
    question="Which clients are throttled, and for which APIs?",
    meaning=(
        "Responses that throttle their client, by client, broker and API. The traffic does not "
        "show which quota applied. If a client sends a request too early, the request waits at the "
        "broker until the throttle time is over."
    ),
    advice=(
        "Raise the client's quota, or reduce the amount of data that the client sends. In "
        "producers, use larger batches and compression. Configure consumers to fetch less often. "
        "If a client sends requests too early, use a newer release of the client library. The "
        "answer cluster_quotas lists the quotas from the log of a controller."
    ),
    row="a combination of a client id at a host, a broker and an API",
    columns=COLUMNS,
    order=("-throttle_us", "-throttled", *_BY),
    ask=throttling,
    picture=AnswerPicture("How long clients were throttled", "throttle_us"),
    sums=DaySums(
        version=1, tables=_tables, columns=_SUMS, part=_part, total=_total, unless=_has_none
    ),
)
