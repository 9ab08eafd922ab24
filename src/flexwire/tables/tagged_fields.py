"""Count the tagged fields in a column of messages, by row.

A known field counts if its value is not its default, because Kafka does not write defaults. The
size of a known field on the wire is unknown. An unknown field always counts, and so does its size,
unless the field is withheld.

One pass over the columns of a batch is enough. Usually, either no row has a tagged field, or all
rows have the same few tagged fields. A whole column is therefore compared with its default, and
individual rows are examined only if a value differs. Rows of several versions are processed
together, each with its own schema.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.capture.pairing.state import WITHHELD_BYTES
from flexwire.columnar.types import in_column
from flexwire.wire.schema import UNKNOWN_TAGGED_FIELDS, Presence, Schema, struct_of
from flexwire.wire.types import ArrayType

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from flexwire.codec import Message
    from flexwire.wire.schema import Field

    Words = np.ndarray[Any, Any]

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
"""The column of tagged fields: the structure's path, tag, name, number of uses, and bytes."""


def differs(values: pa.Array, field: Field, message_class: type[Message]) -> pa.BooleanArray:
    """Return whether each value is present and differs from a tagged field's default."""
    if field.default is None:
        return values.is_valid()
    inner = struct_of(field.type)
    if pa.types.is_struct(values.type) and inner is not None:
        default = message_class.definition.classes[inner.name]()
        return pc.and_(values.is_valid(), pc.invert(_equals(values, inner, default)))
    # The default of an array is the empty array.
    is_array = pa.types.is_list(values.type)
    is_default = _is(values, () if is_array else in_column(field.default))
    return pc.and_(values.is_valid(), pc.invert(is_default))


def _equals(values: pa.StructArray, schema: Schema, default: Any) -> pa.BooleanArray:
    """Return whether each structure equals an object in all fields of the version."""
    same = values.is_valid()
    for name, field in schema.by_attribute.items():
        if field.presence is Presence.ABSENT:
            continue
        column = values.field(values.type.get_field_index(name))
        value, inner = getattr(default, name), struct_of(field.type)
        if value is not None and inner is not None and pa.types.is_struct(column.type):
            same = pc.and_(same, _equals(column, inner, value))
        else:
            same = pc.and_(same, _is(column, in_column(value)))
    unknown = values.field(values.type.get_field_index(UNKNOWN_TAGGED_FIELDS))
    return pc.and_(same, _is(unknown, ()))


def _is(values: pa.Array, value: Any) -> pa.BooleanArray:
    """Return whether each value equals ``value``. An empty sequence means an empty array."""
    if value is None:
        return values.is_null()
    if pa.types.is_list(values.type):
        equal = pc.equal(pc.list_value_length(values), len(value))
    else:
        equal = pc.equal(values, pa.scalar(value, values.type))
    return equal.fill_null(False) if equal.null_count else equal


_USE = TAGGED_FIELD_USES.value_type
# A tag is a 32-bit unsigned varint.
_TAG_BITS = 32


def tagged_field_uses(
    column: pa.StructArray, versions: Words, layouts: Mapping[int, type[Message]]
) -> pa.ListArray:
    """Return the uses of each message in a column, as a column of `TAGGED_FIELD_USES`.

    ``versions`` contains the version of each row, and ``layouts`` contains the class that reads
    each version. A null message has no uses.
    """
    walk = _ColumnWalk(versions, layouts)
    schemas = {
        version: message_class.definition.schema(version)
        for version, message_class in layouts.items()
    }
    # In a message, either all structures have tag sections, or none has one.
    structures = {
        version: _TaggedStructures(schema, layouts[version], "")
        for version, schema in schemas.items()
        if schema.flexible
    }
    if structures:
        walk.structs(_Items(column, None, None), structures)
    return _to_arrow(walk.uses, len(column))


class _TaggedStructures(NamedTuple):
    """The structures in a column that are read in one version: their schema, class and path."""

    schema: Schema
    message_class: type[Message]
    path: str


