"""Objects into columns: many messages of one version, a column of `message_type`.

`decode_messages` takes bytes, and is what is fast. This takes objects that were looked at or
changed first, as `flexwire analyze` does, and counts the tagged fields that it meets.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from flexwire.columnar.types import RAW_TAGGED_FIELDS, in_column, raw_tagged_fields
from flexwire.wire import types
from flexwire.wire.schema import UNKNOWN_TAGGED_FIELDS, NullableStruct, Presence, Schema

if TYPE_CHECKING:
    from collections.abc import Sequence

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


@dataclass(slots=True)
class TaggedFieldUses:
    """The tagged fields that messages carry, by the row that each message stands in.

    A known one counts where its value is not its default, which is when Kafka writes it; what it
    took on the wire is not known. An unknown one counts always, with its bytes unless they are
    ``withheld``, which is what stands in the place of secrets.
    """

    withheld: bytes | None = None
    times: dict[int, Counter[tuple[str, int, str | None]]] = field(default_factory=dict)
    sizes: Counter[tuple[int, str, int]] = field(default_factory=Counter)

    def known(self, row: int, path: str, tag: int, name: str) -> None:
        """Count a tagged field of the spec."""
        self.times.setdefault(row, Counter())[path, tag, name] += 1

    def unknown(self, row: int, path: str, tag: int, data: bytes) -> None:
        """Count a tagged field that the spec does not have."""
        self.times.setdefault(row, Counter())[path, tag, None] += 1
        if data != self.withheld:
            self.sizes[row, path, tag] += len(data)

    def of(self, row: int) -> list[dict[str, Any]]:
        """The uses in one row, for a column of `TAGGED_FIELD_USES`."""
        return [
            {
                "path": path,
                "tag": tag,
                "name": name,
                "times": times,
                "bytes": self.sizes.get((row, path, tag)) if name is None else None,
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
    schema: Schema, kind: pa.StructType, messages: Sequence[Any | None], uses: TaggedFieldUses
) -> pa.StructArray:
    """Give the column of messages that all have ``schema``; None gives a null.

    ``kind`` is the column's type, `message_type` of the message. Counts the tagged fields it meets
    in ``uses``, by the message's index in ``messages``.
    """
    return _struct_column(schema, kind, _Items(messages, range(len(messages)), ""), uses)


def _struct_column(
    schema: Schema, kind: pa.StructType, items: _Items, uses: TaggedFieldUses
) -> pa.StructArray:
    fields = schema.by_attribute
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
            return pa.array([in_column(one) for one in items.values], kind)
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
    for row, holder in zip(items.rows, items.values, strict=True):
        # A structure that is null has no fields.
        if holder is not None and not _is_default(one, getattr(holder, one.attribute)):
            uses.known(row, items.path, one.tag, one.json_name)


def _is_default(one: Any, value: Any) -> bool:
    if isinstance(one.type, Schema | NullableStruct) and value is not None:
        return one.default is not None and bool(value == type(value)())
    return bool(one.type.is_default(value, one.default))
