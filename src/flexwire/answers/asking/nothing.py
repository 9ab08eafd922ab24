"""The rows of an answer: with its columns, and none where there is nothing to say."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.tables.schema import schema_of
from flexwire.tasks import spark_schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from flexwire.answers.asking.reading import AnalysisTables
    from flexwire.tables.schema import Column

P = ParamSpec("P")


def returns(
    columns: tuple[Column, ...],
) -> Callable[
    [Callable[Concatenate[AnalysisTables, P], DataFrame | None]],
    Callable[Concatenate[AnalysisTables, P], DataFrame],
]:
    """Have a function of tables return a DataFrame of these columns, in this order.

    Where the function returns None, the DataFrame has no rows.
    """
    names = [one.name for one in columns]

    def decorated(
        made: Callable[Concatenate[AnalysisTables, P], DataFrame | None],
    ) -> Callable[Concatenate[AnalysisTables, P], DataFrame]:
        @wraps(made)
        def called(tables: AnalysisTables, *given: P.args, **named: P.kwargs) -> DataFrame:
            found = made(tables, *given, **named)
            return no_rows(tables.frames, columns) if found is None else found.select(*names)

        return called

    return decorated


def no_rows(table: DataFrame, columns: tuple[Column, ...]) -> DataFrame:
    """Return a DataFrame of these columns without a row, made of any table."""
    kinds = spark_schema(schema_of(columns))
    nothing = [F.lit(None).cast(one.dataType).alias(one.name) for one in kinds]
    return table.where("false").select(*nothing)
