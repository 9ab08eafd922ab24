"""The default is null, but in some versions the field cannot be null.

A field has one default for all versions.

Flagged:

    { "name": "RackId", "type": "string", "versions": "0+", "nullableVersions": "1+",
      "default": "null" }
                 ^

Instead:

    { "name": "RackId", "type": "string", "versions": "0+", "nullableVersions": "0+",
      "default": "null" }

Source: Kafka's generator, "null cannot be the default for field F, because not all versions of this
field are nullable." The default of records is always null.
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
        if field.default != "null" or not field.type.has_null or str(field.type) == "records":
            continue
        if not field.versions <= field.nullable_versions:
            reason = (
                f"field {field.name} is nullable only in {field.nullable_versions}, but exists in"
            )
            yield (
                message.at(field, "default"),
                f"{reason} {field.versions}; null cannot be its default",
            )


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
