"""A structure shares no version with the structure or message that contains it.

Flagged:

    { "name": "Topic", "type": "Topic", "versions": "4+", "fields": [
                                                    ^
      { "name": "Id", "type": "uuid", "versions": "4+" }
    ] }

Instead:

    { "name": "Topic", "type": "Topic", "versions": "3+", "fields": [
      { "name": "Id", "type": "uuid", "versions": "3+" }
    ] }

Source: Kafka's generator, "Version ranges A and B have no versions in common." A message whose
valid versions are "none" was removed by a release. Later generators accept such a message, and so
does this rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage
    from flexwire.versions import Versions


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    valid = message.spec.valid_versions
    for common in message.spec.common_structs if valid else ():
        if not valid & common.versions:
            reason = _reason(common.name, common.versions, valid)
            yield message.at(common, "versions"), reason
    for field, structure in message.fields():
        if field.fields and structure.versions and not structure.versions & field.versions:
            reason = _reason(field.type.name, field.versions, structure.versions)
            yield message.at(field, "versions"), reason


def _reason(name: str, versions: Versions, around: Versions) -> str:
    return (
        f"structure {name} exists in {versions}, but the structure or message around it exists in "
        f"{around}"
    )


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
