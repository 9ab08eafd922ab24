"""What the logs of ordinary topics say beside internal ones: their ends, and open transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.answers.state.control_records import in_tasks, several
from flexwire.columnar.record_columns import MOMENT, moment
from flexwire.logs.checkpoints import high_watermarks
from flexwire.logs.files import LogQuery, open_file
from flexwire.logs.finding import find_logs
from flexwire.logs.positions import end_offset
from flexwire.logs.reading import read_headers
from flexwire.logs.segments import place_at, read_batch
from flexwire.wire.batch_layout import CONTROL_MASK, TRANSACTIONAL_MASK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from flexwire.answers.state.control_records import Paths
    from flexwire.columnar.records import BatchHeaders
    from flexwire.logs.files import Partition
    from flexwire.logs.reading import LogPiece
    from flexwire.logs.replicas import Replica

_PLACE: Final = ("topic", "partition")
ENDS: Final = (
    "topic string, partition int, end_offset bigint, high_watermark bigint, "
    "is_watermark_exact boolean"
)
"""The columns of `end_offsets`."""
NO_WATERMARK: Final = (None, None)
"""A high watermark that is not known, and whether it is exact."""
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
    """Return the end of each partition, and where consumers stop: the columns `ENDS`.

    ``end_offset`` is that of the log that `kafka-log` reads. ``high_watermark`` is where consumers
    stop, from `replication-offset-checkpoint` beside it; null where that does not say it, and never
    beyond the end. ``is_watermark_exact``: the broker had stopped in order, else the high watermark
    may be 5 seconds old.
    """
    logs = find_logs(several(paths), LogQuery(topics=topics))
    said, rows = watermarks_of(logs), []
    for one in logs:
        end = end_offset(one.segments[-1])
        watermark, is_exact = said.get(one.partition, NO_WATERMARK)
        rows.append(
            (*one.partition, end, None if watermark is None else min(watermark, end), is_exact)
        )
    return spark.createDataFrame(rows, ENDS)


def watermarks_of(logs: Iterable[Replica]) -> dict[Partition, tuple[int | None, bool | None]]:
    """Return the high watermark of each log's partition, and whether it is exact.

    There is none of a log that is a tier's, or beside which no file says it.
    """
    brokers = [one for one in logs if not one.is_tiered]
    said = {one: high_watermarks(one) for one in sorted({log.beside for log in brokers})}
    return {
        log.partition: (said[log.beside].offsets[log.partition], said[log.beside].is_exact)
        for log in brokers
        if log.partition in said[log.beside].offsets
    }


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
