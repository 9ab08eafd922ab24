"""The contents of tiered storage, according to the log of `__remote_log_metadata`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, returns
from flexwire.answers.state import remote_segments
from flexwire.answers.state.remote_segments import SEGMENT
from flexwire.facts.answers import AnswerPicture
from flexwire.protocol.internal_topics import InternalTopic, state_names
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables

_TIME: Final = pa.timestamp("us", "UTC")
_COPYING, _COPIED, _DELETING, _ = state_names(SEGMENT)
COLUMNS = (
    Column("topic", pa.string(), "the topic", heading="Topic", is_about=True),
    Column("topic_id", pa.string(), "the topic's id"),
    Column("partitions", pa.int64(), (
        "the number of partitions that have a segment in tiered storage"
    ), heading="Partitions"),
    Column("segments", pa.int64(), "the number of segments whose copying has finished",
           heading="Segments"),
    Column("bytes", pa.int64(), "the total size of these segments in bytes", heading="Bytes"),
    Column("copying", pa.int64(), "the number of segments whose copying had begun but had not "
           "finished",
           heading="Copies begun"),
    Column("copying_bytes", pa.int64(), "the total size of these segments in bytes",
           heading="Size of copies begun"),
    Column("deleting", pa.int64(), "the number of segments whose deletion had begun but had not "
           "finished",
           heading="Deletions begun"),
    Column("unknown", pa.int64(), (
        "the number of segments for which the log lacks the first record but contains a later "
        "record"
    ),
           heading="State unknown"),
    Column("oldest_time", _TIME, "the earliest of the segments' latest timestamps",
           "if no segment has a timestamp", heading="Oldest"),
    Column("newest_time", _TIME, "the latest timestamp of any segment", "if ``oldest_time`` is "
           "null",
           heading="Newest"),
)  # fmt: skip


@returns(COLUMNS)
def tiered_storage(tables: AnalysisTables) -> DataFrame | None:
    """Return the topics that have segments in tiered storage, from the log of remote metadata.

    Only Kafka's own ``TopicBasedRemoteLogMetadataManager`` writes that log.
    """
    logs = tables.internal
    segments = None if logs is None else logs.view(InternalTopic.REMOTE_LOG, remote_segments)
    if segments is None:
        return None
    state, size = F.col("state"), F.coalesce("size_bytes", F.lit(0)).cast("bigint")
    is_copied, is_copying = state == _COPIED, state == _COPYING
    return segments.groupBy("topic", "topic_id").agg(
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
    name="tiered_storage",
    place=380,
    question="What is in tiered storage?",
    meaning="Segments in tiered storage by topic, according to the remote log metadata.",
    advice=(
        "Copies that began but never finished take up space that no metric shows. Compare these "
        "copies with the objects in the store. If brokers keep many segments that have already "
        "been copied, set local.retention.ms. Before you set local.retention.ms, check that copies "
        "finish, because afterwards the store has the only copy of these segments."
    ),
    row="a topic",
    columns=COLUMNS,
    order=("-bytes", "-copying", "topic", "topic_id"),
    ask=tiered_storage,
    picture=AnswerPicture("Size of the segments in tiered storage, by topic", "bytes"),
    asks=(InternalTopic.REMOTE_LOG.topic,),
)
