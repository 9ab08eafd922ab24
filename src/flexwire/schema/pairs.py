"""A comparison of two specs: the structures of one version, and their matched fields."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from flexwire.schema.resolve import resolve
from flexwire.schema.spec import FIRST
from flexwire.wire.schema import NullableStruct, Presence, Schema, struct_of
from flexwire.wire.types import ArrayType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flexwire.schema.spec import FieldSpec, MessageSpec, Position
    from flexwire.wire.schema import Field
    from flexwire.wire.types import Type


@dataclass(frozen=True, slots=True)
class StructureMember:
    """A field of a structure in one version, as its spec describes it and as resolved."""

    spec: FieldSpec
    field: Field

    @property
    def name(self) -> str:
        """The name in the spec."""
        return self.spec.name

    @property
    def kind(self) -> str:
        """The type in the protocol. All structures count as equal, and records count as bytes.

        Numbers keep the type in the spec, so that int16 and uint16 are different.
        """
        name = "structure" if self.spec.type.is_struct else self.spec.type.name
        return f"{'[]' if self.spec.type.is_array else ''}{'bytes' if name == 'records' else name}"

    @property
    def is_there(self) -> bool:
        """True if the version has the field."""
        return self.field.presence is not Presence.ABSENT

    @property
    def is_inline(self) -> bool:
        """True if the field is always present."""
        return self.field.presence is Presence.INLINE

    @property
    def is_tagged(self) -> bool:
        """True if the field is tagged."""
        return self.field.presence is Presence.TAGGED


class SpecVersion:
    """A spec in one version. Raises `SpecError` if the version has no layout."""

    def __init__(self, spec: MessageSpec, version: int) -> None:
        self.spec = spec
        self.schema = resolve(spec, version)
        self._structs = spec.fields_by_structure()

    def members(self, schema: Schema) -> tuple[StructureMember, ...]:
        """Return the fields of a structure in the order of the spec, including absent ones."""
        specs = {field.name: field for field in self._structs[schema.name]}
        return tuple(
            StructureMember(specs[field_spec.name], field_spec) for field_spec in schema.fields
        )


@dataclass(frozen=True, slots=True)
class FieldPair:
    """A field of either spec, paired with the same field of the other spec.

    If a spec does not contain the field at all, the side of that spec is None.
    """

    old: StructureMember | None
    new: StructureMember | None


@dataclass(frozen=True)
class StructurePair:
    """A structure that both specs have in one version.

    ``path`` is the path of the field with this structure as its type, or empty for the message
    itself. ``position`` is the place of this field, or of the message, in the new spec.
    """

    path: str
    position: Position
    old: Schema
    new: Schema
    old_members: tuple[StructureMember, ...]
    new_members: tuple[StructureMember, ...]

    @property
    def name(self) -> str:
        """The name of the structure for use in a sentence."""
        return self.path or self.new.name

    def path_of(self, member: StructureMember) -> str:
        """Return the path of a field of the structure."""
        return f"{self.path}.{member.name}" if self.path else member.name

    @property
    def same_flexibility(self) -> bool:
        """True if both versions are flexible, or if neither version is."""
        return self.old.flexible == self.new.flexible

    @cached_property
    def pairs(self) -> tuple[FieldPair, ...]:
        """The fields, matched by place or tag if only the name has changed, and otherwise by name.

        Every field is in exactly one pair. Renamed fields are matched first, because names are not
        sent, and a spec may use the old name for another field in later versions.
        """
        by_name = {new_member.name: new_member for new_member in self.new_members}
        renamed = self._renamed()
        taken = set(renamed.values())
        renamed |= {
            old: new
            for old, new in self._respelled().items()
            if old not in renamed and new not in taken
        }
        taken = set(renamed.values())
        pairs = []
        for old_member in self.old_members:
            name = renamed.get(
                old_member.name, None if old_member.name in taken else old_member.name
            )
            pairs.append(FieldPair(old_member, None if name is None else by_name.get(name)))
        matched = {pair.new.name for pair in pairs if pair.new}
        pairs += [
            FieldPair(None, new_member)
            for new_member in self.new_members
            if new_member.name not in matched
        ]
        return tuple(pairs)

    @cached_property
    def new_names(self) -> dict[str, str]:
        """The new name of each field that both specs have, by its old name."""
        return {pair.old.name: pair.new.name for pair in self.pairs if pair.old and pair.new}

    def _renamed(self) -> dict[str, str]:
        """Return the new names of inline fields that are at the same place, by their old names."""
        old, new = ([member for member in side if member.is_inline] for side in self._sides)
        if len(old) != len(new):
            return {}
        # If both sides have a name in this version, the name means the same field, wherever this
        # field is. If the other side has the name only in other versions, that proves nothing.
        old_names, new_names = (
            {member.name for member in side if member.is_there} for side in self._sides
        )
        return {
            member.name: other.name
            for member, other in zip(old, new, strict=True)
            if member.name not in new_names
            and other.name not in old_names
            and member.kind == other.kind
        }

    def _respelled(self) -> dict[str, str]:
        """Return the new names of tagged fields whose names differ only in case, by old name."""
        new = {
            new_member.spec.tag: new_member
            for new_member in self.new_members
            if new_member.spec.tag is not None
        }
        return {
            old_member.name: new[old_member.spec.tag].name
            for old_member in self.old_members
            if old_member.spec.tag in new
            and old_member.name.casefold() == new[old_member.spec.tag].name.casefold()
            and old_member.kind == new[old_member.spec.tag].kind
        }

    @property
    def _sides(self) -> tuple[tuple[StructureMember, ...], tuple[StructureMember, ...]]:
        return self.old_members, self.new_members

    def both(self) -> Iterator[tuple[StructureMember, StructureMember]]:
        """Yield the pairs of fields that both sides have in this version, inline or tagged."""
        for pair in self.pairs:
            if pair.old and pair.new and pair.old.is_there and pair.new.is_there:
                yield pair.old, pair.new


def structure_pairs(old: SpecVersion, new: SpecVersion) -> Iterator[StructurePair]:
    """Yield every structure that both specs have: first the message, then from the outside inwards.

    If several fields have the same structure, the structure is yielded only at the first of them.
    Otherwise a spec could double the number of structures at every level.
    """
    seen: set[tuple[str, str]] = set()
    pending = [("", FIRST, old.schema, new.schema)]
    while pending:
        path, position, old_schema, new_schema = pending.pop()
        if (old_schema.name, new_schema.name) in seen:
            continue
        seen.add((old_schema.name, new_schema.name))
        pair = StructurePair(
            path,
            position,
            old_schema,
            new_schema,
            old.members(old_schema),
            new.members(new_schema),
        )
        yield pair
        inside = []
        for old_member, new_member in pair.both():
            old_inner, new_inner = (
                struct_of(old_member.field.type),
                struct_of(new_member.field.type),
            )
            if old_inner is not None and new_inner is not None:
                inside.append(
                    (pair.path_of(new_member), new_member.spec.position, old_inner, new_inner)
                )
        pending += reversed(inside)


Paired = tuple["Schema", "Field", "Field"]


def same_bytes(left: Type, right: Type) -> bool:
    """Return whether both types write equal values as equal bytes, whatever their names are."""
    return _pairs(left, right) is not None


def former_names(schema: Schema, others: Iterable[Schema]) -> dict[str, dict[str, str]]:
    """Return the names that this version's fields have in other specs with the same bytes.

    For each structure, the result maps the JSON name in another spec to the JSON name here. A name
    that the structure itself has in this version keeps its own meaning.
    """
    names: dict[str, dict[str, str]] = {}
    for other in others:
        for owner, mine, its in _pairs(schema, other) or ():
            present = {field.json_name for field in (*owner.inline, *owner.tagged.values())}
            if its.json_name not in present:
                names.setdefault(owner.name, {}).setdefault(its.json_name, mine.json_name)
    return names


def _pairs(left: Type, right: Type) -> list[Paired] | None:
    """Return the pairs of fields with the same bytes, or None if the bytes differ.

    Each pair includes the structure of the first type that contains the field.
    """
    pairs: list[Paired] = []
    # Structures may share inner structures, so there can be far more places than structures.
    seen: set[tuple[int, int]] = set()

    def same(left: Type, right: Type) -> bool:
        if isinstance(left, Schema) and isinstance(right, Schema):
            return (id(left), id(right)) in seen or same_structs(left, right)
        mine, its = struct_of(left), struct_of(right)
        if mine is None or its is None:
            return _form(left) == _form(right)
        return _form(left) == _form(right) and same(mine, its)

    def same_structs(left: Schema, right: Schema) -> bool:
        seen.add((id(left), id(right)))
        if (
            left.flexible != right.flexible
            or len(left.inline) != len(right.inline)
            or left.tagged.keys() != right.tagged.keys()
        ):
            return False
        mine, its = (*left.inline, *left.tagged.values()), (*right.inline, *right.tagged.values())
        both = list(zip(mine, its, strict=True))
        pairs.extend((left, *pair) for pair in both)
        return all(same(one_field.type, other_field.type) for one_field, other_field in both)

    return pairs if same(left, right) else None


def _form(kind: Type) -> object:
    """Return how a value is written, except for structures inside it. Records count as bytes."""
    if isinstance(kind, ArrayType):
        return (kind.name, _form(kind.element))
    if isinstance(kind, NullableStruct):
        return ("nullable structure", kind.tagged)
    return "structure" if isinstance(kind, Schema) else kind.name.replace("RECORDS", "BYTES")
