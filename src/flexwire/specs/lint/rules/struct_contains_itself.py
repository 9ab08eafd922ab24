"""A structure contains itself.

Neither Kafka's generator nor flexwire accepts such a structure, even if an empty array would end
the nesting.

Flagged:

    { "name": "FooRequest", "type": "request", "apiKey": 1,
      "validVersions": "0", "flexibleVersions": "0+", "fields": [
        { "name": "Root", "type": "Node", "versions": "0+" }
      ], "commonStructs": [
        { "name": "Node", "versions": "0+", "fields": [
          { "name": "Children", "type": "[]Node", "versions": "0+" }
                                        ^
        ] }
      ] }

Instead:

    { "name": "FooRequest", "type": "request", "apiKey": 1,
      "validVersions": "0", "flexibleVersions": "0+", "fields": [
        { "name": "Nodes", "type": "[]Node", "versions": "0+" }
      ], "commonStructs": [
        { "name": "Node", "versions": "0+", "fields": [
          { "name": "Children", "type": "[]int32", "versions": "0+" }
        ] }
      ] }

Source: Kafka's generator, NullPointerException in SchemaGenerator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    for field in message.nesting.closing:
        yield message.at(field, "type"), f"structure {field.type.name} contains itself"


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
