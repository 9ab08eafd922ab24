"""The name of a request or response does not end in "Request" or "Response".

The part before the suffix is the name of the API.

Flagged:

    { "name": "FetchFoo", "type": "request", "apiKey": 1,
              ^
      "validVersions": "0", "flexibleVersions": "0+", "fields": [] }

Instead:

    { "name": "FetchFooRequest", "type": "request", "apiKey": 1,
      "validVersions": "0", "flexibleVersions": "0+", "fields": [] }

Source: Kafka's generator, ApiMessageTypeGenerator, for a directory with requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.schema.spec import MessageType
from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage, Directory


_SUFFIXES = {MessageType.REQUEST: "Request", MessageType.RESPONSE: "Response"}


def _check(directory: Directory) -> Iterator[tuple[CheckedMessage, Position, str]]:
    for message in directory.messages:
        suffix = _SUFFIXES.get(message.spec.type, "")
        if message.readable and not message.spec.name.endswith(suffix):
            reason = f"the name of a {message.spec.type.value} must end in {suffix!r}"
            yield message, message.at(None, "name"), f"{reason}, but {message.spec.name!r} does not"


RULE = Rule(__name__, __doc__, Category.GENERATOR, directory=_check)
