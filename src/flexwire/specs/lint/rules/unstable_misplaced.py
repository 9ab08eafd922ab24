"""A message that is not a request has an unstable latest version.

The value in the request applies to both the request and the response. Brokers then offer that
version only if they are configured to do so.

Flagged:

    { "name": "FooResponse", "type": "response", "apiKey": 1, "latestVersionUnstable": true,
                                                                                       ^
      "validVersions": "0", "flexibleVersions": "0+", "fields": [] }

Instead:

    { "name": "FooResponse", "type": "response", "apiKey": 1,
      "validVersions": "0", "flexibleVersions": "0+", "fields": [] }

Source: Kafka's generator, "The `latestVersionUnstable` property is only valid for messages with
type `request`".
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
    if message.readable and spec.latest_version_unstable and spec.type is not MessageType.REQUEST:
        reason = f"a {spec.type.value} cannot have 'latestVersionUnstable'; move it to the request"
        yield message.at(None, "latestVersionUnstable"), reason


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
