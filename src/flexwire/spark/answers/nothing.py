"""No rows, with the columns that an answer has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.spark.tables import spark_schema
from flexwire.tables.schema import schema_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from flexwire.tables.schema import Column


def no_rows(table: DataFrame, columns: tuple[Column, ...]) -> DataFrame:
    """A DataFrame of these columns without a row, made of any table."""
    kinds = spark_schema(schema_of(columns))
    nothing = [F.lit(None).cast(one.dataType).alias(one.name) for one in kinds]
    return table.where("false").select(*nothing)
