"""From the bodies of Produce and Fetch to the table of records, through objects: the reference.

What a row is, `flexwire.tables.records` says. `flexwire.tables.records` gives the same rows
in columns.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.answers.asking.messages import known_name
from flexwire.records.inflation import INFLATION, RECORD_COST, Inflation
from flexwire.schema.resolve import ZERO_UUID
from flexwire.spark.tables import record_batches, row_tuples
from flexwire.tables.inflated import PLAIN, Meter
from flexwire.tables.records import object_rows
from flexwire.tables.schema import RECORDS
from flexwire.tasks import map_in_arrow
from flexwire.wire.varint import uuid_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql import Column, DataFrame

    from flexwire.tables.spec_places import RecordsField

__all__ = ["RECORDS", "carried_records", "decode_records", "name_topics"]


def decode_records(
    carriers: DataFrame, inflation: Inflation = INFLATION, captured: int = 0
) -> DataFrame:
    """The rows of the records table, from those of `carried_records`.

    ``captured`` bytes are what they were captured in. A task whose batches take more than these
    bytes allow holds the rest of its batches, and the rows are of no use: `inflated_sum` says so.
    """
    return map_in_arrow(carriers, partial(_decode, inflation, captured), RECORDS)


def inflated_sum(inflation: Inflation) -> Column:
    """What `flexwire.tables.inflated` counts, as a sum over rows of the records table."""
    headers = F.aggregate(
        F.coalesce("headers", F.array()),
        F.lit(0),
        lambda size, one: (
            size + RECORD_COST + F.length(one["key"]) + F.coalesce(F.length(one["value"]), F.lit(0))
        ),
    )
    own = sum((F.coalesce(F.length(name), F.lit(0)) for name in ("key", "value")), headers)
    size = F.when(F.col("error").isNotNull(), inflation.max_inflated).otherwise(RECORD_COST + own)
    packed = F.when(F.col("compression") != PLAIN, size.cast("bigint"))
    return F.coalesce(F.sum(packed), F.lit(0))


def carried_records(bodies: DataFrame, where: RecordsField) -> DataFrame:
    """A row for every partition of a message that carries records, with their bytes."""
    topics = bodies.select(
        F.lit(where.source).alias("source"),
        "connection",
        "direction",
        "frame_index",
        "time",
        "client_id",
        F.explode(f"body.{where.topics}").alias("topic_element"),
    )
    topic = "topic_element"
    partitions = topics.select(
        *topics.columns[:-1],
        _text(f"{topic}.{where.topic_name}" if where.topic_name else None).alias("topic"),
        _text(f"{topic}.{where.topic_id}" if where.topic_id else None).alias("topic_id"),
        F.explode(f"{topic}.{where.partitions}").alias("partition_element"),
    )
    records = F.col(f"partition_element.{where.records}")
    rows = partitions.select(
        *partitions.columns[:-1],
        F.col(f"partition_element.{where.partition}").alias("partition"),
        records.alias("records"),
    )
    return rows.where(F.length("records") > 0)


def _text(column: str | None) -> Column:
    # A version has either name or id, and says "" or the zero uuid for the other.
    if column is None:
        return F.lit(None).cast("string")
    return F.when(~F.col(column).isin("", uuid_text(ZERO_UUID)), F.col(column))


def name_topics(carriers: DataFrame, metadata: DataFrame | None) -> DataFrame:
    """Name the topics that a message names by id only, from the Metadata responses captured."""
    carriers = carriers.withColumn("topic", F.coalesce("topic", known_name(F.col("topic_id"))))
    if metadata is None:
        return carriers
    topics = metadata.select(F.explode("body.topics").alias("topic"))
    named = topics.where("topic.name is not null and topic.topic_id is not null")
    names = named.groupBy(F.col("topic.topic_id").alias("topic_id")).agg(
        F.max("topic.name").alias("name_of_id")
    )
    # A name of some bytes goes to the records, and not gigabytes of records to the name.
    joined = carriers.join(F.broadcast(names), "topic_id", "left")
    topic = F.coalesce("topic", "name_of_id")
    return joined.withColumn("topic", topic).select(*carriers.columns)


def _decode(
    inflation: Inflation, captured: int, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    meter = Meter(inflation, captured)
    for rows in record_batches(RECORDS, _record_rows(meter, batches)):
        yield rows
        meter.add(rows)


def _record_rows(
    meter: Meter, batches: Iterator[pa.RecordBatch]
) -> Iterator[tuple[tuple[Any, ...], int]]:
    for row in row_tuples(batches):
        *carrier, data = row
        try:
            for record, size in object_rows(data, inflation=meter.inflation):
                yield (*carrier, *record), size
        except Exception as error:
            error.add_note(f"while decoding the records in {row[2]} {row[3]} of {row[1]}")
            raise
