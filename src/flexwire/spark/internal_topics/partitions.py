"""What the logs of ordinary topics say beside internal ones: their ends, and open transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.capture.log_segment import place_at, read_batch
from flexwire.capture.logs.files import open_file
from flexwire.capture.logs.finding import find_logs
from flexwire.capture.logs.positions import end_offset
from flexwire.capture.logs.query import LogQuery
from flexwire.capture.logs.reading import read_headers
from flexwire.columnar.record_schema import MOMENT, moment
from flexwire.spark.internal_topics.control_records import in_tasks, several
from flexwire.wire.batch_layout import CONTROL_MASK, TRANSACTIONAL_MASK

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from flexwire.capture.logs.reading import LogPiece
    from flexwire.columnar.records import BatchHeaders
    from flexwire.spark.internal_topics.control_records import Paths

_PLACE: Final = ("topic", "partition")
_OPEN: Final = pa.schema(
    {
        "topic": pa.string(),
        "partition": pa.int32(),
        "producer_id": pa.int64(),
        "producer_epoch": pa.int16(),
        "first_offset": pa.int64(),
        "first_time": MOMENT,
        "last_end": pa.int64(),
    }
)


def end_offsets(
    spark: SparkSession, paths: Paths, topics: Sequence[str] | None = None
) -> DataFrame:
    """Give the log end offset of each partition: ``topic``, ``partition``, ``end_offset``.

    It is that of the longest log in ``paths``; what consumers may read ends at the high watermark,
    which no file of the log has.
    """
    logs = find_logs(several(paths), LogQuery(topics=topics))
    rows = [(*one.partition, end_offset(one.segments[-1])) for one in logs]
    return spark.createDataFrame(rows, "topic string, partition int, end_offset bigint")


def open_transactions(
    spark: SparkSession, paths: Paths, topics: Sequence[str] | None = None
) -> DataFrame:
    """Give the transactions that logs have open: a row for each producer in each partition.

    ``topic``, ``partition``, ``producer_id``, ``producer_epoch``, ``first_offset`` and
    ``first_time`` of the transaction's first batch. Only headers of batches are read.
    """
    found = in_tasks(spark, paths, topics, _open_in, _OPEN)
    # A piece says what is open at its end, and another may end it.
    key = (*_PLACE, "producer_id")
    last_end = F.max("last_end").over(Window.partitionBy(*key))
    is_open = F.col("last").isNull() | (F.col("first_offset") > F.col("last"))
    rows = found.withColumn("last", last_end).where(F.col("first_offset").isNotNull() & is_open)
    first = F.struct("producer_epoch", "first_offset", "first_time")
    firsts = rows.groupBy(*key).agg(F.min_by(first, "first_offset").alias("first"))
    return firsts.select(*key, "first.*")


def _open_in(piece: LogPiece) -> Iterator[pa.RecordBatch]:
    heard = _Open()
    read_headers(piece, heard)
    yield heard.rows(piece)


class _Open:
    """Hears of headers in order: of each producer the last end, and the first batch after it."""

    def __init__(self) -> None:
        self._ends: dict[int, int] = {}
        self._firsts: dict[int, tuple[int, int]] = {}

    def __call__(self, at: int, headers: BatchHeaders) -> None:
        rows = headers.attributes & TRANSACTIONAL_MASK != 0
        is_control = (headers.attributes[rows] & CONTROL_MASK != 0).tolist()
        columns = (headers.producer_ids, headers.base_offsets, headers.positions)
        told = (one[rows].tolist() for one in columns)
        for is_end, producer, offset, position in zip(is_control, *told, strict=True):
            if is_end:
                self._ends[producer] = offset
                self._firsts.pop(producer, None)
            else:
                self._firsts.setdefault(producer, (offset, at + position))

    def rows(self, piece: LogPiece) -> pa.RecordBatch:
        """Give what was heard of, a row for each producer."""
        rows: list[dict[str, Any]] = []
        with open_file(piece.log) as log:
            for producer in self._ends.keys() | self._firsts.keys():
                row = {"producer_id": producer, "last_end": self._ends.get(producer)}
                if producer in self._firsts:
                    offset, position = self._firsts[producer]
                    batch = read_batch(log, place_at(log, position))
                    row |= {"first_offset": offset, "producer_epoch": batch.producer_epoch}
                    row["first_time"] = moment(batch.max_timestamp)
                rows.append(row)
        return pa.RecordBatch.from_pylist(rows, _OPEN)
