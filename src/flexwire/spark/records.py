"""From the bodies of Produce and Fetch to the table of records.

A row is a record, with the facts of its batch. There are two other kinds of row, both without an
offset: a batch that holds no records (compaction leaves such) with its facts; and bytes that are
not a record batch, with the reason in ``error``. The start of a batch that a full Fetch response
was cut off in is a row of the second kind too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.capture.columns.withheld import WITHHELD_BYTES
from flexwire.columnar.record_schema import (
    BATCH_COLUMNS,
    MOMENT,
    OF_BATCH,
    OF_RECORD,
    RECORD_COLUMNS,
)
from flexwire.errors import RecordError
from flexwire.records import RecordBatch, decode_batches
from flexwire.schema.resolve import ZERO_UUID
from flexwire.spark.batches import record_batches, row_tuples
from flexwire.spark.tasks import map_in_arrow
from flexwire.wire.uuid_text import uuid_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import Column, DataFrame

    from flexwire.tables.record_places import RecordsField


_CARRIER = [
    ("source", pa.string()),
    ("connection", pa.string()),
    ("frame_index", pa.int64()),
    ("time", MOMENT),
    ("client_id", pa.string()),
    ("topic", pa.string()),
    ("topic_id", pa.string()),
    ("partition", pa.int32()),
]
_COLUMNS = (
    *RECORD_COLUMNS,
    "magic",
    "compression",
    "base_offset",
    "last_offset",
    # Where the batch begins among the bytes of its partition: by which two batches are told apart.
    "batch_position",
    "batch_size",
    "batch_records",
    "partition_leader_epoch",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "is_transactional",
    "is_control",
)
_TYPES = {**RECORD_COLUMNS, **BATCH_COLUMNS, "batch_records": pa.int32()}
RECORDS = pa.schema(
    [
        *_CARRIER,
        *((name, _TYPES[name]) for name in _COLUMNS),
        ("error", pa.string()),
        ("bytes", pa.binary()),
    ]
)
_RECORD = RECORDS.names[len(_CARRIER) :]
PARTIAL_BATCH = "partial batch"
WITHHELD_RECORDS = "the records are withheld: they are the cluster's metadata, credentials among it"
# A row's own weight, beside its key, value and record headers.
_ROW_BYTES = 100


def decode_records(carriers: DataFrame) -> DataFrame:
    """The rows of the records table, from those of `carried_records`."""
    return map_in_arrow(carriers, _decode, RECORDS)


def carried_records(bodies: DataFrame, where: RecordsField) -> DataFrame:
    """A row for every partition of a message that carries records, with their bytes."""
    topics = bodies.select(
        F.lit(where.source).alias("source"),
        "connection",
        F.col("index").alias("frame_index"),
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


def _decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return record_batches(RECORDS, _record_rows(batches))


def _record_rows(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[tuple[Any, ...], int]]:
    for row in row_tuples(batches):
        *carrier, data = row
        try:
            for record, size in _records(data):
                yield (*carrier, *record), size
        except Exception as error:
            error.add_note(f"while decoding the records in frame {row[2]} of {row[1]}")
            raise


def _records(data: bytes) -> Iterator[tuple[tuple[Any, ...], int]]:
    if data == WITHHELD_BYTES:
        yield _row({"error": WITHHELD_RECORDS}), _ROW_BYTES
        return
    batches = decode_batches(data)
    while True:
        start = batches.position
        try:
            batch = next(batches, None)
        except RecordError as error:
            yield _failure(str(error), data[start : batches.position])
            continue
        if batch is None:
            break
        yield from _batch_rows(batch)
    if batches.partial is not None:
        whole = batches.partial.declared_size or "an unknown number"
        reason = f"{PARTIAL_BATCH}: {batches.partial.size} of {whole} bytes"
        yield _failure(reason, data[batches.partial.position :])


def _batch_rows(batch: RecordBatch) -> Iterator[tuple[tuple[Any, ...], int]]:
    facts = _batch_facts(batch)
    try:
        records = batch.records
    except RecordError as error:
        yield _failure(str(error), batch.data, facts)
        return
    if not records:
        yield _row(facts), _ROW_BYTES
    for record in records:
        own = {name: of(record) for name, of in OF_RECORD.items()}
        size = len(record.key or b"") + len(record.value or b"")
        size += sum(len(key) + len(value or b"") for key, value in record.headers)
        yield _row(facts | own), _ROW_BYTES + size


def _batch_facts(batch: RecordBatch) -> dict[str, Any]:
    facts = {name: of(batch) for name, of in OF_BATCH.items()}
    return facts | {"batch_records": batch.record_count}


def _failure(
    reason: str, data: bytes, facts: dict[str, Any] | None = None
) -> tuple[tuple[Any, ...], int]:
    return _row({**(facts or {}), "error": reason, "bytes": data}), _ROW_BYTES + len(data)


def _row(told: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(told.get(name) for name in _RECORD)
