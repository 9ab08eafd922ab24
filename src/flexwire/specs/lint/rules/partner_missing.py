"""A request has no response, a coordinator's key has no value, or the reverse.

Lint checks this only for complete directories.

Flagged:

    // BarRequest.json
    { "name": "BarRequest", "type": "request", "apiKey": 2,
                                                         ^
      "validVersions": "0", "flexibleVersions": "0+", "fields": [] }
    // FooRequest.json
    { "name": "FooRequest", "type": "request", "apiKey": 1,
      "validVersions": "0", "flexibleVersions": "0+", "fields": [] }
    // FooResponse.json
    { "name": "FooResponse", "type": "response", "apiKey": 1,
      "validVersions": "0", "flexibleVersions": "0+", "fields": [] }

Instead:

    // FooRequest.json
    { "name": "FooRequest", "type": "request", "apiKey": 1,
      "validVersions": "0", "flexibleVersions": "0+", "fields": [] }
    // FooResponse.json
    { "name": "FooResponse", "type": "response", "apiKey": 1,
      "validVersions": "0", "flexibleVersions": "0+", "fields": [] }

Source: Kafka's generator, "failed to find response for API key K", "Coordinator record K has not
key."
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.schema.spec import MessageType
from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage, Directory


_PARTNERS = {
    MessageType.REQUEST: MessageType.RESPONSE,
    MessageType.RESPONSE: MessageType.REQUEST,
    MessageType.COORDINATOR_KEY: MessageType.COORDINATOR_VALUE,
    MessageType.COORDINATOR_VALUE: MessageType.COORDINATOR_KEY,
}


def _check(directory: Directory) -> Iterator[tuple[CheckedMessage, Position, str]]:
    messages = directory.messages
    # A file that could not be read could be the partner of any message.
    if not directory.whole or not all(message.readable for message in messages):
        return
    there = {(message.spec.type, message.spec.api_key) for message in messages}
    for message in messages:
        spec = message.spec
        partner = _PARTNERS.get(spec.type)
        if partner and spec.api_key is not None and (partner, spec.api_key) not in there:
            reason = (
                f"no {partner.value} has api key {spec.api_key}; add the partner of {spec.name}"
            )
            yield message, message.at(None, "apiKey"), reason


RULE = Rule(__name__, __doc__, Category.GENERATOR, directory=_check)
