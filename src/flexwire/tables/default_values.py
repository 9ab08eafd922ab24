"""Which values of a column are not a field's default, as a message class compares them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from flexwire.columnar.types import in_column
from flexwire.wire.schema import UNKNOWN_TAGGED_FIELDS, Presence, Schema, struct_of

if TYPE_CHECKING:
    from flexwire.codec import Message
    from flexwire.wire.schema import Field


def differs(values: pa.Array, one: Field, made: type[Message]) -> pa.BooleanArray:
    """Whether each value is there and not the default of a tagged field."""
    if one.default is None:
        return values.is_valid()
    inner = struct_of(one.type)
    if pa.types.is_struct(values.type) and inner is not None:
        default = made.definition.classes[inner.name]()
        return pc.and_(values.is_valid(), pc.invert(_equals(values, inner, default)))
    # The default of an array is the empty one.
    is_array = pa.types.is_list(values.type)
    is_default = _is(values, () if is_array else in_column(one.default))
    return pc.and_(values.is_valid(), pc.invert(is_default))


def _equals(values: pa.StructArray, schema: Schema, default: Any) -> pa.BooleanArray:
    """Whether each structure equals an object, in the fields that the version has."""
    same = values.is_valid()
    for name, one in schema.by_attribute.items():
        if one.presence is Presence.ABSENT:
            continue
        column = values.field(values.type.get_field_index(name))
        value, inner = getattr(default, name), struct_of(one.type)
        if value is not None and inner is not None and pa.types.is_struct(column.type):
            same = pc.and_(same, _equals(column, inner, value))
        else:
            same = pc.and_(same, _is(column, in_column(value)))
    unknown = values.field(values.type.get_field_index(UNKNOWN_TAGGED_FIELDS))
    return pc.and_(same, _is(unknown, ()))


def _is(values: pa.Array, value: Any) -> pa.BooleanArray:
    """Whether each value is this one; an empty sequence stands for an empty array."""
    if value is None:
        return values.is_null()
    if pa.types.is_list(values.type):
        equal = pc.equal(pc.list_value_length(values), len(value))
    else:
        equal = pc.equal(values, pa.scalar(value, values.type))
    return equal.fill_null(False) if equal.null_count else equal
