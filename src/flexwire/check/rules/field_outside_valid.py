"""A field is there in no valid version of its message.

It belongs to versions to come, or to some that are no longer valid.

Flagged:

    { "name": "RackId", "type": "string", "versions": "4+", "about": "The rack." }
                                                      ^

Instead:

    { "name": "RackId", "type": "string", "versions": "3+", "about": "The rack." }

Source: flexwire; Kafka's ShareFetchRequest.json has a field of version 0, which it had removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.check.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.check.message import Message
    from flexwire.schema.spec import Position


def _check(message: Message) -> Iterator[tuple[Position, str]]:
    valid = message.spec.valid_versions
    for one, _ in message.fields():
        if one.versions and valid and not one.versions & valid:
            reason = f"field {one.name} is there in {one.versions}; valid are {valid}"
            yield message.at(one, "versions"), reason


RULE = Rule(__name__, __doc__, Category.PEDANTIC, message=_check)
