"""Records of internal topics with the messages that they are: `internal_records`.

A coordinator writes the same keys again and again, and Spark, which sorts what it groups by text,
takes four times as long for a row as reading and decoding it. So a task leaves out what a later
record replaces before it decodes any, as compaction would. It looks at many batches together, as
those of one often have a key each, and it holds `MOST_BYTES` at most beside one batch.
"""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.types import StructType

from flexwire.arguments import refuse, to_choice
from flexwire.columnar.record_columns import BATCH_COLUMNS, RECORD_COLUMNS
from flexwire.logs.files import LogQuery
from flexwire.logs.pieces import plan
from flexwire.logs.records import BatchDamage, read_control_records
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.tables.typed_records import HEAD_COLUMNS, TypedRecords
from flexwire.tasks import begin_task, kept_columns, map_in_arrow, spark_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from flexwire.logs.records import LogPiece
    from flexwire.tables.typed_records import Records

    Paths = str | Path | Sequence[str | Path]
    PieceReader = Callable[[LogPiece], Iterable[pa.RecordBatch]]


_KEY, _VALUE, _TOPIC, _CONTROL = "key", "value", "topic", "is_control"
_PLACE: Final = ("partition", "offset", "timestamp")
BY_NAME: Final = {name: topic for topic in InternalTopic for name in (topic.value, topic.topic)}
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
    names = kept_names(rows)
    for name in (*HEAD_COLUMNS, *typed.records):
        if name in names:
            raise refuse("rows", "no column of the name of one that is made", name)
    schema = StructType([*kept_columns(rows, names), *spark_schema(typed.schema)])
    needed = rows.select(_KEY, _VALUE, *names)
    return map_in_arrow(needed, partial(_task, of.value, records, names), schema)


def kept_names(rows: DataFrame) -> tuple[str, ...]:
    """Name the columns of rows that `internal_records` passes through."""
    others = (column for column in rows.columns if column not in {_KEY, _VALUE, _TOPIC, *_PLACE})
    return (*_PLACE, *others)


def _task(
    topic: str, records: Records, own_names: tuple[str, ...], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    begin_task()
    typed = TypedRecords(InternalTopic(topic), records)
    names = [*own_names, *typed.schema.names]
    for batch in batches:
        control = batch.column(_CONTROL) if _CONTROL in own_names else None
        decoded = typed.decode(batch.column(_KEY), batch.column(_VALUE), control)
        columns = [*map(batch.column, own_names), *decoded]
        yield pa.RecordBatch.from_arrays(columns, names=names)


FIRST_ROWS: Final = 1 << 15
"""So many rows are looked at together at least, but at the end."""

MOST_BYTES: Final = 64 << 20

_GIVEN_ROWS: Final = 1 << 14
# Where there are few to leave out, looking for them takes its time for nothing.
_MOST_LEFT: Final = 0.75


def last_of_keys(
    batches: Iterable[pa.RecordBatch], key: str, value: str
) -> Iterator[pa.RecordBatch]:
    """Leave out rows that a later one with the same ``key`` replaces.

    No key loses its last row, nor its last tombstone, whose ``value`` is null: a tombstone also
    removes what transactions wrote before it, which no later row does. More rows of a key may be
    left. The rows stay in their order.
    """
    rest = iter(batches)
    latest = _LatestRows(key, value)
    for batch in rest:
        if batch.nbytes >= MOST_BYTES:
            yield from latest.given()
            yield batch
            continue
        latest.take(batch)
        if latest.is_full:
            is_worth_it = latest.rows < _MOST_LEFT * latest.seen
            yield from latest.given()
            if not is_worth_it:
                break
    yield from latest.given()
    yield from rest


class _LatestRows:
    """Rows that nothing replaces yet, and those that came since this was looked at.

    Attributes:
        rows: how many there are.
        seen: of how many they are left.
    """

    def __init__(self, key: str, value: str) -> None:
        self.rows = self.seen = 0
        self._key, self._value = key, value
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0
        self._is_compact = True
        # Twice as many as were left, so that each row is looked at twice in the mean.
        self._enough = FIRST_ROWS

    def take(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)
        self.rows += batch.num_rows
        self.seen += batch.num_rows
        self._bytes += batch.nbytes
        self._is_compact = False
        if self.rows >= self._enough or self._bytes >= MOST_BYTES:
            self._compact()

    @property
    def is_full(self) -> bool:
        """Whether what is left is so much that little more could be held."""
        return self._is_compact and self._bytes >= MOST_BYTES // 2

    def given(self) -> Iterator[pa.RecordBatch]:
        """Give what is left, and hold no more of it."""
        if self._batches:
            self._compact()
            [left] = self._batches
            self.__init__(self._key, self._value)  # type: ignore[misc] # as if nothing had come
            for first in range(0, left.num_rows, _GIVEN_ROWS):
                yield left.slice(first, _GIVEN_ROWS)

    def _compact(self) -> None:
        rows = pa.concat_batches(self._batches)
        coded = rows.column(self._key).dictionary_encode("encode")
        codes, values = np.asarray(coded.indices), rows.column(self._value)
        last = np.zeros(len(coded.dictionary), np.int64)
        # Of several values for one place numpy keeps the last.
        last[codes] = np.arange(len(coded))
        if values.null_count:
            deleted = np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))
            gone = last.copy()
            gone[codes[deleted]] = deleted
            last = np.union1d(last, gone)
        left = rows if len(last) == len(coded) else rows.take(pa.array(np.sort(last)))
        self._batches, self.rows, self._bytes = [left], left.num_rows, left.nbytes
        self._enough = max(FIRST_ROWS, 2 * left.num_rows)
        self._is_compact = True


