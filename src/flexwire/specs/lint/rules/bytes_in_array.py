"""A field is an array of bytes.

Flagged:

    { "name": "Keys", "type": "[]bytes", "versions": "0+" }
                              ^

Instead:

    { "name": "Keys", "type": "[]Key", "versions": "0+", "fields": [
      { "name": "Key", "type": "bytes", "versions": "0+" }
    ] }

Source: the Java code that Kafka's generator writes does not compile.
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
        if str(field.type) == "[]bytes":
            reason = (
                f"field {field.name} is an array of bytes, which Kafka's Java code cannot store"
            )
            yield message.at(field, "type"), f"{reason}; use an array of structures"


RULE = Rule(__name__, __doc__, Category.JAVA, message=_check)
