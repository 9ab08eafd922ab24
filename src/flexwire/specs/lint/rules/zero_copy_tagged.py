"""A tagged field has `zeroCopy`.

Flagged:

    { "name": "Key", "type": "bytes", "versions": "1+", "zeroCopy": true,
                                                                    ^
      "tag": 0, "taggedVersions": "1+" }

Instead:

    { "name": "Key", "type": "bytes", "versions": "1+",
      "tag": 0, "taggedVersions": "1+" }

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
        if field.zero_copy and field.tag is not None and str(field.type) == "bytes":
            reason = f"tagged field {field.name} cannot be read without a copy; remove 'zeroCopy'"
            yield message.at(field, "zeroCopy"), reason


RULE = Rule(__name__, __doc__, Category.JAVA, message=_check)
