"""Columns as a wider type: of a message's fields, those of all layouts that a table has."""

from __future__ import annotations

import pyarrow as pa


def conform(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Give a column as a type that has its fields and perhaps more, as `merge` makes one.

    Fields that it does not have are null, numbers become wider; what is as it was is not copied.
    """
    if array.type == kind:
        return array
    if pa.types.is_struct(kind):
        names = [one.name for one in array.type]
        fields = [
            conform(array.field(names.index(one.name)), one.type)
            if one.name in names
            else pa.nulls(len(array), one.type)
            for one in kind
        ]
        nulls = array.is_null() if array.null_count else None
        return pa.StructArray.from_arrays(fields, fields=list(kind), mask=nulls)
    if pa.types.is_list(kind):
        children = [conform(array.values, kind.value_type)]
        buffers = array.buffers()[:2]
        return pa.Array.from_buffers(
            kind, len(array), buffers, array.null_count, array.offset, children
        )
    return array.cast(kind)
