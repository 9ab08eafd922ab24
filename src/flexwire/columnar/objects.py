"""Convert objects to columns: many messages of one version to a column of `message_type`.

`decode_messages` starts from bytes and is faster. This module starts from objects that have already
been examined or changed, as in `flexwire analyze`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from flexwire.columnar.types import RAW_TAGGED_FIELDS, in_column, raw_tagged_fields
from flexwire.wire import types
from flexwire.wire.schema import UNKNOWN_TAGGED_FIELDS, NullableStruct, Presence, Schema

if TYPE_CHECKING:
    from collections.abc import Sequence


def message_column(
    schema: Schema, kind: pa.StructType, messages: Sequence[Any | None]
) -> pa.StructArray:
    """Return the column for messages that have the same ``schema``. None becomes null.

    ``kind`` is the type of the column, the message's `message_type`.
    """
    fields = schema.by_attribute
    columns = []
    for column in kind:
        field = fields.get(column.name)
        if column.name == UNKNOWN_TAGGED_FIELDS:
            raw = ({} if each is None else each.unknown_tagged_fields for each in messages)
            columns.append(pa.array(map(raw_tagged_fields, raw), RAW_TAGGED_FIELDS))
        elif field is None or field.presence is Presence.ABSENT:
            columns.append(pa.nulls(len(messages), column.type))
        else:
            values = [None if each is None else getattr(each, column.name) for each in messages]
            columns.append(_column(field.type, column.type, values))
    return pa.StructArray.from_arrays(columns, fields=list(kind), mask=_nulls(messages))


def _column(wire: types.Type, kind: pa.DataType, values: Sequence[Any]) -> pa.Array:
    match wire:
        case types.ArrayType():
            offsets, elements = [0], list[Any]()
            for array in values:
                elements += array or ()
                offsets.append(len(elements))
            inner = _column(wire.element, kind.value_type, elements)
            return pa.ListArray.from_arrays(
                pa.array(offsets, pa.int32()), inner, type=kind, mask=_nulls(values)
            )
        case NullableStruct():
            return message_column(wire.schema, kind, values)
        case Schema():
            return message_column(wire, kind, values)
        case types.Uuid():
            return pa.array([in_column(value) for value in values], kind)
    return pa.array(values, kind)


def _nulls(values: Sequence[Any]) -> pa.BooleanArray:
    return pa.array([value is None for value in values], pa.bool_())
