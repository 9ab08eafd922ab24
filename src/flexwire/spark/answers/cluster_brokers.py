"""Brokers by the log of a cluster's metadata: `cluster_brokers`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.facts.answers import Picture, ShownColumn
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.spark.answers.answer import Answer
from flexwire.spark.answers.internal_logs import listeners
from flexwire.spark.answers.nothing import no_rows
from flexwire.spark.internal_topics.cluster_brokers import brokers
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.spark.answers.reading import AnalysisTables

_TIME: Final = pa.timestamp("us", "UTC")
_GONE: Final = "of a broker that is not registered"
_COUNTS: Final = ("leads", "replicas", "out_of_isr", "last_in_isr")
COLUMNS = (
    Column("broker", pa.int32(), "the broker's id"),
    Column("is_registered", pa.bool_(), "whether it is registered; replicas of one that is not are "
           "on no broker"),
    Column("is_fenced", pa.bool_(), "whether it is fenced: it leads nothing. It stays in an ISR "
           "that would be empty without it, unless the cluster has eligible leader replicas "
           "(KIP-966)", _GONE),
    Column("in_controlled_shutdown", pa.bool_(), "whether it is shutting down", _GONE),
    Column("rack", pa.string(), "its rack", "where it named none"),
    Column("endpoints", pa.list_(pa.string()), "its listeners", _GONE),
    Column("leads", pa.int64(), "partitions that it leads"),
    Column("replicas", pa.int64(), "partitions that it is to have"),
    Column("out_of_isr", pa.int64(), "of these, those whose ISR it is not in"),
    Column("changed_time", _TIME, "when its registration changed last",
           "where that was before the snapshot that the state begins with"),
    Column("last_in_isr", pa.int64(), "partitions whose ISR has no other broker, or whose ISR is "
           "empty and whose eligible leader replicas are no other broker: another replica may lack "
           "records that were acknowledged"),
)  # fmt: skip


def cluster_brokers(tables: AnalysisTables) -> DataFrame:
    """Give a row for each broker of the cluster, as its metadata's log has it.

    A broker that is not registered has a row where partitions name it as a replica.
    """
    logs = tables.internal
    state, placed = (None, None) if logs is None else (logs.cluster(), logs.partitions())
    if state is None or placed is None:
        return no_rows(tables.frames, COLUMNS)
    in_sync = F.when(F.size("isr") > 0, F.col("isr")).otherwise(F.col("elr"))
    replicas = placed.select(
        F.explode("replicas").alias("broker"), "leader", "isr", in_sync.alias("in_sync")
    )
    each = replicas.groupBy("broker").agg(
        F.count_if(F.col("leader") == F.col("broker")).alias("leads"),
        F.count("*").alias("replicas"),
        F.count_if(~F.array_contains("isr", F.col("broker"))).alias("out_of_isr"),
        F.count_if(F.col("in_sync") == F.array("broker")).alias("last_in_isr"),
    )
    known = brokers(state).withColumn("is_registered", F.lit(True))
    both = known.withColumn("endpoints", listeners("endpoints")).join(each, "broker", "full")
    both = both.na.fill(0, [*_COUNTS]).na.fill(False, ["is_registered"])
    return both.select(*(one.name for one in COLUMNS))


ANSWER = Answer(
    "cluster_brokers",
    "Which brokers does the cluster have, and what does each hold?",
    "Brokers as the cluster's metadata has them, those that are fenced or out of an ISR first.",
    "Start a fenced broker that should run. Never unregister or wipe one that is the last in an "
    "ISR: other replicas may lack acknowledged records. Move its replicas first, and see that the "
    "move has ended. Spread leaders where one broker leads far more than others.",
    "a broker",
    COLUMNS,
    ("is_registered", "-is_fenced", "-out_of_isr", "-leads", "broker"),
    (
        ShownColumn("broker", "Broker", "id", is_about=True),
        ShownColumn("is_registered", "Registered", "flag"),
        ShownColumn("is_fenced", "Fenced", "flag"),
        ShownColumn("rack", "Rack"),
        ShownColumn("endpoints", "Listeners"),
        ShownColumn("leads", "Leads", "count"),
        ShownColumn("replicas", "Replicas", "count"),
        ShownColumn("out_of_isr", "Not in the ISR", "count"),
        ShownColumn("last_in_isr", "Last in the ISR", "count"),
        ShownColumn("changed_time", "Changed", "moment"),
    ),
    cluster_brokers,
    Picture("Partitions that a broker leads", "leads"),
    asks=(InternalTopic.METADATA.topic,),
)