@dataclass(frozen=True)
class _Items:
    """Adjacent values of a column. ``outer`` contains the lists that enclose the values."""

    values: pa.Array
    outer: _Items | None
    lengths: Words | None

    @cached_property
    def rows(self) -> Words:
        """The row of each value's message."""
        if self.outer is None or self.lengths is None:
            return np.arange(len(self.values))
        return np.repeat(self.outer.rows, self.lengths)

    def at(self, values: pa.Array) -> _Items:
        """Return other values for the same rows, one for each value of this object."""
        return _Items(values, self.outer, self.lengths)

    def elements(self) -> _Items:
        """Return the elements of these lists."""
        offsets = np.asarray(self.values.offsets)
        first, last = int(offsets[0]), int(offsets[-1])
        return _Items(self.values.values.slice(first, last - first), self, np.diff(offsets))


class _TaggedRows(NamedTuple):
    """The uses of one tagged field, by ascending row. Only unknown fields have ``sizes``."""

    rows: Words
    path: str
    tags: Words
    name: str | None
    times: Words
    sizes: pa.Array


class _ColumnWalk:
    """Visit columns in order, and return uses in the order in which objects would be read."""

    def __init__(self, versions: Words, layouts: Mapping[int, type[Message]]) -> None:
        self.versions = versions
        self.count = len(layouts)
        self.uses: list[_TaggedRows] = []

    def structs(self, items: _Items, structures: dict[int, _TaggedStructures]) -> None:
        """Count the tagged fields in structures and in everything that they contain."""
        if not len(items.values):
            return
        for number, name in enumerate(child.name for child in items.values.type):
            if name == UNKNOWN_TAGGED_FIELDS:
                self._count_unknown(items.at(items.values.field(number)), structures)
                continue
            fields = {
                version: field
                for version, holder in structures.items()
                if (field := holder.schema.by_attribute.get(name)) is not None
                and field.presence is not Presence.ABSENT
                and (field.tag is not None or struct_of(field.type) is not None)
            }
            if fields:
                self._field(items, number, fields, structures)

    def _field(
        self,
        items: _Items,
        number: int,
        fields: dict[int, Field],
        structures: dict[int, _TaggedStructures],
    ) -> None:
        values = items.at(items.values.field(number))
        for versions in _alike(fields, structures):
            field, where = fields[versions[0]], structures[versions[0]]
            if field.tag is not None:
                self._count_known(items, values, field, where, versions)
        below = {
            version: _TaggedStructures(
                inner, structures[version].message_class, _path(structures[version].path, field)
            )
            for version, field in fields.items()
            if (inner := struct_of(field.type)) is not None
        }
        if below:
            is_list = pa.types.is_list(values.values.type)
            self.structs(values.elements() if is_list else values, below)

    def _count_known(
        self,
        items: _Items,
        values: _Items,
        field: Field,
        where: _TaggedStructures,
        versions: Sequence[int],
    ) -> None:
        counts = differs(values.values, field, where.message_class)
        if field.nullable and field.default is not None:
            # If the structure is present, a null value differs from the default.
            nulls = pc.and_(values.values.is_null(), items.values.is_valid())
            counts = pc.or_(counts, nulls)
        if not counts.true_count:
            return
        rows = items.rows[np.asarray(counts)]
        rows, times = np.unique(self._of_versions(rows, rows, versions), return_counts=True)
        if len(rows):
            tags = np.full(len(rows), field.tag)
            sizes = pa.nulls(len(rows), pa.int64())
            self.uses.append(_TaggedRows(rows, where.path, tags, field.json_name, times, sizes))

    def _count_unknown(self, items: _Items, structures: dict[int, _TaggedStructures]) -> None:
        offsets = np.asarray(items.values.offsets)
        if offsets[0] == offsets[-1]:
            return
        fields = items.elements()
        tags = np.asarray(fields.values.field("tag"))
        data = fields.values.field("data")
        shown = np.asarray(pc.not_equal(data, WITHHELD_BYTES))
        lengths = np.asarray(pc.binary_length(data))
        for path in dict.fromkeys(structure.path for structure in structures.values()):
            versions = [
                version for version, structure in structures.items() if structure.path == path
            ]
            of = self._of_versions(np.arange(len(tags)), fields.rows, versions)
            self._add_unknown(path, fields.rows[of], tags[of], np.where(shown, lengths, -1)[of])

    def _add_unknown(self, path: str, rows: Words, tags: Words, sizes: Words) -> None:
        """Count fields by row and tag, in the order of a row's fields. A size of -1 is unknown."""
        _, first, which = np.unique(
            rows << _TAG_BITS | tags, return_index=True, return_inverse=True
        )
        if not len(first):
            return
        order = np.argsort(first)
        first = first[order]
        times = np.bincount(which)[order]
        shown = np.bincount(which, weights=sizes >= 0)[order] > 0
        total = np.bincount(which, weights=np.maximum(sizes, 0))[order].astype(np.int64)
        total_shown = pa.array(total, mask=~shown)
        self.uses.append(_TaggedRows(rows[first], path, tags[first], None, times, total_shown))

    def _of_versions(self, values: Words, rows: Words, versions: Sequence[int]) -> Words:
        """Return the values whose message is in one of these versions.

        ``rows`` contains the values' rows.
        """
        if len(versions) == self.count:
            return values
        return values[np.isin(self.versions[rows], versions)]


