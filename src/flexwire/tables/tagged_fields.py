"""The tagged fields in a column of messages, counted by row.

A known field counts where its value is not its default, which is when Kafka writes it; how many
bytes it took on the wire is not known. An unknown field always counts, with its bytes unless they
are withheld.

One walk over the columns of a batch. Nearly always no row has a tagged field, or all have the same
few: a column is compared with its default as a whole, and which rows its values belong to is looked
at only where one differs. Rows of several versions are walked together, each by its own schema.
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
"""The column of tagged fields: in which structure, its tag, its name, how often, its bytes."""


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


_USE = TAGGED_FIELD_USES.value_type
# A tag is an unsigned varint of 32 bits.
_TAG_BITS = 32


def tagged_field_uses(
    column: pa.StructArray, versions: Words, layouts: Mapping[int, type[Message]]
) -> pa.ListArray:
    """Give the uses in each message of a column, a column of `TAGGED_FIELD_USES`.

    ``versions`` are those of the rows, ``layouts`` the class that reads each; a null has no uses.
    """
    walk = _ColumnWalk(versions, layouts)
    schemas = {version: made.definition.schema(version) for version, made in layouts.items()}
    # A message has tag sections in all its structures or in none.
    held = {
        version: _TaggedStructures(schema, layouts[version], "")
        for version, schema in schemas.items()
        if schema.flexible
    }
    if held:
        walk.structs(_Items(column, None, None), held)
    return _to_arrow(walk.found, len(column))


class _TaggedStructures(NamedTuple):
    """What stands in a column in one version: structures of a message's class, and their path."""

    schema: Schema
    made: type[Message]
    path: str


@dataclass(frozen=True)
class _Items:
    """Values that stand side by side in a column; ``outer`` are those whose lists they stand in."""

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
        """Other values of the same rows, one for each."""
        return _Items(values, self.outer, self.lengths)

    def elements(self) -> _Items:
        """The elements of the lists that these are."""
        offsets = np.asarray(self.values.offsets)
        first, last = int(offsets[0]), int(offsets[-1])
        return _Items(self.values.values.slice(first, last - first), self, np.diff(offsets))


class _TaggedRows(NamedTuple):
    """One tagged field in some rows, ascending, or an unknown one; ``sizes`` of an unknown one."""

    rows: Words
    path: str
    tags: Words
    name: str | None
    times: Words
    sizes: pa.Array


