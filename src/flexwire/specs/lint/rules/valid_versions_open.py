"""The valid versions of a message have no upper limit.

A client or broker offers the highest version, so the highest version must be a number.

Flagged:

    { "name": "FooRequest", "type": "request", "apiKey": 1, "fields": [],
      "validVersions": "0+", "flexibleVersions": "0+" }
                       ^

Instead:

    { "name": "FooRequest", "type": "request", "apiKey": 1, "fields": [],
      "validVersions": "0-3", "flexibleVersions": "0+" }

Source: Kafka's generator, "Message N does not specify a maximum version."
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    valid = message.spec.valid_versions
    if message.readable and valid.open_ended:
        reason = f"valid versions {valid} have no upper limit; write '{valid.lowest}-' and a number"
        yield message.at(None, "validVersions"), reason


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
