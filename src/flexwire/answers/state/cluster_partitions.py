"""The partitions of a cluster: their leaders, replicas and ISRs, and how these changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.state.cluster import (
    CHANGE_COLUMNS,
    ORDER,
    RECORD,
    changed,
    folded,
    latest,
)
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame
    from pyspark.sql.window import WindowSpec

    from flexwire.answers.state.cluster import ClusterState

MADE, CHANGE, CLEAR = "PartitionRecord", "PartitionChangeRecord", "ClearElrRecord"
TOPIC, REMOVED = "TopicRecord", "RemoveTopicRecord"
KEYS: Final = ("topic_id", "partition")
_LISTS: Final = {
    "replicas": "replicas",
    "isr": "isr",
    "elr": "eligible_leader_replicas",
    "last_known_elr": "last_known_elr",
    "adding_replicas": "adding_replicas",
    "removing_replicas": "removing_replicas",
}
_BOTH: Final = (
    "topic_id",
    "partition_id",
    "leader",
    "leader_recovery_state",
    "directories",
    *_LISTS.values(),
)
READS: Final = {
    TOPIC: ("topic_id", "name"),
    REMOVED: ("topic_id",),
    MADE: (*_BOTH, "leader_epoch", "partition_epoch"),
    CHANGE: _BOTH,
    CLEAR: ("topic_name",),
}
# The fields for which null in a change record means that there is no change.
_SAME_LEADER, _SAME_STATE, _NO_LEADER = -2, -1, -1
_INTS: Final = pa.list_(pa.int32())
COLUMNS: Final = (
    Column("topic", pa.string(), "the topic's name", heading="Topic", is_about=True),
    Column("topic_id", pa.string(), "the topic's id"),
    Column(
        "partition",
        pa.int32(),
        "the partition's number",
        heading="Partition",
        kind="id",
        is_about=True,
    ),
    Column(
        "leader",
        pa.int32(),
        "the broker that leads the partition",
        "if the partition has no leader",
        heading="Leader",
        kind="id",
    ),
    Column("leader_epoch", pa.int32(), "the number of times that a leader was elected"),
    Column("partition_epoch", pa.int32(), "the number of times that the partition was changed"),
    Column(
        "is_recovering",
        pa.bool_(),
        "whether the leader was elected from outside the ISR and has not recovered yet",
    ),
    Column(
        "replicas",
        _INTS,
        "the brokers to which the partition is assigned, with the preferred leader first",
        heading="Replicas",
    ),
    Column("isr", _INTS, "the brokers that hold all records of the partition", heading="ISR"),
    Column(
        "elr",
        _INTS,
        "the brokers outside the ISR that may become leader without loss of records (KIP-966)",
        heading="ELR",
    ),
    Column(
        "last_known_elr", _INTS, "the brokers that were in the ELR before they stopped uncleanly"
    ),
    Column("adding_replicas", _INTS, "the brokers that a reassignment adds"),
    Column("removing_replicas", _INTS, "the brokers that a reassignment removes"),
    Column(
        "directories",
        pa.list_(pa.string()),
        "the ids of the log directories that the replicas use, in the order of the replicas",
        "if the log does not contain these ids, as with any metadata.version before 3.7",
    ),
    *CHANGE_COLUMNS,
)


def partitions(state: ClusterState) -> DataFrame:
    """Return a row for each partition of each existing topic."""
    last = latest(partition_changes(state), *KEYS).where("is_removed is null")
    shown = [F.col(column.name) for column in COLUMNS[: -len(CHANGE_COLUMNS)]]
    return last.select(*shown, *changed())


def partition_changes(state: ClusterState) -> DataFrame:
    """Return every change to every partition, with the partition's full state after the change."""
    rows = state.typed(READS)
    events = rows.where(F.col(CLEAR).isNull()).select(_event()).select("event.*")
    of_topic = Window.partitionBy("topic_id")
    facts = {name: F.max(name).over(of_topic) for name in ("topic", "is_removed")}
    events = events.withColumns(facts).where("partition is not null")
    if state.clears_elr:
        cleared = _clearings(rows.where(F.col(CLEAR).isNotNull()), events)
        events = events.unionByName(cleared, allowMissingColumns=True)
    states = folded(events, KEYS, "begins", ("leader", "recovery", "placed", *_LISTS))
    living = Window.partitionBy(*KEYS, "life").orderBy(*ORDER)
    had = F.size(F.lag("elr").over(living)) + F.size(F.lag("last_known_elr").over(living))
    states = states.withColumn("counts", ~F.col("begins") & (~F.col("clears") | (had > 0)))
    return states.withColumns(
        {
            "leader_epoch": _count("first_leader_epoch", "elects", living),
            "partition_epoch": _count("first_partition_epoch", "counts", living),
            "leader": F.when(F.col("leader") != _NO_LEADER, F.col("leader")),
            "is_recovering": F.col("recovery") == 1,
            "directories": F.col("placed.directories"),
        }
    )


