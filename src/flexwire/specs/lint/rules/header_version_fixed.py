"""The response with api key 18 has a header version other than 0.

A client reads this response before it knows which versions the broker supports, and older clients
and brokers could not parse a different header (KIP-511).

Flagged:

    { "name": "ApiVersionsResponse", "type": "response", "apiKey": 18, "fields": [],
      "validVersions": "0-4", "flexibleVersions": "3+",
      "headerVersions": { "0-2": "0", "3+": "1" } }
                        ^

Instead:

    { "name": "ApiVersionsResponse", "type": "response", "apiKey": 18, "fields": [],
      "validVersions": "0-4", "flexibleVersions": "3+",
      "headerVersions": { "0+": "0" } }

Source: Kafka's generator since 4.5, HeaderVersions (KAFKA-20923); KIP-511.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.schema.header_versions import has_fixed_header
from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    if not has_fixed_header(message.spec):
        return
    for versions, header in message.header_ranges:
        if header:
            reason = (
                f"versions {versions} use response header version {header}, but this response must "
                "use header version 0"
            )
            yield message.at(None, "headerVersions"), reason


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
