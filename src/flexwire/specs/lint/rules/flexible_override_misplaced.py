"""A field that is neither a string nor bytes has its own `flexibleVersions`.

Only lengths can be compact. Kafka needs this key for one field, the request header's ClientId. A
broker must be able to read that field in versions that the broker does not know.

Flagged:

    { "name": "Ids", "type": "[]int32", "versions": "0+", "flexibleVersions": "none" }
                                                                              ^

Instead:

    { "name": "Ids", "type": "[]int32", "versions": "0+" }

Source: Kafka's generator, "Invalid flexibleVersions override for F. Only fields of type string or
bytes can specify a flexibleVersions override."
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
        if field.flexible_versions is not None and str(field.type) not in {"string", "bytes"}:
            reason = f"field {field.name} has type {field.type}; only strings and bytes can have"
            yield message.at(field, "flexibleVersions"), f"{reason} 'flexibleVersions'"


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
