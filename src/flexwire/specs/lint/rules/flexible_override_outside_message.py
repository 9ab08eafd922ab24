"""A field is flexible in versions in which its message is not flexible.

Flagged:

    { "name": "Name", "type": "string", "versions": "0+", "flexibleVersions": "0+" }
                                                                              ^

Instead:

    { "name": "Name", "type": "string", "versions": "0+", "flexibleVersions": "1+" }

Source: Kafka's generator, "flexible versions … not a subset of the flexible versions for the
message as a whole".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    flexible = message.spec.flexible_versions
    for field, _ in message.fields():
        if field.flexible_versions is not None and not field.flexible_versions <= flexible:
            reason = f"field {field.name} is flexible in {field.flexible_versions}"
            yield (
                message.at(field, "flexibleVersions"),
                f"{reason}, but the message is flexible in {flexible}",
            )


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
