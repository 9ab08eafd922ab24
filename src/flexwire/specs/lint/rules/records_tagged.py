"""A field of type records is tagged.

Flagged:

    { "name": "Records", "type": "records", "versions": "1+", "nullableVersions": "1+",
      "tag": 0, "taggedVersions": "1+" }
             ^

Instead:

    { "name": "Records", "type": "records", "versions": "1+", "nullableVersions": "1+" }

Source: Kafka's generator, "Unsupported attempt to declare field `F` with `records` type as a tagged
field."
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
        if str(field.type) == "records" and field.tag is not None:
            yield (
                message.at(field, "tag"),
                f"field {field.name} has type records, which cannot be tagged",
            )


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
