"""Chargeback: the bytes that each client and team moves, by topic and day."""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer
from flexwire.answers.asking.labels import read_labels, team_column, to_labels
from flexwire.answers.asking.messages import TOPIC_IDS, carried_topics, with_topic_names
from flexwire.facts.answers import AnswerPicture
from flexwire.measures.conditions import CARRYING_APIS, OF_KAFKA
from flexwire.tables.keys import connection_key, frame_key
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables, Ask

_NOT_SAID: Final = "if a request log lacks the size of some of them"
COLUMNS: Final = (
    Column("day", pa.date32(), "the day in UTC on which these frames were captured", heading="Day"),
    Column(
        "team", pa.string(), "the client's team, by the labels",
        "without labels, and if no label is for this client",
    heading="Team",
),
    Column("client_id", pa.string(), "the client id", "if the client sent none",
           heading="Client id", is_about=True),
    Column(
        "principal", pa.string(), "the client's principal, from a request log",
        "if it is unknown: in captures",
    heading="Principal",
),
    Column(
        "topic", pa.string(), "the topic of the record batches",
        "for bytes outside record batches, and if only the topic's id is known",
    heading="Topic", is_about=True,
),
    Column(
        "topic_id", pa.string(), "the topic's id, if its name is unknown",
        "if the name is known, and if no topic is",
    ),
    Column(
        "requests", pa.int64(),
           "the requests that carried records of the topic, or whose response carried some; "
           "without a topic, the requests without any records",
    heading="Requests",
),
    Column("sent_bytes", pa.int64(), "bytes that the client sent", _NOT_SAID, heading="Sent"),
    Column("received_bytes", pa.int64(), "bytes that the brokers sent to the client", _NOT_SAID,
           heading="Received"),
    Column("bytes", pa.int64(), "both together", "if one of them is", heading="Bytes"),
)  # fmt: skip

_PRINCIPAL: Final = "principal"


def chargeback(
    tables: AnalysisTables, labels: Mapping[str, str] | str | Path | None = None
) -> DataFrame:
    """Return bytes and requests by day, client and topic, and one row for bytes without a topic.

    The bytes of a topic are those of its record batches on the wire, each batch once. The rest of a
    client's frames (lengths, headers, other fields, and all other requests and responses) has no
    topic. So the bytes of all rows add up to those of all Kafka frames. A request with records of
    several topics counts for each of them. If the responses of an API carry records, a request
    counts on the day of its response, if that was captured.

    ``labels`` map client ids to teams; they are a mapping, or a file for `read_labels`. In a
    pattern, "*" stands for any characters and "?" for one. The first pattern that fits decides the
    team.

    Repeated segments are not counted, and withheld records have no topic. Request logs lack the
    size of frames, so bytes without a topic are null. They have the size of records that were
    produced or fetched, but not of records for share consumers (ShareFetch). The bytes of these
    topics are null, and their requests are all answered requests for the topic. A broker of 2.7 or
    earlier does not log the size of produced records.
    """
    teams = to_labels(labels)
    who = ["client_id", _PRINCIPAL]
    frames = _with_principal(tables)
    parts = [_frames(frames, who)]
    carried = carried_topics(tables)
    if carried is not None:
        parts += _by_topic(with_topic_names(carried, tables, TOPIC_IDS), frames, who)
    summed = reduce(lambda some, more: some.unionByName(more), parts).groupBy(
        "day", *who, "topic", "topic_id"
    )
    totals = summed.agg(
        F.sum("requests").alias("requests"),
        *(_known_sum(F.col(name)).alias(name) for name in ("sent_bytes", "received_bytes")),
    )
    is_nothing = "requests = 0 and sent_bytes <=> 0 and received_bytes <=> 0"
    return totals.where(f"not ({is_nothing})").select(
        "day",
        team_column(teams).alias("team"),
        *who,
        "topic",
        "topic_id",
        "requests",
        "sent_bytes",
        "received_bytes",
        (F.col("sent_bytes") + F.col("received_bytes")).alias("bytes"),
    )


def _known_sum(numbers: SparkColumn) -> SparkColumn:
    """Return the sum of numbers, null if one of them is null, because a part is not the whole."""
    return F.when(F.bool_and(numbers.isNotNull()), F.sum(numbers))


