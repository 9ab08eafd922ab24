"""A range of `headerVersions` describes only versions that do not exist.

The range begins above the highest valid version. Add the range together with the new version.

Flagged:

    { "name": "FooRequest", "type": "request", "apiKey": 1, "fields": [],
      "validVersions": "0-3", "flexibleVersions": "2+",
      "headerVersions": { "0-1": "1", "2-4": "2", "5+": "3" } }
                        ^

Instead:

    { "name": "FooRequest", "type": "request", "apiKey": 1, "fields": [],
      "validVersions": "0-3", "flexibleVersions": "2+",
      "headerVersions": { "0-1": "1", "2+": "2" } }

Source: Kafka's generator since 4.5, HeaderVersions (KAFKA-20923).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    highest = message.spec.valid_versions.highest
    for versions, _ in message.header_ranges:
        if versions.lowest > highest:
            reason = f"{versions} is above the highest valid version, {highest}; remove this range"
            yield message.at(None, "headerVersions"), reason


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
