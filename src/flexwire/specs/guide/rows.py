"""The fields of one version of a message as rows, and the differences between two versions."""

from __future__ import annotations

import json
import uuid
from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from flexwire.errors import SpecError
from flexwire.facts.units import shorten
from flexwire.printable import printable
from flexwire.schema.resolve import ZERO_UUID
from flexwire.wire.schema import NullableStruct, Schema, struct_of
from flexwire.wire.types import ArrayType
from flexwire.wire.varint import uuid_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from flexwire.schema.spec import FieldSpec, MessageSpec
    from flexwire.wire.schema import Field
    from flexwire.wire.types import Type


# A structure is repeated at every place where it is used, so a short spec could fill a disk.
# Kafka's largest message takes 90,000 characters, including the descriptions of fields.
LARGEST = 1_000_000
_ROW = 100
_LONGEST_TEXT = 1000
ASPECTS = ("type", "wire", "default", "properties")
"""The aspects of a field that can differ between two versions, as `FieldRow` names them."""


@dataclass(frozen=True, slots=True)
class FieldRow:
    """A field of one version.

    ``path`` consists of the names in the spec, beginning below the message and joined by dots.
    ``depth`` is the number of dots. ``type`` is the type in the spec. ``wire`` describes how the
    field is written in this version. ``default`` is JSON or "zero uuid". ``properties`` contains
    "nullable", "tag 0" and the like. ``versions`` and ``about`` are the same in all versions.
    """

    path: str
    name: str
    depth: int
    type: str
    wire: str
    default: str
    properties: tuple[str, ...]
    versions: str = ""
    about: str = ""

    @property
    def aspects(self) -> tuple[str | tuple[str, ...], ...]:
        """The values that can differ in another version, in the order of `ASPECTS`."""
        return (self.type, self.wire, self.default, self.properties)


class CharacterBudget:
    """The number of characters that are left for the fields of a message in all versions."""

    def __init__(self, message: str, left: int = LARGEST) -> None:
        self.message = message
        self.left = left

    def take(self, row: FieldRow) -> None:
        """Subtract the characters of a field. Raises `SpecError` if too few characters are left."""
        self.left -= _ROW + len(row.path) + len(row.default) + len(row.about)
        if self.left < 0:
            reason = f"the fields of all versions together take more than {LARGEST:,} characters"
            raise SpecError(f"too large for a guide: {reason}", source=self.message)


def make_rows(
    spec: MessageSpec, schema: Schema, present: Mapping[tuple[str, str], str], room: CharacterBudget
) -> tuple[FieldRow, ...]:
    """Return the fields of ``schema``, a version of ``spec``, inline fields before tagged fields.

    The fields of a structure follow the field that contains the structure. ``present`` contains the
    versions of every field, by structure and attribute. Raises `SpecError` for too many fields.
    """
    structs = spec.fields_by_structure()
    specs = {(name, field.attribute): field for name, fields in structs.items() for field in fields}

    def walk(structure: Schema, prefix: str, depth: int) -> Iterator[FieldRow]:
        for field in (*structure.inline, *structure.tagged.values()):
            key = structure.name, field.attribute
            row = _row(field, specs[key], prefix, depth, present[key])
            room.take(row)
            yield row
            inner = struct_of(field.type)
            if inner is not None:
                yield from walk(inner, f"{row.path}.", depth + 1)

    return tuple(walk(schema, "", 0))


def _row(field: Field, spec: FieldSpec, prefix: str, depth: int, versions: str) -> FieldRow:
    return FieldRow(
        path=prefix + field.name,
        name=field.name,
        depth=depth,
        type=str(spec.type),
        wire=wire_form(field.type),
        default=_text(_default(field.default)),
        properties=tuple(_properties(field, spec)),
        versions=versions,
        about=_text(spec.about),
    )