def _with_principal(tables: AnalysisTables) -> DataFrame:
    """Add the principal of their connection to frames, null if it is unknown."""
    frames, connections = tables.frames, tables.connections
    if _PRINCIPAL in frames.columns:
        return frames
    nobody = frames.withColumn(_PRINCIPAL, F.lit(None).cast("string"))
    if _PRINCIPAL not in connections.columns:
        return nobody
    key = connection_key(frames.columns)
    authenticated = connections.where(F.col(_PRINCIPAL).isNotNull()).select(*key, _PRINCIPAL)
    # A capture may have very many frames, so they are joined only if that adds something.
    return nobody if authenticated.isEmpty() else frames.join(authenticated, [*key], "left")


def _frames(frames: DataFrame, who: list[str]) -> DataFrame:
    """Return everything that a client sent and received, by day."""
    is_request = F.col("direction") == "request"
    # For these APIs the response carries the records, so it decides the day.
    is_late = F.coalesce(F.col("api_name").isin(*CARRYING_APIS), F.lit(False))
    is_late &= F.coalesce("answered", F.lit(False)) | ~is_request
    is_counted = F.when(is_late, ~is_request & F.col("latency_us").isNotNull())
    kafka = frames.where(OF_KAFKA.sql)
    return kafka.groupBy(_day().alias("day"), *who).agg(
        F.lit(None).cast("string").alias("topic"),
        F.lit(None).cast("string").alias("topic_id"),
        F.count_if(F.coalesce(is_counted, is_request)).alias("requests"),
        _known_sum(F.when(is_request, F.col("size")).otherwise(0)).alias("sent_bytes"),
        _known_sum(F.when(~is_request, F.col("size")).otherwise(0)).alias("received_bytes"),
    )


def _by_topic(carried: DataFrame, frames: DataFrame, who: list[str]) -> list[DataFrame]:
    """Return the part in record batches: added to its topic, subtracted from the rest."""
    key = frame_key(frames.columns)
    carried = carried.join(frames.select(*key, _PRINCIPAL), [*key])
    is_request = F.col("direction") == "request"
    bytes_ = F.col("record_bytes")
    by: list[SparkColumn | str] = [_day().alias("day"), *who]
    sums = (
        _known_sum(F.when(is_request, bytes_).otherwise(0)).alias("sent_bytes"),
        _known_sum(F.when(~is_request, bytes_).otherwise(0)).alias("received_bytes"),
    )
    requests = F.count("*").alias("requests")
    first = F.count_if("is_first").alias("first")
    topics = carried.groupBy(*by, "topic", "topic_id").agg(requests, first, *sums)
    nothing = F.lit(None).cast("string")
    return [
        topics.drop("first"),
        topics.select(
            "day",
            *who,
            nothing.alias("topic"),
            nothing.alias("topic_id"),
            (-F.col("first")).alias("requests"),
            (-F.col("sent_bytes")).alias("sent_bytes"),
            (-F.col("received_bytes")).alias("received_bytes"),
        ),
    ]


def _day() -> SparkColumn:
    # This does not depend on the session's time zone.
    return F.date_from_unix_date(F.floor(F.unix_micros("time") / 86_400_000_000).cast("int"))


def labelled_chargeback(path: str | Path) -> Ask:
    """Return the function that `analyze` asks with a file of labels, which is read now."""
    return partial(chargeback, labels=read_labels(path))


ANSWER: Final = Answer(
    name="chargeback",
    place=10,
    question="How many bytes does each client move, and of which topics?",
    meaning=(
        "Bytes on the wire by day, client and topic. A topic's bytes are the bytes of its record "
        "batches. The other bytes of a client's frames have no topic. A client has several rows; "
        "the report's list of clients shows its total."
    ),
    advice=(
        "Write a file of labels, which has one line for each client id with its team, and charge "
        "each team for its rows. First look at clients with many bytes without a topic."
    ),
    row="a day, client and topic",
    columns=COLUMNS,
    order=("-bytes", "day", "client_id", "principal", "topic", "topic_id"),
    ask=chargeback,
    labelled=labelled_chargeback,
    picture=AnswerPicture("Bytes by client and topic", "bytes", ("sent_bytes", "received_bytes")),
)
