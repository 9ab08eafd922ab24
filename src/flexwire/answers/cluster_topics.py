"""The topics in the log of a cluster's metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, returns
from flexwire.answers.cluster_configs import configs
from flexwire.answers.cluster_partitions import with_min_isr
from flexwire.answers.state.cluster import CHANGE_COLUMNS, ORDER, TIME
from flexwire.facts.answers import AnswerPicture
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables
    from flexwire.answers.state.cluster import ClusterState


COLUMNS = (
    Column("topic", pa.string(), "the topic", heading="Topic", is_about=True),
    Column("topic_id", pa.string(), "the topic's id"),
    Column("partitions", pa.int64(), "the number of partitions in the topic", heading="Partitions"),
    Column("replicas", pa.int64(), "the highest number of replicas of any partition",
           heading="Replicas"),
    Column("offline", pa.int64(), "the number of partitions without a leader",
           heading="Offline"),
    Column("under_replicated", pa.int64(),
           "the number of partitions with fewer brokers in the ISR than replicas, not counting "
           "replicas that a reassignment adds", heading="Under-replicated"),
    Column("not_preferred", pa.int64(),
           "the number of partitions whose leader is not their first replica",
           heading="Leader not preferred"),
    Column("moving", pa.int64(), "the number of partitions that a reassignment is moving",
           heading="Moving"),
    Column("configs", pa.list_(pa.string()), "the configurations that are set for the topic",
           heading="Configurations"),
    Column("under_min_isr", pa.int64(),
           "the number of partitions with fewer brokers in the ISR than min.insync.replicas, if "
           "this value is known", heading="Under min ISR"),
    Column("at_min_isr", pa.int64(),
           "the number of partitions with exactly min.insync.replicas brokers in the ISR",
           heading="At min ISR"),
    Column("min_isr_unknown", pa.int64(),
           "the number of partitions whose min.insync.replicas is unknown, because only the "
           "configuration files of brokers can set this value",
           heading="Min ISR not known"),
)  # fmt: skip


@returns(COLUMNS)
def cluster_topics(tables: AnalysisTables) -> DataFrame | None:
    """Return the cluster's topics, according to the log of the cluster's metadata.

    The rows are exact for the moment that the state describes. If the quorum has several voters,
    the last records may not have been committed.
    """
    logs = tables.internal
    state, placed = (None, None) if logs is None else (logs.cluster(), logs.partitions())
    if state is None or placed is None:
        return None
    placed = with_min_isr(placed, state)
    planned_replicas = F.size(F.array_except("replicas", "adding_replicas"))
    each = placed.groupBy("topic", "topic_id")
    by_topic = each.agg(
        F.count("*").alias("partitions"),
        F.max(planned_replicas).cast("bigint").alias("replicas"),
        F.count_if(F.col("leader").isNull()).alias("offline"),
        F.count_if(F.size("isr") < planned_replicas).alias("under_replicated"),
        F.count_if(F.col("leader") != F.col("replicas")[0]).alias("not_preferred"),
        F.count_if(F.size("adding_replicas") + F.size("removing_replicas") > 0).alias("moving"),
        F.count_if("is_under_min_isr").alias("under_min_isr"),
        F.count_if("is_at_min_isr").alias("at_min_isr"),
        F.count_if(F.col("min_isr").isNull()).alias("min_isr_unknown"),
    )
    own = configs(state).where("resource_type = 'topic' and value is not null")
    pair = F.concat_ws("=", "name", "value")
    settings = own.groupBy(F.col("resource_name").alias("topic")).agg(
        F.array_sort(F.collect_list(pair)).alias("configs")
    )
    none = F.array().cast("array<string>")
    rows = by_topic.join(settings, "topic", "left")
    return rows.withColumn("configs", F.coalesce("configs", none))


ANSWER = Answer(
    name="cluster_topics",
    place=270,
    question="Which topics does the cluster contain, and are their replicas in sync?",
    meaning="Topics in the cluster's metadata: first those with partitions that are offline, under "
    "min.insync.replicas or under-replicated.",
    advice="If partitions are under-replicated, look for a broker that is fenced or slow. If many "
    "leaders are not preferred, elect preferred leaders (kafka-leader-election).",
    row="a topic",
    columns=COLUMNS,
    order=("-offline", "-under_min_isr", "-under_replicated", "-moving", "-partitions", "topic"),
    shown=(
        "topic",
        "partitions",
        "replicas",
        "offline",
        "under_replicated",
        "under_min_isr",
        "at_min_isr",
        "min_isr_unknown",
        "not_preferred",
        "moving",
        "configs",
    ),
    ask=cluster_topics,
    picture=AnswerPicture("Under-replicated partitions, by topic", "under_replicated"),
    asks=(InternalTopic.METADATA.topic,),
)

CREATED, DELETED = "TopicRecord", "RemoveTopicRecord"
READS: Final = {CREATED: ("topic_id", "name"), DELETED: ("topic_id",)}
_BEFORE: Final = "if the topic was created before the snapshot on which the state is based"
_LIVES: Final = "if the topic is not deleted"
VIEW_COLUMNS: Final = (
    Column("topic", pa.string(), "the topic's name"),
    Column(
        "topic_id",
        pa.string(),
        "the id of the topic; a topic that is deleted and created again gets a new id",
    ),
    Column(
        "created_offset", pa.int64(), "the offset of the record that created the topic", _BEFORE
    ),
    Column("created_time", TIME, "that record's timestamp", _BEFORE),
    Column("deleted_offset", pa.int64(), "the offset of the record that deleted the topic", _LIVES),
    Column("deleted_time", TIME, "that record's timestamp", _LIVES),
    CHANGE_COLUMNS[-1],
)


def topics(state: ClusterState) -> DataFrame:
    """Return a row for each topic that exists or has been deleted since the state's snapshot."""
    rows = state.typed(READS)
    created, deleted = F.col(CREATED).isNotNull(), F.col(DELETED).isNotNull()
    each = rows.groupBy(F.coalesce(f"{CREATED}.topic_id", f"{DELETED}.topic_id").alias("topic_id"))
    return each.agg(
        F.max(f"{CREATED}.name").alias("topic"),
        F.max(F.when(created & F.col("in_log"), F.col("offset"))).alias("created_offset"),
        F.max(F.when(created & F.col("in_log"), F.col("timestamp"))).alias("created_time"),
        F.max(F.when(deleted, F.col("offset"))).alias("deleted_offset"),
        F.max(F.when(deleted, F.col("timestamp"))).alias("deleted_time"),
        F.max_by("is_committed", F.struct(*ORDER)).alias("is_committed"),
    ).select(*(column.name for column in VIEW_COLUMNS))
