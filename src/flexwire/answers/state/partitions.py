"""Facts from the logs of ordinary topics: the ends of the logs, and their open transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.state.log import HIDES, IS_LATER, moment
from flexwire.answers.state.records import in_tasks, several
from flexwire.columnar.record_columns import MOMENT
from flexwire.columnar.record_columns import moment as to_moment
from flexwire.logs.checkpoints import high_watermarks
from flexwire.logs.discovery import find_logs
from flexwire.logs.files import LogQuery, open_file
from flexwire.logs.positions import end_offset
from flexwire.logs.records import read_headers
from flexwire.logs.segments import place_at, read_batch
from flexwire.protocol.internal_topics import state_names
from flexwire.wire.batch_layout import CONTROL_MASK, TRANSACTIONAL_MASK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from pyspark.sql import Column, DataFrame, SparkSession

    from flexwire.answers.state.log import InternalLog
    from flexwire.answers.state.records import Paths
    from flexwire.columnar.batch_table import BatchHeaders
    from flexwire.logs.files import Partition
    from flexwire.logs.records import LogPiece
    from flexwire.logs.replicas import Replica


_PLACE: Final = ("topic", "partition")
ENDS: Final = (
    "topic string, partition int, end_offset bigint, high_watermark bigint, "
    "is_watermark_exact boolean"
)
"""The columns that `end_offsets` returns."""
NO_WATERMARK: Final = (None, None)
"""The values for an unknown high watermark; its exactness is then null."""
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
    """Return each partition's end, and the offset at which consumers stop, as `ENDS`.

    ``end_offset`` is the end of the log that `kafka-log` reads. ``high_watermark`` is the offset at
    which consumers stop. It comes from the file `replication-offset-checkpoint` in the log's parent
    directory, is null if that file does not contain the partition, and is never beyond the end.
    ``is_watermark_exact`` is true if the broker was stopped cleanly. Otherwise, the high watermark
    may be up to 5 seconds old.
    """
    logs = find_logs(several(paths), LogQuery(topics=topics))
    watermarks, rows = watermarks_of(logs), []
    for log in logs:
        end = end_offset(log.segments[-1])
        watermark, is_exact = watermarks.get(log.partition, NO_WATERMARK)
        rows.append(
            (*log.partition, end, None if watermark is None else min(watermark, end), is_exact)
        )
    return spark.createDataFrame(rows, ENDS)


def watermarks_of(logs: Iterable[Replica]) -> dict[Partition, tuple[int | None, bool | None]]:
    """Return the high watermark of each log's partition, and whether this value is exact.

    There is no high watermark for logs of topics in tiered storage, or for logs without the file
    `replication-offset-checkpoint`.
    """
    brokers = [each_log for each_log in logs if not each_log.is_tiered]
    by_broker = {
        each_log: high_watermarks(each_log) for each_log in sorted({log.beside for log in brokers})
    }
    return {
        log.partition: (
            by_broker[log.beside].offsets[log.partition],
            by_broker[log.beside].is_exact,
        )
        for log in brokers
        if log.partition in by_broker[log.beside].offsets
    }


def open_transactions(
    spark: SparkSession, paths: Paths, topics: Sequence[str] | None = None
) -> DataFrame:
    """Return the open transactions in logs, with one row for each producer in each partition.

    Columns: ``topic``, ``partition``, ``producer_id``, ``producer_epoch``, and the ``first_offset``
    and ``first_time`` of the transaction's first batch. Only batch headers are read.
    """
    rows = in_tasks(spark, paths, topics, _open_in, _OPEN)
    # A piece shows which transactions are open at its end, but they may end in a later piece.
    key = (*_PLACE, "producer_id")
    last_end = F.max("last_end").over(Window.partitionBy(*key))
    is_open = F.col("last").isNull() | (F.col("first_offset") > F.col("last"))
    rows = rows.withColumn("last", last_end).where(F.col("first_offset").isNotNull() & is_open)
    first = F.struct("producer_epoch", "first_offset", "first_time")
    firsts = rows.groupBy(*key).agg(F.min_by(first, "first_offset").alias("first"))
    return firsts.select(*key, "first.*")


def _open_in(piece: LogPiece) -> Iterator[pa.RecordBatch]:
    heard = _Open()
    read_headers(piece, heard)
    yield heard.rows(piece)


class _Open:
    """Collect headers in order: each producer's last end, and the first batch after that."""

    def __init__(self) -> None:
        self._ends: dict[int, int] = {}
        self._firsts: dict[int, tuple[int, int]] = {}

    def __call__(self, at: int, headers: BatchHeaders) -> None:
        rows = headers.attributes & TRANSACTIONAL_MASK != 0
        is_control = (headers.attributes[rows] & CONTROL_MASK != 0).tolist()
        columns = (headers.producer_ids, headers.base_offsets, headers.positions)
        values = (column[rows].tolist() for column in columns)
        for is_end, producer, offset, position in zip(is_control, *values, strict=True):
            if is_end:
                self._ends[producer] = offset
                self._firsts.pop(producer, None)
            else:
                self._firsts.setdefault(producer, (offset, at + position))

    def rows(self, piece: LogPiece) -> pa.RecordBatch:
        """Return a row for each producer."""
        rows: list[dict[str, Any]] = []
        with open_file(piece.log) as log:
            for producer in self._ends.keys() | self._firsts.keys():
                row = {"producer_id": producer, "last_end": self._ends.get(producer)}
                if producer in self._firsts:
                    offset, position = self._firsts[producer]
                    batch = read_batch(log, place_at(log, position))
                    row |= {"first_offset": offset, "producer_epoch": batch.producer_epoch}
                    row["first_time"] = to_moment(batch.max_timestamp)
                rows.append(row)
        return pa.RecordBatch.from_pylist(rows, _OPEN)


