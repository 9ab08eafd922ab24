"""What the views of a cluster's state share: how changes in records become what is after them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.tables.schema import Column

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column as SparkColumn
    from pyspark.sql import DataFrame

TIME: Final = pa.timestamp("us", "UTC")
ENDPOINTS: Final = pa.list_(
    pa.struct(
        {
            "name": pa.string(),
            "host": pa.string(),
            "port": pa.int32(),
            "security_protocol": pa.string(),
        }
    )
)
FEATURES: Final = pa.list_(
    pa.struct({"name": pa.string(), "least": pa.int16(), "most": pa.int16()})
)
# Enumerations of Kafka's Java, which no spec has.
SECURITY_PROTOCOLS: Final = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}
ORDER: Final = ("in_log", "offset")
"""The order of a state's records: a snapshot's, then those of the log."""
RECORD: Final = (*ORDER, "timestamp", "is_committed")
"""What all of them have."""
CHANGE_COLUMNS: Final = (
    Column(
        "changed_offset",
        pa.int64(),
        "the offset of the record that changed it last",
        "where it is as in the snapshot that the state begins with",
    ),
    Column("changed_time", TIME, "that record's timestamp", "as changed_offset", heading="Changed"),
    Column(
        "is_committed",
        pa.bool_(),
        "whether that record is committed: a majority of the quorum has it",
        "where the files do not say, and committed_to was not given",
    ),
)
"""The last columns of most views."""


def changed() -> list[SparkColumn]:
    """The columns of `CHANGE_COLUMNS`, from a record's own."""
    return [
        F.when(F.col("in_log"), F.col("offset")).alias("changed_offset"),
        F.when(F.col("in_log"), F.col("timestamp")).alias("changed_time"),
        F.col("is_committed"),
    ]


def latest(rows: DataFrame, *keys: str) -> DataFrame:
    """The last of the rows that have the same keys."""
    following = Window.partitionBy(*keys).orderBy(*ORDER)
    return (
        rows.withColumn("next", F.lead("offset").over(following)).where("next is null").drop("next")
    )


def folded(rows: DataFrame, keys: Sequence[str], begins: str, fields: Sequence[str]) -> DataFrame:
    """Each row with its ``fields`` as they were after it: what is null in it is as it was before.

    Where ``begins`` is true all fields begin anew, and ``life`` counts that; rows before the first
    such one are left out.
    """
    ordered = Window.partitionBy(*keys).orderBy(*ORDER)
    lives = rows.withColumn("life", F.sum(F.col(begins).cast("int")).over(ordered)).where(
        "life > 0"
    )
    living = Window.partitionBy(*keys, "life").orderBy(*ORDER)
    values = {name: F.last(name, ignorenulls=True).over(living) for name in fields}
    return lives.withColumns(values)


def named(number: SparkColumn, names: Mapping[int, str]) -> SparkColumn:
    """The name of a number, and the number as text where it has none."""
    pairs = [F.lit(one) for pair in names.items() for one in pair]
    known = F.element_at(F.create_map(*pairs), number.cast("int"))
    return F.coalesce(known, number.cast("string"))


def endpoints(given: SparkColumn) -> SparkColumn:
    """The endpoints of a broker or controller, as `ENDPOINTS`, by name."""
    found = F.transform(
        given,
        lambda one: F.struct(
            one["name"].alias("name"),
            one["host"].alias("host"),
            one["port"].alias("port"),
            named(one["security_protocol"], SECURITY_PROTOCOLS).alias("security_protocol"),
        ),
    )
    return F.array_sort(found)


def supported(given: SparkColumn) -> SparkColumn:
    """The features that a broker or controller supports, as `FEATURES`, by name."""
    # A snapshot has them in another order than the log.
    found = F.transform(
        given,
        lambda one: F.struct(
            one["name"].alias("name"),
            one["min_supported_version"].alias("least"),
            one["max_supported_version"].alias("most"),
        ),
    )
    return F.array_sort(found)
