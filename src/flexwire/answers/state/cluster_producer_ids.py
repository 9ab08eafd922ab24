"""The producer ids of a cluster: which is the next that no broker was given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.answers.state.cluster_folding import CHANGE_COLUMNS, changed, latest
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.state.cluster import ClusterState

BLOCK: Final = "ProducerIdsRecord"
READS: Final = {BLOCK: ("broker_id", "broker_epoch", "next_producer_id")}
COLUMNS: Final = (
    Column("next_producer_id", pa.int64(), "the first producer id that no broker was given"),
    Column("broker", pa.int32(), "the broker that the last ones went to", "where no record says"),
    Column("broker_epoch", pa.int64(), "its broker epoch then", "as broker"),
    *CHANGE_COLUMNS,
)


def producer_ids(state: ClusterState) -> DataFrame:
    """A row, or none where no producer ids were given."""
    last = latest(state.typed(READS).withColumn("cluster", F.lit(0)), "cluster")
    given = (f"nullif({BLOCK}.broker_id, -1)", f"nullif({BLOCK}.broker_epoch, -1)")
    return last.selectExpr(
        "*", f"{BLOCK}.next_producer_id", f"{given[0]} as broker", f"{given[1]} as broker_epoch"
    ).select(*(one.name for one in COLUMNS[:3]), *changed())