def _event() -> SparkColumn:
    """Return the content of a record about a partition; null means that a field is unchanged."""
    is_made = F.col(MADE).isNotNull()
    created = {field: F.col(f"{MADE}.{field}") for field in READS[MADE]}
    change = {field: F.col(f"{CHANGE}.{field}") for field in READS[CHANGE]}
    lists = [
        F.coalesce(created[field], change[field], F.when(is_made, F.lit([]).cast("array<int>")))
        for field in _LISTS.values()
    ]
    directories = F.coalesce(created["directories"], change["directories"])
    says_where = F.coalesce(F.size(directories) > 0, F.lit(False))
    placed = F.when(
        is_made | change["replicas"].isNotNull() | says_where,
        F.struct(F.when(says_where, directories).alias("directories")),
    )
    elects = F.coalesce(change["leader"] != _SAME_LEADER, F.lit(False))
    state = change["leader_recovery_state"]
    return F.struct(
        *map(F.col, RECORD),
        F.coalesce(
            created["topic_id"], change["topic_id"], f"{TOPIC}.topic_id", f"{REMOVED}.topic_id"
        ).alias("topic_id"),
        F.col(f"{TOPIC}.name").alias("topic"),
        F.when(F.col(REMOVED).isNotNull(), True).alias("is_removed"),
        F.coalesce(created["partition_id"], change["partition_id"]).alias("partition"),
        is_made.alias("begins"),
        F.lit(False).alias("clears"),
        elects.alias("elects"),
        F.coalesce(created["leader"], F.when(elects, change["leader"])).alias("leader"),
        F.coalesce(created["leader_recovery_state"], F.when(state != _SAME_STATE, state)).alias(
            "recovery"
        ),
        created["leader_epoch"].alias("first_leader_epoch"),
        created["partition_epoch"].alias("first_partition_epoch"),
        placed.alias("placed"),
        *(value.alias(name) for value, name in zip(lists, _LISTS, strict=True)),
    ).alias("event")


def _clearings(rows: DataFrame, events: DataFrame) -> DataFrame:
    """Return the events that clear the ELR of all partitions, or of the partitions of a topic."""
    facts = ("topic", "is_removed")
    there = events.where("begins").select(*KEYS, *facts).distinct()
    cleared = rows.select(*RECORD, F.col(f"{CLEAR}.topic_name").alias("cleared"))
    is_of = (F.col("cleared") == "") | (F.col("cleared") == F.col("topic"))
    nobody = F.lit([]).cast("array<int>")
    return there.join(F.broadcast(cleared), is_of).select(
        *RECORD,
        *KEYS,
        *facts,
        F.lit(False).alias("begins"),
        F.lit(True).alias("clears"),
        F.lit(False).alias("elects"),
        nobody.alias("elr"),
        nobody.alias("last_known_elr"),
    )


def _count(first: str, counted: str, living: WindowSpec) -> SparkColumn:
    """Return a number that starts anew for each partition and increases with these changes."""
    begun = F.first(first, ignorenulls=True).over(living)
    return begun + F.sum(F.col(counted).cast("int")).over(living).cast("int")
