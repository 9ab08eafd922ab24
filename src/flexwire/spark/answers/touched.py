"""The groups and topics that clients named in their requests: whom to ask about a client."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.types import ArrayType, StructType

from flexwire.measures.evidence import KEY, SHOWN, Touched, key_of
from flexwire.tables.keys import connection_key
from flexwire.tables.spec_places import entity_paths

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from pyspark.sql import Column

    from flexwire.measures.evidence import Key
    from flexwire.protocol.audit import Party

    Tables = Callable[[str], DataFrame | None]

_NAMES = "array<struct<kind: string, name: string>>"


def gather_touched(
    table_of: Tables,
    messages: Collection[str],
    connections: DataFrame,
    parties: Collection[Party],
) -> dict[Key, Touched]:
    """What these clients named, from the tables of the requests among ``messages``.

    ``table_of`` gives the table of a message, and ``connections`` are those of all clients, with
    their `KEY`.
    """
    requests = [name for name in messages if name.endswith("Request")]
    named = [one for name in requests if (one := _named(table_of, name)) is not None]
    if not parties or not named:
        return {}
    keys = set(map(key_of, parties))
    wanted = connections.sparkSession.createDataFrame(
        sorted(keys, key=repr), "client_id string, address string, principal string"
    ).alias("wanted")
    same = [connections[name].eqNullSafe(F.col(f"wanted.{name}")) for name in KEY]
    theirs = connections.join(F.broadcast(wanted), same, "left_semi")
    key = connection_key(connections.columns)
    # The few connections of those who are accused come to the rows, and not the other way about.
    rows = reduce(DataFrame.unionByName, named).join(F.broadcast(theirs), [*key])
    names = rows.select(*KEY, F.inline("named")).where("name is not null")
    counted = names.groupBy(*KEY, "kind").agg(
        F.slice(F.array_sort(F.collect_set("name")), 1, SHOWN).alias("names"),
        F.count_distinct("name").alias("count"),
    )
    found: dict[Key, dict[str, Any]] = {}
    for row in counted.collect():
        told = found.setdefault((row.client_id, row.address, row.principal), {})
        told[row.kind] = tuple(row["names"])
        told[f"{row.kind.removesuffix('s')}_count"] = row["count"]
    return {key: Touched(**told) for key, told in found.items()}


def _named(table_of: Tables, message: str) -> DataFrame | None:
    """By row of a message's table the names in it, each with its kind; None where it has none."""
    table = table_of(message)
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
    return table.select(*connection_key(table.columns), every.alias("named"))


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
