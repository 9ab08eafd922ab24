"""The Arrow type of a message: the union of its fields in all versions.

One column can therefore contain messages of every version. A field that does not exist in a version
is null, or has its default. Every structure ends with ``unknown_tagged_fields``. Names are the
attributes of the message classes, in snake_case.

| Kafka | Arrow and Spark |
|---|---|
| bool, int8, int16, int32, int64, float64 | the same |
| uint16, uint32 | the next wider signed integer, because Spark has no unsigned integers |
| uuid | string, in the form that Kafka prints: base64url without padding |
| string | string |
| bytes, records | binary, as on the wire (the ``records`` table contains their records) |
| array, structure | list, struct |

All code that makes columns from values uses these types: the reference executor for rows, columns
made from objects, and the defaults that kernels fill in.

Without ``full``, pyarrow's own validation is fast, but it checks only the first and last offset.
The kernels check the offsets of every row that is not null. All other code that uses offsets, such
as a cast, a copy or pyarrow's own ``to_pylist``, needs the full validation.
"""

from __future__ import annotations

import itertools
import uuid
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flexwire.errors import CodecError, EncodeError, SpecError
from flexwire.schema.catalog import per_catalog
from flexwire.schema.message_schemas import check_message, schemas_of
from flexwire.schema.resolve import resolve, types_of
from flexwire.wire.schema import UNKNOWN_TAGGED_FIELDS
from flexwire.wire.varint import uuid_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from flexwire.schema.message_schemas import MessageLike, MessageSchemas
    from flexwire.schema.spec import FieldType


# This limit is more than a hundred times the number of columns in Kafka's largest message.
MOST_COLUMNS = 10_000
# A tag is an unsigned 32-bit varint, which does not fit into a signed int.
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
    """Return the type of a message's column, with every field of every supported version.

    It does not depend on the versions that occur in a batch, so all batches have the same type.
    Raises `SpecError` if a field's types in different versions cannot share a column, or if there
    are more than `MOST_COLUMNS` columns.

    >>> message_type("ListGroupsRequest").field("states_filter").type
    ListType(list<item: string>)
    """
    check_message(message)
    return _message_type(message)


@per_catalog
@cache
def _message_type(message: MessageLike) -> pa.StructType:
    served = schemas_of(message)
    for spec, versions in served.specs:
        # This call raises `SpecError` for a spec without a layout. A spec without a layout has no
        # columns.
        resolve(spec, versions.highest)
    return _MessageColumns(served).message()


class _MessageColumns:
    """The columns of a message: the union of its fields."""

    def __init__(self, served: MessageSchemas) -> None:
        self.name = served.name
        self.fields = served.fields
        self.counted: dict[str, int] = {}

    def message(self) -> pa.StructType:
        if self.count(self.name, ()) > MOST_COLUMNS:
            raise SpecError(f"more than {MOST_COLUMNS} columns", source=self.name)
        return self.struct(self.name, self.name)

    def count(self, name: str, open_: tuple[str, ...]) -> int:
        """Count the columns of a structure.

        A spec can use the same structure many times, and each use counts.
        """
        if name in open_:
            # The fields come from several specs.
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
        column_type = self.struct(path, kind.name) if kind.is_struct else _PRIMITIVES[kind.name]
        return pa.list_(column_type) if kind.is_array else column_type


def merge(path: str, kinds: Sequence[pa.DataType]) -> pa.DataType:
    """Return a type for values of all ``kinds``. Raises `SpecError` if there is no such type."""
    first = kinds[0]
    if all(kind.equals(first) for kind in kinds):
        return first
    if all(pa.types.is_struct(kind) for kind in kinds):
        return _merge_structs(path, kinds)
    if all(pa.types.is_list(kind) for kind in kinds):
        return pa.list_(merge(path, [kind.value_type for kind in kinds]))
    if all(pa.types.is_integer(kind) for kind in kinds):
        return max(kinds, key=lambda kind: kind.bit_width)
    raise SpecError(
        f"the types {', '.join(map(str, kinds))} have no common column type", source=path
    )


def _merge_structs(path: str, kinds: Sequence[pa.StructType]) -> pa.StructType:
    kinds_by_name: dict[str, list[pa.DataType]] = {}
    for field in itertools.chain.from_iterable(kinds):
        kinds_by_name.setdefault(field.name, []).append(field.type)
    # The raw tags stay last, whatever fields older specs add.
    kinds_by_name[UNKNOWN_TAGGED_FIELDS] = kinds_by_name.pop(UNKNOWN_TAGGED_FIELDS)
    return pa.struct(
        [(name, merge(f"{path}.{name}", each)) for name, each in kinds_by_name.items()]
    )


