"""A tagged field is nullable in only some of its tagged versions.

One tag would then have two layouts. The field must be nullable in all tagged versions or in none.

Flagged:

    { "name": "RackId", "type": "string", "versions": "1+", "nullableVersions": "2+",
                                                                                ^
      "tag": 0, "taggedVersions": "1+" }

Instead:

    { "name": "RackId", "type": "string", "versions": "1+", "nullableVersions": "1+",
      "tag": 0, "taggedVersions": "1+" }

Source: Kafka's generator, "Either all tagged versions must be nullable, or none must be."
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    for field, _ in message.fields():
        both = field.nullable_versions & field.tagged_versions
        if both and both != field.tagged_versions:
            reason = (
                f"field {field.name} is tagged in {field.tagged_versions} and nullable in {both}"
            )
            yield (
                message.at(field, "nullableVersions"),
                f"{reason}; make all tagged versions nullable, or none",
            )


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
