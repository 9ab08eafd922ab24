"""How leaders and the ISR changed, by the log of a cluster's metadata: `cluster_history`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.answers.asking.answer import Answer
from flexwire.answers.asking.nothing import returns
from flexwire.answers.state.cluster_folding import TIME
from flexwire.answers.state.cluster_history import COLUMNS as OF_HISTORY
from flexwire.answers.state.cluster_history import partition_history
from flexwire.facts.answers import Picture
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.reading import AnalysisTables

_VIEW: Final = {one.name: one for one in OF_HISTORY}
_INTS: Final = pa.list_(pa.int32())
_NO_TIME: Final = "where it has none"
COLUMNS = (
    Column(
        "changed_time", TIME, "when it changed, by a controller's clock", _NO_TIME, heading="When"
    ),
    Column("changed_offset", pa.int64(), "the offset of the record that says it"),
    *(_VIEW[name] for name in ("topic", "topic_id", "partition", "leader")),
    Column(
        "previous_leader",
        pa.int32(),
        "the leader before",
        "where none led",
        heading="Before",
        kind="id",
    ),
    _VIEW["leader_epoch"],
    _VIEW["is_election"],
    _VIEW["isr"],
    Column("left_isr", _INTS, "those that left the ISR", heading="Who left"),
    Column("joined_isr", _INTS, "those that joined it", heading="Who joined"),
    Column("left", pa.int64(), "how many left", heading="Left it"),
    Column("joined", pa.int64(), "how many joined", heading="Joined it"),
    _VIEW["is_committed"],
)


@returns(COLUMNS)
def cluster_history(tables: AnalysisTables) -> DataFrame | None:
    """Give a row for each change of a partition's leader or ISR that the metadata's log still has.

    How a partition began is no change. It goes back to the oldest snapshot or record that a state
    can be made from; partitions of topics that were deleted since are among them.
    """
    state = tables.cluster(oldest=True)
    if state is None:
        return None
    changes = partition_history(state).where("previous_isr is not null")
    counts = {name: F.size(f"{name}_isr").cast("bigint") for name in ("left", "joined")}
    return changes.withColumns(counts)


ANSWER = Answer(
    name="cluster_history",
    place=290,
    question="Who led when, and who fell out of the ISR?",
    meaning="Changes of leaders and ISRs as the log of the cluster's metadata still has them, the "
    "latest first.",
    advice="A broker that leaves many ISRs at once was restarted or cut off; one that leaves and "
    "joins again and again is slow: look at its disks, network and replica.lag.time.max.ms.",
    row="a change of a partition",
    columns=COLUMNS,
    order=("-changed_time", "-changed_offset", "topic", "partition"),
    shown=(
        "changed_time",
        "topic",
        "partition",
        "leader",
        "previous_leader",
        "is_election",
        "isr",
        "left",
        "left_isr",
        "joined",
        "joined_isr",
    ),
    ask=cluster_history,
    picture=Picture("Replicas that left an ISR", "left", over="changed_time"),
    asks=(InternalTopic.METADATA.topic,),
)
