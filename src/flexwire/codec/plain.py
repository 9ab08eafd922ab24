"""Message objects to and from the plain mappings that the reference executor works on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexwire.codec.structs import MessageStruct
from flexwire.wire.schema import UNKNOWN_TAGGED_FIELDS, NullableStruct, Schema, struct_of
from flexwire.wire.types import BOOLEAN, Array, Type

if TYPE_CHECKING:
    from collections.abc import Mapping


def to_plain(value: Any, kind: Type) -> Any:
    """Turn message structs into mappings wherever the type has a structure.

    Other values stay as they are, and nothing is looked at below what the type knows: a list may
    contain itself, or be its own elements so often that nobody could go through them all.
    """
    if isinstance(kind, NullableStruct):
        kind = kind.schema
    if isinstance(kind, Array) and struct_of(kind) and isinstance(value, list | tuple):
        return [to_plain(item, kind.element) for item in value]
    if not (isinstance(kind, Schema) and isinstance(value, MessageStruct)):
        return value
    types = {one.attribute: one.type for one in kind.fields}
    given = {name: getattr(value, name) for name in value.__struct_fields__}
    return {name: to_plain(one, types.get(name, BOOLEAN)) for name, one in given.items()}


def from_plain(
    plain: Mapping[str, Any], schema: Schema, classes: Mapping[str, type[MessageStruct]]
) -> MessageStruct:
    """Build the object of ``schema`` from what `Schema.read` gave; what is missing is default."""
    values = {
        one.attribute: _build(plain[one.attribute], one.type, classes)
        for one in schema.fields
        if one.attribute in plain
    }
    if plain.get(UNKNOWN_TAGGED_FIELDS):
        values[UNKNOWN_TAGGED_FIELDS] = dict(plain[UNKNOWN_TAGGED_FIELDS])
    return classes[schema.name](**values)


def _build(value: Any, kind: Type, classes: Mapping[str, type[MessageStruct]]) -> Any:
    if value is None:
        return None
    if isinstance(kind, Schema):
        return from_plain(value, kind, classes)
    if isinstance(kind, NullableStruct):
        return from_plain(value, kind.schema, classes)
    if isinstance(kind, Array) and isinstance(kind.element, Schema):
        return [from_plain(item, kind.element, classes) for item in value]
    return value
