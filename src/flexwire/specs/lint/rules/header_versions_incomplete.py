"""The ranges of `headerVersions` leave out versions, or contain a version twice.

The first range begins at 0, even if the first valid version is higher. Each further range begins
right after the previous range, and only the last range is open-ended.

Flagged:

    { "name": "FooRequest", "type": "request", "apiKey": 1, "fields": [],
      "validVersions": "3-9", "flexibleVersions": "9+",
      "headerVersions": { "3-8": "1", "9+": "2" } }
                        ^

Instead:

    { "name": "FooRequest", "type": "request", "apiKey": 1, "fields": [],
      "validVersions": "3-9", "flexibleVersions": "9+",
      "headerVersions": { "0-8": "1", "9+": "2" } }

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
    ranges = [versions for versions, _ in message.header_ranges]
    if not ranges:
        return
    at = message.at(None, "headerVersions")
    if ranges[0].lowest:
        yield at, f"the header versions begin at version {ranges[0].lowest}; begin at 0"
    for before, after in pairwise(ranges):
        if before.open_ended:
            yield at, f"{before} is open-ended but precedes {after}; add an end"
        elif after.lowest != before.highest + 1:
            what = "leave a gap" if after.lowest > before.highest else "overlap"
            yield at, f"{before} and {after} {what}; begin the second range at {before.highest + 1}"
    if not ranges[-1].open_ended:
        reason = f"the last range {ranges[-1]} must be open-ended; write '{ranges[-1].lowest}+'"
        yield at, reason


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
