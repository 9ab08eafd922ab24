"""The history of leaders and ISRs in the log of a cluster's metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, returns
from flexwire.answers.state import cluster_partitions
from flexwire.answers.state.cluster import CHANGE_COLUMNS, ORDER, TIME, changed
from flexwire.facts.answers import AnswerPicture
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables
    from flexwire.answers.state.cluster import ClusterState


READS: Final = cluster_partitions.READS
_INTS: Final = pa.list_(pa.int32())
_FIRST: Final = "in the first row of a partition"
VIEW_COLUMNS: Final = (
    *cluster_partitions.COLUMNS[:5],
    Column(
        "previous_leader",
        pa.int32(),
        "the previous leader",
        f"if the partition had no leader; {_FIRST}",
    ),
    Column("isr", _INTS, "the ISR after the change", heading="ISR"),
    Column("previous_isr", _INTS, "the ISR before the change", _FIRST),
    Column("left_isr", _INTS, "the brokers that left the ISR", _FIRST),
    Column("joined_isr", _INTS, "the brokers that joined the ISR", _FIRST),
    Column(
        "is_election",
        pa.bool_(),
        "whether a leader was elected, even if the same broker was elected again; false if the "
        "partition lost its leader in this change",
        heading="Elected",
    ),
    *CHANGE_COLUMNS,
)


def partition_history(state: ClusterState) -> DataFrame:
    """Return a row for each partition's first state, and for each change to its leader or ISR.

    The history begins where the state begins. To include the complete history, use
    ``cluster_state(…, oldest=True)``. Partitions of deleted topics are included.
    """
    rows = cluster_partitions.partition_changes(state)
    living = Window.partitionBy(*cluster_partitions.KEYS, "life").orderBy(*ORDER)
    before = F.lag("isr").over(living)
    rows = rows.withColumns(
        {
            "previous_leader": F.lag("leader").over(living),
            "previous_isr": before,
            "left_isr": F.array_except(before, "isr"),
            "joined_isr": F.array_except("isr", before),
            "is_election": F.col("elects") & F.col("leader").isNotNull(),
        }
    )
    rows = rows.where("begins or elects or isr is distinct from previous_isr")
    return rows.select(
        *(column.name for column in VIEW_COLUMNS[: -len(CHANGE_COLUMNS)]), *changed()
    )


_VIEW: Final = {column.name: column for column in VIEW_COLUMNS}
_NO_TIME: Final = "if the record has no timestamp"
COLUMNS = (
    Column(
        "changed_time",
        TIME,
        "when the partition changed, according to a controller's clock",
        _NO_TIME,
        heading="When",
    ),
    Column("changed_offset", pa.int64(), "the offset of the record in the metadata log"),
    *(_VIEW[name] for name in ("topic", "topic_id", "partition", "leader")),
    Column(
        "previous_leader",
        pa.int32(),
        "the previous leader",
        "if the partition had no leader",
        heading="Previous leader",
        kind="id",
    ),
    _VIEW["leader_epoch"],
    _VIEW["is_election"],
    _VIEW["isr"],
    Column("left_isr", _INTS, "the brokers that left the ISR", heading="Who left"),
    Column("joined_isr", _INTS, "the brokers that joined the ISR", heading="Who joined"),
    Column("left", pa.int64(), "the number of brokers that left the ISR", heading="Left ISR"),
    Column("joined", pa.int64(), "the number of brokers that joined the ISR", heading="Joined ISR"),
    _VIEW["is_committed"],
)


@returns(COLUMNS)
def cluster_history(tables: AnalysisTables) -> DataFrame | None:
    """Return the changes to partition leaders and ISRs that the metadata log still contains.

    The first state of a partition does not count as a change. The history begins at the oldest
    snapshot or record from which a state can be computed. The answer includes partitions of topics
    that have since been deleted.
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
    question="When did each broker lead a partition, and which brokers left the ISR?",
    meaning="Changes to partition leaders and ISRs, latest first. The metadata log of the cluster "
    "contains only recent changes.",
    advice=(
        "If a broker leaves many ISRs at the same time, that broker was probably restarted or "
        "lost its network connection. If a broker repeatedly leaves and rejoins ISRs, that broker "
        "is too slow. Check the disks and the network of the broker, and the setting "
        "replica.lag.time.max.ms."
    ),
    row="a change to a partition",
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
    picture=AnswerPicture("Replicas that left an ISR", "left", over="changed_time"),
    asks=(InternalTopic.METADATA.topic,),
)
