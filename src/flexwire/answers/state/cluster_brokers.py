"""The brokers of a cluster: how each registered, and whether it may lead partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.answers.state.cluster_folding import (
    CHANGE_COLUMNS,
    ENDPOINTS,
    FEATURES,
    RECORD,
    changed,
    endpoints,
    folded,
    latest,
    supported,
)
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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
# What a change of a registration says of fencing; 0 is neither.
_FENCES, _UNFENCES = 1, -1
_IDS: Final = pa.list_(pa.string())
COLUMNS: Final = (
    Column("broker", pa.int32(), "the broker's id"),
    Column("epoch", pa.int64(), "its broker epoch: the offset of the record that registered it"),
    Column("incarnation_id", pa.string(), "what it called itself when it started"),
    Column("rack", pa.string(), "its rack", "where it named none"),
    Column(
        "is_fenced",
        pa.bool_(),
        "whether it is fenced: it leads nothing. It stays in an ISR that would be empty without "
        "it, unless the cluster has eligible leader replicas (KIP-966)",
    ),
    Column("in_controlled_shutdown", pa.bool_(), "whether it is shutting down"),
    Column("endpoints", ENDPOINTS, "its listeners"),
    Column("features", FEATURES, "the levels of features that it supports"),
    Column("log_dirs", _IDS, "the ids of its log directories", "where the log does not say"),
    Column(
        "cordoned_log_dirs",
        _IDS,
        "those that get no new replicas (KIP-1066)",
        "where the log does not say",
    ),
    *CHANGE_COLUMNS,
)


def brokers(state: ClusterState) -> DataFrame:
    """A row a broker that is registered."""
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
