"""The groups and topics that requests name, as columns of Spark: whom to ask about a client."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.types import ArrayType, StructType

from flexwire.tables.keys import connection_key
from flexwire.tables.spec_places import entity_paths

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame

    Tables = Callable[[str], DataFrame | None]

_NAMES = "array<struct<kind: string, name: string>>"


def names_in(table_of: Tables, message: str) -> DataFrame | None:
    """Return a row for each name in a message's table, with its ``kind`` and its connection's key.

    ``table_of`` returns the table of a message. None for a response, and where there is no name.
    """
    table = table_of(message) if message.endswith("Request") else None
    if table is None:
        return None
    some = [
        _of_kind(values, kind)
        for path, kind in entity_paths(message)
        if (values := _values(table, path)) is not None
    ]
    if not some:
        return None
    nothing = F.array().cast(_NAMES)
    every = F.concat(*[F.coalesce(one, nothing) for one in some])
    return table.select(*connection_key(table.columns), F.inline(every))


def _of_kind(values: Column, kind: str) -> Column:
    # Spark gives a function of two arguments the index as well, so that this is one of one.
    return F.transform(values, lambda name: F.struct(F.lit(kind), name)).cast(_NAMES)


def _values(table: DataFrame, path: tuple[str, ...]) -> Column | None:
    """The strings at a path, whatever arrays it goes through; None where no such column is."""
    column, kind = F.col("body"), table.schema["body"].dataType
    in_array = False
    for name in path:
        if not isinstance(kind, StructType) or name not in kind.names:
            return None
        column, kind = column.getField(name), kind[name].dataType
        if isinstance(kind, ArrayType):
            if in_array:
                column = F.flatten(F.filter(column, lambda one: one.isNotNull()))
            in_array, kind = True, kind.elementType
    return column if in_array else F.array(column)