def wire_form(kind: Type) -> str:
    """Return a description of how a field of this type is written.

    >>> from flexwire.wire.types import String
    >>> wire_form(ArrayType(element=String(compact=True), compact=True, nullable=True))
    'COMPACT_NULLABLE_ARRAY of COMPACT_STRING'
    >>> wire_form(NullableStruct(Schema(name="Cursor")))
    'structure after an int8: -1 for null, else 1'
    """
    if isinstance(kind, ArrayType):
        return f"{kind.name} of {wire_form(kind.element)}"
    if isinstance(kind, NullableStruct):
        if kind.tagged:
            return "structure after a varint: 0 for null, else 1"
        return "structure after an int8: -1 for null, else 1"
    return "structure" if isinstance(kind, Schema) else kind.name


def _properties(field: Field, spec: FieldSpec) -> Iterator[str]:
    if field.nullable:
        yield "nullable"
    if field.tag is not None:
        yield f"tag {field.tag}"
    if field.ignorable:
        yield "ignorable"
    if spec.map_key:
        yield "map key"
    if spec.entity_type:
        yield spec.entity_type


def _default(value: Any) -> str:
    """Return a default as JSON. For bytes, the only default that a spec can have is empty."""
    if isinstance(value, uuid.UUID):
        # In base64url, the zero UUID consists of the same letter 22 times.
        if value == ZERO_UUID:
            return "zero uuid"
        value = uuid_text(value)
    return json.dumps("" if isinstance(value, bytes) else value, ensure_ascii=False)


def _text(text: str) -> str:
    return printable(shorten(text, _LONGEST_TEXT))


StepKind = Literal["same", "changed", "added", "removed"]


@dataclass(frozen=True, slots=True)
class RowStep:
    """The change of a field.

    ``old`` and ``new`` are the field's positions, or None where the field is missing.

    ``aspects`` contains the `ASPECTS` that changed. A field that moved counts as removed and added.
    """

    old: int | None
    new: int | None
    aspects: tuple[str, ...] = ()

    @property
    def kind(self) -> StepKind:
        """The name of the change."""
        if self.old is None:
            return "added"
        if self.new is None:
            return "removed"
        return "changed" if self.aspects else "same"


def steps(old: Sequence[FieldRow], new: Sequence[FieldRow]) -> list[RowStep]:
    """Return the steps from the old fields to the new ones, in order.

    Every field of both versions is in exactly one step. Fields are matched by path, and as many as
    possible keep their order.
    """
    row_steps = []
    next_old = next_new = 0
    for at_old, at_new in [*_common_order(old, new), (len(old), len(new))]:
        # Removed fields come before the fields that replaced them.
        row_steps += [RowStep(place, None) for place in range(next_old, at_old)]
        row_steps += [RowStep(None, place) for place in range(next_new, at_new)]
        if at_old < len(old):
            row_steps.append(RowStep(at_old, at_new, _changed_aspects(old[at_old], new[at_new])))
        next_old, next_new = at_old + 1, at_new + 1
    return row_steps


def _changed_aspects(old: FieldRow, new: FieldRow) -> tuple[str, ...]:
    pairs = zip(ASPECTS, old.aspects, new.aspects, strict=True)
    return tuple(aspect for aspect, before, after in pairs if before != after)


def _common_order(old: Sequence[FieldRow], new: Sequence[FieldRow]) -> list[tuple[int, int]]:
    """Return the longest list of common fields in the same order, as pairs of positions."""
    places = {row.path: place for place, row in enumerate(new)}
    both = [(at, places[row.path]) for at, row in enumerate(old) if row.path in places]
    # Patience sorting finds the longest run of ascending positions in the new fields. The top of
    # each pile is the lowest position with which a run of that length can end.
    tops: list[int] = []
    piles: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(both):
        pile = bisect_left(tops, place)
        before.append(piles[pile - 1] if pile else -1)
        if pile == len(tops):
            tops.append(place)
            piles.append(number)
        else:
            tops[pile], piles[pile] = place, number
    common = []
    number = piles[-1] if piles else -1
    while number >= 0:
        common.append(both[number])
        number = before[number]
    return common[::-1]
