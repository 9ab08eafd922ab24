"""The columns that a user's schema chooses among those that a format has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from flexwire.errors import ArgumentError
from flexwire.spark.batches import spark_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql.types import StructType


def chosen(schema: StructType, columns: Mapping[str, pa.DataType]) -> pa.Schema:
    """The schema of a user in Arrow's types; `ArgumentError` for a column that there is not."""
    there = spark_schema(pa.schema(columns.items()))
    made = []
    for one in schema:
        if one.name not in columns:
            names = ", ".join(columns)
            raise ArgumentError(f"there is no column {one.name}; those there are: {names}")
        known = there[one.name].dataType
        if one.dataType != known:
            got = one.dataType.simpleString()
            reason = (
                f"expected the type {known.simpleString()}, nullable in all its parts, got {got}"
            )
            raise ArgumentError(f"column {one.name}: {reason}")
        made.append(pa.field(one.name, columns[one.name], nullable=one.nullable))
    return pa.schema(made)
