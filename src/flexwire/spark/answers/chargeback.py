"""Chargeback: which client, and which team, has how many bytes of which topic, by day."""

from __future__ import annotations

from functools import partial, reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.report.answer_facts import Picture, ShownColumn
from flexwire.spark.answers.answer import Answer
from flexwire.spark.answers.carried import ANSWERED_WITH, TOPIC_IDS, carried_topics
from flexwire.spark.answers.labels import read_labels, team_column, to_labels
from flexwire.spark.answers.topic_names import with_topic_names
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from flexwire.spark.answers.answer import Ask
    from flexwire.spark.answers.reading import AnalysisTables

COLUMNS: Final = (
    Column("day", pa.date32(), "the day in UTC on which these frames were captured"),
    Column(
        "team", pa.string(), "whose client it is, as the labels say",
        "without labels, and where none is of this client",
    ),
    Column("client_id", pa.string(), "the client id", "where the client sent none"),
    Column(
        "principal", pa.string(), "the client's principal, from a request log",
        "where it is not known: in captures",
    ),
    Column(
        "topic", pa.string(), "the topic whose record batches these bytes are",
        "of what is not in record batches; where only the topic's id is known",
    ),
    Column(
        "topic_id", pa.string(), "the topic's id, where its name is not known",
        "where the name is known, and where no topic is",
    ),
    Column(
        "requests", pa.int64(), "the requests that carried records of the topic or were answered "
        "with some; without a topic those that carried no record and were answered with none",
    ),
    Column("sent_bytes", pa.int64(), "bytes that the client sent"),
    Column("received_bytes", pa.int64(), "bytes that the client was sent"),
    Column("bytes", pa.int64(), "both together"),
)  # fmt: skip

_PRINCIPAL: Final = "principal"
_FRAME: Final = ("connection", "direction", "frame_index")


def chargeback(
    tables: AnalysisTables, labels: Mapping[str, str] | str | Path | None = None
) -> DataFrame:
    """Bytes and requests by day, client and topic: a row each, and one for what has no topic.

    A topic's bytes are those of its record batches, as they are on the wire, each batch once. What
    is left of a client's frames (lengths, headers, the other fields, and all other requests and
    responses) has no topic. So the bytes of all rows together are those of all Kafka frames.
    A request with records of several topics counts for each. A request of an API whose responses
    carry records counts on the day of its response, if that was captured.

    ``labels`` map client ids to teams, in a mapping or in a file for `read_labels`; in a client id
    "*" stands for any characters and "?" for one, and the first that fits says the team.

    It does not know what repeated segments took, and of withheld records no topic. Request logs
    do not say the size of frames: of what has no topic there are but requests then.
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
    # Of a request log only bytes of records are known, and none is left of frames without them.
    totals = summed.agg(
        F.sum("requests").alias("requests"),
        *(
            F.greatest(F.sum(name), F.lit(0).cast("bigint")).alias(name)
            for name in ("sent_bytes", "received_bytes")
        ),
    )
    return totals.where("requests > 0 or sent_bytes > 0 or received_bytes > 0").select(
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


def _with_principal(tables: AnalysisTables) -> DataFrame:
    """The frames with the principal of their connection, null where it is not known."""
    frames, connections = tables.frames, tables.connections
    if _PRINCIPAL in frames.columns:
        return frames
    nobody = frames.withColumn(_PRINCIPAL, F.lit(None).cast("string"))
    if _PRINCIPAL not in connections.columns:
        return nobody
    known = connections.where(F.col(_PRINCIPAL).isNotNull()).select("connection", _PRINCIPAL)
    # Frames of captures, of which there may be very many, are not to be joined for nothing.
    return nobody if known.isEmpty() else frames.join(known, "connection", "left")


def _frames(frames: DataFrame, who: list[str]) -> DataFrame:
    """All that a client sent and was sent, by day."""
    is_request = F.col("direction") == "request"
    answers = [name.removesuffix("Response") for name in ANSWERED_WITH]
    # Of these the response carries the records, and so it is counted where it is.
    is_late = F.coalesce(F.col("api_name").isin(answers), F.lit(False))
    is_late &= F.coalesce("answered", F.lit(False)) | ~is_request
    is_counted = F.when(is_late, ~is_request & F.col("latency_us").isNotNull())
    kafka = frames.where("outcome <> 'not Kafka'")
    return kafka.groupBy(_day().alias("day"), *who).agg(
        F.lit(None).cast("string").alias("topic"),
        F.lit(None).cast("string").alias("topic_id"),
        F.count_if(F.coalesce(is_counted, is_request)).alias("requests"),
        F.sum(F.when(is_request, F.col("size")).otherwise(0)).alias("sent_bytes"),
        F.sum(F.when(~is_request, F.col("size")).otherwise(0)).alias("received_bytes"),
    )


def _by_topic(carried: DataFrame, frames: DataFrame, who: list[str]) -> list[DataFrame]:
    """What of it is in record batches: added to the topic, and taken from what has none."""
    carried = carried.join(frames.select(*_FRAME, _PRINCIPAL), list(_FRAME))
    is_request = F.col("direction") == "request"
    bytes_ = F.col("record_bytes")
    by: list[SparkColumn | str] = [_day().alias("day"), *who]
    sums = (
        F.sum(F.when(is_request, bytes_).otherwise(0)).alias("sent_bytes"),
        F.sum(F.when(~is_request, bytes_).otherwise(0)).alias("received_bytes"),
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
    # Whatever the time zone of the session is.
    return F.date_from_unix_date(F.floor(F.unix_micros("time") / 86_400_000_000).cast("int"))


def labelled_chargeback(path: str | Path) -> Ask:
    """What `analyze` asks where a file of labels is given, which is read now."""
    return partial(chargeback, labels=read_labels(path))


ANSWER: Final = Answer(
    "chargeback",
    question="Who moves how many bytes, and of which topics?",
    meaning="Bytes on the wire by day, client and topic: a topic's are those of its record "
    "batches, and what is left of a client's frames has no topic. A client has several rows: its "
    "total is their sum, and stands with the clients in the report.",
    advice="Give a file of labels, a line for each client id with its team, and charge each team "
    "for its rows; look at clients with many bytes without a topic first.",
    row="a day, client and topic",
    columns=COLUMNS,
    order=("-bytes", "day", "client_id", "principal", "topic", "topic_id"),
    shown=(
        ShownColumn("day", "Day", "moment"),
        ShownColumn("team", "Team"),
        ShownColumn("client_id", "Client id", is_about=True),
        ShownColumn("principal", "Principal"),
        ShownColumn("topic", "Topic", is_about=True),
        ShownColumn("requests", "Requests", "count"),
        ShownColumn("sent_bytes", "Sent", "bytes"),
        ShownColumn("received_bytes", "Received", "bytes"),
        ShownColumn("bytes", "Bytes", "bytes"),
    ),
    ask=chargeback,
    labelled=labelled_chargeback,
    picture=Picture("Bytes by client and topic", "bytes", ("sent_bytes", "received_bytes")),
)
