"""A field that is not bytes is to be read without a copy.

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
    for one, _ in message.fields():
        if one.zero_copy and str(one.type) != "bytes":
            reason = f"field {one.name} is a {one.type}; only bytes may have 'zeroCopy'"
            yield message.at(one, "zeroCopy"), reason


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
