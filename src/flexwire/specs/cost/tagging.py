"""Fields that were mandatory and are now tagged: how often they are set, and at what cost.

A tagged field is not written while its value is the default, which saves its bytes each time. A
field that is set costs a tag and a size. The break-even share is the share of set values at which
the cost equals the saving.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flexwire.errors import EncodeError
from flexwire.specs.cost.conversion import MatchedField, matched
from flexwire.wire import types
from flexwire.wire.cursor import Writer
from flexwire.wire.schema import Presence
from flexwire.wire.tags import join

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from flexwire.specs.cost.conversion import Renames
    from flexwire.wire.schema import Schema

# Values for fields that are never set in the traffic. Such a value may equal the default, because
# only the bytes around the value are counted.
_STAND_INS: dict[type[types.Type], Any] = {
    types.Boolean: True,
    types.Integer: 1,
    types.Float64: 1.0,
    types.Uuid: uuid.UUID(int=1),
    types.String: "a",
    types.Bytes: b"a",
}


@dataclass(frozen=True, slots=True)
class NewlyTaggedField:
    """A field that is mandatory in the old schema and tagged in the new one."""

    at: MatchedField

    def count(self, value: Mapping[str, Any]) -> tuple[int, int]:
        """Return how many values of the field a message contains, and how many of them are set."""
        values = set_ = 0
        attribute = self.at.old.attribute
        for struct in _structs(value, self.at.steps):
            if attribute in struct:
                values += 1
                set_ += not self.at.new.is_default(struct[attribute])
        return values, set_

    def default_size(self) -> int:
        """Return the size of the default in a mandatory field, or 0 for an unwritable default."""
        try:
            return len(_written(self.at.old.type, self.at.new.default))
        except EncodeError:
            # The new default is null, and the old field cannot be null.
            return 0

    def stand_in_cost(self) -> int | None:
        """Return by how many bytes a small value grows, or None for a type without small values."""
        field = self.at.new
        value = _STAND_INS.get(type(field.type))
        if value is None or field.tag is None:
            return None
        tagged = join(self.at.form, {field.tag: _written(field.type, value)})
        return len(tagged) - len(join(self.at.form, {})) - len(_written(self.at.old.type, value))


@dataclass(slots=True)
class Share:
    """The use of a newly tagged field: the numbers of values and of set values, and the bytes."""

    field: NewlyTaggedField
    values: int = 0
    set: int = 0
    old: int = 0
    new: int = 0

    def add(self, value: Mapping[str, Any], old: Mapping[str, int], new: Mapping[str, int]) -> None:
        """Count a message: its value on the old side, and the bytes of its fields by new path."""
        values, set_ = self.field.count(value)
        self.values += values
        self.set += set_
        self.old += _taken(old, self.field.at.path)
        self.new += _taken(new, self.field.at.path)

    @property
    def share(self) -> float | None:
        """The share of set values, from 0 to 1."""
        return self.set / self.values if self.values else None

    @property
    def extra(self) -> float | None:
        """The average number of bytes by which a set value grows."""
        if not self.set:
            return self.field.stand_in_cost()
        defaults = (self.values - self.set) * self.field.default_size()
        return (self.new - (self.old - defaults)) / self.set

    @property
    def break_even(self) -> float | None:
        """The share of set values, from 0 to 1, at which tagging costs as much as it saves."""
        extra, saved = self.extra, self.field.default_size()
        if extra is None:
            return None
        return 1.0 if extra <= 0 else saved / (saved + extra)


def newly_tagged(old: Schema, new: Schema, renamed: Renames) -> list[NewlyTaggedField]:
    """Find the fields that are mandatory in the old schema and tagged in the new one."""
    newly_tagged_fields = [
        NewlyTaggedField(match)
        for match in matched(old, new, renamed)
        if match.old.presence is Presence.INLINE and match.new.presence is Presence.TAGGED
    ]
    return sorted(newly_tagged_fields, key=lambda tagged_field: tagged_field.at.path)


def _taken(sizes: Mapping[str, int], path: str) -> int:
    """Return the bytes of a field, including the fields inside it."""
    inside = f"{path}.", f"{path}[]"
    return sum(
        size
        for field_path, size in sizes.items()
        if field_path == path or field_path.startswith(inside)
    )


def _structs(value: Mapping[str, Any], steps: tuple[str, ...]) -> Iterator[Mapping[str, Any]]:
    if not steps:
        yield value
        return
    inner = value.get(steps[0])
    for struct in inner if isinstance(inner, list) else [inner]:
        if struct is not None:
            yield from _structs(struct, steps[1:])


def _written(kind: types.Type, value: Any) -> bytes:
    writer = Writer()
    kind.write(writer, value)
    return bytes(writer.buffer)