RECORD: Final = "TransactionLog"
VALUE: Final = f"{RECORD}Value"
KEY: Final = "transactional_id"
_FIELDS: Final = (
    f"key.{KEY}",
    "value.producer_id",
    "value.producer_epoch",
    "value.transaction_timeout_ms",
    "value.transaction_status",
    "value.transaction_partitions.topic",
    "value.transaction_partitions.partition_ids",
    "value.transaction_last_update_timestamp_ms",
    "value.transaction_start_timestamp_ms",
)
_PARTITIONS: Final = "array<struct<topic: string, partition: int>>"


def transactions(log: InternalLog) -> DataFrame:
    """Return the state of each transactional id, according to the coordinator's last record.

    Columns: ``transactional_id``; ``state`` in Kafka's words; ``producer_id``, ``producer_epoch``;
    ``timeout_ms``; ``start_time``, null in a state without one; ``last_update_time``;
    ``partitions``: topic and partition of all participants, none in the state Empty;
    ``log_partition``, ``log_offset``; ``is_known``: false if compaction removed a record that may
    have existed. Expired ids are left out.
    """
    value, is_before = F.col(f"{RECORD}.value"), ~F.col(IS_LATER)
    place = (F.col("partition").alias("log_partition"), F.col("offset").alias("log_offset"))
    record = F.struct(value.alias("value"), *place)
    rows = log.typed({RECORD: _FIELDS}, (), only_last=True).withColumn(
        KEY, F.col(f"{RECORD}.key.{KEY}")
    )
    last = rows.groupBy(KEY).agg(
        F.max_by(record, F.when(is_before, F.col("offset"))).alias("last"),
        F.bool_or(HIDES).alias(HIDES),
    )
    is_known = F.col("last").isNotNull() | ~F.col(HIDES)
    described = last.withColumns({"value": F.col("last.value"), "is_known": is_known})
    described = described.where(F.col("value").isNotNull() | ~F.col("is_known"))
    by_number = F.array(*map(F.lit, state_names(VALUE)))
    status = F.col("value.transaction_status")
    state = F.coalesce(F.get(by_number, status.cast("int")), status.cast("string"))
    topics = F.transform(
        "value.transaction_partitions",
        lambda topic_partitions: F.transform(
            topic_partitions["partition_ids"],
            lambda number: F.struct(
                topic_partitions["topic"].alias("topic"), number.alias("partition")
            ),
        ),
    )
    none = F.when(F.col("is_known"), F.array().cast(_PARTITIONS))
    return described.select(
        KEY,
        state.alias("state"),
        "value.producer_id",
        "value.producer_epoch",
        F.col("value.transaction_timeout_ms").alias("timeout_ms"),
        moment("value.transaction_start_timestamp_ms").alias("start_time"),
        moment("value.transaction_last_update_timestamp_ms").alias("last_update_time"),
        F.coalesce(F.array_sort(F.flatten(topics)), none).alias("partitions"),
        "last.log_partition",
        "last.log_offset",
        "is_known",
    )


