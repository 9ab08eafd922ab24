"""What messages carry of each topic: the bytes of its record batches, a frame at a time."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.answers.asking.topic_names import known_id
from flexwire.tables.keys import frame_key
from flexwire.tables.schema import SIZE_SUFFIX
from flexwire.tables.spec_places import RECORDS_FIELDS

if TYPE_CHECKING:
    from pyspark.sql import Column

    from flexwire.answers.asking.reading import AnalysisTables
    from flexwire.tables.spec_places import RecordsField

TOPIC_IDS = {
    one.message: [("body", one.topics, one.topic_id)] for one in RECORDS_FIELDS if one.topic_id
}
"""By message the column of the ids of the topics whose records it carries."""


def carried_topics(tables: AnalysisTables) -> DataFrame | None:
    """A row for each frame and topic whose records it carries; None where no frame can carry any.

    ``record_bytes`` is what the frame's record batches of the topic take, those that are cut off
    among them. Withheld records of a capture have no row, as their size is not known. In a request
    log a size may be missing: ``record_bytes`` is null then. One row of each frame ``is_first``.
    """
    found = [
        _of(table, one)
        for one in RECORDS_FIELDS
        if (table := tables.message(one.message)) is not None
    ]
    return reduce(DataFrame.unionByName, found) if found else None


def record_bytes_of(message: str, table: DataFrame) -> Column:
    """How many bytes of record batches a message carries, all topics together."""
    place = next(one for one in RECORDS_FIELDS if one.message == message)
    sizes = F.transform(f"body.{place.topics}", lambda topic: _topic_bytes(topic, place, table))
    return _total(sizes)


def _of(table: DataFrame, place: RecordsField) -> DataFrame:
    def told(topic: Column) -> Column:
        name, number = place.topic_name, place.topic_id
        whole = _topic_bytes(topic, place, table)
        return F.struct(
            _text(None if name is None else topic[name]).alias("topic"),
            known_id(_text(None if number is None else topic[number])).alias("topic_id"),
            F.when(F.col("size").isNotNull() | ~_lacks_size(topic, place, table), whole).alias(
                "record_bytes"
            ),
        )

    at = (*frame_key(table.columns), "client_id", "time")
    topics = F.transform(f"body.{place.topics}", told)
    some = F.filter(topics, lambda topic: F.coalesce(topic["record_bytes"] > 0, F.lit(True)))
    each = table.select(*at, F.posexplode(some).alias("place", "of_topic"))
    return each.select(*at, "of_topic.*", (F.col("place") == 0).alias("is_first"))


def _topic_bytes(topic: Column, place: RecordsField, table: DataFrame) -> Column:
    return _total(_sizes(topic, place, table))


def _lacks_size(topic: Column, place: RecordsField, table: DataFrame) -> Column:
    """Return whether the size of some partition's records is null."""
    lacking = F.exists(_sizes(topic, place, table), lambda one: one.isNull())
    return F.coalesce(lacking, F.lit(False))


def _sizes(topic: Column, place: RecordsField, table: DataFrame) -> Column:
    """Return the sizes of the records of a topic's partitions, as an array."""
    partitions = topic[place.partitions]
    kind: Any = table.select(f"body.{place.topics}.{place.partitions}").schema[0].dataType
    sized = place.records + SIZE_SUFFIX
    if sized in kind.elementType.elementType.names:
        return partitions[sized]
    # `analyze` was asked for the bytes themselves.
    return F.transform(partitions[place.records], lambda one: F.length(one).cast("bigint"))


def _total(numbers: Column) -> Column:
    nothing = F.lit(0).cast("bigint")
    return F.aggregate(numbers, nothing, lambda total, one: total + F.coalesce(one, nothing))


def _text(column: Column | None) -> Column:
    return F.lit(None).cast("string") if column is None else column
