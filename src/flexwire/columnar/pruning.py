"""Some fields of a message, by their names: what is not asked for is left out of its column.

Where columns go on to Spark, Java makes a row of every value that a struct holds, which takes
several times as long as decoding it. So the fields that nobody wants are left out before, without
copying the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from flexwire.arguments import refuse

if TYPE_CHECKING:
    from collections.abc import Iterable

    # Names of fields within fields; none is the whole of what it is within.
    Path: TypeAlias = tuple[str, ...]


def pruned_type(kind: pa.StructType, wanted: Iterable[str]) -> pa.StructType:
    """Give a type with the fields that are wanted, in its own order; all where none is named.

    A name of a field in a structure has dots, ``topics.partitions.leader_id``, whether the
    structure stands alone or in an array. Raises `ArgumentError` for a name that there is not.

    >>> inner = pa.struct({"c": pa.int8(), "d": pa.int8()})
    >>> pruned_type(pa.struct({"a": pa.int8(), "b": pa.list_(inner)}), ["b.d"])
    StructType(struct<b: list<item: struct<d: int8>>>)
    """
    paths = {tuple(one.split(".")) for one in wanted}
    made: pa.StructType = _pruned(kind, paths, "a message") if paths else kind
    return made


def _pruned(kind: pa.DataType, paths: set[Path], within: str) -> pa.DataType:
    if () in paths:
        return kind
    if pa.types.is_list(kind):
        element = kind.value_field
        return pa.list_(element.with_type(_pruned(element.type, paths, within)))
    there = [one.name for one in kind] if pa.types.is_struct(kind) else []
    for path in sorted(paths):
        if path[0] not in there:
            known = f"fields of {within} ({', '.join(there) or 'it has none'})"
            raise refuse("fields", known, path[0])
    inner = {name: {path[1:] for path in paths if path[0] == name} for name in there}
    fields = [one for one in kind if inner[one.name]]
    return pa.struct(
        [one.with_type(_pruned(one.type, inner[one.name], one.name)) for one in fields]
    )


def pruned(values: pa.Array, kind: pa.DataType) -> pa.Array:
    """Give a column as a type that `pruned_type` gave; what it keeps is not copied."""
    if values.type == kind:
        return values
    mask = values.is_null() if values.null_count else None
    if pa.types.is_list(kind):
        if values.offset:
            values = pa.concat_arrays([values])
        inner = pruned(values.values, kind.value_type)
        return pa.ListArray.from_arrays(values.offsets, inner, type=kind, mask=mask)
    children = [pruned(values.field(one.name), one.type) for one in kind]
    return pa.StructArray.from_arrays(children, fields=list(kind), mask=mask)
