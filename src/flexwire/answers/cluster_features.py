"""Features by the log of a cluster's metadata: `cluster_features`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.answers.asking.answer import Answer
from flexwire.answers.asking.nothing import returns
from flexwire.answers.state.cluster_brokers import brokers
from flexwire.answers.state.cluster_controllers import controllers
from flexwire.answers.state.cluster_features import features
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.reading import AnalysisTables

_TIME: Final = pa.timestamp("us", "UTC")
COLUMNS = (
    Column("feature", pa.string(), "the feature", heading="Feature", is_about=True),
    Column("level", pa.int16(), "its level; 0 is that of one that is off", heading="Level"),
    Column("supported_level", pa.int16(), "the highest that every broker and controller that says "
           "so supports", "where none says it", heading="Supported by all"),
    Column("can_rise", pa.bool_(), "whether all of them support a higher one", "with the former",
           heading="Can rise"),
    Column("changed_time", _TIME, "since when it has this level",
           "where it had it in the snapshot that the state begins with, and where it is off",
           heading="Since"),
)  # fmt: skip


@returns(COLUMNS)
def cluster_features(tables: AnalysisTables) -> DataFrame | None:
    """Give a row for each feature, metadata.version among them, that is on or could be.

    Levels are those of the log of the cluster's metadata. Brokers register what they support, and
    controllers do from metadata.version 3.7 on.
    """
    state = tables.cluster()
    if state is None:
        return None
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
    return made.where("level > 0 or supported_level > 0")


ANSWER = Answer(
    name="cluster_features",
    place=310,
    question="Which features does the cluster have on, and which could it?",
    meaning="The levels of features as the cluster's metadata has them, and the highest that all "
    "brokers and controllers support.",
    advice="After an upgrade of all brokers, first wait until nobody wants to go back: a level "
    "that rose cannot always go down again. Then finish the upgrade: kafka-features upgrade "
    "raises metadata.version and the others.",
    row="a feature",
    columns=COLUMNS,
    order=("-can_rise", "feature"),
    ask=cluster_features,
    asks=(InternalTopic.METADATA.topic,),
)
