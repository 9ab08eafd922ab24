"""The controllers of a cluster: how each registered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.answers.state.cluster_folding import (
    CHANGE_COLUMNS,
    ENDPOINTS,
    FEATURES,
    changed,
    endpoints,
    latest,
    supported,
)
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.state.cluster import ClusterState

REGISTER, UNREGISTER = "RegisterControllerRecord", "UnregisterControllerRecord"
READS: Final = {
    REGISTER: ("controller_id", "incarnation_id", "end_points", "features"),
    UNREGISTER: ("controller_id",),
}
COLUMNS: Final = (
    Column("controller", pa.int32(), "the controller's id"),
    Column("incarnation_id", pa.string(), "what it called itself when it started"),
    Column("endpoints", ENDPOINTS, "its listeners"),
    Column("features", FEATURES, "the levels of features that it supports"),
    *CHANGE_COLUMNS,
)


def controllers(state: ClusterState) -> DataFrame:
    """A row a controller that registered (from metadata.version 3.7 on they do)."""
    key = F.coalesce(f"{REGISTER}.controller_id", f"{UNREGISTER}.controller_id")
    rows = state.typed(READS).withColumn("controller", key)
    last = latest(rows, "controller").where(F.col(REGISTER).isNotNull())
    return last.select(
        "controller",
        f"{REGISTER}.incarnation_id",
        endpoints(F.col(f"{REGISTER}.end_points")).alias("endpoints"),
        supported(F.col(f"{REGISTER}.features")).alias("features"),
        *changed(),
    )
