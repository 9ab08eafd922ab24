"""What is in tiered storage, by the log of `__remote_log_metadata`: `tiered_storage`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.facts.answers import Picture, ShownColumn
from flexwire.protocol.internal_topics import InternalTopic, state_names
from flexwire.spark.answers.answer import Answer
from flexwire.spark.answers.nothing import no_rows
from flexwire.spark.internal_topics import remote_segments
from flexwire.spark.internal_topics.remote_segments import SEGMENT
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.spark.answers.reading import AnalysisTables

_TIME: Final = pa.timestamp("us", "UTC")
_COPYING, _COPIED, _DELETING, _ = state_names(SEGMENT)
COLUMNS = (
    Column("topic", pa.string(), "the topic"),
    Column("topic_id", pa.string(), "its id"),
    Column("partitions", pa.int64(), "partitions that have a segment there"),
    Column("segments", pa.int64(), "segments that are copied"),
    Column("bytes", pa.int64(), "their bytes"),
    Column("copying", pa.int64(), "segments whose copy had begun and not finished"),
    Column("copying_bytes", pa.int64(), "their bytes"),
    Column("deleting", pa.int64(), "segments whose deletion had begun and not finished"),
    Column("unknown", pa.int64(), "segments of which the log has only a later record"),
    Column("oldest_time", _TIME, "the least of the segments' latest timestamps",
           "where no segment has one"),
    Column("newest_time", _TIME, "the latest timestamp of a segment", "with ``oldest_time``"),
)  # fmt: skip


def tiered_storage(tables: AnalysisTables) -> DataFrame:
    """Give a row for each topic with segments in tiered storage, as their log has them.

    Only Kafka's own ``TopicBasedRemoteLogMetadataManager`` writes that log.
    """
    logs = tables.internal
    found = None if logs is None else logs.view(InternalTopic.REMOTE_LOG, remote_segments)
    if found is None:
        return no_rows(tables.frames, COLUMNS)
    state, size = F.col("state"), F.coalesce("size_bytes", F.lit(0)).cast("bigint")
    is_copied, is_copying = state == _COPIED, state == _COPYING
    return found.groupBy("topic", "topic_id").agg(
        F.count_distinct("partition").alias("partitions"),
        F.count_if(is_copied).alias("segments"),
        F.sum(F.when(is_copied, size).otherwise(0)).alias("bytes"),
        F.count_if(is_copying).alias("copying"),
        F.sum(F.when(is_copying, size).otherwise(0)).alias("copying_bytes"),
        F.count_if(state == _DELETING).alias("deleting"),
        F.count_if(~F.col("is_known")).alias("unknown"),
        F.min("max_time").alias("oldest_time"),
        F.max("max_time").alias("newest_time"),
    )


ANSWER = Answer(
    "tiered_storage",
    "What is in tiered storage?",
    "Segments by topic, as the log of remote segments has them.",
    "Copies that began and never finished take room that nobody counts: compare them with the "
    "store. Set local.retention.ms where brokers keep much that is copied, but first see that "
    "copies finish: what brokers delete then is in the store alone.",
    "a topic",
    COLUMNS,
    ("-bytes", "-copying", "topic", "topic_id"),
    (
        ShownColumn("topic", "Topic", is_about=True),
        ShownColumn("partitions", "Partitions", "count"),
        ShownColumn("segments", "Segments", "count"),
        ShownColumn("bytes", "Bytes", "bytes"),
        ShownColumn("copying", "Copies begun", "count"),
        ShownColumn("copying_bytes", "Their bytes", "bytes"),
        ShownColumn("deleting", "Deletions begun", "count"),
        ShownColumn("unknown", "State not known", "count"),
        ShownColumn("oldest_time", "Oldest", "moment"),
        ShownColumn("newest_time", "Newest", "moment"),
    ),
    tiered_storage,
    Picture("Bytes in tiered storage, by topic", "bytes"),
    asks=(InternalTopic.REMOTE_LOG.topic,),
)
