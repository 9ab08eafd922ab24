"""The key of a coordinator's record has a version other than 0, or has a flexible version.

The bytes before a key contain its api key but no version. Therefore only version 0 can exist, and
its layout can never change.

Flagged:

    { "name": "FooKey", "type": "coordinator-key", "apiKey": 1, "fields": [],
      "validVersions": "0-1", "flexibleVersions": "none" }
                       ^

Instead:

    { "name": "FooKey", "type": "coordinator-key", "apiKey": 1, "fields": [],
      "validVersions": "0", "flexibleVersions": "none" }

Source: Kafka's generator from 4.1 on, "The Versions must be set to `0` for messages", "The
FlexibleVersions are not supported for messages".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.schema.spec import MessageType
from flexwire.specs.lint.rule import Category, Rule
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    spec = message.spec
    if not message.readable or spec.type is not MessageType.COORDINATOR_KEY:
        return
    if spec.valid_versions != Versions(0, 0):
        reason = f"a coordinator key has only version 0, but {spec.name} has {spec.valid_versions}"
        yield message.at(None, "validVersions"), f"{reason}; write '0'"
    if spec.flexible_versions:
        reason = f"a coordinator key is never flexible, but {spec.name} is flexible in"
        yield (
            message.at(None, "flexibleVersions"),
            f"{reason} {spec.flexible_versions}; write 'none'",
        )


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
