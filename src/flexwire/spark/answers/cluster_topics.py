"""Topics by the log of a cluster's metadata: `cluster_topics`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.facts.answers import Picture, ShownColumn
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.spark.answers.answer import Answer
from flexwire.spark.answers.cluster_partitions import with_min_isr
from flexwire.spark.answers.nothing import no_rows
from flexwire.spark.internal_topics.cluster_configs import configs
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.spark.answers.reading import AnalysisTables

COLUMNS = (
    Column("topic", pa.string(), "the topic"),
    Column("topic_id", pa.string(), "its id"),
    Column("partitions", pa.int64(), "its partitions"),
    Column("replicas", pa.int64(), "how many replicas a partition has, of all the most"),
    Column("offline", pa.int64(), "partitions without a leader"),
    Column("under_replicated", pa.int64(), "partitions with fewer brokers in the ISR than replicas,"
           " of which those are left out that a reassignment adds"),
    Column("not_preferred", pa.int64(), "partitions whose leader is not their first replica"),
    Column("moving", pa.int64(), "partitions that a reassignment is moving"),
    Column("configs", pa.list_(pa.string()), "the configurations that are set for it"),
    Column("under_min_isr", pa.int64(), "partitions with fewer brokers in the ISR than "
           "min.insync.replicas, of those of which that is known"),
    Column("at_min_isr", pa.int64(), "partitions with just as many, likewise"),
    Column("min_isr_unknown", pa.int64(), "partitions of which it is not known, as only the files "
           "of brokers may set it"),
)  # fmt: skip


def cluster_topics(tables: AnalysisTables) -> DataFrame:
    """Give a row for each topic of the cluster, as its metadata's log has it.

    It is exact as of that moment; where the quorum has several voters its last records may not
    have been committed.
    """
    logs = tables.internal
    state, placed = (None, None) if logs is None else (logs.cluster(), logs.partitions())
    if state is None or placed is None:
        return no_rows(tables.frames, COLUMNS)
    placed = with_min_isr(placed, state)
    wanted = F.size(F.array_except("replicas", "adding_replicas"))
    each = placed.groupBy("topic", "topic_id")
    found = each.agg(
        F.count("*").alias("partitions"),
        F.max(wanted).cast("bigint").alias("replicas"),
        F.count_if(F.col("leader").isNull()).alias("offline"),
        F.count_if(F.size("isr") < wanted).alias("under_replicated"),
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
    made = found.join(settings, "topic", "left")
    made = made.withColumn("configs", F.coalesce("configs", none))
    return made.select(*(one.name for one in COLUMNS))


ANSWER = Answer(
    "cluster_topics",
    "Which topics does the cluster have, and are their replicas in sync?",
    "Topics as the cluster's metadata has them, those with partitions "
    "offline, under min.insync.replicas or under-replicated first.",
    "Look for a broker that is fenced or slow where partitions are under-replicated; elect "
    "preferred leaders (kafka-leader-election) where many are not preferred.",
    "a topic",
    COLUMNS,
    ("-offline", "-under_min_isr", "-under_replicated", "-moving", "-partitions", "topic"),
    (
        ShownColumn("topic", "Topic", is_about=True),
        ShownColumn("partitions", "Partitions", "count"),
        ShownColumn("replicas", "Replicas", "count"),
        ShownColumn("offline", "Offline", "count"),
        ShownColumn("under_replicated", "Under-replicated", "count"),
        ShownColumn("under_min_isr", "Under min ISR", "count"),
        ShownColumn("at_min_isr", "At min ISR", "count"),
        ShownColumn("min_isr_unknown", "Min ISR not known", "count"),
        ShownColumn("not_preferred", "Leader not preferred", "count"),
        ShownColumn("moving", "Moving", "count"),
        ShownColumn("configs", "Configurations"),
    ),
    cluster_topics,
    Picture("Under-replicated partitions, by topic", "under_replicated"),
    asks=(InternalTopic.METADATA.topic,),
)
