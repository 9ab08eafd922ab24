"""How clients open, maintain and lose connections."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs
from pyspark.sql.window import Window

from flexwire.answers.asking.answer import Answer, DaySums, address
from flexwire.answers.asking.day_sums import DAY, DAY_US, day_of_time
from flexwire.answers.asking.percentiles import percentile
from flexwire.arguments import to_int
from flexwire.facts.answers import AnswerPicture
from flexwire.tables.keys import ANALYSIS, connection_key
from flexwire.tables.row_filter import FRAMES
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables

# Before it is authenticated, a client sends only these requests.
HANDSHAKE: Final = "SaslHandshake"
OPENING: Final = ("ApiVersions", HANDSHAKE, "SaslAuthenticate")
PAUSE_US: Final = 1_000_000
"""A pause of at least this many microseconds is idle time."""
_DAY_SECONDS: Final = DAY_US // PAUSE_US

COLUMNS: Final = (
    Column(
        "client_id", pa.string(),
           "the client id; if a connection used several client ids, the first in alphabetical "
           "order",
        "if no frame of the connections contains a client id",
    heading="Client id", is_about=True,
),
    Column("address", pa.string(), "the client's host", heading="Host", is_about=True),
    Column("brokers", pa.int64(), "the number of brokers that the client was connected to"),
    Column("connections", pa.int64(), "the number of connections", heading="Connections"),
    Column("opened", pa.int64(), "the number of connections whose beginning was captured",
           heading="Opened"),
    Column("opened_per_minute", pa.float64(),
           "``opened`` divided by the length of the whole capture in minutes"),
    Column("most_opened_per_minute", pa.int64(), (
        "the highest number of connections that were opened in one minute"
    ),
           heading="Peak per minute"),
    Column(
        "short_lived", pa.int64(),
           "the number of connections that were closed within 10 seconds after they were opened"
    , heading="Short-lived"),
    Column("silent", pa.int64(), "the number of connections that carried no frame"),
    Column(
        "lifetime_us", pa.int64(), "the median time from the beginning to the end of a connection, "
                                   "in microseconds",
        "if no connection was captured from its beginning to its end",
    heading="Median life",
),
    Column(
        "idle_us", pa.int64(),
           "the total duration of pauses of a second or more, during which no frame was sent in "
           "either direction",
    ),
    Column("longest_pause_us", pa.int64(), "the longest of these pauses",
           "if there was no such pause",
           heading="Longest pause"),
    Column("open_us", pa.int64(), "the total time during which the connections were seen to be "
           "open"),
    Column("closed_by_client", pa.int64(),
           "the number of connections that the client closed or reset first",
           heading="Closed by client"),
    Column("closed_by_broker", pa.int64(),
           "the number of connections that the broker closed or reset first",
           heading="Closed by broker"),
    Column("reset_by_client", pa.int64(), "the number of connections that the client reset"),
    Column("reset_by_broker", pa.int64(), "the number of connections that the broker reset"),
    Column("not_closed", pa.int64(), "the number of connections whose end was not captured"),
    Column(
        "closed_unanswered", pa.int64(),
           "the number of connections that the broker closed although a request was unanswered"
    , heading="Closed unanswered"),
    Column("reauthentications", pa.int64(), "the number of repeated SASL handshakes on "
           "connections that were already authenticated (KIP-368)",
           heading="Reauthentications"),
)  # fmt: skip

_WHO: Final = ("client_id", "address")
_SUMS: Final = pa.schema(
    [
        (DAY, pa.date32()),
        (ANALYSIS, pa.string()),
        ("connection", pa.string()),
        ("client_id", pa.string()),
        *(
            (name, pa.int64())
            for name in ("first_us", "last_us", "first_other", "pauses_us", "longest_us")
        ),
        ("handshakes", pa.list_(pa.int64())),
        ("unanswered", pa.list_(pa.int64())),
    ]
)


def connections(tables: AnalysisTables, short_seconds: int = 10) -> DataFrame:
    """Return how each client (a client id at a host) opens, maintains and loses connections.

    ``short_seconds`` is the maximum lifetime of a short-lived connection. A connection ends with
    its last segment. Pauses include the time from the beginning of the connection to the first
    frame, and the time from the last frame to the last segment. A reauthentication is a SASL
    handshake after a request that is not part of authentication.

    The capture shows neither why a side closed a connection nor what happened before and after the
    capture. A connection counts in ``opened`` only if its beginning was captured, and in
    ``not_closed`` only if its end was not captured.
    """
    return _total(_part(tables), tables, short_seconds)


def _total(parts: DataFrame, tables: AnalysisTables, short_seconds: int = 10) -> DataFrame:
    """Return the answer's rows, computed from the facts about each connection on each day."""
    short_us = to_int(short_seconds, "short_seconds", least=1) * 1_000_000
    kafka_rows = _connection_rows(parts, tables)
    clients = kafka_rows.withColumn("whole_us", _whole_us()).groupBy(*_WHO).agg(*_sums(short_us))
    rows = clients.join(_busiest(kafka_rows), [*_WHO], "left")
    minutes = kafka_rows.agg(((F.max("last_us") - F.min("first_us")) / 60_000_000).alias("minutes"))
    # A capture of less than a minute counts as a full minute.
    a_minute = F.col("opened") / F.greatest(F.col("minutes"), F.lit(1.0))
    nothing = F.lit(0).cast("bigint")
    return (
        rows.crossJoin(F.broadcast(minutes))
        .withColumn("opened_per_minute", F.round(a_minute, 3))
        .withColumn("most_opened_per_minute", F.coalesce("most_opened_per_minute", nothing))
        # Null is not a client id, but rows without a client id form one group.
        .withColumn("client_id", F.col("client_id.id"))
        .select(*(column.name for column in COLUMNS))
    )