_READ_OF_CONTROL: Final = (
    "offset",
    "timestamp",
    "producer_id",
    "producer_epoch",
    "is_transactional",
    "key",
)
_CONTROL_KEY: Final = "key"
SCHEMA: Final = pa.schema(
    {
        "topic": pa.string(),
        "partition": pa.int32(),
        **{name: (RECORD_COLUMNS | BATCH_COLUMNS)[name] for name in _READ_OF_CONTROL[:4]},
        "is_commit": pa.bool_(),
    }
)
"""``is_commit`` is false of an abort."""

# The version and the type, int16 each; Kafka numbers an abort 0 and a commit 1.
_TYPE: Final = (2, 4)
_ABORT, _COMMIT = b"\0\0", b"\0\1"


def control_records(
    spark: SparkSession, paths: Paths, topics: Sequence[str] | None = None
) -> DataFrame:
    """Give the ends of transactions in logs: a row each, as `SCHEMA` has it.

    ``topics`` are all by default. Raises as `kafka-log` does for paths that have no log, and where
    a control batch is damaged: how its transaction ended nobody knows then.
    """
    return in_tasks(spark, paths, topics, _ends, SCHEMA)


def several(paths: Paths) -> list[str | Path]:
    """Give what may be one path as a list."""
    return [paths] if isinstance(paths, str | Path) else [*paths]


def in_tasks(
    spark: SparkSession,
    paths: Paths,
    topics: Sequence[str] | None,
    read: PieceReader,
    schema: pa.Schema,
    *,
    partitions: Collection[int] | None = None,
) -> DataFrame:
    """Have the pieces of logs read in tasks, and give what ``read`` makes of each."""
    planned = plan(several(paths), LogQuery(topics=topics, partitions=partitions))
    tasks = [(pickle.dumps(pieces),) for pieces in planned]
    rows = spark.createDataFrame(tasks, "pieces binary").repartition(max(1, len(tasks)))
    return map_in_arrow(rows, partial(_control_task, read, schema), schema)


def _control_task(
    read: PieceReader, schema: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    begin_task()
    for batch in batches:
        for packed in batch.column(0):
            # It comes from this program's own driver.
            for piece in pickle.loads(packed.as_py()):  # noqa: S301 - see above
                for controls in read(piece):
                    place = {
                        "topic": piece.partition.topic,
                        "partition": piece.partition.partition,
                    }
                    columns = [
                        pa.repeat(pa.scalar(place[field.name], field.type), controls.num_rows)
                        if field.name in place
                        else controls.column(field.name)
                        for field in schema
                    ]
                    yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _ends(piece: LogPiece) -> Iterator[pa.RecordBatch]:
    for batch in read_control_records(piece, _READ_OF_CONTROL):
        if isinstance(batch, BatchDamage):
            continue
        kinds = pc.binary_slice(batch.column(_CONTROL_KEY), *_TYPE)
        is_end = pc.is_in(kinds, value_set=pa.array([_ABORT, _COMMIT], kinds.type))
        is_end = pc.and_(pc.fill_null(is_end, fill_value=False), batch.column("is_transactional"))
        with_kind = batch.append_column(
            "is_commit", pc.equal(kinds, pa.scalar(_COMMIT, kinds.type))
        )
        yield with_kind.filter(is_end)


COLUMNS: Final = (
    "key",
    "value",
    "topic",
    "partition",
    "offset",
    "timestamp",
    "producer_id",
    "producer_epoch",
    "is_transactional",
)
_CAPTURED: Final = (*COLUMNS, "source", "is_control")
# Offsets of what is produced are the producer's own, and a broker gives others.
_FETCHED: Final = "fetch"


def captured_records(records: DataFrame, topic: str) -> DataFrame:
    """Give what was fetched of an internal topic as rows for `internal_records`, each record once.

    Args:
        records: the table ``records`` of an analysis.
        topic: the topic's name, or that of its decoder.

    Followers fetch these topics from their leaders. What was captured are the records that were
    written in that time, not the log: no view says from them what the state is. Control records
    are left out. Raises `ArgumentError` for another table or topic.
    """
    of = BY_NAME[to_choice(topic, "topic", BY_NAME)]
    missing = {*_CAPTURED}.difference(records.columns)
    if missing:
        raise refuse("records", f"the columns {', '.join(sorted(missing))}", records.columns)
    is_wanted = (F.col("topic") == of.topic) & (F.col("source") == _FETCHED)
    is_record = F.col("offset").isNotNull() & ~F.col("is_control")
    written = records.where(is_wanted & is_record).select(*COLUMNS)
    return written.dropDuplicates(["partition", "offset"])
