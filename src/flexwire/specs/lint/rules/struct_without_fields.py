"""A structure is never defined.

A misspelled structure name creates a new, empty structure.

Flagged:

    { "name": "FooRequest", "type": "request", "apiKey": 1,
      "validVersions": "0", "flexibleVersions": "0+", "fields": [
        { "name": "First", "type": "Cursor", "versions": "0+" },
        { "name": "Last", "type": "Curser", "versions": "0+" }
                                  ^
      ], "commonStructs": [
        { "name": "Cursor", "versions": "0+", "fields": [
          { "name": "Next", "type": "int32", "versions": "0+" }
        ] }
      ] }

Instead:

    { "name": "FooRequest", "type": "request", "apiKey": 1,
      "validVersions": "0", "flexibleVersions": "0+", "fields": [
        { "name": "First", "type": "Cursor", "versions": "0+" },
        { "name": "Last", "type": "Cursor", "versions": "0+" }
      ], "commonStructs": [
        { "name": "Cursor", "versions": "0+", "fields": [
          { "name": "Next", "type": "int32", "versions": "0+" }
        ] }
      ] }

Source: flexwire, which cannot lay out such a message; Kafka's generator accepts it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    fields_by_structure = message.nesting.fields
    for field, structure in message.fields():
        # COMMON_STRUCT_INCOMPLETE reports such a field in a common structure.
        if (
            field.type.is_struct
            and field.type.name not in fields_by_structure
            and not structure.in_common
        ):
            reason = f"structure {field.type.name} is never defined"
            yield message.at(field, "type"), reason


RULE = Rule(__name__, __doc__, Category.CONSISTENCY, message=_check)
