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


@dataclass(frozen=True, slots=True)
class Touched:
    """The first of the names in alphabetical order, and how many there are."""

    groups: tuple[str, ...] = ()
    group_count: int = 0
    topics: tuple[str, ...] = ()
    topic_count: int = 0


def gather_touched(
    tables: AuditTables, messages: Collection[str], parties: Collection[Party]
) -> dict[tuple[str | None, ...], Touched]:
    """By `KEY`: what these clients named, from the tables of the requests among ``messages``."""
    if not parties:
        return {}
    requests = tables.requests().select("connection", *KEY).distinct()
    spark = requests.sparkSession
    keys = {(one.client_id, one.address, one.principal) for one in parties}
    wanted = spark.createDataFrame(
        sorted(keys, key=repr), "client_id string, address string, principal string"
    ).alias("wanted")
    same = [requests[name].eqNullSafe(F.col(f"wanted.{name}")) for name in KEY]
    connections = requests.join(F.broadcast(wanted), same, "left_semi")
    named = [one for name in messages if name.endswith("Request") for one in _named(tables, name)]
    if not named:
        return {}
    names = reduce(DataFrame.unionByName, named).join(connections, "connection").distinct()
    rows = names.groupBy(*KEY, "kind").agg(
        F.slice(F.array_sort(F.collect_set("name")), 1, SHOWN).alias("names"),
        F.count_distinct("name").alias("count"),
    )
    found: dict[tuple[str | None, ...], dict[str, Any]] = {}
    for row in rows.collect():
        told = found.setdefault(tuple(row[name] for name in KEY), {})
        told[row.kind] = tuple(row["names"])
        told[f"{row.kind.removesuffix('s')}_count"] = row["count"]
    return {key: Touched(**told) for key, told in found.items()}


def _named(tables: AuditTables, message: str) -> Iterator[DataFrame]:
    """The names in a message's table by connection, one after the other."""
    table = tables.message(message)
    if table is None:
        return
    for path, kind in _paths(message):
        values = _values(table, path)
        if values is not None:
            names = F.explode(values).alias("name")
            rows = table.select("connection", F.lit(kind).alias("kind"), names).distinct()
            yield rows.where("name is not null")


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
