"""Two files in a directory define messages with the same name.

Kafka's generator writes one class for each message, and one class overwrites the other.

Flagged:

    // FooRecord.json
    { "name": "FooRecord", "type": "metadata", "apiKey": 1,
      "validVersions": "0", "flexibleVersions": "0+", "fields": [] }
    // GooRecord.json
    { "name": "FooRecord", "type": "metadata", "apiKey": 2,
              ^
      "validVersions": "0", "flexibleVersions": "0+", "fields": [] }

Instead:

    // FooRecord.json
    { "name": "FooRecord", "type": "metadata", "apiKey": 1,
      "validVersions": "0", "flexibleVersions": "0+", "fields": [] }
    // GooRecord.json
    { "name": "GooRecord", "type": "metadata", "apiKey": 2,
      "validVersions": "0", "flexibleVersions": "0+", "fields": [] }

Source: flexwire; Kafka's generator does not check this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage, Directory


def _check(directory: Directory) -> Iterator[tuple[CheckedMessage, Position, str]]:
    first: dict[str, CheckedMessage] = {}
    for message in directory.messages:
        before = first.setdefault(message.spec.name, message)
        if before is not message and message.readable:
            reason = f"message {message.spec.name} is already defined in {before.text.source}"
            yield message, message.at(None, "name"), f"{reason}; rename one of them"


RULE = Rule(__name__, __doc__, Category.CONSISTENCY, directory=_check)
