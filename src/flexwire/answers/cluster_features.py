"""The features in the log of a cluster's metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import Answer, returns
from flexwire.answers.cluster_brokers import brokers
from flexwire.answers.state.cluster import (
    ORDER,
    RECORD,
    changed,
    endpoints,
    latest,
    supported,
)
from flexwire.logs.metadata import KRAFT_VERSION
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables
    from flexwire.answers.state.cluster import ClusterState


OF_QUORUM: Final = "kraft.version"
LEVEL, REMOVED = "FeatureLevelRecord", "RemoveFeatureLevelRecord"
READS: Final = {LEVEL: ("name", "feature_level"), REMOVED: ("name",)}


def features(state: ClusterState) -> DataFrame:
    """Return a row for each level that a feature has had since the state's snapshot."""
    rows = state.typed(READS).select(
        *RECORD,
        F.coalesce(f"{LEVEL}.name", f"{REMOVED}.name").alias("feature"),
        F.coalesce(f"{LEVEL}.feature_level", F.lit(0).cast("smallint")).alias("level"),
    )
    # This feature's level is stored in control records.
    versions = state.quorum.where((F.col("kind") == KRAFT_VERSION) & ~F.col("is_older"))
    level = F.col("kraft_version").alias("level")
    rows = rows.unionByName(versions.select(*RECORD, F.lit(OF_QUORUM).alias("feature"), level))
    following = Window.partitionBy("feature").orderBy(*ORDER)
    rows = rows.withColumn("before", F.lag("level").over(following))
    # A controller may write the same level again when it starts.
    rows = rows.where("level is distinct from before")
    until = {
        "until_offset": F.lead("offset").over(following),
        "until_time": F.lead("timestamp").over(following),
    }
    return rows.withColumns(until).select("feature", "level", *changed(), *until)


REGISTER, UNREGISTER = "RegisterControllerRecord", "UnregisterControllerRecord"
CONTROLLER_READS: Final = {
    REGISTER: ("controller_id", "incarnation_id", "end_points", "features"),
    UNREGISTER: ("controller_id",),
}


def controllers(state: ClusterState) -> DataFrame:
    """Return a row for each registered controller.

    Controllers register since metadata.version 3.7.
    """
    key = F.coalesce(f"{REGISTER}.controller_id", f"{UNREGISTER}.controller_id")
    rows = state.typed(CONTROLLER_READS).withColumn("controller", key)
    last = latest(rows, "controller").where(F.col(REGISTER).isNotNull())
    return last.select(
        "controller",
        f"{REGISTER}.incarnation_id",
        endpoints(F.col(f"{REGISTER}.end_points")).alias("endpoints"),
        supported(F.col(f"{REGISTER}.features")).alias("features"),
        *changed(),
    )


_TIME: Final = pa.timestamp("us", "UTC")
COLUMNS = (
    Column("feature", pa.string(), "the feature", heading="Feature", is_about=True),
    Column("level", pa.int16(), "the level of the feature; 0 means that the feature is off",
           heading="Level"),
    Column("supported_level", pa.int16(),
           "the highest level that is supported by all brokers and controllers that list the "
           "feature",
           "if no broker or controller lists the feature", heading="Supported by all"),
    Column("can_rise", pa.bool_(),
           "whether all of these brokers and controllers support a higher level than ``level``",
           "if ``supported_level`` is null",
           heading="Can rise"),
    Column("changed_time", _TIME, "when the feature was set to this level",
           "if the snapshot on which the state is based already contained this level, or if the "
           "feature is off",
           heading="Since"),
)  # fmt: skip


@returns(COLUMNS)
def cluster_features(tables: AnalysisTables) -> DataFrame | None:
    """Return each feature that is enabled or could be enabled, including metadata.version.

    The levels come from the log of the cluster's metadata. Brokers register the features that
    they support. Since metadata.version 3.7, controllers also register their features.
    """
    state = tables.cluster()
    if state is None:
        return None
    levels = (
        features(state).where("until_offset is null").select("feature", "level", "changed_time")
    )
    reasons = [
        view(state).select(F.explode("features").alias("one")) for view in (brokers, controllers)
    ]
    supported = reasons[0].unionByName(reasons[1]).groupBy(F.col("one.name").alias("feature"))
    most = supported.agg(F.min("one.most").alias("supported_level"))
    both = levels.join(most, "feature", "full")
    level = F.coalesce("level", F.lit(0).cast("smallint"))
    can_rise = F.col("supported_level") > level
    rows = both.withColumns({"level": level, "can_rise": can_rise})
    return rows.where("level > 0 or supported_level > 0")


ANSWER = Answer(
    name="cluster_features",
    place=310,
    question="Which features are enabled in the cluster, and which could be enabled?",
    meaning="The feature levels in the cluster's metadata, and the highest level that all "
    "brokers and controllers support.",
    advice=(
        "Before you finish an upgrade, wait until you are sure that you will not downgrade, "
        "because some levels cannot be lowered again. Then finish the upgrade: kafka-features "
        "upgrade raises metadata.version and the other features."
    ),
    row="a feature",
    columns=COLUMNS,
    order=("-can_rise", "feature"),
    ask=cluster_features,
    asks=(InternalTopic.METADATA.topic,),
)
