"""A deprecated version is not a valid version of the message.

Flagged:

    { "name": "FooRequest", "type": "request", "apiKey": 1, "fields": [],
      "validVersions": "2-3", "deprecatedVersions": "0-2", "flexibleVersions": "0+" }
                                                    ^

Instead:

    { "name": "FooRequest", "type": "request", "apiKey": 1, "fields": [],
      "validVersions": "2-3", "deprecatedVersions": "2", "flexibleVersions": "0+" }

Source: flexwire; Kafka's generator does not check this.
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
    if message.readable and not spec.deprecated_versions <= spec.valid_versions:
        reason = (
            f"deprecated versions {spec.deprecated_versions} are not all valid; valid versions are"
        )
        yield message.at(None, "deprecatedVersions"), f"{reason} {spec.valid_versions}"


RULE = Rule(__name__, __doc__, Category.CONSISTENCY, message=_check)
