"""The features of a cluster, metadata.version among them: which level each had when."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.answers.state.cluster_folding import (
    CHANGE_COLUMNS,
    ORDER,
    RECORD,
    TIME,
    changed,
)
from flexwire.logs.metadata import KRAFT_VERSION
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.state.cluster import ClusterState

OF_QUORUM: Final = "kraft.version"
LEVEL, REMOVED = "FeatureLevelRecord", "RemoveFeatureLevelRecord"
READS: Final = {LEVEL: ("name", "feature_level"), REMOVED: ("name",)}
_CURRENT: Final = "where this is the level"
COLUMNS: Final = (
    Column("feature", pa.string(), "the feature's name"),
    Column("level", pa.int16(), "its level; 0 is that of one that is off"),
    *CHANGE_COLUMNS,
    Column("until_offset", pa.int64(), "the offset of the next change", _CURRENT),
    Column("until_time", TIME, "that record's timestamp", _CURRENT),
)


def features(state: ClusterState) -> DataFrame:
    """A row a level that a feature had since the state's snapshot, or has."""
    rows = state.typed(READS).select(
        *RECORD,
        F.coalesce(f"{LEVEL}.name", f"{REMOVED}.name").alias("feature"),
        F.coalesce(f"{LEVEL}.feature_level", F.lit(0).cast("smallint")).alias("level"),
    )
    # This one's level is in control records.
    versions = state.quorum.where((F.col("kind") == KRAFT_VERSION) & ~F.col("is_older"))
    level = F.col("kraft_version").alias("level")
    rows = rows.unionByName(versions.select(*RECORD, F.lit(OF_QUORUM).alias("feature"), level))
    following = Window.partitionBy("feature").orderBy(*ORDER)
    rows = rows.withColumn("before", F.lag("level").over(following))
    # A controller that starts may say it again.
    rows = rows.where("level is distinct from before")
    until = {
        "until_offset": F.lead("offset").over(following),
        "until_time": F.lead("timestamp").over(following),
    }
    return rows.withColumns(until).select("feature", "level", *changed(), *until)
