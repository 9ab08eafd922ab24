"""The captured records of internal topics, by kind of record and by key."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, returns
from flexwire.answers.asking.messages import is_grown, known_name, with_topic_names
from flexwire.answers.state import internal_records
from flexwire.facts.answers import AnswerPicture
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.tables.schema import Column
from flexwire.tables.typed_records import fields_there, record_names

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn

    from flexwire.answers.asking.answer import AnalysisTables

_TIME: Final = pa.timestamp("us", "UTC")
_TOPICS: Final = {topic.topic: topic for topic in InternalTopic}
# The fields of a key that identify the subject of a record.
_ABOUT: Final = {"group": ("group", "group_id"), "transactional_id": ("transactional_id",)}
_KEYS: Final = tuple(f"key.{field}" for fields in _ABOUT.values() for field in fields)
# A producer counts offsets from 0. The broker replaces them with the real offsets.
_PRODUCED: Final = "produce"
_NEEDED: Final = ("topic", "source", "partition", "offset", "timestamp", "key", "value", "reason")
_ROW: Final = ("message", "type", *_ABOUT)
_NOT_READ: Final = "if the bytes cannot be read"
COLUMNS = (
    Column("topic", pa.string(), "the internal topic", heading="Topic", is_about=True),
    Column("source", pa.string(),
           'the message that carried the records: "fetch", "share_fetch" or "produce"',
           heading="Carried by"),
    Column("message", pa.string(), "the kind of record: OffsetCommit, GroupMetadata, TopicRecord "
           "…",
           f"{_NOT_READ}, and for batches that were withheld or cut off",
           heading="Record", is_about=True),
    Column("type", pa.int32(), "the record type, or the api key of the record's message", (
        "if ``message`` is null, unless the bytes reveal the type"
    )),
    Column("versions", pa.list_(pa.int32()), "the versions of the records' values",
           heading="Versions"),
    Column("group", pa.string(), "the group to which the record belongs",
           "if the record belongs to no group",
           heading="Group", is_about=True),
    Column("transactional_id", pa.string(),
           "the transactional id of the transaction to which the record belongs",
           "if the record belongs to no transaction", heading="Transactional id", is_about=True),
    Column("partitions", pa.int64(),
           "the number of partitions of the topic in which these records were seen",
           heading="Partitions"),
    Column("records", pa.int64(),
           "the number of records, or the number of batches if the records were not read",
           heading="Records"),
    Column("tombstones", pa.int64(), "the number of tombstones among the records",
           heading="Tombstones"),
    Column("bytes", pa.int64(), "the total size of keys and values in bytes", heading="Bytes"),
    Column("first_time", _TIME, "the earliest timestamp of the records",
           "if no record has a timestamp",
           heading="First"),
    Column("last_time", _TIME,
           "the latest timestamp of the records", "if ``first_time`` is null", heading="Last"),
    Column("error", pa.string(), "why one of the records cannot be read",
           "if all records can be read", heading="Why not read"),
)  # fmt: skip


@returns(COLUMNS)
def captured_internal_records(tables: AnalysisTables) -> DataFrame | None:
    """Return the captured records of internal topics by kind and by group or transaction.

    Followers fetch these topics from their leaders, and several followers may fetch the same
    record. Such a record is counted only once. A capture contains only the records that were
    sent while it was made, which are **not the whole state** of a coordinator. To see the state,
    pass the logs to `analyze`. Records of the cluster's metadata are withheld unless credentials
    were requested.
    """
    records = tables.records
    is_data = F.coalesce(~F.col("is_control"), F.lit(True))
    if is_grown(tables):
        records = with_topic_names(records, tables)
    topic = F.coalesce("topic", known_name(F.col("topic_id")))
    ours = records.withColumn("topic", topic).where(F.col("topic").isin(*_TOPICS) & is_data)
    # Most captures contain no such records, in which case no Python process is started.
    topics = [row.topic for row in ours.select("topic").distinct().collect()]
    if not topics:
        return None
    ours = ours.withColumnRenamed("error", "reason").select(*_NEEDED)
    is_produced = F.col("source") == _PRODUCED
    is_unread = F.col("offset").isNull()
    fetched = ours.where(~is_produced & ~is_unread).dropDuplicates(["topic", "partition", "offset"])
    read = ours.where(is_produced & ~is_unread).unionByName(fetched)
    typed_tables = [
        _typed(read.where(F.col("topic") == name), _TOPICS[name]) for name in sorted(topics)
    ]
    unread = ours.where(is_unread & F.col("reason").isNotNull())
    every = reduce(DataFrame.unionByName, typed_tables).unionByName(
        _without_records(unread), allowMissingColumns=True
    )
    has_error = F.col("error").isNotNull()
    each = every.withColumn("has_error", has_error).groupBy("topic", "source", *_ROW, "has_error")
    return each.agg(
        F.array_sort(F.collect_set("version")).alias("versions"),
        F.count_distinct("partition").alias("partitions"),
        F.count("*").alias("records"),
        F.count_if("is_tombstone").alias("tombstones"),
        F.sum("bytes").alias("bytes"),
        F.min("timestamp").alias("first_time"),
        F.max("timestamp").alias("last_time"),
        F.min("error").alias("error"),
    ).select(*(column.name for column in COLUMNS))


def _without_records(rows: DataFrame) -> DataFrame:
    """Return a row for each batch whose records could not be read."""
    return rows.select(
        *("topic", "source", "partition", "timestamp"),
        F.lit(0).cast("bigint").alias("bytes"),
        F.col("reason").alias("error"),
    )


def _typed(rows: DataFrame, topic: InternalTopic) -> DataFrame:
    """Return the records of one topic, each with its message and its subject."""
    there_by_message = {}
    if topic.has_keys:
        there_by_message = fields_there(topic, [*record_names(topic)], _KEYS)
    size = F.coalesce(F.length("key"), F.lit(0)) + F.coalesce(F.length("value"), F.lit(0))
    sized = rows.withColumn("bytes", size.cast("bigint")).drop("reason")
    typed = internal_records(
        sized, topic, {name: there for name, there in there_by_message.items() if there}
    )

    def of(fields: tuple[str, ...]) -> SparkColumn:
        paths = [
            F.col(f"{name}.{path}")
            for name, there in there_by_message.items()
            for path in there
            if path.removeprefix("key.") in fields
        ]
        return F.coalesce(*paths, F.lit(None).cast("string"))

    return typed.select(
        F.lit(topic.topic).alias("topic"),
        *("source", "partition", "timestamp", "bytes", "message", "type", "version"),
        *(of(fields).alias(name) for name, fields in _ABOUT.items()),
        "is_tombstone",
        "error",
    )


ANSWER = Answer(
    name="captured_internal_records",
    place=160,
    question="Which records of internal topics does the capture contain?",
    meaning=(
        "The records that coordinators wrote during the capture, by type of record and by group or "
        "transaction. These records do not show the whole state of the coordinators."
    ),
    advice="If a group commits far more often than other groups, it probably commits too often. "
    "Check the setting auto.commit.interval.ms, and check whether the group commits after each "
    "record. If there are many records about the members of a group, the group rebalances often.",
    row="a combination of a kind of record and a group or transaction",
    columns=COLUMNS,
    order=("-records", "topic", "source", "message", "type", "group", "transactional_id"),
    shown=(
        "topic",
        "message",
        "group",
        "transactional_id",
        "source",
        "versions",
        "partitions",
        "records",
        "tombstones",
        "bytes",
        "first_time",
        "last_time",
        "error",
    ),
    ask=captured_internal_records,
    picture=AnswerPicture("Captured records of internal topics", "records"),
)
