"""The brokers in the log of a cluster's metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, returns
from flexwire.answers.asking.internal_logs import listeners
from flexwire.answers.state.cluster import (
    RECORD,
    changed,
    endpoints,
    folded,
    latest,
    supported,
)
from flexwire.facts.answers import AnswerPicture
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables
    from flexwire.answers.state.cluster import ClusterState


REGISTER, UNREGISTER = "RegisterBrokerRecord", "UnregisterBrokerRecord"
CHANGE, FENCE, UNFENCE = (
    "BrokerRegistrationChangeRecord",
    "FenceBrokerRecord",
    "UnfenceBrokerRecord",
)
READS: Final = {
    REGISTER: (
        "broker_id",
        "broker_epoch",
        "incarnation_id",
        "end_points",
        "features",
        "rack",
        "fenced",
        "in_controlled_shutdown",
        "log_dirs",
        "cordoned_log_dirs",
    ),
    UNREGISTER: ("broker_id",),
    CHANGE: ("broker_id", "fenced", "in_controlled_shutdown", "log_dirs", "cordoned_log_dirs"),
    FENCE: ("id",),
    UNFENCE: ("id",),
}
# The change to the fencing state in a record; 0 means that there is no change.
_FENCES, _UNFENCES = 1, -1


def brokers(state: ClusterState) -> DataFrame:
    """Return a row for each registered broker."""
    rows = state.typed(READS)
    registered = F.col(REGISTER).isNotNull()
    fencing, stopping = F.col(f"{CHANGE}.fenced"), F.col(f"{CHANGE}.in_controlled_shutdown")
    moved = F.col(f"{CHANGE}.log_dirs")
    events = rows.select(
        *RECORD,
        F.coalesce(
            f"{REGISTER}.broker_id",
            f"{UNREGISTER}.broker_id",
            f"{CHANGE}.broker_id",
            f"{FENCE}.id",
            f"{UNFENCE}.id",
        ).alias("broker"),
        (registered | F.col(UNREGISTER).isNotNull()).alias("begins"),
        F.when(registered, F.col(REGISTER)).alias("registration"),
        F.coalesce(
            f"{REGISTER}.fenced",
            F.when(F.col(FENCE).isNotNull() | (fencing == _FENCES), True),
            F.when(F.col(UNFENCE).isNotNull() | (fencing == _UNFENCES), False),
        ).alias("is_fenced"),
        F.coalesce(
            f"{REGISTER}.in_controlled_shutdown",
            F.when(registered, False),
            F.when(stopping == 1, True),
        ).alias("in_controlled_shutdown"),
        F.coalesce(f"{REGISTER}.log_dirs", F.when(F.size(moved) > 0, moved)).alias("log_dirs"),
        F.coalesce(f"{REGISTER}.cordoned_log_dirs", f"{CHANGE}.cordoned_log_dirs").alias(
            "cordoned_log_dirs"
        ),
    )
    fields = (
        "registration",
        "is_fenced",
        "in_controlled_shutdown",
        "log_dirs",
        "cordoned_log_dirs",
    )
    last = latest(folded(events, ["broker"], "begins", fields), "broker")
    return last.where("registration is not null").select(
        "broker",
        F.col("registration.broker_epoch").alias("epoch"),
        "registration.incarnation_id",
        "registration.rack",
        "is_fenced",
        "in_controlled_shutdown",
        endpoints(F.col("registration.end_points")).alias("endpoints"),
        supported(F.col("registration.features")).alias("features"),
        "log_dirs",
        "cordoned_log_dirs",
        *changed(),
    )


_TIME: Final = pa.timestamp("us", "UTC")
_GONE: Final = "for a broker that is not registered"
_COUNTS: Final = ("leads", "replicas", "out_of_isr", "last_in_isr")
COLUMNS = (
    Column("broker", pa.int32(), "the broker's id", heading="Broker", kind="id", is_about=True),
    Column("is_registered", pa.bool_(),
           "whether the broker is registered; partitions may be assigned to a broker that is not "
           "registered",
           heading="Registered"),
    Column("is_fenced", pa.bool_(),
           "whether the broker is fenced; a fenced broker leads no partition. A fenced broker "
           "stays in an ISR that would otherwise be empty, unless the cluster has eligible leader "
           "replicas (KIP-966)",
           _GONE, heading="Fenced"),
    Column("in_controlled_shutdown", pa.bool_(), "whether the broker is shutting down", _GONE),
    Column("rack", pa.string(), "its rack", "if the broker registered no rack", heading="Rack"),
    Column("endpoints", pa.list_(pa.string()), "its listeners", _GONE, heading="Listeners"),
    Column("leads", pa.int64(), "the number of partitions that the broker leads",
           heading="Leads"),
    Column("replicas", pa.int64(), "the number of partitions that are assigned to the broker",
           heading="Replicas"),
    Column("out_of_isr", pa.int64(),
           "the number of assigned partitions whose ISR does not include the broker",
           heading="Not in the ISR"),
    Column("changed_time", _TIME, "when the registration of the broker last changed",
           "if the last change was before the snapshot on which the state is based",
           heading="Changed"),
    Column("last_in_isr", pa.int64(),
           "the number of partitions for which no other broker is in the ISR or, if the "
           "ISR is empty, among the eligible leader replicas; any other replica may lack "
           "acknowledged records",
           heading="Last in the ISR"),
)  # fmt: skip


@returns(COLUMNS)
def cluster_brokers(tables: AnalysisTables) -> DataFrame | None:
    """Return the cluster's brokers, according to the log of the cluster's metadata.

    A broker that is not registered is also included if a partition lists it as a replica.
    """
    logs = tables.internal
    state, placed = (None, None) if logs is None else (logs.cluster(), logs.partitions())
    if state is None or placed is None:
        return None
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
    registered = brokers(state).withColumn("is_registered", F.lit(True))
    both = registered.withColumn("endpoints", listeners("endpoints")).join(each, "broker", "full")
    return both.na.fill(0, [*_COUNTS]).na.fill(False, ["is_registered"])


ANSWER = Answer(
    name="cluster_brokers",
    place=300,
    question="Which brokers are in the cluster, and how many partitions does each broker hold?",
    meaning=(
        "Brokers in the cluster's metadata. Brokers that are fenced, or missing from an ISR, come "
        "first."
    ),
    advice="If a fenced broker should be running, start that broker. Never unregister or wipe a "
    "broker that is the last in an ISR, because other replicas may lack acknowledged records. Move "
    "the replicas of such a broker first, and check that the reassignment is complete. If one "
    "broker leads far more partitions than the others, spread the leaders more evenly.",
    row="a broker",
    columns=COLUMNS,
    order=("is_registered", "-is_fenced", "-out_of_isr", "-leads", "broker"),
    shown=(
        "broker",
        "is_registered",
        "is_fenced",
        "rack",
        "endpoints",
        "leads",
        "replicas",
        "out_of_isr",
        "last_in_isr",
        "changed_time",
    ),
    ask=cluster_brokers,
    picture=AnswerPicture("Partitions led by each broker", "leads"),
    asks=(InternalTopic.METADATA.topic,),
)
