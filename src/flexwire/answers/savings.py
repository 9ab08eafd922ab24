"""The bytes that another codec, level or batch size would save in the log segments of topics.

When flexwire reads logs, it rewrites a sample of each topic's batches with each combination of
codec, level and batch size. This answer adds up the results and estimates nothing else. A
combination whose sample is not large enough is omitted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, returns
from flexwire.facts.answers import AnswerPicture
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.records.record import Compression
from flexwire.tables.schema import Column
from flexwire.wire.batch_layout import HEADER_SIZE

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables

_LONG, _DOUBLE, _STRING = pa.int64(), pa.float64(), pa.string()
_UNWRITTEN = "if the table contains no row for the same batch size without compression"

COLUMNS = (
    Column("topic", _STRING, "the topic", heading="Topic", is_about=True),
    Column("rank", pa.int32(),
           "the rank of the combination; the combination with rank 1 takes the fewest bytes for "
           "this topic"),
    Column("compression", _STRING, "the compression type", heading="Codec", is_about=True),
    Column("level", pa.int32(), "the compression level",
           "if the codec has no levels; also for lz4 at its fastest level, which is Kafka's "
           "default", heading="Level", is_about=True),
    Column("batch_size", _LONG,
           "the maximum total size of the records in one batch before compression, in bytes. The "
           "corresponding batch.size of a producer is ``producer_batch_size``",
           heading="Record bytes per batch", kind="bytes", is_about=True),
    Column("bytes", _LONG,
           "the size of the topic's batches in the log, in bytes, without control batches",
           heading="Size now"),
    Column("estimated_bytes", _LONG, (
        "the size that these batches would have, in bytes, if all of them compressed as well as "
        "the sample"
    ),
           heading="Estimated size"),
    Column("saved_bytes", _LONG,
           "how many bytes the combination saves; negative if the batches would become larger",
           heading="Saved"),
    Column("saved_share", _DOUBLE, "``saved_bytes`` as a share of ``bytes``", heading="Saved"),
    Column("sampled_bytes", _LONG, "the size of the sample in the log, in bytes"),
    Column("sampled_share", _DOUBLE, "``sampled_bytes`` as a share of ``bytes``",
           heading="Sampled"),
    Column("sampled_records", _LONG, "the number of records in the sample"),
    Column("written_bytes", _LONG,
           "the size of the sample when it is rewritten with this combination, in bytes"),
    Column("producer_batch_size", _LONG,
           "the batch.size with which a Java producer collects about ``batch_size`` bytes of "
           "records in a batch; the producer compares batch.size with the estimated size of the "
           "compressed batch, plus 5 %, plus the size of the next record before "
           "compression", _UNWRITTEN,
           heading="batch.size", kind="setting"),
    Column("advice", _STRING, "the advice for the producers of the topic",
           "in all rows except those with rank 1",
           heading="What to do"),
    Column("total_saved_bytes", _LONG,
           "the number of bytes that would be saved in total if each topic used its best "
           "combination; the value is the same in every row", heading="Saved in all topics"),
)  # fmt: skip
# A Java producer multiplies its estimate of the size of a compressed batch by this number
# (MemoryRecordsBuilder).
_CAUTION = 1.05
_WAY = ("compression", "level", "batch_size")


@returns(COLUMNS)
def savings(tables: AnalysisTables) -> DataFrame | None:
    """Return the sizes of each topic with each combination of codec, level and batch size.

    The sample consists of a few runs of successive batches, spread evenly over the topic's
    segments. Only the largest topics are sampled. The CPU time of a codec is not measured. Nor does
    the sample show whether a producer could collect such a batch within its linger.ms. Internal
    topics are omitted, because brokers write to them and producer settings do not affect them.
    """
    logs = tables.logs
    if logs is None:
        return None
    is_own = ~F.col("topic").isin(*(topic.topic for topic in InternalTopic))
    batches = (
        logs.batches.where(~F.col("is_control") & is_own)
        .groupBy("topic")
        .agg(F.sum("size").alias("bytes"))
    )
    sums = ("sampled_bytes", "sampled_records", "written_bytes", "written_batches")
    ways = logs.rewrites.groupBy("topic", *_WAY).agg(
        *(F.sum(column).alias(column) for column in sums)
    )
    estimated = F.round(F.col("bytes") * F.col("written_bytes") / F.col("sampled_bytes"))
    rows = ways.join(batches, "topic").withColumn("estimated_bytes", estimated.cast("bigint"))
    order = Window.partitionBy("topic").orderBy("estimated_bytes", *_WAY)
    rows = rows.withColumns(
        {
            "rank": F.row_number().over(order),
            "saved_bytes": F.col("bytes") - F.col("estimated_bytes"),
            "saved_share": 1 - F.col("estimated_bytes") / F.col("bytes"),
            "sampled_share": F.col("sampled_bytes") / F.col("bytes"),
            "producer_batch_size": _producer_batch_size(),
        }
    )
    best = F.when(F.col("rank") == 1, F.greatest("saved_bytes", F.lit(0)))
    return rows.withColumns(
        {
            "advice": F.when(F.col("rank") == 1, _advice()),
            # A topic is never null, but without a key, Spark would warn about the window.
            "total_saved_bytes": F.sum(best).over(Window.partitionBy(F.col("topic").isNull())),
        }
    )


def _producer_batch_size() -> SparkColumn:
    """Return the batch.size at which a producer collects ``batch_size`` bytes of records.

    A batch accepts another record as long as the sum of three sizes is at most batch.size: the
    header, the records multiplied by the compression ratio that the producer has learned, and the
    new record before compression.
    """
    plain = Compression.NONE.value
    same = Window.partitionBy("topic", "batch_size")
    body = F.col("written_bytes") - HEADER_SIZE * F.col("written_batches")
    inflated = F.max(F.when(F.col("compression") == plain, body)).over(same)
    record = inflated / F.col("sampled_records")
    ratio = F.when(F.col("compression") == plain, F.lit(1.0)).otherwise(body / inflated * _CAUTION)
    before = F.greatest(F.col("batch_size") - record, F.lit(0.0))
    return F.ceil(HEADER_SIZE + before * ratio + record).cast("bigint")


def _advice() -> SparkColumn:
    """Return advice about the best combination for a topic and how much it saves.

    There is no advice for most topics.
    """
    level = F.when(F.col("level").isNotNull(), F.concat(F.lit(" at level "), F.col("level")))
    kibibytes = F.format_number(F.col("batch_size") / 1024, 0)
    saved = F.col("saved_bytes") / F.lit(1e6)
    percent = F.format_number(F.col("saved_share") * 100, 1)
    way = F.concat(
        F.lit("write "), F.col("topic"), F.lit(" with "), F.col("compression"),
        F.coalesce(level, F.lit("")), F.lit(" in batches of up to "), kibibytes,
        F.lit(" KiB of records: saves "), F.format_number(saved, 3), F.lit(" MB ("),
        percent, F.lit(" %)"),
    )  # fmt: skip
    leave = F.concat(
        F.lit("leave "),
        F.col("topic"),
        F.lit(" as it is: none of the tested combinations saves bytes"),
    )
    return F.when(F.col("saved_bytes") > 0, way).otherwise(leave)


ANSWER = Answer(
    name="savings",
    place=190,
    question="What would another codec or batch size save?",
    meaning=(
        "Each row describes a topic and a combination of codec, level and batch size. flexwire "
        "rewrote a sample of the topic with this combination and measured the result. The best "
        "combination of each topic comes first, and its row contains the advice. Internal topics "
        "are left out."
    ),
    advice=(
        "If a combination would save a lot for a topic, set compression.type and the level in the "
        "topic's producers. Set batch.size to producer_batch_size, and set linger.ms so that the "
        "batches fill up. Watch the CPU load of the producers, because flexwire did not measure "
        "the time that a codec takes."
    ),
    row="a topic and a combination of codec, level and batch size",
    columns=COLUMNS,
    order=("rank", "-saved_bytes", "topic"),
    shown=(
        "topic",
        "compression",
        "level",
        "batch_size",
        "producer_batch_size",
        "bytes",
        "estimated_bytes",
        "saved_bytes",
        "saved_share",
        "sampled_share",
        "total_saved_bytes",
        "advice",
    ),
    ask=savings,
    picture=AnswerPicture("What the best combinations would save", "saved_bytes"),
    of_logs=True,
)
