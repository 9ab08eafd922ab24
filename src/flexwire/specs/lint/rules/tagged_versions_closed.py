"""The tagged versions of a field have an upper limit.

A tagged field must remain tagged, because its tag cannot be reused.

Flagged:

    { "name": "RackId", "type": "string", "versions": "1-3", "tag": 0, "taggedVersions": "1-3" }
                                                                                         ^

Instead:

    { "name": "RackId", "type": "string", "versions": "1+", "tag": 0, "taggedVersions": "1+" }

Source: Kafka's generator, "taggedVersions must be either none, or an open-ended range".
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
        tagged = field.tagged_versions
        if tagged and not tagged.open_ended and message.has(field, "taggedVersions"):
            reason = (
                f"tagged versions {tagged} of {field.name} have an upper limit; "
                f"write '{tagged.lowest}+'"
            )
            yield message.at(field, "taggedVersions"), reason


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
