"""Chargeback: the bytes that each client and each team sends and receives, by topic and day."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, DaySums
from flexwire.answers.asking.day_sums import DAY, all_of, day_of_time
from flexwire.answers.asking.labels import read_labels, team_column, to_labels
from flexwire.answers.asking.messages import TOPIC_IDS, carried_topics, with_topic_names
from flexwire.facts.answers import AnswerPicture
from flexwire.measures.conditions import CARRYING_APIS, OF_KAFKA
from flexwire.tables.keys import ANALYSIS, connection_key, frame_key
from flexwire.tables.output import MESSAGES
from flexwire.tables.schema import Column
from flexwire.tables.spec_places import RECORDS_FIELDS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables, Ask
    from flexwire.answers.asking.labels import Labels

_NOT_SAID: Final = "if a request log lacks the size of some messages"
COLUMNS: Final = (
    Column("day", pa.date32(), "the day in UTC on which these frames were captured", heading="Day"),
    Column(
        "team", pa.string(), "the team of the client, from the label file",
        "if no label file lists this client",
    heading="Team",
),
    Column("client_id", pa.string(), "the client id", "if the client sent no client id",
           heading="Client id", is_about=True),
    Column(
        "principal", pa.string(), "the client's principal, from a request log",
        "if the principal is unknown, as in captures",
    heading="Principal",
),
    Column(
        "topic", pa.string(), "the topic of the record batches",
        "for bytes outside record batches, and if only the id of the topic is known",
    heading="Topic", is_about=True,
),
    Column(
        "topic_id", pa.string(), "the id of the topic, if its name is unknown",
        "if the name of the topic is known, or if the bytes have no topic",
    ),
    Column(
        "requests", pa.int64(),
           "the number of requests for which either the request or its response carries records of "
           "the topic; in a row without a topic, the number of requests for which neither carries "
           "records",
    heading="Requests",
),
    Column("sent_bytes", pa.int64(), "the number of bytes that the client sent", _NOT_SAID,
           heading="Sent"),
    Column("received_bytes", pa.int64(),
           "the number of bytes that the brokers sent to the client", _NOT_SAID,
           heading="Received"),
    Column("bytes", pa.int64(), "the total number of bytes in both directions",
           "if the number for one direction is null", heading="Bytes"),
)  # fmt: skip

_PRINCIPAL: Final = "principal"
_WHO: Final = ("client_id", _PRINCIPAL)
# In growing tables, these columns identify a request without a response.
_OPEN: Final = {ANALYSIS: "string", "connection": "string", "frame_index": "bigint"}
_SUMMED: Final = ("requests", "sent_bytes", "received_bytes")
_SUMS: Final = pa.schema(
    [
        pa.field(DAY, pa.date32()),
        *(pa.field(name, pa.string()) for name in (*_WHO, "topic", "topic_id")),
        *(pa.field(name, pa.string()) for name in (ANALYSIS, "connection")),
        *(pa.field(name, pa.int64()) for name in ("frame_index", *_SUMMED)),
    ]
)


def chargeback(
    tables: AnalysisTables, labels: Mapping[str, str] | str | Path | None = None
) -> DataFrame:
    """Return bytes and requests by day, client and topic, with a row for bytes without a topic.

    The bytes of a topic are the bytes of its record batches on the wire. Each batch is counted
    once. All other bytes in a client's frames (lengths, headers, other fields, and all other
    requests and responses) belong to no topic. The bytes in all rows therefore add up to the bytes
    of all Kafka frames. A request that carries records of several topics counts once for each
    topic. For an API whose responses carry records, a request counts on the day of its response if
    that response was captured.

    The argument ``labels`` maps client ids to teams; it is either a mapping or a file that
    ``read_labels`` can read. In a pattern, "*" matches any characters and "?" matches one
    character. The first matching pattern determines the team.

    Repeated segments are not counted, and withheld records belong to no topic. Request logs do not
    contain frame sizes, so the bytes without a topic are null. They do contain the sizes of
    produced and fetched records, but not the sizes of records sent to share consumers (ShareFetch).
    For topics that share consumers read, the bytes are therefore null, and the number of requests
    includes all answered requests for the topic. Kafka 2.7 and earlier do not log the size of
    produced records.
    """
    parts = _part(tables, _with_principal(tables))
    return _total(parts, tables, to_labels(labels))


def _part_of_day(tables: AnalysisTables) -> DataFrame:
    """Return the sums over tables, without principals.

    Principals come from the table of connections.
    """
    return _part(tables, tables.frames.withColumn(_PRINCIPAL, _nothing()))


def _part(tables: AnalysisTables, frames: DataFrame) -> DataFrame:
    """Return sums by day, client and topic.

    There is a separate row for each request that may be answered later.

    Such a row contains the key of the request; in all other rows, these columns are null.
    """
    parts = [_frames(frames)]
    carried = carried_topics(tables)
    if carried is not None:
        parts += _by_topic(carried, frames)
    names = [name for name in _SUMS.names if name not in _SUMMED]
    summed = all_of(parts).groupBy(*names)
    return summed.agg(
        F.sum("requests").alias("requests"),
        *(_known_sum(F.col(name)).alias(name) for name in ("sent_bytes", "received_bytes")),
    ).select(*_SUMS.names)


def _total(parts: DataFrame, tables: AnalysisTables, labels: Labels) -> DataFrame:
    """Return the answer's rows, computed from the sums of all days."""
    if tables.answered_later is not None:
        # The response is counted in place of the request, so the request itself is not counted.
        later = tables.answered_later.withColumn("is_late", F.lit(True))
        parts = parts.join(later, [*_OPEN], "left").withColumn(
            "requests", F.when(F.col("is_late"), 0).otherwise(F.col("requests"))
        )
    named = with_topic_names(parts, tables, TOPIC_IDS)
    summed = named.groupBy("day", *_WHO, "topic", "topic_id")
    totals = summed.agg(
        F.sum("requests").alias("requests"),
        *(_known_sum(F.col(name)).alias(name) for name in ("sent_bytes", "received_bytes")),
    )
    is_nothing = "requests = 0 and sent_bytes <=> 0 and received_bytes <=> 0"
    return totals.where(f"not ({is_nothing})").select(
        "day",
        team_column(labels).alias("team"),
        *_WHO,
        "topic",
        "topic_id",
        "requests",
        "sent_bytes",
        "received_bytes",
        (F.col("sent_bytes") + F.col("received_bytes")).alias("bytes"),
    )


