"""A request, a response, a metadata record or a coordinator record has no api key.

Flagged:

    { "name": "FooRequest", "type": "request",
    ^
      "validVersions": "0", "flexibleVersions": "0+", "fields": [] }

Instead:

    { "name": "FooRequest", "type": "request", "apiKey": 1,
      "validVersions": "0", "flexibleVersions": "0+", "fields": [] }

Source: Kafka's generator, NoSuchElementException in the generators that work on a directory; for a
coordinator's key or value, "The ApiKey must be set for messages".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.lint.message import WITH_API_KEYS
from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage, Directory


def _check(directory: Directory) -> Iterator[tuple[CheckedMessage, Position, str]]:
    for message in directory.messages:
        spec = message.spec
        if message.readable and spec.api_key is None and spec.type in WITH_API_KEYS:
            yield message, message.top, f"{spec.type.value} {spec.name} has no 'apiKey'; add it"


RULE = Rule(__name__, __doc__, Category.GENERATOR, directory=_check)
