"""A field of the message itself is a map key.

Only the elements of an array have keys.

Flagged:

    { "name": "Name", "type": "string", "versions": "0+", "mapKey": true }
                                                                    ^

Instead:

    { "name": "Topics", "type": "[]Topic", "versions": "0+", "fields": [
      { "name": "Name", "type": "string", "versions": "0+", "mapKey": true }
    ] }

Source: Kafka's generator, "Cannot set mapKey on top level fields."
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
        if field.map_key and structure.position == message.top:
            reason = f"top-level field {field.name} cannot be a map key; remove 'mapKey'"
            yield message.at(field, "mapKey"), reason


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
