"""Partitions by the log of a cluster's metadata: `cluster_partitions`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.protocol.internal_topics import InternalTopic
from flexwire.report.answer_facts import ShownColumn
from flexwire.spark.answers.answer import Answer
from flexwire.spark.answers.nothing import no_rows
from flexwire.spark.internal_topics.cluster_folding import CHANGE_COLUMNS
from flexwire.spark.internal_topics.cluster_partitions import COLUMNS as OF_PARTITIONS
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.spark.answers.reading import AnalysisTables

_LISTS: Final = ("replicas", "isr", "elr", "adding_replicas", "removing_replicas")
_VIEW: Final = {one.name: one for one in OF_PARTITIONS}
COLUMNS = (
    *(_VIEW[name] for name in ("topic", "topic_id", "partition", "leader", "leader_epoch")),
    *(_VIEW[name] for name in _LISTS),
    Column("is_offline", pa.bool_(), "whether it has no leader"),
    Column("is_under_replicated", pa.bool_(), "whether the ISR has fewer brokers than there are "
           "replicas, without those that a reassignment adds"),
    Column("is_moving", pa.bool_(), "whether a reassignment is moving it"),
    Column("is_preferred", pa.bool_(), "whether its leader is the first of its replicas"),
    _VIEW["is_recovering"],
    *CHANGE_COLUMNS,
)  # fmt: skip


def cluster_partitions(tables: AnalysisTables) -> DataFrame:
    """Give a row for each partition of the cluster, as its metadata's log has it.

    It is exact as of that moment; where the quorum has several voters its last records may not have
    been committed, and ``is_committed`` says of which that is known.
    """
    placed = None if tables.internal is None else tables.internal.partitions()
    if placed is None:
        return no_rows(tables.frames, COLUMNS)
    wanted = F.size(F.array_except("replicas", "adding_replicas"))
    moving = F.size("adding_replicas") + F.size("removing_replicas")
    made = placed.withColumns(
        {
            "is_offline": F.col("leader").isNull(),
            "is_under_replicated": F.size("isr") < wanted,
            "is_moving": moving > 0,
            "is_preferred": F.coalesce(
                F.col("leader") == F.get("replicas", F.lit(0)), F.lit(False)
            ),
        }
    )
    return made.select(*(one.name for one in COLUMNS))


ANSWER = Answer(
    "cluster_partitions",
    "Where is each partition, and which have no leader or too few replicas?",
    "Partitions as the cluster's metadata has them, those without a leader first, then those with "
    "too few replicas in the ISR, and those that are moving.",
    "Start the brokers that a partition without a leader names: those of the ISR first, then those "
    "of the ELR. An unclean election (kafka-leader-election) loses for good what only others had.",
    "a partition",
    COLUMNS,
    ("-is_offline", "-is_under_replicated", "-is_moving", "is_preferred", "topic", "partition"),
    (
        ShownColumn("topic", "Topic", is_about=True),
        ShownColumn("partition", "Partition", "id", is_about=True),
        ShownColumn("leader", "Leader", "id"),
        ShownColumn("replicas", "Replicas"),
        ShownColumn("isr", "ISR"),
        ShownColumn("elr", "ELR"),
        ShownColumn("is_offline", "Offline", "flag"),
        ShownColumn("is_under_replicated", "Under-replicated", "flag"),
        ShownColumn("is_moving", "Moving", "flag"),
        ShownColumn("is_preferred", "Leader preferred", "flag"),
        ShownColumn("changed_time", "Changed", "moment"),
    ),
    cluster_partitions,
    asks=(InternalTopic.METADATA.topic,),
)
