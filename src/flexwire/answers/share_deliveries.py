"""Share groups: acquired records by member, with earlier deliveries and acknowledgements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, DaySums, returns
from flexwire.answers.asking.day_exchanges import (
    HALF,
    OF_HALF,
    exchanges_of_days,
    joined_halves,
    no_half,
)
from flexwire.answers.asking.day_sums import DAY, all_of, day_of_time
from flexwire.answers.asking.messages import (
    ExchangeFilter,
    exchanges_of,
    known_id,
    with_topic_names,
)
from flexwire.columnar.record_columns import MOMENT
from flexwire.facts.answers import AnswerPicture
from flexwire.tables.message_schema import table_schema
from flexwire.tables.output import MESSAGES
from flexwire.tables.row_filter import FRAMES
from flexwire.tables.schema import Column
from flexwire.tasks import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables

_FETCH: Final = "ShareFetch"
# Requests that acknowledge records. A fetch can acknowledge the records of the previous fetch.
_ACKNOWLEDGE: Final = ("ShareFetchRequest", "ShareAcknowledgeRequest")
# The types of acknowledgements by number (KIP-932; the last one is from KIP-1222). The first type
# marks offsets without a record.
_TYPES: Final = ("gaps", "accepted", "released", "rejected", "renewed")
_MEMBER: Final = ("group_id", "member_id", "client_id")
_WHO: Final = (HALF, *_MEMBER, "time")
_COUNTS: Final = ("acquired", "redelivered", *_TYPES)
_ROW: Final = (*_MEMBER, "topic_id")
_SUMS: Final = pa.schema(
    [
        (DAY, pa.date32()),
        (HALF, OF_HALF),
        *((name, pa.string()) for name in _ROW),
        *((name, pa.decimal128(38, 0)) for name in _COUNTS),
        ("most_deliveries", pa.int32()),
        ("first_time", MOMENT),
        ("last_time", MOMENT),
    ]
)
_SUMMED: Final = tuple(name for name in _SUMS.names if name not in {DAY, HALF})
_OF_REQUEST: Final = "struct<group_id: string, member_id: string>"

COLUMNS: Final = (
    Column("group_id", pa.string(), "the share group", heading="Share group", is_about=True),
    Column("member_id", pa.string(), "the member", heading="Member"),
    Column("client_id", pa.string(), "the member's client id", "if the client sent no client id",
           heading="Client id", is_about=True),
    Column("topic", pa.string(), "the topic", "if only the id of the topic is known",
           heading="Topic", is_about=True),
    Column("topic_id", pa.string(), "the topic's id", "if the name of the topic is known"),
    Column("acquired", pa.int64(),
           "how many offsets the member acquired for processing; some offsets have no record",
           heading="Acquired"),
    Column("redelivered", pa.int64(),
           "how many of the acquired offsets had been delivered before, to any member",
           heading="Delivered before"),
    Column("redelivered_share", pa.float64(),
           "the share of acquired offsets that had been delivered before",
           "if no offset was acquired",
           heading="Share redelivered"),
    Column("most_deliveries", pa.int32(),
           "the highest number of deliveries of one offset, including the current delivery",
           "if no offset was acquired", heading="Most deliveries"),
    Column("accepted", pa.int64(), "how many offsets the member acknowledged as processed",
           heading="Accepted"),
    Column("released", pa.int64(), "how many offsets the member released for another delivery",
           heading="Released"),
    Column("rejected", pa.int64(),
           "how many offsets the member rejected; these are not delivered again",
           heading="Rejected"),
    Column("renewed", pa.int64(), "how often the member requested more time for an offset"),
    Column("gaps", pa.int64(), "how many offsets the member reported as having no record"),
    Column("first_time", MOMENT, "when the member first acquired or acknowledged an offset"),
    Column("last_time", MOMENT, "when the member last acquired or acknowledged an offset"),
)  # fmt: skip


@returns(COLUMNS)
def share_deliveries(tables: AnalysisTables) -> DataFrame | None:
    """Return deliveries and acknowledgements for each member of a share group and each topic.

    For each range of offsets, a broker reports how often these offsets were delivered (KIP-932). A
    number above 1 means that a member released the records, or that the time for acknowledging the
    records had expired. Records are not counted if the request that acquired them was not captured.
    The requests do not show whether brokers accepted the acknowledgements; the answer ``errors``
    lists those that brokers refused.
    """
    fetches = exchanges_of(tables, [_fetches()])
    parts = _acknowledged_in(tables)
    if fetches is not None:
        parts.append(_acquired(fetches.withColumn(HALF, no_half())))
    return _shown(_summed(all_of(parts)), tables) if parts else None


def _part(tables: AnalysisTables) -> DataFrame | None:
    """Return the sums of each day.

    A row with `HALF` is either a fetch without a response on its day, or the offsets that a member
    acquired with the response to a fetch from an earlier day.
    """
    response: Any = spark_schema(table_schema(f"{_FETCH}Response"))["body"].dataType
    fetches = exchanges_of_days(tables, [_fetches()], _OF_REQUEST, response["responses"].dataType)
    parts = _acknowledged_in(tables)
    if fetches is not None:
        parts += [_acquired(fetches), _asked(fetches)]
    return _summed(all_of(parts)) if parts else None


def _total(parts: DataFrame, tables: AnalysisTables) -> DataFrame:
    """Return the answer's rows, computed from sums."""
    of_days = parts.where(F.col(HALF).isNull()).select(*_SUMMED)
    over_midnight = joined_halves(parts, _SUMMED, of_request=_MEMBER)
    return _shown(all_of([of_days, over_midnight]), tables)


