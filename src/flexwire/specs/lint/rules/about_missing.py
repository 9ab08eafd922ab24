"""A field has no description.

Flagged:

    { "name": "TopicId", "type": "uuid", "versions": "0+" }
    ^

Instead:

    { "name": "TopicId", "type": "uuid", "versions": "0+", "about": "The unique topic id." }

Source: flexwire; the protocol guide shows these descriptions.
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
        if not field.about.strip():
            yield (
                message.at(field, "about"),
                f"field {field.name} has no 'about'; describe the field",
            )


RULE = Rule(__name__, __doc__, Category.PEDANTIC, message=_check)
