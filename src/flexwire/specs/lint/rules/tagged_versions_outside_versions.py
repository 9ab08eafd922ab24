"""A field is tagged in versions in which it is not there.

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
    for one, _ in message.fields():
        if not one.tagged_versions <= one.versions:
            reason = f"tagged versions {one.tagged_versions} of {one.name} are not all in"
            yield message.at(one, "taggedVersions"), f"{reason} its versions, {one.versions}"


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
