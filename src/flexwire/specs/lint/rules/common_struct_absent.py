"""A field uses a common structure in versions in which the structure does not exist.

Flagged:

    { "name": "FooRequest", "type": "request", "apiKey": 1,
      "validVersions": "0-3", "flexibleVersions": "0+", "fields": [
        { "name": "Cursor", "type": "Cursor", "versions": "0+" }
                                                          ^
      ], "commonStructs": [
        { "name": "Cursor", "versions": "1+", "fields": [
          { "name": "Next", "type": "int32", "versions": "1+" }
        ] }
      ] }

Instead:

    { "name": "FooRequest", "type": "request", "apiKey": 1,
      "validVersions": "0-3", "flexibleVersions": "0+", "fields": [
        { "name": "Cursor", "type": "Cursor", "versions": "1+" }
      ], "commonStructs": [
        { "name": "Cursor", "versions": "1+", "fields": [
          { "name": "Next", "type": "int32", "versions": "1+" }
        ] }
      ] }

Source: Kafka's generator, NullPointerException in SchemaGenerator.floorVersion; if the structure's
versions end too early, the Java code refuses to read or write the structure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    common = {struct.name: struct for struct in message.spec.common_structs}
    for field, structure in message.fields():
        used = common.get(field.type.name)
        there = structure.versions & field.versions
        if used and not there <= used.versions:
            reason = f"field {field.name} exists in {there}, but structure {used.name}"
            yield message.at(field, "versions"), f"{reason} exists only in {used.versions}"


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
