"""How long clients had to wait for brokers, by API, broker and client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs
from pyspark.sql.window import Window

from flexwire.answers.asking.answer import Answer, DaySums, address
from flexwire.answers.asking.day_sums import DAY, all_of, day_of_time, filled, kept_columns
from flexwire.answers.asking.messages import record_bytes_of
from flexwire.answers.asking.percentiles import at_rank, at_rank_within, bucket, ranked, rounded
from flexwire.answers.asking.throttled import (
    paused_responses,
    pauses_for_later,
    throttled_waits,
    throttles,
    waits_of_days,
    with_earlier_waits,
    with_first_of_day,
)
from flexwire.arguments import to_int
from flexwire.columnar.record_columns import MOMENT
from flexwire.facts.answers import AnswerPicture
from flexwire.facts.facts import least_of
from flexwire.schema.catalog import catalog
from flexwire.tables.keys import ANALYSIS, connection_key, frame_key
from flexwire.tables.output import MESSAGES
from flexwire.tables.row_filter import FRAMES
from flexwire.tables.schema import Column
from flexwire.tables.spec_places import CARRYING_RESPONSES, throttled_messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables

# The fields of fetch requests that limit how long the broker may wait for records.
MAX_WAIT: Final = "max_wait_ms"
MIN_BYTES: Final = "min_bytes"

_PERCENTS: Final = (50, 90, 99)

COLUMNS: Final = (
    Column("api_name", pa.string(), 'the API, such as "Fetch"', heading="API", is_about=True),
    Column("broker", pa.string(), "the address and port of the broker",
           heading="Broker", is_about=True),
    Column("client_id", pa.string(), "the client id", "if the client sent no client id",
           heading="Client id", is_about=True),
    Column("address", pa.string(), "the client's host"),
    Column(
        "waited", pa.bool_(),
           "whether these are fetches that the broker answered only after their maximum wait "
           "time, because too few bytes were available",
    heading="Waited for records",
),
    Column("responses", pa.int64(), "the number of responses", heading="Responses"),
    Column("p50_us", pa.int64(),
           "the median latency in microseconds: half of the requests took no longer "
           "than this",
           heading="Median"),
    *(
        Column(f"p{percent}_us", pa.int64(), f"{percent}% of the requests took no longer than "
               "this",
               f"for fewer than {least_of(percent)} responses, because this value would equal "
               "``max_us``",
               heading=f"{percent} % within")
        for percent in _PERCENTS[1:]
    ),
    Column("max_us", pa.int64(), "the latency of the slowest request", heading="Slowest"),
    Column("slowest_connection", pa.string(), "the connection of the slowest request",
           heading="Slowest connection"),
    Column("slowest_frame_index", pa.int64(), "the frame_index of the response to this "
           "request",
           heading="Slowest frame"),
    Column("slowest_time", MOMENT, "when this response was captured"),
    Column("throttled", pa.int64(), "how many of the requests waited because the broker had "
           "throttled the client on their connection", heading="Throttled"),
    Column("throttled_us", pa.int64(),
           "how long these requests waited in total; no latency in this table includes this time",
           heading="Throttled for"),
    Column("pipelined", pa.int64(), (
        "how many of these requests were sent before the response that throttled the client "
        "arrived; their latency includes the wait until that response"
    )),
)  # fmt: skip
SLOWEST_COLUMNS: Final = (
    *COLUMNS[:5],
    Column("rank", pa.int32(),
           "the rank of the request; 1 is the slowest request of its row in `latency`"),
    Column("latency_us", pa.int64(),
           "how long the request took, in microseconds, excluding ``throttled_us``"),
    Column("connection", pa.string(), "the connection of the request"),
    Column("frame_index", pa.int64(), "the frame_index of the response"),
    Column("time", MOMENT, "when the response was captured"),
    Column("throttled_us", pa.int64(),
           "how long the request waited because the broker had throttled the client; 0 if the "
           "client was not throttled"),
)  # fmt: skip

_BY: Final = tuple(column.name for column in COLUMNS[:5])
_IS_KNOWN: Final = "latency_us is not null and api_name is not null"
_WHOLE_DAY: Final = ("throttled", "throttled_us", "pipelined")
_COUNTS: Final = ("responses", *_WHOLE_DAY)
_SLOWEST: Final = pa.struct(
    [
        ("latency_us", pa.int64()),
        ("time", MOMENT),
        ("connection", pa.string()),
        ("frame_index", pa.int64()),
    ]
)
_KEPT: Final = "kept"
# The columns of the rows that are kept for a day in addition to the sums. The row for a request has
# no frame_index, and the row for a pause has throttle_us.
_OF_KEPT: Final = pa.schema(
    [
        (ANALYSIS, pa.string()),
        ("connection", pa.string()),
        ("frame_index", pa.int64()),
        ("place", pa.int64()),
        ("time", MOMENT),
        ("asked", MOMENT),
        ("correlation_id", pa.int32()),
        ("max_wait_ms", pa.int64()),
        ("min_bytes", pa.int64()),
        ("record_bytes", pa.int64()),
        ("throttled_us", pa.int64()),
        ("is_pipelined", pa.bool_()),
        ("throttle_us", pa.int64()),
        ("muted_us", pa.int64()),
    ]
)
_VALUES: Final = pa.list_(pa.struct([("rounded_us", pa.int64()), ("responses", pa.int64())]))
_TIMES: Final = pa.list_(
    pa.struct([("bucket", pa.int64()), ("responses", pa.int64()), ("values", _VALUES)])
)
_SUMS: Final = pa.schema(
    [
        (DAY, pa.date32()),
        *((name, pa.bool_() if name == "waited" else pa.string()) for name in _BY),
        *((name, pa.int64()) for name in _WHOLE_DAY),
        ("slowest", _SLOWEST),
        ("times", _TIMES),
        (_KEPT, pa.struct(list(_OF_KEPT))),
    ]
)


def latency(tables: AnalysisTables) -> DataFrame:
    """Return how long requests took for each API, broker and client.

    A latency is the time from the last byte of the request to the last byte of the response, as
    seen where the capture was made. The count and the maximum are exact. A percentile below 100 ms
    is exact, and a percentile of 100 ms or more is rounded down to five significant digits. A
    percentile is null if it would equal the slowest response.

    If a broker held a fetch request for the request's full maximum wait time because there were too
    few records, the request counts in a separate row (``waited``). Other intentional waits cannot
    be recognized: a fetch whose records arrive late, a JoinGroup that waits for other members, or a
    Produce that waits for replicas.

    A broker that throttles a client responds immediately, and then does not read from the
    connection for the duration of the throttle time. A request that arrives during this time has to
    wait. The latency of such a request excludes this wait, which is reported in ``throttled_us``.
    """
    return _rows(_counted(_responses(tables), _BY))


def slowest(tables: AnalysisTables, most: int = 5) -> DataFrame:
    """Return the slowest responses for each row of `latency`, for a closer look in the tables."""
    order = (F.desc("latency_us"), "time", "connection", "frame_index")
    rank = F.row_number().over(Window.partitionBy(*_BY).orderBy(*order))
    ranked = _responses(tables).withColumn("rank", rank)
    rows = ranked.where(F.col("rank") <= to_int(most, "most", least=1))
    return rows.select(*(column.name for column in SLOWEST_COLUMNS))


def _tables() -> list[str]:
    """Return the tables that `_part` reads."""
    fetches = (
        name for response in CARRYING_RESPONSES for name in (_request_of(response), response)
    )
    names = dict.fromkeys((*fetches, *throttled_messages()))
    return [FRAMES, *(f"{MESSAGES}/{name}" for name in names)]


def _part(tables: AnalysisTables) -> DataFrame:
    """Return the sums of each day, and the rows that later days need.

    A row without `_KEPT` contains the sums for an API, broker and client, and the number of
    responses with each latency. Each of the remaining rows is one of the following: a response
    whose latency also depends on an earlier day, a request for records that has no response on its
    day, or a throttled response after which the broker may have read nothing until the next day.
    """
    throttled = throttles(tables)
    paused = None if throttled is None else paused_responses(tables, throttled)
    rows = _responses_of_days(tables, paused)
    if paused is not None:
        pauses = pauses_for_later(paused).withColumn("place", F.col("frame_index"))
        kept = pauses.select(DAY, kept_columns(pauses, _OF_KEPT).alias(_KEPT))
        rows = filled([rows, kept])
    by = (DAY, *_BY, _KEPT)
    times = F.sort_array(F.collect_list(F.struct("bucket", "responses", "values")))
    summed = _in_buckets(_counted(rows, by), by).groupBy(*by)
    return summed.agg(
        *(F.sum(name).alias(name) for name in _WHOLE_DAY),
        F.max("slowest").alias("slowest"),
        times.alias("times"),
    )


def _total(parts: DataFrame, _tables: AnalysisTables) -> DataFrame:
    """Return the answer's rows, computed from the sums of all days."""
    names = (*_WHOLE_DAY, "slowest")
    by_bucket = parts.where(F.col(_KEPT).isNull()).select(
        *_BY, *names, F.posexplode("times").alias("number", "one")
    )
    # These sums cover all latencies, so each sum must be counted only once.
    is_first = F.col("number") == 0
    of_days = by_bucket.select(
        *_BY, "one.*", *(F.when(is_first, F.col(name)).alias(name) for name in names)
    )
    over_midnight = _over_midnight(parts.where(F.col(_KEPT).isNotNull()))
    of_both = all_of([of_days, _in_buckets(_counted(over_midnight, _BY), _BY)])
    summed = of_both.groupBy(*_BY, "bucket").agg(
        *_summed(), F.flatten(F.collect_list("values")).alias("values")
    )
    in_buckets = ranked(summed, _BY, "bucket", "responses")
    found = {
        percent: at_rank_within("values", "rounded_us", "responses", "responses", percent)
        for percent in _PERCENTS
    }
    with_percentiles = in_buckets.withColumns(
        {f"at_{percent}": column for percent, column in found.items()}
    )
    rows = with_percentiles.groupBy(*_BY).agg(
        *_summed(), *(F.min(f"at_{percent}").alias(f"at_{percent}") for percent in _PERCENTS)
    )
    return _shown(rows)


