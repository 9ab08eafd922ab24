"""Convert message objects to the reference executor's plain mappings, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexwire.codec.structs import MessageStruct
from flexwire.errors import EncodeError
from flexwire.wire.schema import UNKNOWN_TAGGED_FIELDS, Field, NullableStruct, Schema, struct_of
from flexwire.wire.types import ArrayType, Type

if TYPE_CHECKING:
    from collections.abc import Mapping


def to_plain(value: Any, kind: Type) -> Any:
    """Convert message structs to mappings wherever the type has a structure.

    Other values stay unchanged, and values are not followed deeper than the type. A list can
    contain itself, or contain the same elements so often that a visit to every element would never
    end.
    """
    if isinstance(kind, NullableStruct):
        kind = kind.schema
    if isinstance(kind, ArrayType) and struct_of(kind) and isinstance(value, list | tuple):
        return [_within(f"[{at}]", item, kind.element) for at, item in enumerate(value)]
    if not (isinstance(kind, Schema) and isinstance(value, MessageStruct)):
        return value
    fields = kind.by_attribute
    values = {name: _attribute(value, name, fields.get(name)) for name in value.__struct_fields__}
    return {
        name: _within(fields[name].json_name, member, fields[name].type)
        if name in fields
        else member
        for name, member in values.items()
    }


def _within(place: str, value: Any, kind: Type) -> Any:
    """Convert the value of a field or an element. Error paths begin at this field or index."""
    try:
        return to_plain(value, kind)
    except EncodeError as error:
        error.path = f"{place}{error.path if error.path.startswith('[') else f'.{error.path}'}"
        raise


def _attribute(value: MessageStruct, name: str, field: Field | None) -> Any:
    try:
        return getattr(value, name)
    except AttributeError:
        reason = f"the attribute of this {type(value).__name__} was deleted"
        raise EncodeError(reason, path=name if field is None else field.json_name) from None


def from_plain(
    plain: Mapping[str, Any], schema: Schema, classes: Mapping[str, type[MessageStruct]]
) -> MessageStruct:
    """Build the object for ``schema`` from the result of `Schema.read`, with defaults."""
    values = {
        field.attribute: _build(plain[field.attribute], field.type, classes)
        for field in schema.fields
        if field.attribute in plain
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
    if isinstance(kind, ArrayType) and isinstance(kind.element, Schema):
        return [from_plain(item, kind.element, classes) for item in value]
    return value
