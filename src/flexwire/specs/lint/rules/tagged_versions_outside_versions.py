"""A field is tagged in versions that do not contain it.

Flagged:

    { "name": "RackId", "type": "string", "versions": "2+", "tag": 0, "taggedVersions": "1+" }
                                                                                        ^

Instead:

    { "name": "RackId", "type": "string", "versions": "1+", "tag": 0, "taggedVersions": "1+" }

Source: Kafka's generator, "taggedVersions must be a subset of versions."
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
        if not field.tagged_versions <= field.versions:
            reason = f"tagged versions {field.tagged_versions} of {field.name} are not all in"
            yield (
                message.at(field, "taggedVersions"),
                f"{reason} the field's versions, {field.versions}",
            )


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
