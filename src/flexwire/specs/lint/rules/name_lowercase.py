"""The name of a message or a field begins with a lowercase letter.

Names are in camel case and begin with a capital letter. In JSON and Java, the same names begin with
a lowercase letter.

Flagged:

    { "name": "topicId", "type": "uuid", "versions": "0+", "about": "The topic." }
              ^

Instead:

    { "name": "TopicId", "type": "uuid", "versions": "0+", "about": "The topic." }

Source: flexwire; nearly all of Kafka's own specs follow this rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    if message.readable and message.spec.name[0].islower():
        yield message.at(None, "name"), _reason(message.spec.name)
    for field, _ in message.fields():
        if field.name[0].islower():
            yield message.at(field, "name"), _reason(field.name)


def _reason(name: str) -> str:
    return f"{name!r} begins with a lowercase letter; write {name[0].upper() + name[1:]!r}"


RULE = Rule(__name__, __doc__, Category.PEDANTIC, message=_check)
