"""The header version decreases while the message version increases.

A higher header version only adds tagged fields, so a later version of a message should keep these
fields.

Flagged:

    { "name": "FooRequest", "type": "request", "apiKey": 1, "fields": [],
      "validVersions": "0-3", "flexibleVersions": "1+",
      "headerVersions": { "0": "1", "1-2": "3", "3+": "2" } }
                        ^

Instead:

    { "name": "FooRequest", "type": "request", "apiKey": 1, "fields": [],
      "validVersions": "0-3", "flexibleVersions": "1+",
      "headerVersions": { "0": "1", "1+": "3" } }

Source: Kafka's generator since 4.5, HeaderVersions (KAFKA-20923).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    for (before, higher), (after, lower) in pairwise(message.header_ranges):
        if lower < higher:
            reason = (
                f"versions {before} use header version {higher}, but versions {after} use header "
                f"version {lower}; keep header version {higher}"
            )
            yield message.at(None, "headerVersions"), reason


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
