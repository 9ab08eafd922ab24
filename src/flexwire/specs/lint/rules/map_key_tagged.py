"""A map key is a tagged field.

A tagged field can be absent, but a key must be present.

Flagged:

    { "name": "Topics", "type": "[]Topic", "versions": "1+", "fields": [
      { "name": "Name", "type": "string", "versions": "1+", "mapKey": true,
                                                                      ^
        "tag": 0, "taggedVersions": "1+" }
    ] }

Instead:

    { "name": "Topics", "type": "[]Topic", "versions": "1+", "fields": [
      { "name": "Name", "type": "string", "versions": "1+", "mapKey": true }
    ] }

Source: Kafka's generator, "Tagged fields cannot be used as keys."
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
        if field.map_key and field.tag is not None:
            reason = f"map key {field.name} is tagged, but a map key cannot be omitted"
            yield message.at(field, "mapKey"), reason


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