def _in_buckets(counts: DataFrame, by: Sequence[str]) -> DataFrame:
    """Combine `_counted` responses whose latencies are in the same bucket into one row."""
    values = F.collect_list(F.struct("rounded_us", "responses")).alias("values")
    return counts.groupBy(*by, bucket("rounded_us").alias("bucket")).agg(*_summed(), values)


def _summed() -> list[SparkColumn]:
    slowest_one = F.max("slowest").alias("slowest")
    return [*(F.sum(name).alias(name) for name in _COUNTS), slowest_one]


def _counted(responses: DataFrame, by: Sequence[str]) -> DataFrame:
    """Count responses by the columns ``by`` and by rounded latency."""
    slowest_one = F.max(F.struct(*(field.name for field in _SLOWEST)))
    return responses.groupBy(*by, rounded("latency_us").alias("rounded_us")).agg(
        F.count("*").alias("responses"),
        slowest_one.alias("slowest"),
        F.count_if(F.col("throttled_us") > 0).alias("throttled"),
        F.sum("throttled_us").alias("throttled_us"),
        F.count_if("is_pipelined").alias("pipelined"),
    )


def _rows(counts: DataFrame) -> DataFrame:
    """Return the rows of the answer from `_counted` responses."""
    rows = (
        ranked(counts, _BY, "rounded_us", "responses")
        .groupBy(*_BY)
        .agg(
            *_summed(),
            *(at_rank("rounded_us", percent).alias(f"at_{percent}") for percent in _PERCENTS),
        )
    )
    return _shown(rows)


