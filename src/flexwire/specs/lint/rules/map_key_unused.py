"""A structure has a map key and is in no array.

Keys make a collection of an array's elements; a single structure has no use for them.

Flagged:

    { "name": "Topic", "type": "Topic", "versions": "0+", "fields": [
      { "name": "Name", "type": "string", "versions": "0+", "mapKey": true }
                                                                      ^
    ] }

Instead:

    { "name": "Topics", "type": "[]Topic", "versions": "0+", "fields": [
      { "name": "Name", "type": "string", "versions": "0+", "mapKey": true }
    ] }

Source: flexwire; Kafka's generator does not look.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    in_arrays = {
        field_spec.type.name for field_spec in message.spec.walk() if field_spec.type.is_array
    }
    for field, structure in message.fields():
        # At the top it is MAP_KEY_MISPLACED.
        if field.map_key and structure.position != message.top and structure.name not in in_arrays:
            reason = (
                f"no array has elements of {structure.name}; {field.name} is the key of nothing"
            )
            yield message.at(field, "mapKey"), reason


RULE = Rule(__name__, __doc__, Category.CONSISTENCY, message=_check)
