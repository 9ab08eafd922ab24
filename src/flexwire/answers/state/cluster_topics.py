"""The topics of a cluster: when each was created, and when it was deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.answers.state.cluster_folding import CHANGE_COLUMNS, ORDER, TIME
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.state.cluster import ClusterState

CREATED, DELETED = "TopicRecord", "RemoveTopicRecord"
READS: Final = {CREATED: ("topic_id", "name"), DELETED: ("topic_id",)}
_BEFORE: Final = "where it was created before the snapshot that the state begins with"
_LIVES: Final = "where it is not deleted"
COLUMNS: Final = (
    Column("topic", pa.string(), "the topic's name"),
    Column("topic_id", pa.string(), "its id, which no other topic of that name has"),
    Column("created_offset", pa.int64(), "the offset of the record that created it", _BEFORE),
    Column("created_time", TIME, "that record's timestamp", _BEFORE),
    Column("deleted_offset", pa.int64(), "the offset of the record that deleted it", _LIVES),
    Column("deleted_time", TIME, "that record's timestamp", _LIVES),
    CHANGE_COLUMNS[-1],
)


def topics(state: ClusterState) -> DataFrame:
    """A row a topic that there is, or that was deleted since the state's snapshot."""
    rows = state.typed(READS)
    created, deleted = F.col(CREATED).isNotNull(), F.col(DELETED).isNotNull()
    each = rows.groupBy(F.coalesce(f"{CREATED}.topic_id", f"{DELETED}.topic_id").alias("topic_id"))
    return each.agg(
        F.max(f"{CREATED}.name").alias("topic"),
        F.max(F.when(created & F.col("in_log"), F.col("offset"))).alias("created_offset"),
        F.max(F.when(created & F.col("in_log"), F.col("timestamp"))).alias("created_time"),
        F.max(F.when(deleted, F.col("offset"))).alias("deleted_offset"),
        F.max(F.when(deleted, F.col("timestamp"))).alias("deleted_time"),
        F.max_by("is_committed", F.struct(*ORDER)).alias("is_committed"),
    ).select(*(one.name for one in COLUMNS))