def _shown(rows: DataFrame) -> DataFrame:
    """Return the columns of the answer."""
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


def _responses(tables: AnalysisTables) -> DataFrame:
    """Return the responses to known requests, with `_BY` and the requests' waiting time."""
    responses = _of_frames(tables).where(_IS_KNOWN)
    throttled = throttles(tables)
    waits = None if throttled is None else throttled_waits(tables, throttled)
    responses = _without_throttling(responses, waits)
    waiting, others = _by_message(responses, tables)
    parts = [
        _with_request(rows, _requests(tables, message), "left") for message, rows in waiting.items()
    ]
    return _every([others, *parts])


def _responses_of_days(tables: AnalysisTables, paused: DataFrame | None) -> DataFrame:
    """Return the responses from `_responses` that need only rows of their own day, with that day.

    ``paused`` contains the rows of `paused_responses`, or is None if nothing was throttled.

    Three kinds of rows have `_KEPT`: all other responses, requests for records that have no
    response on their day, and the first response of a connection on a day, unless the connection
    begins with that response.
    """
    responses = with_first_of_day(_of_frames(tables).withColumn(DAY, day_of_time()))
    responses = responses.where(f"({_IS_KNOWN}) or is_first")
    waits = None if paused is None else waits_of_days(paused)
    responses = _without_throttling(responses, waits)
    waiting, others = _by_message(responses, tables)
    parts = [others.withColumn("is_asked_before", F.lit(col=False))]
    for message, rows in waiting.items():
        requests = _requests(tables, message)
        if requests is not None:
            requests = requests.withColumn(DAY, day_of_time("asked"))
        joined = _with_request(rows, requests, "full")
        api_name = F.lit(catalog().entry(message).type.api_name(message))
        joined = joined.withColumn("api_name", F.coalesce("api_name", api_name))
        is_request = F.col("frame_index").isNull()
        is_asked_before = is_request | (day_of_time("asked") != F.col(DAY))
        parts.append(joined.withColumn("is_asked_before", is_asked_before))
    every = _every(parts)
    is_counted = F.expr(_IS_KNOWN) & ~F.col("is_affected") & ~F.col("is_asked_before")
    # A row that lacks a request or an API only shows when its connection's first response arrived.
    asked = F.when(F.col("frame_index").isNull() | F.expr(_IS_KNOWN), F.col("asked"))
    kept = kept_columns(every.withColumn("asked", asked), _OF_KEPT)
    return every.withColumn(_KEPT, F.when(~F.coalesce(is_counted, F.lit(False)), kept))


