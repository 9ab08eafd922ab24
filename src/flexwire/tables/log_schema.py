"""The tables of logs: every column, its type and what it means, once; as `flexwire.tables.schema`.

They are there where an analysis was given log segments, beside those of traffic.
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
"""What the table of batches says of the transaction of a batch."""

_STRING, _INT, _LONG = pa.string(), pa.int32(), pa.int64()
_DAMAGE = "of what is not a batch"
_TOPIC = Column("topic", _STRING, "the topic, by the name of the directory")
_PARTITION = Column("partition", _INT, "the partition")
_FILE = Column("file", _STRING, "the log segment")


def _of_batch(name: str, meaning: str, null: str = _DAMAGE) -> Column:
    return Column(name, BATCH_COLUMNS[name], meaning, null)


LOG_BATCHES = (
    _TOPIC,
    _PARTITION,
    _FILE,
    Column("position", _LONG, "where it begins in the file"),
    Column("size", _LONG, "its bytes in the file; of what is not a batch those up to the next one"),
    _of_batch("magic", "2 for a record batch, 0 and 1 for a message of a message set"),
    _of_batch("compression", '"none", "gzip", "snappy", "lz4" or "zstd"'),
    Column("uncompressed_size", _LONG, "its bytes without compression, its header included",
           _DAMAGE),
    Column("records", _LONG, "its records, as many as were read", _DAMAGE),
    _of_batch("base_offset", "the base offset; of compressed messages the last offset"),
    _of_batch("last_offset", "the last offset, whose record compaction may have removed"),
    Column("oldest_time", MOMENT, "the earliest timestamp of its records",
           f"{_DAMAGE}; where no record has one, or one in no year from 1 to 9999"),
    Column("newest_time", MOMENT, "the latest timestamp of its records", "with ``oldest_time``"),
    _of_batch("max_timestamp", "the max timestamp as its header says it",
              f"{_DAMAGE}; where it is -1 or in no year from 1 to 9999"),
    Column("timestamp_type", _STRING, 'what set its timestamps: "CreateTime", "LogAppendTime" or '
           '"NoTimestampType"', _DAMAGE),
    _of_batch("partition_leader_epoch", "the partition leader epoch; -1 where there is none"),
    _of_batch("producer_id", "the producer id; -1 where there is none"),
    _of_batch("producer_epoch", "the producer epoch; -1 where there is none"),
    _of_batch("base_sequence", "the base sequence; -1 where there is none"),
    _of_batch("is_transactional", "whether it is part of a transaction"),
    _of_batch("is_control", "whether it holds control records, which no consumer sees"),
    _of_batch("has_delete_horizon", "whether its base timestamp is a delete horizon"),
    Column("key_bytes", _LONG, "the bytes of its records' keys", _DAMAGE),
    Column("value_bytes", _LONG, "the bytes of its records' values", _DAMAGE),
    Column("null_keys", _LONG, "how many records have a null for their key", _DAMAGE),
    Column("tombstones", _LONG, "how many records have a key, and a null for their value; none in "
           "a control batch", _DAMAGE),
    Column("record_headers", _LONG, "how many record headers its records have", _DAMAGE),
    Column("error", _STRING, "why this is not a batch, or its records cannot be read",
           "where it is one, and they can"),
    Column("outcome", _STRING, 'how the transaction of its records ended: "committed", "aborted", '
           '"open" where the log ends before it does, "not known" where what says it is damaged',
           f"{_DAMAGE}; of what is in no transaction, and of control batches"),
)  # fmt: skip

LOG_RECORD_SIZES = (
    _TOPIC,
    _PARTITION,
    Column("size", _LONG, "the bytes of a record without compression, with those that say its "
           "length; up to 127 it is the size itself, and above the least of up to 64 that are one "
           "part in 64 apart at most"),
    Column("records", _LONG, "how many records have this size; control records are left out"),
)  # fmt: skip

LOG_KEYS = (
    _TOPIC,
    _PARTITION,
    Column("keyed_records", _LONG, "how many records with a key were looked at. Control records "
           "are left out, and records of transactions that were aborted or had not ended"),
    Column("superseded_records", _LONG, "how many of them have a later one of the same key after "
           "them in their partition, by 128 bits of hash of the key"),
    Column("superseded_bytes", _LONG, "their bytes without compression"),
)  # fmt: skip

LOG_REWRITES = (
    _TOPIC,
    _PARTITION,
    _FILE,
    Column("position", _LONG, "where the sample begins in the file"),
    Column("sampled_bytes", _LONG, "the bytes of the sample's batches in the file"),
    Column("sampled_batches", _LONG, "how many batches it has"),
    Column("sampled_records", _LONG, "how many records it has"),
    Column("compression", _STRING, "the compression type that it was written with again"),
    Column("level", _INT, "the level", "where the compression type has none; of lz4 at its "
           "fastest, which is Kafka's default"),
    Column("batch_size", _LONG, "up to how many bytes of records, before compression, went into "
           "one batch; a record that is larger has one of its own. A producer's batch.size bounds "
           "bytes after compression instead"),
    Column("written_bytes", _LONG, "the bytes of the batches that were written"),
    Column("written_batches", _LONG, "how many there were"),
)  # fmt: skip

LOG_TABLES: Final = (
    Table(
        BATCHES,
        "One row a batch of a log segment, control batches too, and one for each run of bytes that "
        "is not a batch or does not read: every byte of every segment that was read is in one row.",
        LOG_BATCHES,
    ),
    Table(
        RECORD_SIZES,
        "One row a partition, task and size: how many records have it. Rows of a size add up.",
        LOG_RECORD_SIZES,
    ),
    Table(
        KEYS,
        "What compaction would remove, found by tasks that each looked at some keys of a "
        "partition: a row each. The rows that an analysis has of a partition add up to exactly "
        "what there is in what it read.",
        LOG_KEYS,
    ),
    Table(
        REWRITES,
        "One row a sample of successive batches and a way in which it was written again. Nothing "
        "in it is estimated.",
        LOG_REWRITES,
    ),
)
"""The tables of logs."""
LOG_SCHEMAS: Final = {one.place: schema_of(one.columns) for one in LOG_TABLES}
