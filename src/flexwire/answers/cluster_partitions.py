"""The partitions in the log of a cluster's metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, returns
from flexwire.answers.cluster_configs import with_effective
from flexwire.answers.state.cluster import CHANGE_COLUMNS
from flexwire.answers.state.cluster_partitions import COLUMNS as OF_PARTITIONS
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables
    from flexwire.answers.state.cluster import ClusterState

_LISTS: Final = ("replicas", "isr", "elr", "adding_replicas", "removing_replicas")
_MIN_ISR: Final = "min.insync.replicas"
_NOT_SET: Final = (
    "if neither the topic nor a broker sets min.insync.replicas dynamically; the configuration "
    "files of brokers may still set this value, and Kafka's default is 1"
)
_VIEW: Final = {column.name: column for column in OF_PARTITIONS}
COLUMNS = (
    *(_VIEW[name] for name in ("topic", "topic_id", "partition", "leader", "leader_epoch")),
    *(_VIEW[name] for name in _LISTS),
    Column("is_offline", pa.bool_(), "whether the partition has no leader", heading="Offline"),
    Column("is_under_replicated", pa.bool_(),
           "whether the ISR has fewer brokers than the partition has replicas, not counting "
           "replicas that a reassignment adds", heading="Under-replicated"),
    Column("is_moving", pa.bool_(), "whether a reassignment is moving the partition",
           heading="Moving"),
    Column("is_preferred", pa.bool_(),
           "whether the leader of the partition is the first of its replicas",
           heading="Leader preferred"),
    _VIEW["is_recovering"],
    *CHANGE_COLUMNS,
    Column("min_isr", pa.int32(),
           "the effective min.insync.replicas of the partition, capped at its number of replicas",
           _NOT_SET),
    Column("min_isr_source", pa.string(),
           'the level of the dynamic configuration that sets min.insync.replicas: "topic", '
           '"broker" or "cluster"',
           _NOT_SET),
    Column("is_under_min_isr", pa.bool_(),
           "whether the ISR has fewer than ``min_isr`` brokers; if so, the leader rejects records "
           "from producers with acks=all",
           _NOT_SET, heading="Under min ISR"),
    Column("is_at_min_isr", pa.bool_(),
           "whether the ISR has exactly ``min_isr`` brokers; if the ISR loses one more broker, "
           "the leader rejects records from producers with acks=all", _NOT_SET,
           heading="At min ISR"),
)  # fmt: skip


@returns(COLUMNS)
def cluster_partitions(tables: AnalysisTables) -> DataFrame | None:
    """Return the cluster's partitions, according to the log of the cluster's metadata.

    No record contains the value of min.insync.replicas from the configuration files of brokers. The
    rows are exact for the moment that the state describes. If the quorum has several voters, the
    last records may not have been committed. ``is_committed`` is true for records that are known to
    be committed.
    """
    logs = tables.internal
    placed, state = (None, None) if logs is None else (logs.partitions(), logs.cluster())
    if placed is None or state is None:
        return None
    placed = with_min_isr(placed, state)
    planned_replicas = F.size(F.array_except("replicas", "adding_replicas"))
    moving = F.size("adding_replicas") + F.size("removing_replicas")
    return placed.withColumns(
        {
            "is_offline": F.col("leader").isNull(),
            "is_under_replicated": F.size("isr") < planned_replicas,
            "is_moving": moving > 0,
            "is_preferred": F.coalesce(
                F.col("leader") == F.get("replicas", F.lit(0)), F.lit(False)
            ),
        }
    )


def with_min_isr(placed: DataFrame, state: ClusterState) -> DataFrame:
    """Add min.insync.replicas to partitions, and compare the known values with the ISR."""
    with_settings = with_effective(placed, state, _MIN_ISR)
    # A leader never requires more in-sync replicas than there are replicas.
    setting = F.expr("try_cast(value as int)")
    least = F.when(setting.isNotNull(), F.least(setting, F.size("replicas")))
    with_least = with_settings.withColumns({"min_isr": least, "min_isr_source": F.col("source")})
    return with_least.withColumns(
        {
            "is_under_min_isr": F.size("isr") < F.col("min_isr"),
            "is_at_min_isr": F.size("isr") == F.col("min_isr"),
        }
    ).drop("value", "source")


ANSWER = Answer(
    name="cluster_partitions",
    place=280,
    question="Which brokers hold each partition, and which partitions have no leader or too few "
    "replicas?",
    meaning="Partitions in the cluster's metadata: first those without a leader, then those with "
    "too few replicas in the ISR, then those that a reassignment is moving.",
    advice=(
        "If a partition has no leader, start its brokers: first the brokers in the ISR, then the "
        "brokers in the ELR. An unclean election (kafka-leader-election) loses records "
        "permanently if only other replicas had them."
    ),
    row="a partition",
    columns=COLUMNS,
    order=(
        "-is_offline",
        "-is_under_replicated",
        "-is_moving",
        "is_preferred",
        "topic",
        "partition",
    ),
    shown=(
        "topic",
        "partition",
        "leader",
        "replicas",
        "isr",
        "elr",
        "is_offline",
        "is_under_replicated",
        "is_under_min_isr",
        "is_at_min_isr",
        "is_moving",
        "is_preferred",
        "changed_time",
    ),
    ask=cluster_partitions,
    asks=(InternalTopic.METADATA.topic,),
)