def _known_sum(numbers: SparkColumn) -> SparkColumn:
    """Return the sum of numbers, or null if any number is null, as the sum would be too low."""
    return F.when(F.bool_and(numbers.isNotNull()), F.sum(numbers))


def _authenticated(tables: AnalysisTables) -> DataFrame | None:
    """Return the principals of connections by key, or None if no table contains a principal."""
    connections = tables.connections
    if _PRINCIPAL in tables.frames.columns or _PRINCIPAL not in connections.columns:
        return None
    key = connection_key(tables.frames.columns)
    authenticated = connections.where(F.col(_PRINCIPAL).isNotNull()).select(*key, _PRINCIPAL)
    # A capture may contain very many frames, so they are joined only if there are principals to
    # add.
    return None if authenticated.isEmpty() else authenticated


def _has_principals(tables: AnalysisTables) -> bool:
    return _authenticated(tables) is not None


def _with_principal(tables: AnalysisTables) -> DataFrame:
    """Add the principal of the connection to each frame, or null if the principal is unknown."""
    frames = tables.frames
    if _PRINCIPAL in frames.columns:
        return frames
    authenticated = _authenticated(tables)
    if authenticated is None:
        return frames.withColumn(_PRINCIPAL, _nothing())
    return frames.join(authenticated, [*connection_key(frames.columns)], "left")


def _nothing() -> SparkColumn:
    return F.lit(None).cast("string")


