"""A common structure contains a structure that is not common.

Structures inside a common structure must be common too.

Flagged:

    { "name": "FooRequest", "type": "request", "apiKey": 1,
      "validVersions": "0", "flexibleVersions": "0+", "fields": [
        { "name": "Cursor", "type": "Cursor", "versions": "0+" }
      ], "commonStructs": [
        { "name": "Cursor", "versions": "0+", "fields": [
          { "name": "Topic", "type": "Topic", "versions": "0+", "fields": [
                                     ^
            { "name": "Id", "type": "uuid", "versions": "0+" }
          ] }
        ] }
      ] }

Instead:

    { "name": "FooRequest", "type": "request", "apiKey": 1,
      "validVersions": "0", "flexibleVersions": "0+", "fields": [
        { "name": "Cursor", "type": "Cursor", "versions": "0+" }
      ], "commonStructs": [
        { "name": "Cursor", "versions": "0+", "fields": [
          { "name": "Topic", "type": "Topic", "versions": "0+" }
        ] },
        { "name": "Topic", "versions": "0+", "fields": [
          { "name": "Id", "type": "uuid", "versions": "0+" }
        ] }
      ] }

Source: Kafka's generator, "Unable to locate a specification for the structure X".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    common = {struct.name for struct in message.spec.common_structs}
    for field, structure in message.fields():
        if structure.in_common and field.type.is_struct and field.type.name not in common:
            reason = f"structure {field.type.name} is used in a common structure but is not common"
            yield message.at(field, "type"), f"{reason}; move it to 'commonStructs'"


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
