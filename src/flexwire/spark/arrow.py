"""The Arrow type of a message, and the columns of many messages of one version.

The type is the union of the message's fields over all its versions, so that one table holds them
all: a field that a version does not have is null there. Every structure ends with
``unknown_tagged_fields``. Names are the snake_case attributes of the message classes.

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
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from flexwire.codec import message
from flexwire.errors import SpecError
from flexwire.schema.catalog import catalog
from flexwire.schema.resolve import resolve
from flexwire.wire import types
from flexwire.wire.schema import UNKNOWN_TAGGED_FIELDS, NullableStruct, Presence, Schema

if TYPE_CHECKING:
    import uuid
    from collections.abc import Sequence

# A tag is an unsigned varint of 32 bits, which an int would not hold.
RAW_TAGGED_FIELDS = pa.list_(pa.struct([("tag", pa.int64()), ("data", pa.binary())]))
TAGGED_FIELD_USES = pa.list_(
    pa.struct(
        [
            ("path", pa.string()),
            ("tag", pa.int64()),
            ("name", pa.string()),
            ("times", pa.int64()),
            ("bytes", pa.int64()),
        ]
    )
)
MOMENT = pa.timestamp("us", tz="UTC")

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


@cache
def message_type(name: str) -> pa.StructType:
    """The type of a bundled message's column: every field of every version that is served.

    >>> message_type("ListGroupsRequest").field("states_filter").type
    ListType(list<item: string>)
    """
    # A schema lists its absent fields too, so one version of each spec gives all its fields.
    specs = catalog().entry(name).specs()
    schemas = [resolve(spec, versions.highest) for spec, versions in specs]
    return _merge(name, [_struct_type(schema) for schema in schemas])


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


def _merge(path: str, kinds: Sequence[pa.DataType]) -> pa.DataType:
    """The type that holds values of all ``kinds``; `SpecError` where there is none."""
    first = kinds[0]
    if all(kind.equals(first) for kind in kinds):
        return first
    if all(pa.types.is_struct(kind) for kind in kinds):
        return _merge_structs(path, kinds)
    if all(pa.types.is_list(kind) for kind in kinds):
        return pa.list_(_merge(path, [kind.value_type for kind in kinds]))
    if all(pa.types.is_integer(kind) for kind in kinds):
        return max(kinds, key=lambda kind: kind.bit_width)
    raise SpecError(f"the types {', '.join(map(str, kinds))} have no common column", source=path)


def _merge_structs(path: str, kinds: Sequence[pa.StructType]) -> pa.StructType:
    found: dict[str, list[pa.DataType]] = {}
    for one in itertools.chain.from_iterable(kinds):
        found.setdefault(one.name, []).append(one.type)
    # The raw tags stay last whatever the older specs add.
    found[UNKNOWN_TAGGED_FIELDS] = found.pop(UNKNOWN_TAGGED_FIELDS)
    return pa.struct([(name, _merge(f"{path}.{name}", each)) for name, each in found.items()])


@dataclass(slots=True)
class TaggedFieldUses:
    """The tagged fields that messages carry, by the row that each message stands in.

    A known one counts where its value is not its default, which is when Kafka writes it; what it
    took on the wire is not known. An unknown one counts always, with its bytes.
    """

    times: dict[int, Counter[tuple[str, int, str | None]]] = field(default_factory=dict)
    sizes: Counter[tuple[int, str, int]] = field(default_factory=Counter)

    def known(self, row: int, path: str, tag: int, name: str) -> None:
        """Count a tagged field of the spec."""
        self.times.setdefault(row, Counter())[path, tag, name] += 1

    def unknown(self, row: int, path: str, tag: int, data: bytes) -> None:
        """Count a tagged field that the spec does not have."""
        self.times.setdefault(row, Counter())[path, tag, None] += 1
        self.sizes[row, path, tag] += len(data)

    def of(self, row: int) -> list[dict[str, Any]]:
        """The uses in one row, for a column of `TAGGED_FIELD_USES`."""
        return [
            {
                "path": path,
                "tag": tag,
                "name": name,
                "times": times,
                "bytes": self.sizes[row, path, tag] if name is None else None,
            }
            for (path, tag, name), times in self.times.get(row, Counter()).items()
        ]


@dataclass(frozen=True, slots=True)
class _Items:
    """Values that stand side by side in one column, each with the row of its message."""

    values: Sequence[Any]
    rows: Sequence[int]
    path: str

    def attribute(self, attribute: str) -> list[Any]:
        return [None if one is None else getattr(one, attribute) for one in self.values]


def message_column(
    name: str, version: int, messages: Sequence[Any | None], uses: TaggedFieldUses
) -> pa.StructArray:
    """The column of messages that were all decoded at ``version``; None gives a null.

    Counts the tagged fields it meets in ``uses``, by the message's index in ``messages``.
    """
    items = _Items(messages, range(len(messages)), "")
    return _struct_column(message(name).definition.schema(version), message_type(name), items, uses)


def _struct_column(
    schema: Schema, kind: pa.StructType, items: _Items, uses: TaggedFieldUses
) -> pa.StructArray:
    fields = {one.attribute: one for one in schema.fields}
    columns = []
    for column in kind:
        one = fields.get(column.name)
        if column.name == UNKNOWN_TAGGED_FIELDS:
            columns.append(_raw_tagged_fields(items, uses))
        elif one is None or one.presence is Presence.ABSENT:
            columns.append(pa.nulls(len(items.values), column.type))
        else:
            if one.tag is not None:
                _count_known(one, items, uses)
            path = f"{items.path}.{one.json_name}" if items.path else one.json_name
            inner = _Items(items.attribute(column.name), items.rows, path)
            columns.append(_column(one.type, column.type, inner, uses))
    nulls = pa.array([one is None for one in items.values], pa.bool_())
    return pa.StructArray.from_arrays(columns, fields=list(kind), mask=nulls)


def _column(wire: types.Type, kind: pa.DataType, items: _Items, uses: TaggedFieldUses) -> pa.Array:
    match wire:
        case types.Array():
            return _list_column(wire, kind, items, uses)
        case NullableStruct():
            return _struct_column(wire.schema, kind, items, uses)
        case Schema():
            return _struct_column(wire, kind, items, uses)
        case types.Uuid():
            return pa.array([None if one is None else uuid_text(one) for one in items.values], kind)
    return pa.array(items.values, kind)


def _list_column(
    wire: types.Array, kind: pa.ListType, items: _Items, uses: TaggedFieldUses
) -> pa.ListArray:
    offsets, values, rows = [0], [], []
    for row, array in zip(items.rows, items.values, strict=True):
        if array:
            values += array
            rows += [row] * len(array)
        offsets.append(len(values))
    inner = _column(wire.element, kind.value_type, _Items(values, rows, f"{items.path}[]"), uses)
    nulls = pa.array([one is None for one in items.values], pa.bool_())
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), inner, type=kind, mask=nulls)


def _raw_tagged_fields(items: _Items, uses: TaggedFieldUses) -> pa.ListArray:
    column = []
    for row, one in zip(items.rows, items.values, strict=True):
        raw = {} if one is None else one.unknown_tagged_fields
        for tag, data in raw.items():
            uses.unknown(row, items.path, tag, data)
        column.append(raw_tagged_fields(raw))
    return pa.array(column, RAW_TAGGED_FIELDS)


def _count_known(one: Any, items: _Items, uses: TaggedFieldUses) -> None:
    for row, value in zip(items.rows, items.attribute(one.attribute), strict=True):
        if not _is_default(one, value):
            uses.known(row, items.path, one.tag, one.json_name)


def _is_default(one: Any, value: Any) -> bool:
    if isinstance(one.type, Schema | NullableStruct) and value is not None:
        return one.default is not None and bool(value == type(value)())
    return bool(one.type.is_default(value, one.default))


def raw_tagged_fields(unknown: dict[int, bytes]) -> list[dict[str, Any]]:
    """Unknown tagged fields as a value of `RAW_TAGGED_FIELDS`, in ascending order of their tags."""
    return [{"tag": tag, "data": unknown[tag]} for tag in sorted(unknown)]


def uuid_text(value: uuid.UUID) -> str:
    """A uuid as Kafka prints it.

    >>> from uuid import UUID
    >>> uuid_text(UUID(int=1))
    'AAAAAAAAAAAAAAAAAAAAAQ'
    """
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()
