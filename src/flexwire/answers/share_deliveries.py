"""Share groups: the records that each member acquired, earlier deliveries, and acknowledgements."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, returns
from flexwire.answers.asking.messages import exchanges, known_id, with_topic_names
from flexwire.columnar.record_columns import MOMENT
from flexwire.facts.answers import AnswerPicture
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

    from flexwire.answers.asking.answer import AnalysisTables

_FETCH: Final = "ShareFetch"
# Requests that acknowledge records. A fetch can acknowledge the records of the fetch before it.
_ACKNOWLEDGE: Final = ("ShareFetchRequest", "ShareAcknowledgeRequest")
# The types of acknowledgements by number (KIP-932, and KIP-1222 for the last one). The first type
# is for offsets without a record.
_TYPES: Final = ("gaps", "accepted", "released", "rejected", "renewed")
_WHO: Final = ("group_id", "member_id", "client_id", "time")
_COUNTED: Final = ("acquired", "redelivered", "deliveries", *_TYPES)
_ROW: Final = ("group_id", "member_id", "client_id", "topic", "topic_id")

COLUMNS: Final = (
    Column("group_id", pa.string(), "the share group", heading="Share group", is_about=True),
    Column("member_id", pa.string(), "the member", heading="Member"),
    Column("client_id", pa.string(), "its client id", "if the client sent no client id",
           heading="Client id", is_about=True),
    Column("topic", pa.string(), "the topic", "if only the id of the topic is known",
           heading="Topic", is_about=True),
    Column("topic_id", pa.string(), "the topic's id", "if the name of the topic is known"),
    Column("acquired", pa.int64(),
           "how many offsets the member acquired for processing; some of them may have no record",
           heading="Acquired"),
    Column("redelivered", pa.int64(),
           "how many of the acquired offsets had been delivered before, to any member",
           heading="Delivered before"),
    Column("redelivered_share", pa.float64(), "their share", "if no offset was acquired",
           heading="Of these"),
    Column("most_deliveries", pa.int32(),
           "the highest number of deliveries of one offset, including this one",
           "if no offset was acquired", heading="Most deliveries"),
    Column("accepted", pa.int64(), "how many offsets the member acknowledged as processed",
           heading="Accepted"),
    Column("released", pa.int64(), "how many offsets the member released for another delivery",
           heading="Released"),
    Column("rejected", pa.int64(),
           "how many offsets the member rejected; these are not delivered again",
           heading="Rejected"),
    Column("renewed", pa.int64(), "how often the member asked for more time for an offset"),
    Column("gaps", pa.int64(), "how many offsets the member reported as offsets without a record"),
    Column("first_time", MOMENT, "when the member first acquired or acknowledged an offset"),
    Column("last_time", MOMENT, "when the member last acquired or acknowledged an offset"),
)  # fmt: skip


@returns(COLUMNS)
def share_deliveries(tables: AnalysisTables) -> DataFrame | None:
    """Return deliveries and acknowledgements for each member of a share group and each topic.

    For each range of offsets, a broker says how often it was delivered (KIP-932): the first time is
    1. A higher number means that the records were returned, or that the time for acknowledging them
    was over. Records acquired in responses to requests that were not captured are missing. It is
    unknown whether brokers accepted the acknowledgements. The answer ``errors`` has those that they
    refused.
    """
    parts = [
        part
        for part in (_acquired(tables), *(_acknowledged(tables, name) for name in _ACKNOWLEDGE))
        if part is not None
    ]
    if not parts:
        return None
    rows = with_topic_names(reduce(DataFrame.unionByName, parts), tables)
    counts = rows.groupBy(*_ROW).agg(
        *(
            F.coalesce(F.try_sum(column), F.lit(0)).alias(column)
            for column in (*_COUNTED[:2], *_TYPES)
        ),
        F.max("deliveries").alias("most_deliveries"),
        F.min("time").alias("first_time"),
        F.max("time").alias("last_time"),
    )
    share = F.col("redelivered") / F.nullif(F.col("acquired"), F.lit(0))
    return counts.withColumn("redelivered_share", share)


def _acquired(tables: AnalysisTables) -> DataFrame | None:
    """Return a row for each range of offsets that a member acquired."""
    fetched = exchanges(tables, _FETCH)
    if fetched is None:
        return None
    topics = fetched.select(
        F.col("request.group_id").alias("group_id"),
        F.col("request.member_id").alias("member_id"),
        "client_id",
        F.col("answered").alias("time"),
        F.inline("response.responses"),
    )
    partitions = topics.select(*_WHO, "topic_id", F.inline("partitions"))
    ranges = partitions.select(*_WHO, "topic_id", F.inline("acquired_records"))
    offsets = _offsets()
    return _rows(
        ranges.where(offsets > 0),
        acquired=offsets,
        redelivered=F.when(F.col("delivery_count") > 1, offsets),
        deliveries=F.col("delivery_count").cast("int"),
    )


def _acknowledged(tables: AnalysisTables, message: str) -> DataFrame | None:
    """Return a row for each range of offsets that a member acknowledged with this request."""
    table = tables.message(message)
    if table is None:
        return None
    topics = table.where("body is not null").select(
        F.col("body.group_id").alias("group_id"),
        F.col("body.member_id").alias("member_id"),
        "client_id",
        "time",
        F.inline("body.topics"),
    )
    partitions = topics.select(*_WHO, "topic_id", F.inline("partitions"))
    ranges = partitions.select(*_WHO, "topic_id", F.inline("acknowledgement_batches"))
    types = F.col("acknowledge_types")
    # A single type applies to all offsets. Otherwise each offset has its own type.
    counts = {
        name: F.when(
            F.size(types) == 1, F.when(F.element_at(types, 1) == number, _offsets())
        ).otherwise(F.size(types) - F.size(F.array_remove(types, F.lit(number).cast("tinyint"))))
        for number, name in enumerate(_TYPES)
    }
    return _rows(ranges.where(_offsets() > 0), **counts)


def _offsets() -> SparkColumn:
    # The two numbers may be any numbers.
    return F.try_add(F.try_subtract("last_offset", "first_offset"), F.lit(1))


def _rows(ranges: DataFrame, **counts: SparkColumn) -> DataFrame:
    nothing = F.lit(None)
    return ranges.select(
        *_WHO,
        F.lit(None).cast("string").alias("topic"),
        known_id(F.col("topic_id")).alias("topic_id"),
        *(
            counts.get(column, nothing)
            .cast("int" if column == "deliveries" else "bigint")
            .alias(column)
            for column in _COUNTED
        ),
    )


ANSWER: Final = Answer(
    name="share_deliveries",
    place=140,
    question=(
        "How many records did the members of share groups get, and how many of these records had "
        "been delivered before?"
    ),
    meaning="The offsets that each member of a share group acquired, how many of these had been "
    "delivered before, and how it acknowledged them.",
    advice=(
        "If many records are delivered again, check how many records members release, and "
        "whether members take longer than group.share.record.lock.duration.ms. Rejected records "
        "are not delivered again."
    ),
    row="a member of a share group and topic",
    columns=COLUMNS,
    order=("-redelivered", "-acquired", *_ROW),
    ask=share_deliveries,
    picture=AnswerPicture("Offsets delivered again", "redelivered"),
)
