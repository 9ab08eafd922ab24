"""What happened to leaders and the ISR: who led which partition when, and who fell behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.answers.state import cluster_partitions
from flexwire.answers.state.cluster_folding import CHANGE_COLUMNS, ORDER, changed
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.state.cluster import ClusterState

READS: Final = cluster_partitions.READS
_INTS: Final = pa.list_(pa.int32())
_FIRST: Final = "in the first row of a partition"
COLUMNS: Final = (
    *cluster_partitions.COLUMNS[:5],
    Column("previous_leader", pa.int32(), "the leader before", f"where none led; {_FIRST}"),
    Column("isr", _INTS, "the ISR after the change", heading="ISR"),
    Column("previous_isr", _INTS, "the ISR before", _FIRST),
    Column("left_isr", _INTS, "those that left the ISR", _FIRST),
    Column("joined_isr", _INTS, "those that joined it", _FIRST),
    Column(
        "is_election",
        pa.bool_(),
        "whether a leader was chosen, if only the same again; false where from then on none led",
        heading="Elected",
    ),
    *CHANGE_COLUMNS,
)


def partition_history(state: ClusterState) -> DataFrame:
    """A row a change of a partition's leader or ISR, and one for how it began.

    It begins with the snapshot or record that the state begins with, so take
    ``cluster_state(…, oldest=True)``. Partitions of deleted topics are there too.
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
    return rows.select(*(one.name for one in COLUMNS[: -len(CHANGE_COLUMNS)]), *changed())
