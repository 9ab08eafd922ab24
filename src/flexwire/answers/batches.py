"""Record batches: each client's codec and the sizes of its batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs
from pyspark.sql.window import Window

from flexwire.answers.asking.answer import Answer, DaySums
from flexwire.answers.asking.day_sums import DAY, day_of_time
from flexwire.answers.asking.messages import is_grown, with_topic_names
from flexwire.answers.asking.percentiles import at_rank, ranked, rounded
from flexwire.answers.asking.told_names import with_learned_names
from flexwire.facts.answers import AnswerPicture
from flexwire.tables.keys import frame_key
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables

_BY: Final = ("client_id", "source", "topic", "topic_id", "compression")
# Together with the frame's key, these columns identify a batch.
_BATCH: Final = (*_BY, "partition", "batch_position")
_COUNTS: Final = ("rounded_size", "batches", "records", "bytes", "max_batch_bytes")
_SUMS: Final = pa.schema(
    [
        pa.field(DAY, pa.date32()),
        *(pa.field(name, pa.string()) for name in _BY),
        *(pa.field(name, pa.int64()) for name in _COUNTS),
    ]
)

COLUMNS: Final = (
    Column("client_id", pa.string(), "the client id", "if the client sent no client id",
           heading="Client id", is_about=True),
    Column("source", pa.string(),
           'the message that carried the batches: "produce", "fetch" or "share_fetch"',
           heading="Carried by", is_about=True),
    Column("topic", pa.string(), "the topic", "if only the id of the topic is known",
           heading="Topic", is_about=True),
    Column("topic_id", pa.string(), "the id of the topic, if its name is unknown",
           "if the name of the topic is known"),
    Column("compression", pa.string(), '"none", "gzip", "snappy", "lz4" or "zstd"',
           heading="Codec", is_about=True),
    Column("batches", pa.int64(), "the number of batches", heading="Batches"),
    Column("batch_share", pa.float64(),
           "these batches as a share of all batches of this client and topic",
           heading="Share of batches"),
    Column("records", pa.int64(), "the number of records in the batches"),
    Column("mean_records", pa.float64(), "the mean number of records in a batch",
           heading="Records per batch"),
    Column("bytes", pa.int64(), "the total size of the batches in bytes, as sent",
           heading="Bytes"),
    Column("mean_batch_bytes", pa.float64(), "the mean size of a batch, in bytes",
           heading="Mean"),
    Column("p50_batch_bytes", pa.int64(),
           "the median size in bytes: half of the batches are no larger than this",
           heading="Median size"),
    Column("max_batch_bytes", pa.int64(), "the size of the largest batch, in bytes",
           heading="Largest"),
)  # fmt: skip


def batches(tables: AnalysisTables) -> DataFrame:
    """Return record batches by client, topic and codec.

    Batches that a client produces reflect its ``compression.type``, ``batch.size`` and
    ``linger.ms``. Batches that a client fetches are the same as those in the broker's log. The
    size of a batch includes its header and is measured on the wire, after compression. Control
    batches are not included. A message of a message set (magic 0 or 1) counts as a batch, and the
    messages inside it count as its records.

    Batches are not counted if their bytes were withheld or could not be read. For a request log,
    this answer returns no rows, because the table of records is empty.
    """
    return _total(_part(tables), tables)


def _part(tables: AnalysisTables) -> DataFrame:
    """Return the batches by day, client, topic, codec, and size (rounded as for percentiles)."""
    records = tables.records.where("magic is not null and not is_control")
    each = records.groupBy(*frame_key(records.columns), day_of_time().alias(DAY), *_BATCH).agg(
        F.max("batch_size").cast("bigint").alias("size"), F.count("offset").alias("records")
    )
    return each.groupBy(DAY, *_BY, rounded("size").alias("rounded_size")).agg(
        F.count("*").alias("batches"),
        F.sum("records").alias("records"),
        F.sum("size").alias("bytes"),
        F.max("size").alias("max_batch_bytes"),
    )


def _total(parts: DataFrame, tables: AnalysisTables) -> DataFrame:
    """Return the answer's rows, computed from the sums of all days."""
    if is_grown(tables):
        parts = with_topic_names(with_learned_names(parts, tables), tables)
    parts = parts.withColumn("topic_id", F.when(F.col("topic").isNull(), F.col("topic_id")))
    sums = [F.sum(name).alias(name) for name in ("batches", "records", "bytes")]
    largest = F.max("max_batch_bytes").alias("max_batch_bytes")
    by_size = parts.groupBy(*_BY, "rounded_size").agg(*sums, largest)
    rows = (
        ranked(by_size, _BY, "rounded_size", "batches")
        .groupBy(*_BY)
        .agg(*sums, largest, at_rank("rounded_size", 50).alias("p50_batch_bytes"))
    )
    of_topic = Window.partitionBy(*_BY[:-1])
    rows = rows.withColumns(
        {
            "batch_share": F.col("batches") / F.sum("batches").over(of_topic),
            "mean_records": F.col("records") / F.col("batches"),
            "mean_batch_bytes": F.col("bytes") / F.col("batches"),
        }
    )
    return rows.select(*(column.name for column in COLUMNS))


ANSWER: Final = Answer(
    name="batches",
    place=50,
    question="Which codec does each client use, and how large are its batches?",
    meaning="Record batches by client, topic and codec, with their sizes as sent. The producer's "
    "settings determine the codec and size of a produced batch. A fetched batch is sent as it is "
    "stored in the broker's log.",
    advice="Start with clients that produce many small batches: raise linger.ms and batch.size. "
    "If the codec is none, set compression.type. The answer savings measures how much disk space "
    "these settings would save.",
    row="a combination of a client id, a direction, a topic and a codec",
    columns=COLUMNS,
    order=("-bytes", *_BY),
    ask=batches,
    elsewhere="the answer storage shows record batches by topic",
    picture=AnswerPicture("Size of record batches", "bytes"),
    sums=DaySums(version=1, tables=lambda: ["records"], columns=_SUMS, part=_part, total=_total),
)