def _summed(rows: DataFrame) -> DataFrame:
    """Return sums by day, member and topic, with separate rows for halves of exchanges."""
    # A sum of 64-bit numbers fits in this type.
    counts = (F.sum(F.col(name).cast("decimal(38, 0)")).alias(name) for name in _COUNTS)
    return rows.groupBy(DAY, HALF, *_ROW).agg(
        *counts,
        F.max("deliveries").alias("most_deliveries"),
        F.min("time").alias("first_time"),
        F.max("time").alias("last_time"),
    )


def _shown(sums: DataFrame, tables: AnalysisTables) -> DataFrame:
    """Return the answer's rows, computed from sums of whole exchanges."""
    named = with_topic_names(sums.withColumn("topic", F.lit(None).cast("string")), tables)
    counts = named.groupBy(*_ROW[:3], "topic", _ROW[3]).agg(
        *(
            # A client may send any numbers, so the sum may be too large.
            F.coalesce(F.sum(name).try_cast("bigint"), F.lit(0)).alias(name)
            for name in _COUNTS
        ),
        F.max("most_deliveries").alias("most_deliveries"),
        F.min("first_time").alias("first_time"),
        F.max("last_time").alias("last_time"),
    )
    share = F.col("redelivered") / F.nullif(F.col("acquired"), F.lit(0))
    return counts.withColumn("redelivered_share", share).select(
        *(column.name for column in COLUMNS)
    )


def _fetches() -> ExchangeFilter:
    request = F.struct("body.group_id", "body.member_id")
    return ExchangeFilter(_FETCH, request, F.col("body.responses"))


def _acquired(fetches: DataFrame) -> DataFrame:
    """Return a row for each range of offsets that a member acquired."""
    topics = fetches.select(
        HALF,
        F.col("request.group_id").alias("group_id"),
        F.col("request.member_id").alias("member_id"),
        "client_id",
        F.col("answered").alias("time"),
        F.inline("response"),
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


def _asked(fetches: DataFrame) -> DataFrame:
    """Return a row for each fetch without a response on its day."""
    nothing = {"time": "timestamp", "topic_id": "string"}
    alone = fetches.where(F.col(f"{HALF}.is_request")).select(
        HALF,
        "client_id",
        "request.*",
        *(F.lit(None).cast(kind).alias(name) for name, kind in nothing.items()),
    )
    return _rows(alone).withColumn(DAY, day_of_time(f"{HALF}.asked"))


def _acknowledged_in(tables: AnalysisTables) -> list[DataFrame]:
    """Return the ranges of offsets that members acknowledged with each kind of request."""
    found = (_acknowledged(tables, message) for message in _ACKNOWLEDGE)
    return [rows for rows in found if rows is not None]


def _acknowledged(tables: AnalysisTables, message: str) -> DataFrame | None:
    """Return a row for each range of offsets that a member acknowledged with this request."""
    table = tables.message(message)
    if table is None:
        return None
    topics = table.where("body is not null").select(
        no_half().alias(HALF),
        F.col("body.group_id").alias("group_id"),
        F.col("body.member_id").alias("member_id"),
        "client_id",
        "time",
        F.inline("body.topics"),
    )
    partitions = topics.select(*_WHO, "topic_id", F.inline("partitions"))
    ranges = partitions.select(*_WHO, "topic_id", F.inline("acknowledgement_batches"))
    types = F.col("acknowledge_types")
    # A single type applies to all offsets. Otherwise, each offset has its own type.
    counts = {
        name: F.when(
            F.size(types) == 1, F.when(F.element_at(types, 1) == number, _offsets())
        ).otherwise(F.size(types) - F.size(F.array_remove(types, F.lit(number).cast("tinyint"))))
        for number, name in enumerate(_TYPES)
    }
    return _rows(ranges.where(_offsets() > 0), **counts)


def _offsets() -> SparkColumn:
    # The client chooses both numbers, so they may have any value.
    return F.try_add(F.try_subtract("last_offset", "first_offset"), F.lit(1))


def _rows(ranges: DataFrame, **counts: SparkColumn) -> DataFrame:
    nothing = F.lit(None)
    return ranges.select(
        day_of_time().alias(DAY),
        *_WHO,
        known_id(F.col("topic_id")).alias("topic_id"),
        *(
            counts.get(column, nothing)
            .cast("int" if column == "deliveries" else "bigint")
            .alias(column)
            for column in (*_COUNTS, "deliveries")
        ),
    )


def _tables() -> list[str]:
    """Return the tables that `_part` reads."""
    names = dict.fromkeys((f"{_FETCH}Request", f"{_FETCH}Response", *_ACKNOWLEDGE))
    return [FRAMES, *(f"{MESSAGES}/{name}" for name in names)]


ANSWER: Final = Answer(
    name="share_deliveries",
    place=140,
    question=(
        "How many records did the members of share groups receive, and how many of these records "
        "had been delivered before?"
    ),
    meaning="For each member of a share group: the offsets that it acquired, how many of these "
    "offsets had been delivered before, and how the member acknowledged them.",
    advice=(
        "If many records are delivered again, check how many records members release, and whether "
        "members take longer than group.share.record.lock.duration.ms to acknowledge records. "
        "Kafka does not deliver rejected records again."
    ),
    row="a combination of a share-group member and a topic",
    columns=COLUMNS,
    order=("-redelivered", "-acquired", *_MEMBER, "topic", "topic_id"),
    ask=share_deliveries,
    picture=AnswerPicture("Offsets delivered again", "redelivered"),
    sums=DaySums(version=1, tables=_tables, columns=_SUMS, part=_part, total=_total),
)
