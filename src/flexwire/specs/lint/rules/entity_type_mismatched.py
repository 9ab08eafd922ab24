"""A field's entity type does not match its type.

A transactionalId, groupId or topicName must be a string, a producerId an int64, and a brokerId an
int32. For an array, the elements must have this type.

Flagged:

    { "name": "Topic", "type": "uuid", "versions": "0+", "entityType": "topicName" }
                                                                       ^

Instead:

    { "name": "Topic", "type": "string", "versions": "0+", "entityType": "topicName" }

Source: Kafka's generator, "Field F has entity type E, but field type T, which does not match."
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


_TYPES = {
    "transactionalId": "string",
    "groupId": "string",
    "topicName": "string",
    "producerId": "int64",
    "brokerId": "int32",
}


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    for field, _ in message.fields():
        expected = _TYPES.get(field.entity_type, field.type.name)
        if expected != field.type.name:
            reason = (
                f"a {field.entity_type} must have type {expected}, but field {field.name} has type "
                f"{field.type}"
            )
            yield message.at(field, "entityType"), reason


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
