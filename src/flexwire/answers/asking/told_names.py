"""Topic names by topic id, from Metadata responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.asking.answer import DaySums
from flexwire.answers.asking.day_sums import DAY, day_of_time
from flexwire.tables.output import MESSAGES
from flexwire.tables.spec_places import TOPIC_NAMES_MESSAGE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.answers.asking.answer import AnalysisTables


def told_names(tables: AnalysisTables) -> DataFrame | None:
    """Return the name ``told`` for each ``topic_id``, from all times, or None if there is none.

    If an id has two names, the one that sorts last is used.
    """
    if tables.told is not None:
        return tables.told()
    table = tables.naming(TOPIC_NAMES_MESSAGE)
    return None if table is None else _total(_pairs(table), tables)


def with_learned_names(rows: DataFrame, tables: AnalysisTables) -> DataFrame:
    """Fill in topic names from other analyses where the rows lack them."""
    return rows if tables.learned is None else with_names(rows, tables.learned)


def with_names(rows: DataFrame, names: DataFrame) -> DataFrame:
    """Fill in ``topic`` from ``topic_id``, using the table of names that other analyses learned."""
    # If an id has two names, the name that sorts last is used, as within one analysis.
    later = names.groupBy("topic_id").agg(F.max("topic").alias("later_topic"))
    joined = rows.join(F.broadcast(later), ["topic_id"], "left")
    return joined.withColumn("topic", F.coalesce("topic", "later_topic")).select(*rows.columns)


def _pairs(table: DataFrame) -> DataFrame:
    """Return the pairs of an id and a name in responses, for each day."""
    # This ensures that Spark reads only these two columns of the topics, and not their partitions.
    pairs = F.arrays_zip("body.topics.topic_id", "body.topics.name")
    # Brokers repeat the same names in many responses.
    different = table.select(day_of_time().alias(DAY), pairs.alias("topics")).distinct()
    told = different.select(DAY, F.inline("topics"))
    return told.where("topic_id is not null and name is not null").distinct()


def _part(tables: AnalysisTables) -> DataFrame | None:
    table = tables.message(TOPIC_NAMES_MESSAGE)
    return None if table is None else _pairs(table)


def _total(pairs: DataFrame, _tables: AnalysisTables) -> DataFrame:
    # Spark sorts the rows to find the greatest string, so there should be only a few of them.
    different = pairs.select("topic_id", "name").distinct()
    return different.groupBy("topic_id").agg(F.max("name").alias("told"))


TOLD_NAMES: Final = DaySums(
    version=1,
    tables=lambda: [f"{MESSAGES}/{TOPIC_NAMES_MESSAGE}"],
    columns=pa.schema([(DAY, pa.date32()), ("topic_id", pa.string()), ("name", pa.string())]),
    part=_part,
    total=_total,
)
