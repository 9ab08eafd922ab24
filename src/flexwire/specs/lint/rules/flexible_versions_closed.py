"""The flexible versions of a message have an upper limit.

Once a message is flexible, it remains flexible. Write "none", or an open range such as "1+".

Flagged:

    { "name": "FooRequest", "type": "request", "apiKey": 1, "fields": [],
      "validVersions": "0-3", "flexibleVersions": "1-3" }
                                                  ^

Instead:

    { "name": "FooRequest", "type": "request", "apiKey": 1, "fields": [],
      "validVersions": "0-3", "flexibleVersions": "1+" }

Source: Kafka's generator, "flexibleVersions must be either none, or an open-ended range".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    flexible = message.spec.flexible_versions
    if flexible and not flexible.open_ended:
        reason = (
            f"flexible versions {flexible} have an upper limit; "
            f"write '{flexible.lowest}+' or 'none'"
        )
        yield message.at(None, "flexibleVersions"), reason


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
