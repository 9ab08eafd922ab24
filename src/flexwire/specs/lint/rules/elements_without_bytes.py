"""In at least one version, the elements of an array take no bytes.

The number of elements is then unrelated to the bytes that follow: four bytes could announce two
billion elements. In a flexible version, each element has a byte for its tagged fields.

Flagged:

    { "name": "Topics", "type": "[]Topic", "versions": "0+", "fields": [
                                ^
      { "name": "Id", "type": "uuid", "versions": "1+" }
    ] }

Instead:

    { "name": "Topics", "type": "[]Topic", "versions": "1+", "fields": [
      { "name": "Id", "type": "uuid", "versions": "1+" }
    ] }

Source: flexwire, which cannot lay out such a message; Kafka's generator accepts it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage
    from flexwire.versions import Versions


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    nesting = message.nesting
    if nesting.closing:
        return
    # For each structure: the versions in which the structure takes at least one byte, as the bits
    # of a number.
    takes: dict[str, int] = {}
    for name in nesting.order:
        takes[name] = _bits(message.spec.flexible_versions)
        for field_spec in nesting.fields[name]:
            inline = _bits(field_spec.versions) & ~_bits(field_spec.tagged_versions)
            if field_spec.type.name in nesting.fields and not field_spec.type.is_array:
                inline &= takes[field_spec.type.name] | _bits(field_spec.nullable_versions)
            takes[name] |= inline
    for field, structure in message.fields():
        if field.type.is_array and field.type.name in nesting.fields:
            there = _bits(structure.versions & field.versions)
            without = there & ~takes[field.type.name]
            if without:
                version = (without & -without).bit_length() - 1
                reason = f"elements of {field.name} take no bytes in version {version}"
                yield message.at(field, "type"), reason


def _bits(versions: Versions) -> int:
    return (1 << versions.highest + 1) - (1 << versions.lowest) if versions else 0


RULE = Rule(__name__, __doc__, Category.CONSISTENCY, message=_check)
