"""No version of a structure contains the field.

A spec may keep fields of versions that are no longer valid. `FIELD_ABOVE_VALID` reports fields of
versions that are not valid yet.

Flagged:

    { "name": "Topics", "type": "[]Topic", "versions": "2+", "fields": [
      { "name": "Name", "type": "string", "versions": "0-1" },
                                                      ^
      { "name": "Id", "type": "uuid", "versions": "2+" }
    ] }

Instead:

    { "name": "Topics", "type": "[]Topic", "versions": "2+", "fields": [
      { "name": "Id", "type": "uuid", "versions": "2+" }
    ] }

Source: flexwire; Kafka's generator does not check this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    valid = message.spec.valid_versions
    for field, structure in message.fields():
        # STRUCT_NEVER_PRESENT reports a structure that defines fields and is in no version.
        if field.fields or not structure.versions or structure.versions & field.versions:
            continue
        if field.versions & valid:
            reason = f"field {field.name} exists in {field.versions}, but structure"
            yield (
                message.at(field, "versions"),
                f"{reason} {structure.name} exists in {structure.versions}",
            )


RULE = Rule(__name__, __doc__, Category.CONSISTENCY, message=_check)
