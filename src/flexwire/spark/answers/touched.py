"""The groups and topics that clients named in their requests: whom to ask about a client."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it
from pyspark.sql.types import ArrayType, StructType

from flexwire.schema.catalog import catalog, per_catalog
from flexwire.spark.answers.evidence import KEY

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from pyspark.sql import Column

    from flexwire.protocol.audit import Party
    from flexwire.schema.spec import FieldSpec
    from flexwire.spark.answers.evidence import AuditTables

SHOWN = 20
"""The names of a client's groups, and of its topics, that are kept; all are counted."""

# The entity types of fields in message specs.
_ENTITIES = {"groupId": "groups", "topicName": "topics"}
_NAMES = "array<struct<kind: string, name: string>>"


@dataclass(frozen=True, slots=True)
class Touched:
    """The first of the names in alphabetical order, and how many there are."""

    groups: tuple[str, ...] = ()
    group_count: int = 0
    topics: tuple[str, ...] = ()
    topic_count: int = 0


def gather_touched(
    tables: AuditTables,
    messages: Collection[str],
    connections: DataFrame,
    parties: Collection[Party],
) -> dict[tuple[str | None, ...], Touched]:
    """By `KEY`: what these clients named, from the tables of the requests among ``messages``.

    ``connections`` are those of all clients, with their `KEY`.
    """
    requests = [name for name in messages if name.endswith("Request")]
    named = [one for name in requests if (one := _named(tables, name)) is not None]
    if not parties or not named:
        return {}
    keys = {(one.client_id, one.address, one.principal) for one in parties}
    wanted = connections.sparkSession.createDataFrame(
        sorted(keys, key=repr), "client_id string, address string, principal string"
    ).alias("wanted")
    same = [connections[name].eqNullSafe(F.col(f"wanted.{name}")) for name in KEY]
    theirs = connections.join(F.broadcast(wanted), same, "left_semi")
    # The few connections of those who are accused come to the rows, and not the other way about.
    rows = reduce(DataFrame.unionByName, named).join(F.broadcast(theirs), "connection")
    names = rows.select(*KEY, F.inline("named")).where("name is not null")
    counted = names.groupBy(*KEY, "kind").agg(
        F.slice(F.array_sort(F.collect_set("name")), 1, SHOWN).alias("names"),
        F.count_distinct("name").alias("count"),
    )
    found: dict[tuple[str | None, ...], dict[str, Any]] = {}
    for row in counted.collect():
        told = found.setdefault(tuple(row[name] for name in KEY), {})
        told[row.kind] = tuple(row["names"])
        told[f"{row.kind.removesuffix('s')}_count"] = row["count"]
    return {key: Touched(**told) for key, told in found.items()}


def _named(tables: AuditTables, message: str) -> DataFrame | None:
    """By row of a message's table the names in it, each with its kind; None where it has none."""
    table = tables.message(message)
    if table is None:
        return None
    some = [
        _of_kind(values, kind)
        for path, kind in _paths(message)
        if (values := _values(table, path)) is not None
    ]
    if not some:
        return None
    nothing = F.array().cast(_NAMES)
    every = F.concat(*[F.coalesce(one, nothing) for one in some])
    return table.select("connection", every.alias("named"))


def _of_kind(values: Column, kind: str) -> Column:
    # Spark gives a function of two arguments the index as well, so that this is one of one.
    return F.transform(values, lambda name: F.struct(F.lit(kind), name)).cast(_NAMES)


@per_catalog
@cache
def _paths(message: str) -> tuple[tuple[tuple[str, ...], str], ...]:
    """Where a message's specs say that a group id or a topic's name stands."""
    found: dict[tuple[tuple[str, ...], str], None] = {}
    for spec in catalog().entry(message).all_specs():
        structs = spec.structs()
        for path, one in _fields(spec.fields, structs, ()):
            if one.entity_type in _ENTITIES and one.type.name == "string":
                found[path, _ENTITIES[one.entity_type]] = None
    return tuple(found)


def _fields(
    fields: tuple[FieldSpec, ...], structs: dict[str, tuple[FieldSpec, ...]], above: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], FieldSpec]]:
    for one in fields:
        path = (*above, one.attribute)
        yield path, one
        if one.type.is_struct:
            yield from _fields(structs[one.type.name], structs, path)


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
