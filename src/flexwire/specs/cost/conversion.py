"""Convert values from one schema to another, and count the values that are lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from flexwire.errors import SpecError
from flexwire.schema.pairs import SpecVersion, structure_pairs
from flexwire.specs.cost.sizes import TAGGED_FIELDS, UNKNOWN, field_path
from flexwire.wire.schema import UNKNOWN_TAGGED_FIELDS, Presence, Schema, struct_of
from flexwire.wire.types import ArrayType

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterator, Mapping

    from flexwire.schema.spec import MessageSpec
    from flexwire.wire.schema import Field
    from flexwire.wire.tags import TagForm

    # The attributes that have a different name in the new structure, by the names of both
    # structures.
    Renames = Mapping[tuple[str, str], Mapping[str, str]]
    _Steps = tuple[str, ...]

MOST_FIELDS = 100_000
"""The largest number of fields in a message, because a spec can double the fields at every level.
"""


def renames(
    old: tuple[MessageSpec, int], new: tuple[MessageSpec, int]
) -> dict[tuple[str, str], dict[str, str]]:
    """Find the fields that differ only in their names between two specs, each at its version.

    Raises `SpecError` for a spec that cannot be laid out.
    """
    renamed: dict[tuple[str, str], dict[str, str]] = {}
    for pair in structure_pairs(SpecVersion(*old), SpecVersion(*new)):
        changed = {
            old_member.field.attribute: new_member.field.attribute
            for old_member, new_member in pair.both()
            if old_member.field.attribute != new_member.field.attribute
        }
        if changed:
            renamed[pair.old.name, pair.new.name] = changed
    return renamed


def fields_of(old: Schema, new: Schema, renamed: Renames) -> Iterator[tuple[Field, Field | None]]:
    """Pair the fields that the old side sends with the new schema's fields of the same name.

    A field that the new schema lacks is paired with None. A field that is missing only because of
    the new encoding counts as present.
    """
    names = renamed.get((old.name, new.name), {})
    for field in old.fields:
        if _is_missing(field):
            continue
        match = new.by_attribute.get(names.get(field.attribute, field.attribute))
        yield field, None if match is None or _is_missing(match) else match


def _is_missing(field: Field) -> bool:
    return field.presence is Presence.ABSENT and field.tag is None


class MatchedField(NamedTuple):
    """A field in both schemas: its path on each side, and the attributes that lead to the field."""

    steps: tuple[str, ...]
    old_path: str
    path: str
    old: Field
    new: Field
    form: TagForm


def matched(old: Schema, new: Schema, renamed: Renames) -> Iterator[MatchedField]:
    """Yield every field that both schemas contain, at any depth. ``form`` belongs to the new side.

    Raises `SpecError` for a message with more than 100,000 fields.
    """
    pending: list[tuple[Schema, Schema, _Steps, _Steps, _Steps]] = [(old, new, (), (), ())]
    count = 0
    while pending:
        inside, beside, steps, before, path = pending.pop()
        for field, match in fields_of(inside, beside, renamed):
            if match is None:
                continue
            count += 1
            if count > MOST_FIELDS:
                raise SpecError(f"more than {MOST_FIELDS} fields", source=old.name)
            was, here = (*before, field.json_name), (*path, match.json_name)
            yield MatchedField(steps, field_path(was), field_path(here), field, match, beside.form)
            inner, other = struct_of(field.type), struct_of(match.type)
            if inner is not None and other is not None:
                index = ("[]",) * isinstance(field.type, ArrayType)
                deeper = (*steps, field.attribute), (*was, *index), (*here, *index)
                pending.append((inner, other, *deeper))


def new_paths(old: Schema, new: Schema, renamed: Renames) -> dict[str, str]:
    """Return new paths by old paths, for renamed fields and the fields inside them."""
    paths = {}
    for match in matched(old, new, renamed) if renamed else ():
        if match.old_path != match.path:
            paths[match.old_path] = match.path
            index = "[]" * isinstance(match.old.type, ArrayType)
            for inside in (TAGGED_FIELDS, UNKNOWN):
                # The parts of a structure that are not fields.
                paths[f"{match.old_path}{index}.{inside}"] = f"{match.path}{index}.{inside}"
    return paths


class ValueConverter:
    """Convert values of one schema to values of another."""

    def __init__(self, old: Schema, new: Schema, renamed: Renames) -> None:
        self._old = old
        self._new = new
        self._renamed = renamed
        self._is_same = not renamed and _has_all(old, new)

    def carry(self, value: dict[str, Any], lost: Counter[str]) -> dict[str, Any]:
        """Return the value with the fields of the new schema.

        ``lost`` counts, by path, the values that differ from the default of their field and have no
        field in the new schema. If the new field cannot hold a value, the value is kept, and
        writing the value raises an error.
        """
        if self._is_same:
            return value
        return self._carried(value, self._old, self._new, lost, ())

    def _carried(
        self,
        value: dict[str, Any],
        old: Schema,
        new: Schema,
        lost: Counter[str],
        path: tuple[str, ...],
    ) -> dict[str, Any]:
        converted = {}
        for field, match in fields_of(old, new, self._renamed):
            if field.attribute not in value:
                continue
            field_value, here = value[field.attribute], (*path, field.json_name)
            if match is None:
                if not field.is_default(field_value):
                    lost[field_path(here)] += 1
                continue
            inner, other = struct_of(field.type), struct_of(match.type)
            if inner is None or other is None or field_value is None:
                converted[match.attribute] = field_value
            elif isinstance(field.type, ArrayType):
                steps = (*here, "[]")
                converted[match.attribute] = [
                    self._carried(item, inner, other, lost, steps) for item in field_value
                ]
            else:
                converted[match.attribute] = self._carried(field_value, inner, other, lost, here)
        if UNKNOWN_TAGGED_FIELDS in value:
            converted[UNKNOWN_TAGGED_FIELDS] = value[UNKNOWN_TAGGED_FIELDS]
        return converted


def _has_all(old: Schema, new: Schema) -> bool:
    """Return whether the new schema contains every field of the old one, under the same name."""
    seen = set()
    pending = [(old, new)]
    while pending:
        inside, beside = pending.pop()
        if (inside.name, beside.name) in seen:
            continue
        seen.add((inside.name, beside.name))
        for field, match in fields_of(inside, beside, {}):
            if match is None:
                return False
            inner, other = struct_of(field.type), struct_of(match.type)
            if inner is not None and other is not None:
                pending.append((inner, other))
    return True