def _path(path: str, field: Field) -> str:
    within = f"{path}.{field.json_name}" if path else field.json_name
    return f"{within}[]" if isinstance(field.type, ArrayType) else within


def _alike(
    fields: Mapping[int, Field], structures: Mapping[int, _TaggedStructures]
) -> list[list[int]]:
    """Group the versions in which a field has the same tag, name, path and default.

    The default of a structure depends on the defaults of all its fields.
    """
    groups: list[tuple[tuple[Any, ...], list[int]]] = []
    for version, field in fields.items():
        where = structures[version]
        inner = None if isinstance(field.type, ArrayType) else struct_of(field.type)
        identity = (
            field.tag,
            field.json_name,
            field.default,
            field.nullable,
            inner,
            where.path,
            where.message_class,
        )
        for other, versions in groups:
            if other == identity:
                versions.append(version)
                break
        else:
            groups.append((identity, [version]))
    return [versions for _, versions in groups]


def _to_arrow(uses_by_field: Sequence[_TaggedRows], rows: int) -> pa.ListArray:
    offsets = np.zeros(rows + 1, np.int32)
    if not uses_by_field:
        uses = pa.array([], _USE)
    else:
        owners = np.concatenate([use.rows for use in uses_by_field])
        # The uses of a row keep the order in which they were found.
        order = pa.array(np.argsort(owners, kind="stable"))
        np.cumsum(np.bincount(owners, minlength=rows), out=offsets[1:])
        each = np.repeat(np.arange(len(uses_by_field)), [len(use.rows) for use in uses_by_field])
        columns = {
            "path": pa.array([use.path for use in uses_by_field]).take(pa.array(each)),
            "tag": pa.array(np.concatenate([use.tags for use in uses_by_field])),
            "name": pa.array([use.name for use in uses_by_field], pa.string()).take(pa.array(each)),
            "times": pa.array(np.concatenate([use.times for use in uses_by_field])),
            "bytes": pa.concat_arrays([use.sizes for use in uses_by_field]),
        }
        uses = pa.StructArray.from_arrays(
            [columns[field.name] for field in _USE], fields=list(_USE)
        ).take(order)
    buffers = [None, pa.py_buffer(offsets)]
    return pa.Array.from_buffers(TAGGED_FIELD_USES, rows, buffers, children=[uses])
