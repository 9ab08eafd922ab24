"""The union of a message's fields over its versions: the newest spec first, its order wins."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flexwire.schema.spec import FieldSpec, FieldType, MessageSpec
    from flexwire.versions import Versions

# A spec, and the versions it gives their layout.
ServedSpec = tuple["MessageSpec", "Versions"]
# What a spec says of a field, and the versions it says it for.
Mention = tuple["FieldSpec", "Versions"]
Fields = dict[str, dict[str, list[Mention]]]


def union(specs: Iterable[ServedSpec]) -> Fields:
    """Give the fields of a message and of its structures, by structure name and attribute.

    The message comes first. Fields stand in the order of the first spec, and those of later specs
    only come after them. With each field stands what every spec that has it says of it, in the
    order of the specs: where they are the newest first, the first mention gives the default.
    """
    found: Fields = {}
    for spec, versions in specs:
        message_first = {spec.name: spec.fields} | spec.fields_by_structure()
        for name, fields in message_first.items():
            known = found.setdefault(name, {})
            for one in fields:
                known.setdefault(one.attribute, []).append((one, versions))
    return found


def types_of(mentions: Sequence[Mention]) -> tuple[FieldType, ...]:
    """Give a field's type; several where specs differ."""
    return tuple(dict.fromkeys(one.type for one, _ in mentions))
