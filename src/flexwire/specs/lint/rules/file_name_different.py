"""The name of a file differs from the name of its message.

Flagged:

    // Foo.json
    { "name": "FooRequest", "type": "request", "apiKey": 1,
              ^
      "validVersions": "0", "flexibleVersions": "0+", "fields": [] }

Instead:

    // FooRequest.json
    { "name": "FooRequest", "type": "request", "apiKey": 1,
      "validVersions": "0", "flexibleVersions": "0+", "fields": [] }

Source: flexwire. In Kafka, the names of QuorumState.json and ZkMigrationRecord.json differ from the
names of their messages.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    file = PurePosixPath(message.text.source.replace("\\", "/")).name
    if message.readable and file.endswith(".json") and file != f"{message.spec.name}.json":
        reason = f"message {message.spec.name} is in file {file}; rename the message or the file"
        yield message.at(None, "name"), reason


RULE = Rule(__name__, __doc__, Category.PEDANTIC, message=_check)