def _over_midnight(parts: DataFrame) -> DataFrame:
    """Return the kept responses, completed with facts from earlier days."""
    kept = parts.select("api_name", "broker", "client_id", "address", f"{_KEPT}.*")
    connection = connection_key(kept.columns)
    responses = with_earlier_waits(kept.where("frame_index is not null"))
    requests = kept.where("frame_index is null").select(
        *connection,
        "api_name",
        "correlation_id",
        "asked",
        F.col("max_wait_ms").alias("its_max_wait_ms"),
        F.col("min_bytes").alias("its_min_bytes"),
    )
    joined = responses.join(requests, [*connection, "api_name", "correlation_id", "asked"], "left")
    latency_us = F.unix_micros("time") - F.unix_micros("asked")
    with_requests = joined.withColumns(
        {
            "latency_us": latency_us - F.col("throttled_us"),
            "max_wait_ms": F.coalesce("max_wait_ms", "its_max_wait_ms"),
            "min_bytes": F.coalesce("min_bytes", "its_min_bytes"),
        }
    )
    return with_requests.withColumn("waited", _waited())


def _of_frames(tables: AnalysisTables) -> DataFrame:
    """Return the responses in all frames, each with the time at which its request was sent."""
    # A connection may reuse a correlation id, but not at the same time.
    asked = F.timestamp_micros(F.unix_micros("time") - F.col("latency_us"))
    return tables.frames.where("direction = 'response'").select(
        *frame_key(tables.frames.columns), "api_name", "broker", "client_id",
        address(F.col("client")), "message", "latency_us", "time", "correlation_id",
        asked.alias("asked"), F.col("size").isNotNull().alias("is_captured"),
    )  # fmt: skip


