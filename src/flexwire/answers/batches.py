"""Record batches: the codec that each client uses, and the sizes of its batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs
from pyspark.sql.window import Window

from flexwire.answers.asking.answer import Answer
from flexwire.answers.asking.messages import is_grown, with_topic_names
from flexwire.answers.asking.percentiles import percentile
from flexwire.facts.answers import AnswerPicture
from flexwire.tables.keys import frame_key
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables

_BY: Final = ("client_id", "source", "topic", "topic_id", "compression")
# These columns and the frame's key identify a batch.
_BATCH: Final = (*_BY, "partition", "batch_position")

COLUMNS: Final = (
    Column("client_id", pa.string(), "the client id", "if the client sent none",
           heading="Client id", is_about=True),
    Column("source", pa.string(), 'the message that carried the batches: "produce", "fetch" or '
           '"share_fetch"', heading="By", is_about=True),
    Column("topic", pa.string(), "the topic", "if only its id is known",
           heading="Topic", is_about=True),
    Column("topic_id", pa.string(), "the topic's id, if its name is unknown",
           "if the name is known"),
    Column("compression", pa.string(), '"none", "gzip", "snappy", "lz4" or "zstd"',
           heading="Codec", is_about=True),
    Column("batches", pa.int64(), "how many batches", heading="Batches"),
    Column("batch_share", pa.float64(), "their share of this client's batches of the topic",
           heading="Of these"),
    Column("records", pa.int64(), "the records in them"),
    Column("mean_records", pa.float64(), "the mean number of records in a batch",
           heading="Records in one"),
    Column("bytes", pa.int64(), "the bytes of the batches, as on the wire",
           heading="Bytes"),
    Column("mean_batch_bytes", pa.float64(), "the mean size of a batch", heading="Mean"),
    Column("p50_batch_bytes", pa.int64(), "the median size: half of the batches are no larger",
           heading="Half up to"),
    Column("max_batch_bytes", pa.int64(), "the size of the largest batch", heading="Largest"),
)  # fmt: skip


def batches(tables: AnalysisTables) -> DataFrame:
    """Return record batches by client, topic and codec.

    Batches that a client produces show its ``compression.type``, ``batch.size`` and ``linger.ms``.
    Batches that it fetches are those of the broker's log. A size is that of the whole batch on the
    wire, after compression. Control batches are left out. A message of a message set (magic 0 or 1)
    counts as a batch, and the messages inside it as its records.

    Batches whose bytes were withheld or could not be read are missing. So is everything in a
    request log, whose table of records is empty.
    """
    records = tables.records.where("magic is not null and not is_control")
    if is_grown(tables):
        records = with_topic_names(records, tables)
    records = records.withColumn("topic_id", F.when(F.col("topic").isNull(), F.col("topic_id")))
    each = records.groupBy(*frame_key(records.columns), *_BATCH).agg(
        F.max("batch_size").cast("bigint").alias("size"), F.count("offset").alias("records")
    )
    rows = each.groupBy(*_BY).agg(
        F.count("*").alias("batches"),
        F.sum("records").alias("records"),
        F.avg("records").alias("mean_records"),
        F.sum("size").alias("bytes"),
        F.avg("size").alias("mean_batch_bytes"),
        percentile("size", 50).alias("p50_batch_bytes"),
        F.max("size").alias("max_batch_bytes"),
    )
    of_topic = Window.partitionBy(*_BY[:-1])
    share = F.col("batches") / F.sum("batches").over(of_topic)
    return rows.withColumn("batch_share", share).select(*(column.name for column in COLUMNS))


ANSWER: Final = Answer(
    name="batches",
    place=50,
    question="Which codec does each client use, and how large are its batches?",
    meaning="Record batches by client, topic and codec, as on the wire. Produced batches show the "
    "producer's settings, and fetched ones the broker's log.",
    advice="Start with clients that produce many small batches: raise linger.ms and batch.size. "
    "If the codec is none, set compression.type. The answer savings measures what that would save "
    "on disk.",
    row="a client id, direction, topic and codec",
    columns=COLUMNS,
    order=("-bytes", *_BY),
    ask=batches,
    elsewhere="the answer storage has them by topic",
    picture=AnswerPicture("Bytes of record batches", "bytes"),
)
