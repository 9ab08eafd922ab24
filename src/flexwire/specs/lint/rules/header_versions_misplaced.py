"""A message that is neither a request nor a response contains `headerVersions`.

Only requests and responses have headers.

Flagged:

    { "name": "Foo", "type": "data", "validVersions": "0", "flexibleVersions": "0+",
      "headerVersions": { "0+": "2" }, "fields": [] }
                        ^

Instead:

    { "name": "Foo", "type": "data", "validVersions": "0", "flexibleVersions": "0+",
      "fields": [] }

Source: Kafka's generator since 4.5 (KAFKA-20923).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    spec = message.spec
    if message.readable and spec.header_versions is not None and not spec.type.is_api:
        reason = f"a message of type {spec.type.value} has no header; remove 'headerVersions'"
        yield message.at(None, "headerVersions"), reason


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