def _without_throttling(responses: DataFrame, waits: DataFrame | None) -> DataFrame:
    """Add ``throttled_us`` to responses, and subtract it from their ``latency_us``."""
    nothing = F.lit(0).cast("bigint")
    if waits is None:
        return responses.withColumns({"throttled_us": nothing, "is_pipelined": F.lit(col=False)})
    with_waits = responses.join(waits.drop("cause"), [*frame_key(responses.columns)], "left")
    throttled_us = F.coalesce("throttled_us", nothing)
    return with_waits.withColumns(
        {"throttled_us": throttled_us, "latency_us": F.col("latency_us") - throttled_us}
    )


def _by_message(
    responses: DataFrame, tables: AnalysisTables
) -> tuple[dict[str, DataFrame], DataFrame]:
    """Return responses with records, by message and with their bytes, and all other responses."""
    waiting = {}
    for message in CARRYING_RESPONSES:
        table = tables.message(message)
        if table is None and tables.message(_request_of(message)) is None:
            continue
        rows = responses.where(F.col("message") == message)
        if table is not None:
            key = frame_key(responses.columns)
            got = record_bytes_of(message, table).alias("record_bytes")
            rows = rows.join(table.select(*key, got), [*key], "left")
        waiting[message] = rows
    is_other = F.coalesce(~F.col("message").isin([*waiting]), F.lit(True))
    return waiting, responses.where(is_other)


def _requests(tables: AnalysisTables, message: str) -> DataFrame | None:
    """Return the requests for a response's API, with the maximum time that the broker may wait."""
    requests = tables.message(_request_of(message))
    if requests is None:
        return None
    return requests.select(
        *connection_key(requests.columns),
        "correlation_id",
        F.col("time").alias("asked"),
        F.col(f"body.{MAX_WAIT}").cast("bigint").alias("max_wait_ms"),
        F.col(f"body.{MIN_BYTES}").cast("bigint").alias("min_bytes"),
    )


def _with_request(responses: DataFrame, requests: DataFrame | None, how: str) -> DataFrame:
    if requests is None:
        return responses
    same = [name for name in requests.columns if name in responses.columns]
    return responses.join(requests, same, how)


def _every(parts: Sequence[DataFrame]) -> DataFrame:
    """Return all responses, and whether the broker waited as long as the request allowed."""
    rows = filled(parts)
    lacking = {"max_wait_ms", "min_bytes", "record_bytes"}.difference(rows.columns)
    rows = rows.withColumns({name: F.lit(None).cast("bigint") for name in lacking})
    return rows.withColumn("waited", _waited())


def _waited() -> SparkColumn:
    waited = (F.col("latency_us") >= F.col("max_wait_ms") * 1000) & (
        F.col("record_bytes") < F.col("min_bytes")
    )
    return F.coalesce(waited, F.lit(False))


def _request_of(response: str) -> str:
    return response.removesuffix("Response") + "Request"


ANSWER: Final = Answer(
    name="latency",
    place=20,
    question="Which requests are slow, and which clients send them?",
    meaning=(
        "The time from a request's last byte to its response's last byte, as seen where the "
        "capture was made. Fetches that waited for records, as the client requested, are counted "
        "in separate rows. If a request waited because its client was throttled, the latency "
        "excludes this wait."
    ),
    advice="Compare brokers for the same API and client. To examine the slowest response, look "
    "up its connection and frame in the frames table.",
    row="a combination of an API, a broker and a client",
    columns=COLUMNS,
    order=("waited", "-p99_us", "-max_us", "api_name", "broker", "client_id", "address"),
    ask=latency,
    picture=AnswerPicture("The slowest response", "max_us"),
    sums=DaySums(version=2, tables=_tables, columns=_SUMS, part=_part, total=_total),
)
