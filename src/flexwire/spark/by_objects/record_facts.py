"""What the records say of each topic, and of each record header key."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.facts.facts import CompressionUse, RecordHeaderFacts, Side, TopicFacts
from flexwire.records.inflation import BEYOND
from flexwire.tables.records import PARTIAL_BATCH, WITHHELD_RECORDS
from flexwire.tables.spec_places import RECORDS_FIELDS

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row

_TOPIC = ("topic", "is_id", "side")
_BATCH = ("partition", "connection", "frame_index", "batch_position")
_BATCH_FACTS = ("magic", "compression", "batch_size")


def message_of_source() -> Column:
    """The message that a row of the records table comes from."""
    message = F.lit(None).cast("string")
    for one in RECORDS_FIELDS:
        message = F.when(F.col("source") == one.source, one.message).otherwise(message)
    return message


def undecodable(records: DataFrame) -> DataFrame:
    """The rows of bytes that are not a record batch, unless it was cut off or withheld."""
    is_fine = F.col("error").startswith(PARTIAL_BATCH) | (F.col("error") == WITHHELD_RECORDS)
    return records.where(F.col("error").isNotNull() & ~is_fine)


def count_undecodable(records: DataFrame) -> tuple[int, int]:
    """Count the rows of `undecodable`, and how many are batches that inflate beyond a bound."""
    is_beyond = F.col("error").contains(BEYOND)
    counted = undecodable(records).agg(F.count("*").alias("all"), F.count_if(is_beyond)).collect()
    every, beyond = counted[0]
    return every, beyond


def gather_topics(records: DataFrame) -> tuple[TopicFacts, ...]:
    """The records of each topic that consumers see, and the batches that hold them."""
    batches = _batches(records).cache()
    topics = _topics(batches).collect()
    compressions: dict[tuple[str, bool, str], list[CompressionUse]] = {}
    for row in _compressions(batches).collect():
        use = CompressionUse(row.compression, row.batches, row.bytes)
        compressions.setdefault((row.topic, row.is_id, row.side), []).append(use)
    batches.unpersist()
    return tuple(
        _topic(row, compressions.get((row.topic, row.is_id, row.side), [])) for row in topics
    )


def _batches(records: DataFrame) -> DataFrame:
    # Control records mark the end of transactions; consumers do not see them.
    seen = F.col("offset").isNotNull() & ~F.col("is_control")
    is_id = F.col("topic").isNull() & F.col("topic_id").isNotNull()
    named = records.withColumn("is_id", is_id).withColumn(
        "topic", F.coalesce("topic", "topic_id", F.lit("?"))
    )
    side = F.when(F.col("source") == "produce", "produce").otherwise("fetch")
    return (
        named.withColumn("side", side)
        .groupBy(*_TOPIC, *_BATCH, *_BATCH_FACTS)
        .agg(
            F.count_if(seen).alias("records"),
            F.sum(F.when(seen, F.length("key"))).alias("key_bytes"),
            F.sum(F.when(seen, F.length("value"))).alias("value_bytes"),
            F.count_if(seen & F.col("key").isNull()).alias("null_keys"),
            F.count_if(seen & F.col("value").isNull()).alias("null_values"),
            F.count_if(seen & (F.size("headers") > 0)).alias("records_with_headers"),
            F.min(F.when(seen, F.col("offset"))).alias("first_offset"),
            F.max(F.when(seen, F.col("offset"))).alias("last_offset"),
        )
    )


def _topics(batches: DataFrame) -> DataFrame:
    sums = ("records", "key_bytes", "value_bytes", "null_keys", "null_values")
    return batches.groupBy(*_TOPIC).agg(
        F.count_distinct("partition").alias("partitions"),
        # Bytes that are no batch have no magic.
        F.count("magic").alias("batches"),
        F.collect_set("magic").alias("magic"),
        *[F.coalesce(F.sum(name), F.lit(0)).alias(name) for name in sums],
        F.sum("records_with_headers").alias("records_with_headers"),
        F.min("first_offset").alias("first_offset"),
        F.max("last_offset").alias("last_offset"),
    )


def _compressions(batches: DataFrame) -> DataFrame:
    known = batches.where("compression is not null")
    return known.groupBy(*_TOPIC, "compression").agg(
        F.count("*").alias("batches"), F.sum("batch_size").alias("bytes")
    )


def _topic(row: Row, compression: list[CompressionUse]) -> TopicFacts:
    side: Side = row.side
    # The offsets in a Produce are the producer's own count within a batch, not the log's.
    in_log = side == "fetch"
    return TopicFacts(
        topic=row.topic,
        is_id=row.is_id,
        side=side,
        partitions=row.partitions,
        batches=row.batches,
        records=row.records,
        key_bytes=row.key_bytes,
        value_bytes=row.value_bytes,
        null_keys=row.null_keys,
        null_values=row.null_values,
        records_with_headers=row.records_with_headers,
        compression=tuple(sorted(compression, key=lambda use: use.codec)),
        magic=tuple(sorted(row.magic)),
        first_offset=row.first_offset if in_log else None,
        last_offset=row.last_offset if in_log else None,
    )


def gather_record_headers(records: DataFrame) -> tuple[RecordHeaderFacts, ...]:
    """The values of each record header key; a key twice in a record makes one record of it."""
    headers = records.where("not is_control and size(headers) > 0").select(
        F.coalesce("topic", "topic_id", F.lit("?")).alias("topic"),
        F.col("headers.key").alias("keys"),
        F.posexplode("headers").alias("place", "header"),
    )
    key, value = F.col("header.key"), F.col("header.value")
    first = F.array_position("keys", key) == F.col("place") + 1
    length = F.length(value)
    rows = (
        headers.groupBy(F.make_valid_utf8(key.cast("string")).alias("key"))
        .agg(
            F.collect_set("topic").alias("topics"),
            F.count_if(first).alias("records"),
            F.count_if(value.isNull()).alias("null_values"),
            F.count_if(length == 0).alias("empty_values"),
            F.min(length).alias("min_length"),
            F.percentile_approx(length, 0.5).cast("double").alias("median_length"),
            F.max(length).alias("max_length"),
            F.approx_count_distinct(value).alias("distinct_values"),
            F.avg(F.is_valid_utf8(value.cast("string")).cast("int")).alias("utf8_share"),
        )
        .collect()
    )
    return tuple(
        RecordHeaderFacts(**{**row.asDict(), "topics": tuple(sorted(row.topics))}) for row in rows
    )
