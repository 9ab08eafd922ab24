"""The Arrow type of a message: the union of its fields over all its versions.

So one column holds messages of every version: a field that a version does not have is null there,
or has its default. Every structure ends with ``unknown_tagged_fields``. Names are the snake_case
attributes of the message classes.

| Kafka | Arrow and Spark |
|---|---|
| bool, int8, int16, int32, int64, float64 | the same |
| uint16, uint32 | the next wider signed integer: Spark has no unsigned ones |
| uuid | string, as Kafka prints it: base64url without padding |
| string | string |
| bytes, records | binary, as on the wire (the ``records`` table holds what is in them) |
| array, structure | list, struct |
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa

from flexwire.errors import SpecError
from flexwire.schema.catalog import per_catalog
from flexwire.schema.resolve import resolve
from flexwire.schema.served import check_message, served_of
from flexwire.schema.union import types_of
from flexwire.wire.schema import UNKNOWN_TAGGED_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flexwire.schema.served import MessageLike, Served
    from flexwire.schema.spec import FieldType

# More than a hundred times what Kafka's largest message has.
MOST_COLUMNS = 10_000
# A tag is an unsigned varint of 32 bits, which an int would not hold.
RAW_TAGGED_FIELDS = pa.list_(pa.struct([("tag", pa.int64()), ("data", pa.binary())]))

_PRIMITIVES = {
    "bool": pa.bool_(),
    "int8": pa.int8(),
    "int16": pa.int16(),
    "uint16": pa.int32(),
    "int32": pa.int32(),
    "uint32": pa.int64(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "uuid": pa.string(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "records": pa.binary(),
}


def message_type(message: MessageLike) -> pa.StructType:
    """Give the type of a message's column: every field of every version that is served.

    It does not depend on the versions that a batch happens to have, so batches stay alike.
    Raises `SpecError` where versions give a field types that have no common column, and for more
    than `MOST_COLUMNS` columns.

    >>> message_type("ListGroupsRequest").field("states_filter").type
    ListType(list<item: string>)
    """
    check_message(message)
    return _message_type(message)


@per_catalog
@cache
def _message_type(message: MessageLike) -> pa.StructType:
    served = served_of(message)
    for spec, versions in served.specs:
        # Raises `SpecError` for what has no layout, and so no columns.
        resolve(spec, versions.highest)
    return _Columns(served).message()


class _Columns:
    """The columns of a message: those of the union of its fields."""

    def __init__(self, served: Served) -> None:
        self.name = served.name
        self.fields = served.fields
        self.counted: dict[str, int] = {}

    def message(self) -> pa.StructType:
        if self.count(self.name, ()) > MOST_COLUMNS:
            raise SpecError(f"more than {MOST_COLUMNS} columns", source=self.name)
        return self.struct(self.name, self.name)

    def count(self, name: str, open_: tuple[str, ...]) -> int:
        """Count the columns of a structure: a spec may use one very often, each time anew."""
        if name in open_:
            # Of no one spec, but of several together.
            raise SpecError(f"structure {name} contains itself", source=self.name)
        if name not in self.counted:
            within = (*open_, name)
            self.counted[name] = sum(
                max(self.count(kind.name, within) if kind.is_struct else 1 for kind in kinds)
                for kinds in map(types_of, self.fields[name].values())
            )
        return self.counted[name]

    def struct(self, path: str, name: str) -> pa.StructType:
        fields = [
            (attribute, self.field(f"{path}.{attribute}", types_of(mentions)))
            for attribute, mentions in self.fields[name].items()
        ]
        return pa.struct([*fields, (UNKNOWN_TAGGED_FIELDS, RAW_TAGGED_FIELDS)])

    def field(self, path: str, kinds: Iterable[FieldType]) -> pa.DataType:
        return merge(path, [self.type(path, kind) for kind in kinds])

    def type(self, path: str, kind: FieldType) -> pa.DataType:
        one = self.struct(path, kind.name) if kind.is_struct else _PRIMITIVES[kind.name]
        return pa.list_(one) if kind.is_array else one


def merge(path: str, kinds: Sequence[pa.DataType]) -> pa.DataType:
    """Give the type that holds values of all ``kinds``; `SpecError` where there is none."""
    first = kinds[0]
    if all(kind.equals(first) for kind in kinds):
        return first
    if all(pa.types.is_struct(kind) for kind in kinds):
        return _merge_structs(path, kinds)
    if all(pa.types.is_list(kind) for kind in kinds):
        return pa.list_(merge(path, [kind.value_type for kind in kinds]))
    if all(pa.types.is_integer(kind) for kind in kinds):
        return max(kinds, key=lambda kind: kind.bit_width)
    raise SpecError(f"the types {', '.join(map(str, kinds))} have no common column", source=path)


def _merge_structs(path: str, kinds: Sequence[pa.StructType]) -> pa.StructType:
    found: dict[str, list[pa.DataType]] = {}
    for one in itertools.chain.from_iterable(kinds):
        found.setdefault(one.name, []).append(one.type)
    # The raw tags stay last whatever the older specs add.
    found[UNKNOWN_TAGGED_FIELDS] = found.pop(UNKNOWN_TAGGED_FIELDS)
    return pa.struct([(name, merge(f"{path}.{name}", each)) for name, each in found.items()])
