"""A field has versions in which its structure does not exist.

These versions do not contain the field. The field's range therefore misleads people who read the
spec.

Flagged:

    { "name": "Topics", "type": "[]Topic", "versions": "2+", "fields": [
      { "name": "Id", "type": "uuid", "versions": "0+", "about": "The id." }
                                                  ^
    ] }

Instead:

    { "name": "Topics", "type": "[]Topic", "versions": "2+", "fields": [
      { "name": "Id", "type": "uuid", "versions": "2+", "about": "The id." }
    ] }

Source: flexwire; many of Kafka's own specs use "0+" in structures that were added later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    valid = message.spec.valid_versions
    for field, structure in message.fields():
        there = field.versions & valid
        if there & structure.versions and not there <= structure.versions:
            reason = f"field {field.name} exists in {field.versions}, but structure"
            yield (
                message.at(field, "versions"),
                f"{reason} {structure.name} exists in {structure.versions}",
            )


RULE = Rule(__name__, __doc__, Category.PEDANTIC, message=_check)