def _whole_us() -> SparkColumn:
    """Return the duration of a connection, or null if its beginning or end was not captured."""
    is_whole = F.col("seen_from_start") & F.col("closed_by").isNotNull()
    return F.when(is_whole, F.col("last_us") - F.col("first_us"))


def _sums(short_us: int) -> list[SparkColumn]:
    """Return the aggregates for a client's connections, from the columns of `_connection_rows`.

    The aggregates also use the column ``whole_us``.
    """
    lifetime = F.col("last_us") - F.col("first_us")
    is_whole = F.col("whole_us").isNotNull()
    counts = {
        "opened": F.col("seen_from_start"),
        "short_lived": is_whole & (lifetime <= short_us),
        "silent": F.col("last_frame_us").isNull(),
        "closed_by_client": F.col("closed_by") == "client",
        "closed_by_broker": F.col("closed_by") == "broker",
        "reset_by_client": (F.col("closed_by") == "client") & F.col("reset"),
        "reset_by_broker": (F.col("closed_by") == "broker") & F.col("reset"),
        "not_closed": F.col("closed_by").isNull(),
        "closed_unanswered": (F.col("closed_by") == "broker") & (F.col("unanswered") > 0),
    }
    longest = F.max("longest_pause_us")
    return [
        F.count("*").alias("connections"),
        F.count_distinct("broker").alias("brokers"),
        percentile("whole_us", 50).alias("lifetime_us"),
        F.sum("idle_us").alias("idle_us"),
        F.when(longest > 0, longest).alias("longest_pause_us"),
        F.sum(lifetime).alias("open_us"),
        F.sum("reauthentications").alias("reauthentications"),
        *(F.count_if(condition).alias(name) for name, condition in counts.items()),
    ]


def _connection_rows(parts: DataFrame, tables: AnalysisTables) -> DataFrame:
    """Return the Kafka connections, with facts from their frames."""
    key = connection_key(tables.connections.columns)
    of_kafka = tables.connections.where("is_kafka").select(
        *key,
        "broker",
        address(F.col("client")),
        F.unix_micros("first_time").alias("first_us"),
        F.unix_micros("last_time").alias("last_us"),
        "seen_from_start",
        "closed_by",
        "reset",
    )
    rows = of_kafka.join(_of_all_days(parts, key), [*key], "left")
    none = F.array().cast("array<bigint>")
    if tables.answered_later is not None:
        later = tables.answered_later.groupBy(*key).agg(F.collect_set("frame_index").alias("later"))
        never = F.array_except("unanswered", F.coalesce("later", none))
        rows = rows.join(later, [*key], "left").withColumn("unanswered", never)
    again = F.filter("handshakes", lambda place: place > F.col("first_other"))
    # Every connection has a pause before its first frame and a pause after its last frame; a
    # connection without frames consists of a single pause.
    before = F.col("first_frame_us") - F.col("first_us")
    after = F.col("last_us") - F.coalesce("last_frame_us", "first_us")
    ends = [F.when(pause >= PAUSE_US, pause).otherwise(0) for pause in (before, after)]
    inner = F.coalesce("pauses_us", F.lit(0))
    return rows.select(
        *of_kafka.columns,
        F.struct(F.col("client_id").alias("id")).alias("client_id"),
        "last_frame_us",
        F.size(F.coalesce("unanswered", none)).alias("unanswered"),
        F.size(F.coalesce(again, none)).alias("reauthentications"),
        (inner + ends[0] + ends[1]).alias("idle_us"),
        F.greatest(F.coalesce("longest_us", F.lit(0)), *ends).alias("longest_pause_us"),
    )


