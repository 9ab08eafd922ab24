"""Two fields use the same structure, which is not a common structure.

A structure that a field defines inline belongs to that field.

Flagged:

    { "name": "First", "type": "Range", "versions": "0+", "fields": [
      { "name": "Offset", "type": "int64", "versions": "0+" }
    ] },
    { "name": "Last", "type": "Range", "versions": "0+" }
                              ^

Instead:

    { "name": "FooRequest", "type": "request", "apiKey": 1,
      "validVersions": "0", "flexibleVersions": "0+", "fields": [
        { "name": "First", "type": "Range", "versions": "0+" },
        { "name": "Last", "type": "Range", "versions": "0+" }
      ], "commonStructs": [
        { "name": "Range", "versions": "0+", "fields": [
          { "name": "Offset", "type": "int64", "versions": "0+" }
        ] }
      ] }

Source: Kafka's generator, "Struct X was specified twice."
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import FieldSpec, Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    common = {struct.name for struct in message.spec.common_structs}
    first: dict[str, FieldSpec] = {}
    for field, structure in message.fields():
        name = field.type.name
        if not field.type.is_struct or name in common or structure.in_common:
            continue
        before = first.setdefault(name, field)
        # If both fields define the structure's fields, STRUCT_REPEATED reports this.
        if before is not field and not (before.fields and field.fields):
            reason = (
                f"structure {name} is defined in field {before.name}; move it to 'commonStructs'"
            )
            yield message.at(field, "type"), reason


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
