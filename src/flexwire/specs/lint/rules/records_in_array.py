"""A field is an array of records.

Flagged:

    { "name": "Batches", "type": "[]records", "versions": "0+" }
                                 ^

Instead:

    { "name": "Batches", "type": "[]Batch", "versions": "0+", "fields": [
      { "name": "Records", "type": "records", "versions": "0+", "nullableVersions": "0+" }
    ] }

Source: Kafka's generator, "Unsupported field type records".
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
        if str(field.type) == "[]records":
            reason = f"field {field.name} is an array of records; use an array of structures"
            yield message.at(field, "type"), reason


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
