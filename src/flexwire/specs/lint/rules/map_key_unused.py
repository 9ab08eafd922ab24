"""A structure has a map key, but no array contains the structure.

Keys turn the elements of an array into a collection. A single structure has no use for keys.

Flagged:

    { "name": "Topic", "type": "Topic", "versions": "0+", "fields": [
      { "name": "Name", "type": "string", "versions": "0+", "mapKey": true }
                                                                      ^
    ] }

Instead:

    { "name": "Topics", "type": "[]Topic", "versions": "0+", "fields": [
      { "name": "Name", "type": "string", "versions": "0+", "mapKey": true }
    ] }

Source: flexwire; Kafka's generator does not check this.
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
        # MAP_KEY_MISPLACED reports a map key at the top level.
        if field.map_key and structure.position != message.top and structure.name not in in_arrays:
            reason = f"no array contains {structure.name}, so map key {field.name} is unused"
            yield message.at(field, "mapKey"), reason


RULE = Rule(__name__, __doc__, Category.CONSISTENCY, message=_check)
