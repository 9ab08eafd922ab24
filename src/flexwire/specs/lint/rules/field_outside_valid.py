"""No valid version of a message contains the field, but a removed version did.

The field was left behind when the version was removed. Such a field does no harm.

Flagged:

    { "name": "FooRequest", "type": "request", "apiKey": 1, "validVersions": "2-3",
      "flexibleVersions": "2+", "fields": [
      { "name": "RackId", "type": "string", "versions": "0-1", "about": "The rack." }
                                                        ^
    ] }

Instead:

    { "name": "FooRequest", "type": "request", "apiKey": 1, "validVersions": "2-3",
      "flexibleVersions": "2+", "fields": [] }

Source: flexwire; Kafka's ShareFetchRequest.json contains a field of version 0, although that
version was removed. `FIELD_ABOVE_VALID` reports fields that begin above the valid versions.
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
    for field, _ in message.fields():
        if field.versions and field.versions.highest < valid.lowest:
            reason = (
                f"field {field.name} exists in {field.versions}, but only {valid} are valid; "
                "remove the field"
            )
            yield message.at(field, "versions"), reason


RULE = Rule(__name__, __doc__, Category.PEDANTIC, message=_check)
