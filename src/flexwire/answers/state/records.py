"""Records of internal topics with the messages that they are: `internal_records`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.types import StructType

from flexwire.arguments import refuse, to_choice
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.tables.typed_records import HEAD_COLUMNS, TypedRecords
from flexwire.tasks import begin_task, kept_columns, map_in_arrow, spark_schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame

    from flexwire.tables.typed_records import Records

_KEY, _VALUE, _TOPIC, _CONTROL = "key", "value", "topic", "is_control"
_PLACE: Final = ("partition", "offset", "timestamp")
BY_NAME: Final = {name: one for one in InternalTopic for name in (one.value, one.topic)}
"""Internal topics by the name of the topic, and of its decoder."""


def internal_records(rows: DataFrame, topic: str, records: Records) -> DataFrame:
    """Decode the records of an internal topic; a row stays a row.

    Args:
        rows: what Spark's Kafka source or `kafka-log` gives of this one topic: ``key``, ``value``,
            ``partition``, ``offset``, ``timestamp``. ``topic`` is left out; others pass through.
        topic: its name, as "__consumer_offsets", or that of its decoder, as "consumer-offsets".
        records: the records to decode, as "OffsetCommit" or "TopicRecord"; of all others only what
            they are is told. With the fields that are wanted of each, as ``{"OffsetCommit":
            ["key.group", "value.offset"]}``, its structure has no others, all where none is named:
            to carry a field takes Spark several times as long as decoding it.

    Beside these columns there are ``type``, ``message``, ``version``, ``release`` (of the layout,
    where it is not the newest that the bytes might have), ``is_tombstone``, ``error``, and a
    structure for each of ``records``: of ``key`` and ``value`` in topics with keys, else of the
    message itself. What does not decode has an ``error``, and no structure.

    Raises `ArgumentError` for a topic, records or fields that there are not.
    """
    of = BY_NAME[to_choice(topic, "topic", BY_NAME)]
    typed = TypedRecords(of, records)
    missing = {_KEY, _VALUE, *_PLACE}.difference(rows.columns)
    if missing:
        raise refuse("rows", f"the columns {', '.join(sorted(missing))}", rows.columns)
    kept = kept_names(rows)
    for name in (*HEAD_COLUMNS, *typed.records):
        if name in kept:
            raise refuse("rows", "no column of the name of one that is made", name)
    schema = StructType([*kept_columns(rows, kept), *spark_schema(typed.schema)])
    needed = rows.select(_KEY, _VALUE, *kept)
    return map_in_arrow(needed, partial(_task, of.value, records, kept), schema)


def kept_names(rows: DataFrame) -> tuple[str, ...]:
    """Name the columns of rows that `internal_records` passes through."""
    others = (one for one in rows.columns if one not in {_KEY, _VALUE, _TOPIC, *_PLACE})
    return (*_PLACE, *others)


def _task(
    topic: str, records: Records, kept: tuple[str, ...], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    begin_task()
    typed = TypedRecords(InternalTopic(topic), records)
    names = [*kept, *typed.schema.names]
    for batch in batches:
        control = batch.column(_CONTROL) if _CONTROL in kept else None
        made = typed.decode(batch.column(_KEY), batch.column(_VALUE), control)
        columns = [*map(batch.column, kept), *made]
        yield pa.RecordBatch.from_arrays(columns, names=names)
