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

import base64
import itertools
from functools import cache
from typing import TYPE_CHECKING

import pyarrow as pa

from flexwire.columnar.schemas import check_message, schemas_of
from flexwire.errors import SpecError
from flexwire.schema.catalog import per_catalog
from flexwire.wire import types
from flexwire.wire.schema import UNKNOWN_TAGGED_FIELDS, NullableStruct, Schema, struct_of

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence

    from flexwire.columnar.schemas import MessageLike

# More than a hundred times what Kafka's largest message has.
MOST_COLUMNS = 10_000
# A tag is an unsigned varint of 32 bits, which an int would not hold.
RAW_TAGGED_FIELDS = pa.list_(pa.struct([("tag", pa.int64()), ("data", pa.binary())]))

_PLAIN = {
    types.String: pa.string(),
    types.Uuid: pa.string(),
    types.Bytes: pa.binary(),
    types.Boolean: pa.bool_(),
    types.Float64: pa.float64(),
}
_INTEGERS = {
    "INT8": pa.int8(),
    "INT16": pa.int16(),
    "UINT16": pa.int32(),
    "INT32": pa.int32(),
    "UINT32": pa.int64(),
    "INT64": pa.int64(),
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
    found = schemas_of(message)
    schemas = found.every_field()
    if any(_columns(schema, {}) > MOST_COLUMNS for schema in schemas):
        raise SpecError(f"more than {MOST_COLUMNS} columns", source=found.name)
    return merge(found.name, [_struct_type(schema) for schema in schemas])


def _columns(schema: Schema, counted: dict[str, int]) -> int:
    """Count the columns of a structure: a spec may use one very often, each time anew."""
    if schema.name not in counted:
        inner = (struct_of(one.type) for one in schema.fields)
        counted[schema.name] = sum(1 if one is None else _columns(one, counted) for one in inner)
    return counted[schema.name]


def _struct_type(schema: Schema) -> pa.StructType:
    fields = [pa.field(one.attribute, _type(one.type)) for one in schema.fields]
    return pa.struct([*fields, pa.field(UNKNOWN_TAGGED_FIELDS, RAW_TAGGED_FIELDS)])


def _type(kind: types.Type) -> pa.DataType:
    match kind:
        case types.Array():
            return pa.list_(_type(kind.element))
        case NullableStruct():
            return _struct_type(kind.schema)
        case Schema():
            return _struct_type(kind)
        case types.Integer():
            return _INTEGERS[kind.name]
    return _PLAIN[type(kind)]


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


def uuid_text(value: uuid.UUID) -> str:
    """Write a uuid as Kafka prints it.

    >>> from uuid import UUID
    >>> uuid_text(UUID(int=1))
    'AAAAAAAAAAAAAAAAAAAAAQ'
    """
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()
