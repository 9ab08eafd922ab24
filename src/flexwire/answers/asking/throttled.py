"""Throttled responses, and the later requests that waited because of the throttling.

A broker that throttles a client responds immediately, and the response contains a throttle time.
The broker reads nothing from the connection until that time is over (KIP-219, Kafka 2.0). The
response therefore has a normal latency. If the client does not wait, its next request has to wait
instead.

Such a pause may continue after midnight. `throttled_waits` considers all rows together. For daily
sums, `waits_of_days` computes how long requests waited because of pauses that began on the same day
as their response. `pauses_for_later` returns the pauses that may have delayed requests on later
days. `with_first_of_day` marks the responses that such a pause may have delayed. `earlier_waits`
adds up those waits, and `with_earlier_waits` adds them to the responses. This relies on Kafka's
guarantee that a broker answers the requests on a connection in order.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs
from pyspark.sql.window import Window

from flexwire.answers.asking.day_sums import DAY, DAY_US, day_of_time, filled
from flexwire.schema.catalog import catalog
from flexwire.tables.keys import connection_key, frame_key
from flexwire.tables.spec_places import THROTTLE, throttled_messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, WindowSpec

    from flexwire.answers.asking.answer import AnalysisTables


def throttles(tables: AnalysisTables) -> DataFrame | None:
    """Return a row for each throttled response, or None if there are certainly none.

    Each row contains the key of its frame, ``api_name``, ``client_id``, ``time``, ``size``, and a
    ``throttle_us`` above 0.
    """
    tables_of_throttles = [
        rows
        for name in throttled_messages()
        if not tables.hold_only(name, [("body", THROTTLE)], 0)
        and (rows := _throttles_of(tables, name)) is not None
    ]
    return reduce(DataFrame.unionByName, tables_of_throttles) if tables_of_throttles else None


def _throttles_of(tables: AnalysisTables, message: str) -> DataFrame | None:
    table = tables.message(message)
    if table is None:
        return None
    throttle = F.col(f"body.{THROTTLE}").cast("bigint") * 1000
    return table.where(throttle > 0).select(
        *frame_key(table.columns),
        F.lit(catalog().entry(message).type.api_name(message)).alias("api_name"),
        "client_id",
        "time",
        "size",
        throttle.alias("throttle_us"),
    )


def throttled_waits(tables: AnalysisTables, throttled: DataFrame) -> DataFrame:
    """Return a row for each response whose request waited because the client was throttled.

    ``throttled`` contains the rows of `throttles`. Each row contains the key of its frame and these
    columns: ``throttled_us``, above 0 and at most the latency; ``is_pipelined``, true if the
    request was sent before the throttled response arrived; and ``cause``, the ``api_name`` and
    ``client_id`` of that response.

    The wait is the part of the latency during which the broker read nothing from the connection. If
    a broker responds again before the throttle time is over, it has not stopped reading, so the
    throttle time does not count. (Brokers before 2.0 wait before they respond.) In a request log,
    the latency begins when the broker has read the request, so it excludes this wait.
    """
    columns = tables.frames.columns
    connection = connection_key(columns)
    rows = _with_pauses(_responses(tables, throttled), connection)
    return _waits(rows, connection, frame_key(columns))


def paused_responses(tables: AnalysisTables, throttled: DataFrame) -> DataFrame:
    """Return the responses on throttled connections, and the lengths of the pauses on each day.

    ``throttled`` contains the rows of `throttles`. The result is used by `waits_of_days` and
    `pauses_for_later`.
    """
    rows = _responses(tables, throttled).withColumn(DAY, day_of_time())
    midnight = (F.floor(F.col("at") / DAY_US) + 1) * DAY_US
    return _with_pauses(rows, (*connection_key(rows.columns), DAY), midnight)


def waits_of_days(rows: DataFrame) -> DataFrame:
    """Return the rows of `throttled_waits` that result from pauses on the same day."""
    return _waits(rows, (*connection_key(rows.columns), DAY), frame_key(rows.columns))


def pauses_for_later(rows: DataFrame) -> DataFrame:
    """Return each day's pauses that may have delayed a response on a later day.

    Each row contains the key of its frame, `DAY`, ``time``, ``api_name``, ``client_id``,
    ``throttle_us`` and ``muted_us``. ``muted_us`` is the time during which the broker read nothing;
    it is null if only the next response shows this.
    """
    by_day = Window.partitionBy(*connection_key(rows.columns), DAY)
    # A request that is answered later than others was also sent later than they were.
    is_needed = F.col("at") + F.col("muted_us") > F.coalesce("last_asked", F.lit(0))
    pauses = rows.withColumn("last_asked", F.max("asked_us").over(by_day)).where(
        F.col("muted_us").isNull() | ((F.col("muted_us") > 0) & is_needed)
    )
    columns = ("time", "api_name", "client_id", "throttle_us", "muted_us")
    return pauses.select(*frame_key(rows.columns), DAY, *columns)


def with_first_of_day(responses: DataFrame) -> DataFrame:
    """Mark the responses whose requests may have been delayed by a pause on an earlier day.

    Once a broker has responded, it is reading again. Therefore, only requests that were sent before
    the first response of a day can have waited because of a throttled response on an earlier day.
    ``responses`` contains all responses, each with the key of its frame, `DAY`, ``time``, ``asked``
    and ``is_captured``. The added columns are ``is_affected``, ``is_first``, and ``place``, which
    is the ``frame_index`` of that first response.
    """
    by_day = [*connection_key(responses.columns), DAY]
    of_days = responses.where("is_captured").groupBy(*by_day)
    firsts = of_days.agg(
        F.min("frame_index").alias("first_index"), F.min("time").alias("first_time")
    )
    # No response precedes the first response of a connection.
    joined = responses.join(firsts.where("first_index > 0"), by_day, "left")
    is_affected = F.col("is_captured") & (F.coalesce("asked", "time") <= F.col("first_time"))
    is_first = F.col("is_captured") & (F.col("frame_index") == F.col("first_index"))
    return joined.withColumns(
        {
            "is_affected": F.coalesce(is_affected, F.lit(False)),
            "is_first": F.coalesce(is_first, F.lit(False)),
            "place": F.coalesce("first_index", F.lit(0)),
        }
    )


def with_earlier_waits(kept: DataFrame) -> DataFrame:
    """Return the responses among the kept rows, with the delay that earlier pauses caused.

    ``kept`` contains the rows for `earlier_waits`, without requests. The waits of a response's own
    day are in its ``throttled_us`` (null without a wait), ``is_pipelined`` and ``cause``, if the
    rows have these columns. In the result, ``throttled_us`` is the sum of both waits. The other
    columns describe the last pause, which is on the response's own day if the request also waited
    on that day.
    """
    key = (*connection_key(kept.columns), "frame_index")
    names = [name for name in ("throttled_us", "is_pipelined", "cause") if name in kept.columns]
    earlier = earlier_waits(kept, key[:-1]).select(
        *key, *(F.col(name).alias(f"earlier_{name}") for name in names)
    )
    responses = kept.where("asked is not null and throttle_us is null")
    nothing = F.lit(0).cast("bigint")
    own_us = F.coalesce("throttled_us", nothing)
    last: dict[str, Column] = {
        name: F.when(own_us > 0, F.col(name)).otherwise(F.col(f"earlier_{name}"))
        for name in names[1:]
    }
    of_both = own_us + F.coalesce("earlier_throttled_us", nothing)
    return (
        responses.join(earlier, [*key], "left")
        .withColumns({**last, "throttled_us": of_both})
        .drop(*(f"earlier_{name}" for name in names))
    )


def earlier_waits(rows: DataFrame, connection: Sequence[str]) -> DataFrame:
    """Return how long responses were delayed by pauses on earlier days.

    ``rows`` contains pauses from `pauses_for_later`, and responses without ``throttle_us``. These
    rows contain ``connection``, ``frame_index``, ``time``, ``asked``, ``api_name``, ``client_id``
    and ``place``. For a response, ``place`` is the ``frame_index`` of the first response of the
    connection on that day. For a pause, it is the pause's own ``frame_index``. The first response
    is one of the rows, with or without ``asked``.

    The result contains ``connection``, ``frame_index``, and the other columns of `throttled_waits`.
    """
    paused = rows.where("throttle_us is not null").select(*connection).distinct()
    some = rows.join(paused, [*connection], "left_semi").withColumns(
        {"at": F.unix_micros("time"), "asked_us": F.unix_micros("asked")}
    )
    return _waits(_with_pauses(some, connection), connection, (*connection, "frame_index"))


def _responses(tables: AnalysisTables, throttled: DataFrame) -> DataFrame:
    """Return the responses on connections that carried a throttled response."""
    frames = tables.frames
    key, connection = frame_key(frames.columns), connection_key(frames.columns)
    captured = throttled.where("size is not null")
    some = frames.where("direction = 'response' and size is not null").join(
        captured.select(*connection).distinct(), [*connection], "left_semi"
    )
    at = F.unix_micros("time")
    rows = some.select(
        *key,
        "time",
        "api_name",
        "client_id",
        at.alias("at"),
        (at - F.col("latency_us")).alias("asked_us"),
        F.col("frame_index").alias("place"),
    ).join(captured.select(*key, "throttle_us"), [*key], "left")
    return rows.withColumn("muted_us", F.lit(None).cast("bigint"))


def _in_order(by: Sequence[str]) -> WindowSpec:
    # A response is sorted before the pause that begins with this response.
    return Window.partitionBy(*by).orderBy("place", "throttle_us", "frame_index")


def _with_pauses(
    rows: DataFrame, by: Sequence[str], known_until: Column | None = None
) -> DataFrame:
    """Fill in ``muted_us``, the time during which the broker read nothing after a response.

    ``muted_us`` is null for the last response if the pause continues after ``known_until``.
    """
    end = F.col("at") + F.col("throttle_us")
    following = F.lead("at").over(_in_order(by))
    is_known = F.lit(col=True) if known_until is None else end <= known_until
    muted = (
        F.when(F.col("throttle_us").isNull() | (end > following), 0)
        .when(following.isNotNull() | is_known, F.col("throttle_us"))
        .cast("bigint")
    )
    return rows.withColumn("muted_us", F.coalesce("muted_us", muted))


def _waits(rows: DataFrame, by: Sequence[str], key: Sequence[str]) -> DataFrame:
    """Return how long earlier pauses delayed the request of each response."""
    in_order = _in_order(by)
    before = in_order.rowsBetween(Window.unboundedPreceding, -1)
    cause = F.when(F.col("muted_us") > 0, F.struct("at", "api_name", "client_id"))
    rows = rows.withColumns(
        {
            "muted_before": F.coalesce(F.sum("muted_us").over(before), F.lit(0)),
            "cause": F.last(cause, ignorenulls=True).over(before),
        }
    )
    requests = rows.where("cause is not null and asked_us is not null").withColumns(
        {"moment": F.col("asked_us"), "is_asked": F.lit(col=True)}
    )
    pauses = rows.where("muted_us > 0").select(
        *by,
        F.col("at").alias("moment"),
        F.struct("at", "muted_before", "muted_us").alias("pause"),
        F.lit(col=False).alias("is_asked"),
    )
    both = filled([requests, pauses])
    until = Window.partitionBy(*by).orderBy("moment", "is_asked", "frame_index")
    until = until.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    last = F.last("pause", ignorenulls=True).over(until)
    both = both.withColumn("last", last).where("is_asked")
    # The time during which the broker read nothing before the request was sent, and before the
    # request was answered.
    of_last = F.least(F.col("moment") - F.col("last.at"), F.col("last.muted_us"))
    earlier = F.coalesce(F.col("last.muted_before") + of_last, F.lit(0))
    waited = both.withColumn("throttled_us", F.col("muted_before") - earlier)
    return waited.where("throttled_us > 0").select(
        *key,
        "throttled_us",
        (F.col("moment") < F.col("cause.at")).alias("is_pipelined"),
        F.struct("cause.api_name", "cause.client_id").alias("cause"),
    )
