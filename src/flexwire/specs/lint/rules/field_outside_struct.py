"""A field is said to be there in versions in which its structure is not.

It is not there then, which misleads a reader of the field alone.

Flagged:

    { "name": "Topics", "type": "[]Topic", "versions": "2+", "fields": [
      { "name": "Id", "type": "uuid", "versions": "0+", "about": "The id." }
                                                  ^
    ] }

Instead:

    { "name": "Topics", "type": "[]Topic", "versions": "2+", "fields": [
      { "name": "Id", "type": "uuid", "versions": "2+", "about": "The id." }
    ] }

Source: flexwire; many of Kafka's own specs say "0+" in structures that came later.
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
            reason = f"field {field.name} is there in {field.versions}, and structure"
            yield (
                message.at(field, "versions"),
                f"{reason} {structure.name} in {structure.versions}",
            )


RULE = Rule(__name__, __doc__, Category.PEDANTIC, message=_check)
