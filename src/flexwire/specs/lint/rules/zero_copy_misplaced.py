"""A field has `zeroCopy` but is not of type bytes.

Flagged:

    { "name": "Name", "type": "string", "versions": "0+", "zeroCopy": true }
                                                                      ^

Instead:

    { "name": "Name", "type": "bytes", "versions": "0+", "zeroCopy": true }

Source: Kafka's generator, "Only fields of type bytes can use zeroCopy flag."
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
        if field.zero_copy and str(field.type) != "bytes":
            reason = f"field {field.name} has type {field.type}; only bytes can have 'zeroCopy'"
            yield message.at(field, "zeroCopy"), reason


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
