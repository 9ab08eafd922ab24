"""A field is nullable in versions that do not contain it.

Flagged:

    { "name": "RackId", "type": "string", "versions": "2+", "nullableVersions": "0+",
                                                                                ^
      "about": "The rack." }

Instead:

    { "name": "RackId", "type": "string", "versions": "2+", "nullableVersions": "2+",
      "about": "The rack." }

Source: flexwire; some of Kafka's own specs use "0+" for fields that were added later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    for field, structure in message.fields():
        there = structure.versions
        if not field.nullable_versions & there <= field.versions:
            reason = (
                f"field {field.name} is nullable in {field.nullable_versions}, but exists only in"
            )
            yield message.at(field, "nullableVersions"), f"{reason} {field.versions}"


RULE = Rule(__name__, __doc__, Category.PEDANTIC, message=_check)
