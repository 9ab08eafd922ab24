"""How leaders and the ISR changed, by the log of a cluster's metadata: `cluster_history`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.facts.answers import Picture, ShownColumn
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.spark.answers.answer import Answer
from flexwire.spark.answers.nothing import no_rows
from flexwire.spark.internal_topics.cluster_folding import TIME
from flexwire.spark.internal_topics.cluster_history import COLUMNS as OF_HISTORY
from flexwire.spark.internal_topics.cluster_history import partition_history
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.spark.answers.reading import AnalysisTables

_VIEW: Final = {one.name: one for one in OF_HISTORY}
_INTS: Final = pa.list_(pa.int32())
_NO_TIME: Final = "where it has none"
COLUMNS = (
    Column("changed_time", TIME, "when it changed, by a controller's clock", _NO_TIME),
    Column("changed_offset", pa.int64(), "the offset of the record that says it"),
    *(_VIEW[name] for name in ("topic", "topic_id", "partition", "leader")),
    Column("previous_leader", pa.int32(), "the leader before", "where none led"),
    _VIEW["leader_epoch"],
    _VIEW["is_election"],
    _VIEW["isr"],
    Column("left_isr", _INTS, "those that left the ISR"),
    Column("joined_isr", _INTS, "those that joined it"),
    Column("left", pa.int64(), "how many left"),
    Column("joined", pa.int64(), "how many joined"),
    _VIEW["is_committed"],
)


def cluster_history(tables: AnalysisTables) -> DataFrame:
    """Give a row for each change of a partition's leader or ISR that the metadata's log still has.

    How a partition began is no change. It goes back to the oldest snapshot or record that a state
    can be made from; partitions of topics that were deleted since are among them.
    """
    state = None if tables.internal is None else tables.internal.cluster(oldest=True)
    if state is None:
        return no_rows(tables.frames, COLUMNS)
    changes = partition_history(state).where("previous_isr is not null")
    counts = {name: F.size(f"{name}_isr").cast("bigint") for name in ("left", "joined")}
    return changes.withColumns(counts).select(*(one.name for one in COLUMNS))


ANSWER = Answer(
    "cluster_history",
    "Who led when, and who fell out of the ISR?",
    "Changes of leaders and ISRs as the log of the cluster's metadata still has them, the latest "
    "first.",
    "A broker that leaves many ISRs at once was restarted or cut off; one that leaves and joins "
    "again and again is slow: look at its disks, network and replica.lag.time.max.ms.",
    "a change of a partition",
    COLUMNS,
    ("-changed_time", "-changed_offset", "topic", "partition"),
    (
        ShownColumn("changed_time", "When", "moment"),
        ShownColumn("topic", "Topic", is_about=True),
        ShownColumn("partition", "Partition", "id", is_about=True),
        ShownColumn("leader", "Leader", "id"),
        ShownColumn("previous_leader", "Before", "id"),
        ShownColumn("is_election", "Elected", "flag"),
        ShownColumn("isr", "ISR"),
        ShownColumn("left", "Left it", "count"),
        ShownColumn("left_isr", "Who left"),
        ShownColumn("joined", "Joined it", "count"),
        ShownColumn("joined_isr", "Who joined"),
    ),
    cluster_history,
    Picture("Replicas that left an ISR", "left", over="changed_time"),
    asks=(InternalTopic.METADATA.topic,),
)
