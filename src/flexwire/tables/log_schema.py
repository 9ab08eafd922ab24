"""The tables of logs: every column with its type and meaning, as in `flexwire.tables.schema`.

An analysis of log segments writes these tables next to the tables of traffic.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from flexwire.columnar.record_columns import BATCH_COLUMNS, MOMENT
from flexwire.logs.pieces import TransactionOutcome
from flexwire.tables.schema import Column, Table, schema_of

BATCHES: Final = "log_batches"
RECORD_SIZES: Final = "log_record_sizes"
KEYS: Final = "log_keys"
REWRITES: Final = "log_rewrites"

OUTCOMES: Final = {
    TransactionOutcome.COMMITTED: "committed",
    TransactionOutcome.ABORTED: "aborted",
    TransactionOutcome.OPEN: "open",
    TransactionOutcome.UNKNOWN: "not known",
}
"""The strings that describe a batch's transaction in the table of batches."""

_STRING, _INT, _LONG = pa.string(), pa.int32(), pa.int64()
_DAMAGE = "if the bytes are not a batch"
_TOPIC = Column("topic", _STRING, "the topic, taken from the directory name")
_PARTITION = Column("partition", _INT, "the partition")
_FILE = Column("file", _STRING, "the log segment")


def _of_batch(name: str, meaning: str, null: str = _DAMAGE) -> Column:
    return Column(name, BATCH_COLUMNS[name], meaning, null)


LOG_BATCHES = (
    _TOPIC,
    _PARTITION,
    _FILE,
    Column("position", _LONG, "the position of the batch in the file"),
    Column("size", _LONG,
           "the size of the batch in the file, in bytes; for bytes that are not a batch, the "
           "number of bytes up to the next batch"),
    _of_batch("magic", "2 for a record batch; 0 or 1 for a message in a message set"),
    _of_batch("compression", '"none", "gzip", "snappy", "lz4" or "zstd"'),
    Column("uncompressed_size", _LONG,
           "the uncompressed size of the batch in bytes, including its header",
           _DAMAGE),
    Column("records", _LONG, "the number of records in the batch", _DAMAGE),
    _of_batch("base_offset", "the base offset; for compressed messages, the last offset"),
    _of_batch("last_offset", "the last offset; compaction may have removed the record at this "
                             "offset"),
    Column("oldest_time", MOMENT, "the earliest timestamp among the records",
           f"{_DAMAGE}; also if no record has a timestamp, or if the timestamp is outside the "
           "years 1 to 9999"),
    Column("newest_time", MOMENT, "the latest timestamp among the records",
           "under the same conditions as ``oldest_time``"),
    _of_batch("max_timestamp", "the maximum timestamp in the batch's header",
              f"{_DAMAGE}, or if the timestamp is -1 or outside the years 1 to 9999"),
    Column("timestamp_type", _STRING,
           'the origin of the timestamps: "CreateTime", "LogAppendTime" or "NoTimestampType"',
           _DAMAGE),
    _of_batch("partition_leader_epoch",
              "the partition leader epoch; -1 if the batch has none"),
    _of_batch("producer_id", "the producer id; -1 if the batch has none"),
    _of_batch("producer_epoch", "the producer epoch; -1 if the batch has none"),
    _of_batch("base_sequence", "the base sequence; -1 if the batch has none"),
    _of_batch("is_transactional", "whether the batch is part of a transaction"),
    _of_batch("is_control", "whether the batch contains control records, which consumers skip"),
    _of_batch("has_delete_horizon", "whether the base timestamp of the batch is a delete horizon"),
    Column("key_bytes", _LONG, "the total size of the records' keys in bytes", _DAMAGE),
    Column("value_bytes", _LONG, "the total size of the records' values in bytes", _DAMAGE),
    Column("null_keys", _LONG, "the number of records with a null key", _DAMAGE),
    Column("tombstones", _LONG, "the number of records with a key and a null value; 0 in a control "
           "batch", _DAMAGE),
    Column("record_headers", _LONG, "the number of record headers in all records", _DAMAGE),
    Column("error", _STRING,
           "the reason why the bytes are not a batch, or why the records cannot be read",
           "if the batch and its records can be read"),
    Column("outcome", _STRING,
           'how the records\' transaction ended: "committed", "aborted", "open" if the log '
           'ends before the transaction does, or "not known" if the evidence is damaged',
           f"{_DAMAGE}; also for records outside transactions and for control batches"),
)  # fmt: skip

LOG_RECORD_SIZES = (
    _TOPIC,
    _PARTITION,
    Column("size", _LONG,
           "the uncompressed size of a record in bytes, including its length field. Sizes up to "
           "127 are exact. Larger sizes are rounded down by at most one part in 64"),
    Column("records", _LONG,
           "the number of records with this size; control records are not counted"),
)  # fmt: skip

LOG_KEYS = (
    _TOPIC,
    _PARTITION,
    Column("keyed_records", _LONG, "the number of counted records with a key. Control records are "
           "not counted, nor are records in transactions that were aborted or are still open"),
    Column("superseded_records", _LONG,
           "the number of these records that are followed by a record with the same key in the "
           "same partition; keys are compared by their 128-bit hashes"),
    Column("superseded_bytes", _LONG, "the uncompressed size of these records in bytes"),
)  # fmt: skip

LOG_REWRITES = (
    _TOPIC,
    _PARTITION,
    _FILE,
    Column("position", _LONG, "the position of the sample in the file"),
    Column("sampled_bytes", _LONG, "the size of the sample's batches in the file, in bytes"),
    Column("sampled_batches", _LONG, "the number of batches in the sample"),
    Column("sampled_records", _LONG, "the number of records in the sample"),
    Column("compression", _STRING, "the compression type used to rewrite the sample"),
    Column("level", _INT, "the compression level",
           "if the compression type has no levels; also for lz4 at its fastest level, which is "
           "Kafka's default"),
    Column("batch_size", _LONG,
           "the maximum number of record bytes in one batch, before compression; a larger record "
           "is written in a separate batch. By contrast, a producer's batch.size limits the size "
           "after compression"),
    Column("written_bytes", _LONG, "the total size of the batches written, in bytes"),
    Column("written_batches", _LONG, "the number of batches written"),
)  # fmt: skip

LOG_TABLES: Final = (
    Table(
        BATCHES,
        "One row for each batch in a log segment, including control batches, and one row for each "
        "run of bytes that is not a batch or cannot be read. Every byte of every segment belongs "
        "to exactly one row.",
        LOG_BATCHES,
        ("file", "position"),
    ),
    Table(
        RECORD_SIZES,
        "One row for each partition, task and size, with the number of records. To calculate the "
        "total for one size, add up the rows for that size.",
        LOG_RECORD_SIZES,
    ),
    Table(
        KEYS,
        "The number of records that compaction would remove. Each row comes from one task, which "
        "counted some of a partition's keys. Together, a partition's rows contain the exact "
        "counts for all of its records that were read.",
        LOG_KEYS,
    ),
    Table(
        REWRITES,
        "One row for each sample of consecutive batches and each way in which the sample was "
        "rewritten. All figures in this table are measured, not estimated.",
        LOG_REWRITES,
        ("file", "position", "compression", "level", "batch_size"),
    ),
)
"""The tables of logs."""
LOG_SCHEMAS: Final = {table.place: schema_of(table.columns) for table in LOG_TABLES}
