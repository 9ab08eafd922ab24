"""The names of topics of which a message has only the id, from Metadata responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.tables.keys import ANALYSIS
from flexwire.tables.spec_places import KNOWN_TOPICS, TOPIC_NAMES_MESSAGE

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark.sql import Column, DataFrame

    from flexwire.answers.asking.reading import AnalysisTables
    from flexwire.tables.spec_places import Path

# What a uuid that nobody set is as text.
_NO_ID: Final = "A" * 22


def known_id(topic_id: Column) -> Column:
    """The id of a topic, null where none is set."""
    return F.nullif(topic_id, F.lit(_NO_ID))


def known_name(topic_id: Column) -> Column:
    """The name of a topic that always has this id."""
    found = F.lit(None).cast("string")
    for one, name in KNOWN_TOPICS.items():
        found = F.when(topic_id == one, name).otherwise(found)
    return found


def is_grown(tables: AnalysisTables) -> bool:
    """Return whether the tables hold several analyses, of which one may know a name for another.

    An analysis fills in the names of the table of records by its own Metadata responses.
    """
    return ANALYSIS in tables.records.columns


def with_topic_names(
    rows: DataFrame, tables: AnalysisTables, ids: Mapping[str, Collection[Path]] | None = None
) -> DataFrame:
    """Rows with ``topic`` filled in by ``topic_id``, which stays where no name is known.

    ``ids`` are the columns that the ids are from, by message, where they may all be unset: then no
    name is looked for.
    """
    rows = rows.withColumn("topic", F.coalesce("topic", known_name(F.col("topic_id"))))
    is_any = ids is None or any(
        paths and not tables.hold_only(one, paths, _NO_ID) for one, paths in ids.items()
    )
    table = tables.message(TOPIC_NAMES_MESSAGE) if is_any else None
    if table is not None:
        # So Spark reads these two columns of the topics, and not their partitions.
        pairs = F.arrays_zip("body.topics.topic_id", "body.topics.name")
        # Brokers tell the same again and again.
        different = table.select(pairs.alias("topics")).distinct().select(F.inline("topics"))
        told = different.where("topic_id is not null and name is not null")
        # Spark sorts what it takes the greatest text of: that is done with few.
        names = told.distinct().groupBy("topic_id").agg(F.max("name").alias("told"))
        rows = rows.join(names, "topic_id", "left")
        rows = rows.withColumn("topic", F.coalesce("topic", "told")).drop("told")
    return rows.withColumn("topic_id", F.when(F.col("topic").isNull(), F.col("topic_id")))
