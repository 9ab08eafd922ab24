"""An array of a primitive type declares fields.

These fields are never read.

Flagged:

    { "name": "Topics", "type": "[]string", "versions": "0+", "fields": [
                                                                        ^
      { "name": "Id", "type": "uuid", "versions": "0+" }
    ] }

Instead:

    { "name": "Topics", "type": "[]Topic", "versions": "0+", "fields": [
      { "name": "Id", "type": "uuid", "versions": "0+" }
    ] }

Source: flexwire; Kafka's generator checks only fields that are not arrays.
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
        if field.fields and field.type.is_array and not field.type.is_struct:
            reason = f"elements of {field.name} are {field.type.name} and have no fields"
            yield message.at(field, "fields"), f"{reason}; use a structure"


RULE = Rule(__name__, __doc__, Category.CONSISTENCY, message=_check)
