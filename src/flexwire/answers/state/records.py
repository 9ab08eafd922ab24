"""Decode the records of internal topics: `internal_records`.

A coordinator writes the same keys many times. When Spark groups by text, it sorts the rows, and
sorting a row takes four times as long as reading and decoding it. A task therefore omits replaced
records before it decodes any record, as compaction would. The task considers many batches together,
because the records in one batch often have different keys. The task holds at most `MOST_BYTES` plus
one batch.
"""

from __future__ import annotations

import pickle
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs
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
"""Internal topics, keyed both by topic name and by decoder name."""


def internal_records(rows: DataFrame, topic: str, records: Records) -> DataFrame:
    """Decode the records of an internal topic. The result has one row for every input row.

    Args:
        rows: rows of Spark's Kafka source or of `kafka-log` for this one topic: ``key``, ``value``,
            ``partition``, ``offset``, ``timestamp``. ``topic`` is left out; other columns are kept.
        topic: the name of the topic, such as "__consumer_offsets", or the name of its decoder, such
            as "consumer-offsets".
        records: the records to decode, such as "OffsetCommit" or "TopicRecord". Other records are
            named but not decoded. If fields are given, as in ``{"OffsetCommit": ["key.group",
            "value.offset"]}``, the structure contains only these fields. An empty list means all
            fields. Request only the fields that you need: Spark takes several times as long to move
            a field as to decode it.

    New columns: ``type``, ``message``, ``version``, ``release`` (of the layout, if it is not the
    newest that fits the bytes), ``is_tombstone``, ``error``, and a structure for each of
    ``records``. In topics with keys, the structure contains a ``key`` and a ``value``; in other
    topics, it is the message itself. A record that does not decode has an ``error`` and no
    structure.

    Raises `ArgumentError` for an unknown topic, record or field.
    """
    of = BY_NAME[to_choice(topic, "topic", BY_NAME)]
    typed = TypedRecords(of, records)
    missing = {_KEY, _VALUE, *_PLACE}.difference(rows.columns)
    if missing:
        raise refuse("rows", f"the columns {', '.join(sorted(missing))}", rows.columns)
    names = kept_names(rows)
    for name in (*HEAD_COLUMNS, *typed.records):
        if name in names:
            raise refuse(
                "rows", "columns with other names than the columns that this function adds", name
            )
    schema = StructType([*kept_columns(rows, names), *spark_schema(typed.schema)])
    needed = rows.select(_KEY, _VALUE, *names)
    return map_in_arrow(needed, partial(_task, of.value, records, names), schema)


def kept_names(rows: DataFrame) -> tuple[str, ...]:
    """Return the names of the columns that `internal_records` passes through."""
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
"""Except at the end, at least this many rows are considered together."""

MOST_BYTES: Final = 64 << 20

_GIVEN_ROWS: Final = 1 << 14
# If only a few rows can be left out, searching for them costs more than it saves.
_MOST_LEFT: Final = 0.75


def last_of_keys(
    batches: Iterable[pa.RecordBatch], key: str, value: str
) -> Iterator[pa.RecordBatch]:
    """Omit rows that a later row with the same ``key`` replaces.

    A key never loses its last row or its last tombstone, which is a row with a null ``value``.
    Unlike other rows, a tombstone also removes what transactions wrote before it. More rows of a
    key than required may be kept. The order of the rows is preserved.
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
    """Rows that no later row has replaced so far, and newer rows that have not been checked yet.

    Attributes:
        rows: the number of these rows.
        seen: the number of rows that remained after the last check.
    """

    def __init__(self, key: str, value: str) -> None:
        self.rows = self.seen = 0
        self._key, self._value = key, value
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0
        self._is_compact = True
        # If each check waits until the number of rows has doubled, each row is checked twice on
        # average.
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
        """True if so few rows can be omitted that holding more rows does not help."""
        return self._is_compact and self._bytes >= MOST_BYTES // 2

    def given(self) -> Iterator[pa.RecordBatch]:
        """Yield the remaining rows and forget them."""
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
        # If several values are assigned to the same index, numpy keeps the last one.
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
"""The columns that describe the ends of transactions; ``is_commit`` is false for an abort."""

# The version and the type, both of which are int16. As in Kafka, the type is 0 for an abort and 1
# for a commit.
_TYPE: Final = (2, 4)
_ABORT, _COMMIT = b"\0\0", b"\0\1"


def control_records(
    spark: SparkSession, paths: Paths, topics: Sequence[str] | None = None
) -> DataFrame:
    """Return the ends of transactions in logs, as rows of `SCHEMA`.

    By default, all topics are read. Raises the same errors as `kafka-log` for paths without a log.
    Raises an error for a damaged control batch, because the end of its transaction is then unknown.
    """
    return in_tasks(spark, paths, topics, _ends, SCHEMA)


def several(paths: Paths) -> list[str | Path]:
    """Return one or more paths as a list."""
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
    """Read the pieces of logs in tasks, and return the results of ``read``."""
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
            # The driver of this program wrote these bytes.
            for piece in pickle.loads(packed.as_py()):  # noqa: S301 - we wrote these bytes ourselves
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
# The offsets in produce requests come from the producer; the broker assigns others.
_FETCHED: Final = "fetch"


def captured_records(records: DataFrame, topic: str) -> DataFrame:
    """Return the fetched records of an internal topic for `internal_records`, each only once.

    Args:
        records: the table ``records`` of an analysis.
        topic: the topic's name, or that of its decoder.

    Followers fetch these topics from their leaders. A capture contains only the records that were
    sent while it was made, and not the whole log, so no view can compute the state from them.
    Control records are left out. Raises `ArgumentError` for an invalid table or topic.
    """
    of = BY_NAME[to_choice(topic, "topic", BY_NAME)]
    missing = {*_CAPTURED}.difference(records.columns)
    if missing:
        raise refuse("records", f"the columns {', '.join(sorted(missing))}", records.columns)
    is_wanted = (F.col("topic") == of.topic) & (F.col("source") == _FETCHED)
    is_record = F.col("offset").isNotNull() & ~F.col("is_control")
    written = records.where(is_wanted & is_record).select(*COLUMNS)
    return written.dropDuplicates(["partition", "offset"])
