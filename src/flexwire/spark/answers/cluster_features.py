"""Features by the log of a cluster's metadata: `cluster_features`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.facts.answers import ShownColumn
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.spark.answers.answer import Answer
from flexwire.spark.answers.nothing import no_rows
from flexwire.spark.internal_topics.cluster_brokers import brokers
from flexwire.spark.internal_topics.cluster_controllers import controllers
from flexwire.spark.internal_topics.cluster_features import features
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.spark.answers.reading import AnalysisTables

_TIME: Final = pa.timestamp("us", "UTC")
COLUMNS = (
    Column("feature", pa.string(), "the feature"),
    Column("level", pa.int16(), "its level; 0 is that of one that is off"),
    Column("supported_level", pa.int16(), "the highest that every broker and controller that says "
           "so supports", "where none says it"),
    Column("can_rise", pa.bool_(), "whether all of them support a higher one", "with the former"),
    Column("changed_time", _TIME, "since when it has this level",
           "where it had it in the snapshot that the state begins with, and where it is off"),
)  # fmt: skip


def cluster_features(tables: AnalysisTables) -> DataFrame:
    """Give a row for each feature, metadata.version among them, that is on or could be.

    Levels are those of the log of the cluster's metadata. Brokers register what they support, and
    controllers do from metadata.version 3.7 on.
    """
    state = None if tables.internal is None else tables.internal.cluster()
    if state is None:
        return no_rows(tables.frames, COLUMNS)
    levels = (
        features(state).where("until_offset is null").select("feature", "level", "changed_time")
    )
    told = [
        view(state).select(F.explode("features").alias("one")) for view in (brokers, controllers)
    ]
    supported = told[0].unionByName(told[1]).groupBy(F.col("one.name").alias("feature"))
    most = supported.agg(F.min("one.most").alias("supported_level"))
    both = levels.join(most, "feature", "full")
    level = F.coalesce("level", F.lit(0).cast("smallint"))
    can_rise = F.col("supported_level") > level
    made = both.withColumns({"level": level, "can_rise": can_rise})
    return made.where("level > 0 or supported_level > 0").select(*(one.name for one in COLUMNS))


ANSWER = Answer(
    "cluster_features",
    "Which features does the cluster have on, and which could it?",
    "The levels of features as the cluster's metadata has them, and the highest that all brokers "
    "and controllers support.",
    "After an upgrade of all brokers, first wait until nobody wants to go back: a level that rose "
    "cannot always go down again. Then finish the upgrade: kafka-features upgrade raises "
    "metadata.version and the others.",
    "a feature",
    COLUMNS,
    ("-can_rise", "feature"),
    (
        ShownColumn("feature", "Feature", is_about=True),
        ShownColumn("level", "Level", "count"),
        ShownColumn("supported_level", "Supported by all", "count"),
        ShownColumn("can_rise", "Can rise", "flag"),
        ShownColumn("changed_time", "Since", "moment"),
    ),
    cluster_features,
    asks=(InternalTopic.METADATA.topic,),
)
