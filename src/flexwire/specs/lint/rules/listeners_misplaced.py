"""A message that is not a request specifies listeners.

Listeners specify which brokers accept a request.

Flagged:

    { "name": "FooResponse", "type": "response", "apiKey": 1, "listeners": ["broker"],
                                                                           ^
      "validVersions": "0", "flexibleVersions": "0+", "fields": [] }

Instead:

    { "name": "FooResponse", "type": "response", "apiKey": 1,
      "validVersions": "0", "flexibleVersions": "0+", "fields": [] }

Source: Kafka's generator, "The `requestScope` property is only valid for messages with type
`request`".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.schema.spec import MessageType
from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    spec = message.spec
    if message.readable and spec.listeners and spec.type is not MessageType.REQUEST:
        reason = f"a {spec.type.value} has no listeners; only requests have 'listeners'"
        yield message.at(None, "listeners"), reason


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