def in_column(value: Any) -> Any:
    """Return the value of a field that is neither an array nor a structure. None becomes null.

    >>> in_column(uuid.UUID(int=1)), in_column(7), in_column(None)
    ('AAAAAAAAAAAAAAAAAAAAAQ', 7, None)
    """
    return uuid_text(value) if isinstance(value, uuid.UUID) else value


def raw_tagged_fields(unknown: Mapping[int, bytes]) -> list[dict[str, Any]]:
    """Return unknown tagged fields as a value of `RAW_TAGGED_FIELDS`, sorted by tag.

    >>> raw_tagged_fields({7: b"b", 2: b"a"})
    [{'tag': 2, 'data': b'a'}, {'tag': 7, 'data': b'b'}]
    """
    return [{"tag": tag, "data": unknown[tag]} for tag in sorted(unknown)]


_INT32 = 4


def validate(data: pa.Array, path: str = "", *, full: bool = False) -> None:
    """Raise `CodecError` for an array whose buffers do not match its type."""
    try:
        data.validate(full=full)
    except pa.ArrowException as error:
        raise CodecError(f"not a valid Arrow array: {error}", path=path) from None


def validate_nulls(data: pa.Array, path: str) -> None:
    """Raise `CodecError` for text or lists with nulls if the int32 offsets decrease.

    Kernels do not compare the offsets of a null row. Without this check, the rows next to it could
    overlap.
    """
    if not data.null_count:
        return
    offsets = np.frombuffer(data.buffers()[1], np.int32, len(data) + 1, _INT32 * data.offset)
    if (offsets[1:] < offsets[:-1]).any():
        validate(data, path, full=True)


def cast(data: pa.Array, kind: pa.DataType, path: str) -> pa.Array:
    """Return a column converted to another type. Raises `EncodeError` if values would be lost."""
    if data.type == kind:
        return data
    if not _is_flat(data.type):
        validate(data, path, full=True)
    try:
        return data.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise EncodeError(f"cannot convert {data.type} to {kind}: {error}", path=path) from None


def as_list(data: pa.Array, path: str) -> pa.ListArray:
    """Return a column of lists of any kind as lists with int32 offsets."""
    kind = data.type
    if pa.types.is_list(kind):
        return data
    if not (pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)):
        raise EncodeError(f"expected a list column, got {kind}", path=path)
    return cast(data, pa.list_(kind.value_type), path)


def _is_flat(kind: pa.DataType) -> bool:
    """Return whether a cast of the type uses only the first and the last offset."""
    text = {pa.null(), pa.binary(), pa.string(), pa.large_binary(), pa.large_string()}
    return bool(kind in text or pa.types.is_primitive(kind))


class ColumnNode:
    """A column of a struct, a list, text or numbers. ``number`` is the column's row in the table.

    Columns are numbered from the outside in, so the elements of a list come after the list.
    ``level`` is the number of the array that contains the column, or 0 if no array does. ``items``
    is the level of a list's elements.
    """

    def __init__(self, tree: ColumnTree, kind: pa.DataType, level: int) -> None:
        self.kind = kind
        self.level = level
        self.number = len(tree.nodes)
        tree.nodes.append(self)
        self.items = -1
        self.width = 0
        # Two facts about a field: whether any version has it, and whether it may be null.
        self.used = False
        self.nullable = False
        self.fields: dict[str, ColumnNode] = {}
        self.is_struct = bool(pa.types.is_struct(kind))
        self.is_list = bool(pa.types.is_list(kind))
        self.is_text = kind in {pa.string(), pa.binary()}
        self.is_tagged_fields = bool(kind == RAW_TAGGED_FIELDS)
        if self.is_struct:
            self.fields = {field.name: ColumnNode(tree, field.type, level) for field in kind}
        elif self.is_list:
            self.items = tree.levels
            tree.levels += 1
            self.element = ColumnNode(tree, kind.value_type, self.items)
        elif not self.is_text:
            # For kernels, a bool is a byte.
            self.width = max(8, kind.bit_width) // 8

    def use(self) -> None:
        """Mark the column as filled, as well as the columns for raw tagged fields in it."""
        self.used = True
        if self.is_tagged_fields:
            for node in (self.element, *self.element.fields.values()):
                node.used = True


class ColumnTree:
    """All columns of a message. ``levels`` is the number of arrays, plus one for the rows."""

    def __init__(self, kind: pa.StructType) -> None:
        self.nodes: list[ColumnNode] = []
        self.levels = 1
        self.root = ColumnNode(self, kind, 0)

    def used(self) -> Iterator[ColumnNode]:
        """Yield the columns that a program fills, from the outside in."""
        return (node for node in self.nodes if node.used)
