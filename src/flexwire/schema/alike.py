"""Two layouts side by side: whether their bytes are the same, and their fields' names in each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.wire.schema import NullableStruct, Schema, struct_of
from flexwire.wire.types import Array

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexwire.wire.schema import Field
    from flexwire.wire.types import Type

Paired = tuple["Schema", "Field", "Field"]


def same_bytes(one: Type, other: Type) -> bool:
    """Whether both types have the same bytes for the same values, whatever names are in them."""
    return _pairs(one, other) is not None


def former_names(schema: Schema, others: Iterable[Schema]) -> dict[str, dict[str, str]]:
    """What fields of this version are called in other specs that have the same bytes.

    By the structure's name: the JSON name there to the JSON name here. A name that the structure
    has itself in this version keeps its meaning.
    """
    found: dict[str, dict[str, str]] = {}
    for other in others:
        for owner, mine, its in _pairs(schema, other) or ():
            present = {one.json_name for one in (*owner.inline, *owner.tagged.values())}
            if its.json_name not in present:
                found.setdefault(owner.name, {}).setdefault(its.json_name, mine.json_name)
    return found


def _pairs(one: Type, other: Type) -> list[Paired] | None:
    """The fields with the same bytes, in the first one's structures; None where bytes differ."""
    found: list[Paired] = []
    # Structures may share structures, so that there are far more places than structures.
    seen: set[tuple[int, int]] = set()

    def same(one: Type, other: Type) -> bool:
        if isinstance(one, Schema) and isinstance(other, Schema):
            return (id(one), id(other)) in seen or same_structs(one, other)
        mine, its = struct_of(one), struct_of(other)
        if mine is None or its is None:
            return _form(one) == _form(other)
        return _form(one) == _form(other) and same(mine, its)

    def same_structs(one: Schema, other: Schema) -> bool:
        seen.add((id(one), id(other)))
        if (
            one.flexible != other.flexible
            or len(one.inline) != len(other.inline)
            or one.tagged.keys() != other.tagged.keys()
        ):
            return False
        mine, its = (*one.inline, *one.tagged.values()), (*other.inline, *other.tagged.values())
        pairs = list(zip(mine, its, strict=True))
        found.extend((one, *pair) for pair in pairs)
        return all(same(left.type, right.type) for left, right in pairs)

    return found if same(one, other) else None


def _form(kind: Type) -> object:
    """How a value is written, but for the structures in it; records are bytes."""
    if isinstance(kind, Array):
        return (kind.name, _form(kind.element))
    if isinstance(kind, NullableStruct):
        return ("nullable structure", kind.tagged)
    return "structure" if isinstance(kind, Schema) else kind.name.replace("RECORDS", "BYTES")