def _frames(frames: DataFrame) -> DataFrame:
    """Return the bytes that each client sent and received, by day."""
    is_request = F.col("direction") == "request"
    # In these APIs, the responses carry the records, so the day of the response counts.
    carries = F.coalesce(F.col("api_name").isin(*CARRYING_APIS), F.lit(False))
    is_answered = F.coalesce("answered", F.lit(False))
    is_late = carries & (is_answered | ~is_request)
    is_counted = F.when(is_late, ~is_request & F.col("latency_us").isNotNull())
    # A later analysis may contain the response. If it does, the request is not counted here.
    is_open = carries & is_request & ~is_answered if ANALYSIS in frames.columns else F.lit(False)
    open_key = [
        F.when(is_open, F.col(name) if name in frames.columns else F.lit(None))
        .cast(kind)
        .alias(name)
        for name, kind in _OPEN.items()
    ]
    kafka = frames.where(OF_KAFKA.sql)
    return kafka.groupBy(day_of_time().alias("day"), *_WHO, *open_key).agg(
        _nothing().alias("topic"),
        _nothing().alias("topic_id"),
        F.count_if(F.coalesce(is_counted, is_request)).alias("requests"),
        _known_sum(F.when(is_request, F.col("size")).otherwise(0)).alias("sent_bytes"),
        _known_sum(F.when(~is_request, F.col("size")).otherwise(0)).alias("received_bytes"),
    )


def _by_topic(carried: DataFrame, frames: DataFrame) -> list[DataFrame]:
    """Move the bytes of record batches from the bytes without a topic to their topics."""
    key = frame_key(frames.columns)
    carried = carried.join(frames.select(*key, _PRINCIPAL), [*key])
    is_request = F.col("direction") == "request"
    bytes_ = F.col("record_bytes")
    no_key = [F.lit(None).cast(kind).alias(name) for name, kind in _OPEN.items()]
    by: list[SparkColumn | str] = [day_of_time().alias("day"), *_WHO]
    sums = (
        _known_sum(F.when(is_request, bytes_).otherwise(0)).alias("sent_bytes"),
        _known_sum(F.when(~is_request, bytes_).otherwise(0)).alias("received_bytes"),
    )
    requests = F.count("*").alias("requests")
    first = F.count_if("is_first").alias("first")
    topics = carried.groupBy(*by, "topic", "topic_id").agg(requests, first, *sums)
    return [
        topics.drop("first").select("*", *no_key),
        topics.select(
            "day",
            *_WHO,
            *no_key,
            _nothing().alias("topic"),
            _nothing().alias("topic_id"),
            (-F.col("first")).alias("requests"),
            (-F.col("sent_bytes")).alias("sent_bytes"),
            (-F.col("received_bytes")).alias("received_bytes"),
        ),
    ]


def labelled_chargeback(path: str | Path) -> Ask:
    """Read a label file, and return the function that `analyze` calls with these labels."""
    return partial(chargeback, labels=read_labels(path))


ANSWER: Final = Answer(
    name="chargeback",
    place=10,
    question="How many bytes does each client send and receive, and for which topics?",
    meaning=(
        "Bytes on the wire by day, client and topic. The bytes of a topic are those of its record "
        "batches. All other bytes in a client's frames belong to no topic. A client can appear in "
        "more than one row. The list of clients in the report shows the total for each client."
    ),
    advice=(
        "Write a label file, with one line for each client id and its team. Then charge each "
        "team for the rows of its clients. Look first at clients for which many bytes are not "
        "attributed to a topic."
    ),
    row="a combination of a day, a client and a topic",
    columns=COLUMNS,
    order=("-bytes", "day", "client_id", "principal", "topic", "topic_id"),
    ask=chargeback,
    labelled=labelled_chargeback,
    picture=AnswerPicture("Bytes by client and topic", "bytes", ("sent_bytes", "received_bytes")),
    sums=DaySums(
        version=1,
        tables=lambda: ["frames", *(f"{MESSAGES}/{place.message}" for place in RECORDS_FIELDS)],
        columns=_SUMS,
        part=_part_of_day,
        total=partial(_total, labels={}),
        unless=_has_principals,
        takes_labels=True,
    ),
)