def _part(tables: AnalysisTables) -> DataFrame:
    """Return the facts from the frames of each connection on each day.

    ``unanswered`` contains the requests without a response. A later analysis may contain the
    response.
    """
    frames = tables.frames
    moment = F.unix_micros("time")
    is_request = F.col("direction") == "request"
    is_other = is_request & ~F.col("api_name").isin(*OPENING)
    # A pause of at least a second cannot end in the same second in which it began. The first and
    # the last frame of each second are therefore sufficient, and no sorting is needed.
    key = connection_key(frames.columns)
    seconds = frames.groupBy(*key, F.floor(moment / PAUSE_US).alias("second")).agg(
        F.min(moment).alias("first"),
        F.max(moment).alias("last"),
        F.min("client_id").alias("client_id"),
        F.min(F.when(is_other, F.col("frame_index"))).alias("first_other"),
    )
    day = F.date_from_unix_date(F.floor(F.col("second") / _DAY_SECONDS).cast("int"))
    seconds = seconds.withColumn(DAY, day)
    of_day = [*key, DAY]
    sent = (
        _with_pauses(seconds, of_day, "second")
        .groupBy(*of_day)
        .agg(
            F.min("client_id").alias("client_id"),
            F.min("first").alias("first_us"),
            F.max("last").alias("last_us"),
            F.min("first_other").alias("first_other"),
            F.sum("pause").alias("pauses_us"),
            F.max("pause").alias("longest_us"),
        )
    )
    # There are usually few of these requests.
    is_handshake, is_open = F.col("api_name") == HANDSHAKE, ~F.col("answered")
    some = frames.where(is_request & (is_handshake | is_open)).groupBy(
        *key, day_of_time().alias(DAY)
    )
    lists = some.agg(
        *(
            F.collect_list(F.when(condition, F.col("frame_index"))).alias(name)
            for name, condition in (("handshakes", is_handshake), ("unanswered", is_open))
        )
    )
    parts = sent.join(lists, of_day, "left")
    return parts if ANALYSIS in key else parts.withColumn(ANALYSIS, F.lit(None).cast("string"))


def _of_all_days(parts: DataFrame, key: Sequence[str]) -> DataFrame:
    """Combine the facts about each connection on each day into one row for the connection."""
    days = parts.withColumnsRenamed({"first_us": "first", "last_us": "last"})
    lists = {name: F.flatten(F.collect_list(name)) for name in ("handshakes", "unanswered")}
    return (
        _with_pauses(days, key, DAY)
        .groupBy(*key)
        .agg(
            F.min("client_id").alias("client_id"),
            F.min("first").alias("first_frame_us"),
            F.max("last").alias("last_frame_us"),
            F.min("first_other").alias("first_other"),
            (F.coalesce(F.sum("pauses_us"), F.lit(0)) + F.coalesce(F.sum("pause"), F.lit(0))).alias(
                "pauses_us"
            ),
            F.greatest(F.max("longest_us"), F.max("pause")).alias("longest_us"),
            *(each.alias(name) for name, each in lists.items()),
        )
    )


def _with_pauses(rows: DataFrame, by: Sequence[str], order: str) -> DataFrame:
    """Add the ``pause`` between the ``last`` frame of the row before and each ``first`` frame."""
    pause = F.col("first") - F.lag("last").over(Window.partitionBy(*by).orderBy(order))
    return rows.withColumn("pause", F.when(pause >= PAUSE_US, pause))


def _busiest(rows: DataFrame) -> DataFrame:
    """Return the highest number of connections that each client opened in one minute."""
    minute = F.floor(F.col("first_us") / 60_000_000).alias("minute")
    by_minute = rows.where("seen_from_start").groupBy(*_WHO, minute).agg(F.count("*").alias("n"))
    return by_minute.groupBy(*_WHO).agg(F.max("n").alias("most_opened_per_minute"))


ANSWER: Final = Answer(
    name="connections",
    place=100,
    question="Which clients open and lose connections?",
    meaning="How many connections each client opens, how long it keeps them open, and how they "
    "end. The idle time of a connection is the sum of its pauses of a second or more.",
    advice=(
        "If a client opens many short-lived connections, change the client so that it keeps one "
        "connection open. If brokers close connections without answering a request, check the "
        "audit. If brokers reset connections, check the network and the limits of the brokers."
    ),
    row="a client id at a host",
    columns=COLUMNS,
    order=("-short_lived", "-opened", "-connections", "client_id", "address"),
    ask=connections,
    picture=AnswerPicture("Connections by client", "connections"),
    sums=DaySums(version=1, tables=lambda: [FRAMES], columns=_SUMS, part=_part, total=_total),
)