# The states of a transaction that has not ended.
OPEN: Final = ("Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence")

PAST_TIMEOUT = "past its timeout"
NOT_OF_COORDINATOR = "the coordinator does not know this transaction"
NOW: Final = "now"
_KEY: Final = ("producer_id", *_PLACE)


def hanging_transactions(
    transactions: DataFrame, at: datetime, opened: DataFrame | None = None
) -> DataFrame:
    """Return transactions that should have ended by ``at``: a row for each of their partitions.

    ``transactions`` is the result of `transactions`. ``opened`` is the result of
    `open_transactions` for the logs of other topics. If ``opened`` is given, the result also
    contains transactions that are open in a partition but that no coordinator knows of. These
    transactions block consumers with ``read_committed`` until an operator aborts them. For them,
    ``first_offset`` is the offset at which a transaction begins.

    Columns: ``transactional_id``, ``state`` and ``timeout_ms``, which are null if no coordinator
    knows the transaction; ``producer_id``, ``producer_epoch``; ``topic``, ``partition``;
    ``first_offset``; ``open_since``; ``reason``.
    """
    return hanging_by(transactions.withColumn(NOW, F.lit(at)), opened).drop(NOW)


def hanging_by(transactions: DataFrame, opened: DataFrame | None) -> DataFrame:
    """Return the rows of `hanging_transactions`. ``now`` is each transaction's current time."""
    open_ones = transactions.where(F.col("state").isin(*OPEN))
    ours = open_ones.select("*", F.explode_outer("partitions").alias("one")).select(
        "transactional_id",
        "state",
        "timeout_ms",
        "producer_id",
        "producer_epoch",
        *(F.col(f"one.{name}").alias(name) for name in _PLACE),
        F.coalesce("start_time", "last_update_time").alias("open_since"),
        NOW,
    )
    no_offset = F.lit(None).cast("bigint")
    if opened is None:
        hanging = ours.withColumn("first_offset", no_offset)
        return _rows(hanging, _is_past())
    theirs = opened.select(
        *_KEY, "first_offset", F.col("first_time"), F.col("producer_epoch").alias("epoch")
    )
    both = ours.join(theirs, [*_KEY], "full")
    since = F.coalesce("open_since", "first_time")
    epoch = F.coalesce("producer_epoch", "epoch")
    both = both.withColumns({"open_since": since, "producer_epoch": epoch})
    is_nobodys = F.col("state").isNull() & F.col("first_offset").isNotNull()
    return _rows(both, _is_past() | is_nobodys)


def _is_past() -> Column:
    timeout = F.make_dt_interval(secs=F.col("timeout_ms") / 1000)
    return F.coalesce(F.col("open_since") + timeout < F.col(NOW), F.lit(False))


def _rows(transactions: DataFrame, is_hanging: Column) -> DataFrame:
    reason = F.when(F.col("state").isNull(), NOT_OF_COORDINATOR).otherwise(PAST_TIMEOUT)
    return transactions.where(is_hanging).select(
        "transactional_id",
        "state",
        "timeout_ms",
        *("producer_id", "producer_epoch"),
        *_PLACE,
        *("first_offset", "open_since"),
        reason.alias("reason"),
        NOW,
    )
