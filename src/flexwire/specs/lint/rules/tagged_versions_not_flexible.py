"""A field is tagged in versions that are not flexible.

Versions that are not flexible have no section for tagged fields.

Flagged:

    { "name": "RackId", "type": "string", "versions": "0+", "tag": 0, "taggedVersions": "0+" }
                                                                                        ^

Instead:

    { "name": "RackId", "type": "string", "versions": "1+", "tag": 0, "taggedVersions": "1+" }

Source: Kafka's generator, "specifies tagged versions that are not a subset of the flexible
versions". If the field has its own flexible versions, the generator compares the tagged versions
with those.
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
        flexible = message.spec.flexible_versions
        if field.flexible_versions is not None:
            flexible = field.flexible_versions
        if not field.tagged_versions <= flexible:
            reason = f"tagged versions {field.tagged_versions} of {field.name} are not all flexible"
            yield message.at(field, "taggedVersions"), f"{reason}; only {flexible} are flexible"


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
