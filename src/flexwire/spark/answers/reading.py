"""The tables of an analysis as DataFrames: what every answer is a function of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from flexwire.spark.batches import spark_schema
from flexwire.spark.reading import read as read_stored
from flexwire.tables.reading import MESSAGES, output

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from flexwire.tables.reading import Output


@dataclass(frozen=True, slots=True)
class AnalysisTables:
    """The tables, as docs/tables.md has them; nothing is read before an answer is asked for.

    ``message`` gives the table of one message ("FetchRequest"), None where there is none.
    ``narrow`` gives the same with these columns only, where tables are read from files: of what is
    in arrays of arrays, Spark by itself reads every field.
    """

    frames: DataFrame
    connections: DataFrame
    records: DataFrame
    message: Callable[[str], DataFrame | None]
    narrow: Callable[[str, StructType], DataFrame | None] | None = None

    def narrowed(self, name: str, columns: StructType) -> DataFrame | None:
        """The table of one message, of which no other columns than these are needed."""
        return self.message(name) if self.narrow is None else self.narrow(name, columns)


def open_tables(spark: SparkSession, out: str | Path) -> AnalysisTables:
    """The tables of the analysis in ``out``, by path or URL; ``OUT/tables`` will do.

    Raises `FlexwireError` where there is no complete analysis.
    """
    found = output(out)
    read = partial(_read, spark, found)
    names = set(found.message_names())

    def message(name: str) -> DataFrame | None:
        return read(f"{MESSAGES}/{name}") if name in names else None

    def narrow(name: str, columns: StructType) -> DataFrame | None:
        return read(f"{MESSAGES}/{name}", columns) if name in names else None

    return AnalysisTables(read("frames"), read("connections"), read("records"), message, narrow)


def _read(
    spark: SparkSession, found: Output, name: str, columns: StructType | None = None
) -> DataFrame:
    schema = found.schema(name)
    if found.place.path is None:
        return read_stored(spark, found, name, schema)
    # Spark's own reader of Parquet reads only the columns that an answer names.
    return spark.read.schema(columns or spark_schema(schema)).parquet(found.where(f"tables/{name}"))