class _ColumnWalk:
    """Goes through columns in their order, and keeps what it finds in the order of the objects."""

    def __init__(self, versions: Words, layouts: Mapping[int, type[Message]]) -> None:
        self.versions = versions
        self.count = len(layouts)
        self.found: list[_TaggedRows] = []

    def structs(self, items: _Items, held: dict[int, _TaggedStructures]) -> None:
        """Count the tagged fields of structures and of all that is in them."""
        if not len(items.values):
            return
        for number, name in enumerate(one.name for one in items.values.type):
            if name == UNKNOWN_TAGGED_FIELDS:
                self._unknown(items.at(items.values.field(number)), held)
                continue
            fields = {
                version: one
                for version, holder in held.items()
                if (one := holder.schema.by_attribute.get(name)) is not None
                and one.presence is not Presence.ABSENT
                and (one.tag is not None or struct_of(one.type) is not None)
            }
            if fields:
                self._field(items, number, fields, held)

    def _field(
        self,
        items: _Items,
        number: int,
        fields: dict[int, Field],
        held: dict[int, _TaggedStructures],
    ) -> None:
        values = items.at(items.values.field(number))
        for versions in _alike(fields, held):
            one, where = fields[versions[0]], held[versions[0]]
            if one.tag is not None:
                self._known(items, values, one, where, versions)
        below = {
            version: _TaggedStructures(inner, held[version].made, _path(held[version].path, one))
            for version, one in fields.items()
            if (inner := struct_of(one.type)) is not None
        }
        if below:
            is_list = pa.types.is_list(values.values.type)
            self.structs(values.elements() if is_list else values, below)

    def _known(
        self,
        items: _Items,
        values: _Items,
        one: Field,
        where: _TaggedStructures,
        versions: Sequence[int],
    ) -> None:
        counts = differs(values.values, one, where.made)
        if one.nullable and one.default is not None:
            # A null is not the default, where there is a structure that has it.
            nulls = pc.and_(values.values.is_null(), items.values.is_valid())
            counts = pc.or_(counts, nulls)
        if not counts.true_count:
            return
        rows = items.rows[np.asarray(counts)]
        rows, times = np.unique(self._of_versions(rows, rows, versions), return_counts=True)
        if len(rows):
            tags = np.full(len(rows), one.tag)
            sizes = pa.nulls(len(rows), pa.int64())
            self.found.append(_TaggedRows(rows, where.path, tags, one.json_name, times, sizes))

    def _unknown(self, items: _Items, held: dict[int, _TaggedStructures]) -> None:
        offsets = np.asarray(items.values.offsets)
        if offsets[0] == offsets[-1]:
            return
        fields = items.elements()
        tags = np.asarray(fields.values.field("tag"))
        data = fields.values.field("data")
        shown = np.asarray(pc.not_equal(data, WITHHELD_BYTES))
        lengths = np.asarray(pc.binary_length(data))
        for path in dict.fromkeys(one.path for one in held.values()):
            versions = [version for version, one in held.items() if one.path == path]
            of = self._of_versions(np.arange(len(tags)), fields.rows, versions)
            self._add_unknown(path, fields.rows[of], tags[of], np.where(shown, lengths, -1)[of])

    def _add_unknown(self, path: str, rows: Words, tags: Words, sizes: Words) -> None:
        """Count fields by row and tag, in the order in which a row has them; -1 is no size."""
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
        told = pa.array(total, mask=~shown)
        self.found.append(_TaggedRows(rows[first], path, tags[first], None, times, told))

    def _of_versions(self, values: Words, rows: Words, versions: Sequence[int]) -> Words:
        """Give those of the values, each with its row, whose message has one of the versions."""
        if len(versions) == self.count:
            return values
        return values[np.isin(self.versions[rows], versions)]


def _path(path: str, one: Field) -> str:
    within = f"{path}.{one.json_name}" if path else one.json_name
    return f"{within}[]" if isinstance(one.type, ArrayType) else within


def _alike(fields: Mapping[int, Field], held: Mapping[int, _TaggedStructures]) -> list[list[int]]:
    """Give together the versions in which a field has the same tag, name, path and default.

    The default of a structure is that of all its fields.
    """
    found: list[tuple[tuple[Any, ...], list[int]]] = []
    for version, one in fields.items():
        where = held[version]
        inner = None if isinstance(one.type, ArrayType) else struct_of(one.type)
        told = (one.tag, one.json_name, one.default, one.nullable, inner, where.path, where.made)
        for other, versions in found:
            if other == told:
                versions.append(version)
                break
        else:
            found.append((told, [version]))
    return [versions for _, versions in found]


def _to_arrow(found: Sequence[_TaggedRows], rows: int) -> pa.ListArray:
    offsets = np.zeros(rows + 1, np.int32)
    if not found:
        uses = pa.array([], _USE)
    else:
        owners = np.concatenate([one.rows for one in found])
        # A row's uses stay in the order in which the walk met them.
        order = pa.array(np.argsort(owners, kind="stable"))
        np.cumsum(np.bincount(owners, minlength=rows), out=offsets[1:])
        each = np.repeat(np.arange(len(found)), [len(one.rows) for one in found])
        columns = {
            "path": pa.array([one.path for one in found]).take(pa.array(each)),
            "tag": pa.array(np.concatenate([one.tags for one in found])),
            "name": pa.array([one.name for one in found], pa.string()).take(pa.array(each)),
            "times": pa.array(np.concatenate([one.times for one in found])),
            "bytes": pa.concat_arrays([one.sizes for one in found]),
        }
        uses = pa.StructArray.from_arrays(
            [columns[one.name] for one in _USE], fields=list(_USE)
        ).take(order)
    buffers = [None, pa.py_buffer(offsets)]
    return pa.Array.from_buffers(TAGGED_FIELD_USES, rows, buffers, children=[uses])
