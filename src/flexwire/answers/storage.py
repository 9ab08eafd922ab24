"""The contents of topics' log segments, and how much of them compaction would remove.

The answer is computed from the tables of logs and contains one row for each topic. Every byte of
every segment that was read is counted once. Only one replica of each partition is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, returns
from flexwire.answers.asking.percentiles import percentile
from flexwire.columnar.record_columns import MOMENT
from flexwire.facts.answers import AnswerPicture
from flexwire.facts.facts import least_of
from flexwire.logs.pieces import TransactionOutcome
from flexwire.tables.keys import ANALYSIS
from flexwire.tables.log_schema import OUTCOMES
from flexwire.tables.schema import Column
from flexwire.wire.batch_layout import HEADER_SIZE, RECORD_BATCH

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables

_LONG, _DOUBLE, _STRING = pa.int64(), pa.float64(), pa.string()
_NO_RECORD = "if no record was read"
_IN_PARTS = "if the tables have grown and several analyses have read parts of a partition"
_NO_BATCH = "if no batches were read, or if only control batches were read"
_OF_KEYS = ("keyed_records", "superseded_records", "superseded_bytes")
_IS_WHOLE = "is_whole"
_OLDER = "in tables from an analysis that did not measure this value"

COLUMNS = (
    Column("topic", _STRING, "the topic", heading="Topic", is_about=True),
    Column("partitions", _LONG, "the number of partitions of the topic whose logs contain "
           "batches or damage"),
    Column("segments", _LONG, "the number of log segments of these partitions"),
    Column("bytes", _LONG,
           "the size of these log segments in bytes, for one replica of each partition and without "
           "indexes. On disk, each replica takes up this much space, plus its indexes",
           heading="Bytes"),
    Column("batches", _LONG, "the number of record batches in the topic, without control "
           "batches",
           heading="Batches"),
    Column("records", _LONG, "the number of records in the topic, without control records",
           heading="Records"),
    Column("codecs", pa.list_(_STRING), "the compression types of these batches", heading="Codecs"),
    Column("batch_bytes", _LONG, "the size of these batches in the log, in bytes", _NO_BATCH),
    Column("uncompressed_bytes", _LONG, "the uncompressed size of these batches in bytes",
           _NO_BATCH, heading="Uncompressed"),
    Column("compression_ratio", _DOUBLE,
           "how many times larger these batches are without compression",
           _NO_BATCH),
    Column("mean_batch_bytes", _DOUBLE, "the mean size of a batch in bytes", _NO_BATCH),
    Column("p50_batch_bytes", _LONG, (
        "the median size: half of the batches are no larger than this"
    ), _NO_BATCH,
           heading="Batch, p50"),
    Column("p99_batch_bytes", _LONG, "99% of the batches are no larger than this",
           f"for fewer than {least_of(99)} batches, because this value would equal the maximum",
           heading="Batch, p99"),
    Column("mean_record_bytes", _DOUBLE, "the mean size of a record without compression, in bytes",
           _NO_RECORD),
    Column("p50_record_bytes", _LONG,
           "the median size: half of the records are no larger than this; above 128 bytes, "
           "the error is at most 1/64 of the value",
           _NO_RECORD, heading="Record, p50"),
    Column("p99_record_bytes", _LONG, "99% of the records are no larger than this, with the "
           "same accuracy",
           f"for fewer than {least_of(99)} records, because this value would equal the maximum",
           heading="Record, p99"),
    Column("tombstones", _LONG, "the number of records with a key and a null value",
           heading="Tombstones"),
    Column("keyed_records", _LONG,
           "the number of records with a key, except those in transactions that were aborted or "
           "had not ended"),
    Column("superseded_records", _LONG,
           "the number of records that are superseded by a later record with the same key in the "
           "same partition; compaction would eventually remove these records", _IN_PARTS),
    Column("superseded_bytes", _LONG, "the uncompressed size of these records in bytes", _IN_PARTS),
    Column("superseded_share", _DOUBLE, "these records as a share of all records",
           f"{_NO_RECORD}, or {_IN_PARTS}", heading="Superseded"),
    Column("transactional_share", _DOUBLE,
           "records in transactions, including aborted transactions, as a share of all records",
           _NO_RECORD, heading="In transactions"),
    Column("control_batches", _LONG, "the number of control batches, which end transactions"),
    Column("oldest_time", MOMENT, "the earliest timestamp of a record",
           "if no record has a timestamp",
           heading="Oldest"),
    Column("newest_time", MOMENT, "the latest timestamp of a record",
           "if no record has a timestamp",
           heading="Newest"),
    Column("damaged", _LONG, "the number of runs of bytes that are not a batch, or that cannot be "
           "read",
           heading="Damaged"),
    Column("damaged_bytes", _LONG, "the total size of these runs in bytes"),
    Column("keyless_records", _LONG,
           "the number of records without a key; compaction would remove them, and brokers refuse "
           "new records without a key in compacted topics", heading="Without a key"),
    Column("aborted_records", _LONG,
           "the number of records in aborted transactions. Compaction would remove these records, "
           "and they supersede no earlier record", _OLDER, heading="Aborted"),
    Column("aborted_bytes", _LONG, "the uncompressed size of these records in bytes", _OLDER),
    Column("unsettled_records", _LONG,
           "the number of records in transactions that had not ended at the end of the log, or "
           "whose outcome is unknown. Compaction stops at an open transaction", _OLDER),
)  # fmt: skip


@returns(COLUMNS)
def storage(tables: AnalysisTables) -> DataFrame | None:
    """Return each topic with its batches, records, sizes, ages and superseded records.

    The numbers of superseded records are exact: keys are compared by a 128-bit hash. The keys of
    each partition are compared when its log is read. As in Kafka's log cleaner, a record of an
    aborted transaction does not supersede any other record, and is itself removed. A tombstone that
    is the last record of its key does not count as superseded. Compaction removes it after
    delete.retention.ms. A log does not show whether or when its topic is compacted. The active
    segment is never compacted. Percentiles of batches are exact below 100 kB, and larger
    percentiles are rounded down to five significant digits.
    """
    logs = tables.logs
    if logs is None:
        return None
    each = _of_batches(logs.batches)
    quantiles = F.percentile("size", F.array(F.lit(0.5), F.lit(0.99)), F.col("records"))
    sizes = logs.record_sizes.groupBy("topic").agg(quantiles.alias("record_quantiles"))
    rows = each.join(sizes, "topic", "left").join(_of_keys(logs.keys), "topic", "left")
    rows = rows.na.fill(0, [*_OF_KEYS]).na.fill(value=True, subset=[_IS_WHOLE])
    # These records were not compared with later records of the same keys in other analyses.
    exact_counts = {column: F.when(F.col(_IS_WHOLE), F.col(column)) for column in _OF_KEYS[1:]}
    rows = rows.withColumns(exact_counts)
    return rows.withColumns(
        {
            "compression_ratio": F.try_divide("uncompressed_bytes", "batch_bytes"),
            "mean_batch_bytes": F.try_divide("batch_bytes", "batches"),
            "p99_batch_bytes": _of_many("batches", F.col("p99_batch_bytes")),
            "mean_record_bytes": F.try_divide("record_bytes", "records"),
            "p50_record_bytes": F.get("record_quantiles", F.lit(0)).cast("bigint"),
            "p99_record_bytes": _of_many("records", F.get("record_quantiles", F.lit(1))).cast(
                "bigint"
            ),
            "superseded_share": F.try_divide("superseded_records", "records"),
            "transactional_share": F.try_divide("transactional_records", "records"),
        }
    )


def _of_many(count: str, p99: SparkColumn) -> SparkColumn:
    """Return a 99th percentile, or null if it would be the largest value."""
    return F.when(F.col(count) >= least_of(99), p99)


def _of_keys(keys: DataFrame) -> DataFrame:
    """Return the sums over keys, and whether a single analysis has compared all keys."""
    run = F.col(ANALYSIS) if ANALYSIS in keys.columns else F.lit("")
    times = F.size(F.collect_set(F.struct("partition", run)))
    is_whole = (times == F.size(F.collect_set("partition"))).alias(_IS_WHOLE)
    return keys.groupBy("topic").agg(
        is_whole, *(F.sum(column).alias(column) for column in _OF_KEYS)
    )


def _of_batches(batches: DataFrame) -> DataFrame:
    """Return the numbers that depend only on the table of batches."""
    if "outcome" not in batches.columns:
        # This Delta table was written by an older release.
        batches = batches.withColumn("outcome", F.lit(None).cast("string"))
    is_damage, is_data = F.col("error").isNotNull(), ~F.col("is_control")
    size, records = F.when(is_data, F.col("size")), F.when(is_data, F.col("records"))
    inflated = F.when(is_data, F.col("uncompressed_size"))
    codec = F.when(is_data, F.col("compression"))
    header = F.when(F.col("magic") == RECORD_BATCH, HEADER_SIZE).otherwise(0)
    return (
        batches.withColumn("data_size", size)
        .groupBy("topic")
        .agg(
            F.size(F.collect_set("partition")).cast("bigint").alias("partitions"),
            F.size(F.collect_set("file")).cast("bigint").alias("segments"),
            F.sum("size").alias("bytes"),
            F.count_if(is_data).alias("batches"),
            F.coalesce(F.sum(records), F.lit(0)).alias("records"),
            F.array_sort(F.collect_set(codec)).cast("array<string>").alias("codecs"),
            F.sum(size).alias("batch_bytes"),
            F.sum(inflated).alias("uncompressed_bytes"),
            percentile("data_size", 50).alias("p50_batch_bytes"),
            percentile("data_size", 99).alias("p99_batch_bytes"),
            F.sum(inflated - header).alias("record_bytes"),
            F.coalesce(F.sum("tombstones"), F.lit(0)).alias("tombstones"),
            F.sum(F.when(F.col("is_transactional"), records).otherwise(0)).alias(
                "transactional_records"
            ),
            F.count_if("is_control").alias("control_batches"),
            F.min(F.when(is_data, F.col("oldest_time"))).alias("oldest_time"),
            F.max(F.when(is_data, F.col("newest_time"))).alias("newest_time"),
            F.count_if(is_damage).alias("damaged"),
            F.sum(F.when(is_damage, F.col("size")).otherwise(0)).alias("damaged_bytes"),
            F.coalesce(F.sum(F.when(is_data, F.col("null_keys"))), F.lit(0)).alias(
                "keyless_records"
            ),
            *_of_transactions(is_data, records, inflated - header),
        )
    )


def _of_transactions(
    is_data: SparkColumn, records: SparkColumn, record_bytes: SparkColumn
) -> tuple[SparkColumn, ...]:
    """Return the sums over transactions that were aborted or had not ended."""
    is_asked = is_data & F.col("is_transactional") & (F.col("records") > 0)
    # The tables of an older release do not contain the outcomes of transactions.
    is_said = F.count_if(is_asked & F.col("outcome").isNull()) == 0
    is_aborted = F.col("outcome") == OUTCOMES[TransactionOutcome.ABORTED]
    is_unsettled = F.col("outcome").isin(
        OUTCOMES[TransactionOutcome.OPEN], OUTCOMES[TransactionOutcome.UNKNOWN]
    )
    sums = {
        "aborted_records": F.when(is_aborted, records),
        "aborted_bytes": F.when(is_aborted, record_bytes),
        "unsettled_records": F.when(is_unsettled, records),
    }
    return tuple(
        F.when(is_said, F.coalesce(F.sum(column), F.lit(0))).alias(name)
        for name, column in sums.items()
    )


ANSWER = Answer(
    name="storage",
    place=180,
    question="What do the log segments of each topic contain?",
    meaning=(
        "One row for each topic, sorted by the size of its log segments. These sizes cover one "
        "replica of each partition, without indexes. A record is superseded if a later record has "
        "the same key."
    ),
    advice="If batches are small, or if compression saves little, change the settings of the "
    "producer: raise linger.ms and batch.size, and set compression.type. If many records are "
    "superseded, cleanup.policy=compact may help. Compaction permanently removes superseded "
    "records, and records without a key. Before you set cleanup.policy=compact, make sure that "
    "every record has a key, and that no consumer needs superseded records.",
    row="a topic",
    columns=COLUMNS,
    order=("-bytes", "topic"),
    shown=(
        "topic",
        "bytes",
        "batches",
        "records",
        "codecs",
        "uncompressed_bytes",
        "p50_batch_bytes",
        "p99_batch_bytes",
        "p50_record_bytes",
        "p99_record_bytes",
        "tombstones",
        "superseded_share",
        "keyless_records",
        "aborted_records",
        "transactional_share",
        "oldest_time",
        "newest_time",
        "damaged",
    ),
    ask=storage,
    picture=AnswerPicture("Size of log segments, by topic", "bytes"),
    of_logs=True,
)
