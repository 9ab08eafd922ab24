"""Message tables without the bytes of record batches, which stand in the table of records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from flexwire.capture.columns.withheld import WITHHELD_BYTES
from flexwire.tables.record_places import RECORDS_FIELDS

if TYPE_CHECKING:
    from collections.abc import Sequence

# What a field of records is called where only its size is kept.
SIZE_SUFFIX = "_size"
_PATHS = tuple(dict.fromkeys(one.path for one in RECORDS_FIELDS))


def type_without_record_bytes(kind: pa.StructType) -> pa.StructType:
    """The type of a message's column with an int64 in the place of record bytes.

    Where they were ``records`` it is ``records_size``; a message without records has its type.
    """
    for path in _PATHS:
        if _leads_to_bytes(kind, path):
            return _sized_type(kind, path)
    return kind


def without_record_bytes(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows of a message's table with the sizes of record bytes in their place.

    A size is null where the field is null, and where the bytes are withheld: theirs is not known.
    Nothing else is copied.
    """
    at = rows.schema.get_field_index("body")
    body = rows.column(at)
    for path in _PATHS:
        if _leads_to_bytes(body.type, path):
            sized = _sized(body, path)
            return rows.set_column(at, pa.field("body", sized.type), sized)
    return rows


def with_sizes(rows: pa.RecordBatch, sizes: Sequence[int | None]) -> pa.RecordBatch:
    """Rows of a message's table with these sizes in the place of record bytes, in their order.

    Where there is another number of them than of partitions, which is which is not known: all are
    null then.
    """
    sized = without_record_bytes(rows)
    body = sized.column("body")
    for path in _PATHS:
        if _leads_to_bytes(rows.column("body").type, path):
            told = _told(body, (*path[:-1], path[-1] + SIZE_SUFFIX), sizes)
            return sized.set_column(rows.schema.get_field_index("body"), "body", told)
    return sized


def _told(array: pa.Array, path: tuple[str, ...], sizes: Sequence[int | None]) -> pa.Array:
    if not path:
        return pa.array(sizes, pa.int64()) if len(array) == len(sizes) else array
    if pa.types.is_list(array.type):
        found = array.null_count, array.offset, [_told(array.values, path, sizes)]
        return pa.Array.from_buffers(array.type, len(array), array.buffers()[:2], *found)
    at = array.type.get_field_index(path[0])
    fields = [array.field(number) for number in range(array.type.num_fields)]
    fields[at] = _told(fields[at], path[1:], sizes)
    nulls = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(fields, fields=list(array.type), mask=nulls)


def _leads_to_bytes(kind: pa.DataType, path: tuple[str, ...]) -> bool:
    if not path:
        return bool(kind == pa.binary())
    if pa.types.is_list(kind):
        kind = kind.value_type
    if not pa.types.is_struct(kind) or kind.get_field_index(path[0]) < 0:
        return False
    return _leads_to_bytes(kind.field(path[0]).type, path[1:])


def _sized_type(kind: pa.DataType, path: tuple[str, ...]) -> pa.DataType:
    if pa.types.is_list(kind):
        return pa.list_(_sized_type(kind.value_type, path))
    fields = list(kind)
    at = kind.get_field_index(path[0])
    if len(path) == 1:
        fields[at] = pa.field(path[0] + SIZE_SUFFIX, pa.int64())
    else:
        fields[at] = pa.field(path[0], _sized_type(fields[at].type, path[1:]))
    return pa.struct(fields)


def _sized(array: pa.Array, path: tuple[str, ...]) -> pa.Array:
    if not path:
        return _sizes(array)
    kind = _sized_type(array.type, path)
    if pa.types.is_list(array.type):
        children = [_sized(array.values, path)]
        found = array.null_count, array.offset, children
        return pa.Array.from_buffers(kind, len(array), array.buffers()[:2], *found)
    at = array.type.get_field_index(path[0])
    fields = [array.field(number) for number in range(array.type.num_fields)]
    fields[at] = _sized(fields[at], path[1:])
    nulls = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays(fields, fields=list(kind), mask=nulls)


def _sizes(data: pa.BinaryArray) -> pa.Int64Array:
    is_withheld = pc.equal(data, WITHHELD_BYTES)
    sizes = pc.binary_length(data).cast(pa.int64())
    if not is_withheld.true_count:
        return sizes
    return pc.if_else(is_withheld, pa.scalar(None, pa.int64()), sizes)
