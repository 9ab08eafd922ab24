"""A request or response lacks `headerVersions`, but others in its directory contain it.

Kafka's generator has required the key since 4.5. Specs of older releases do not contain the key, so
the rule applies only to a directory in which a request or response has the key.

Flagged:

    // FooRequest.json
    { "name": "FooRequest", "type": "request", "apiKey": 1, "fields": [],
      "validVersions": "0", "flexibleVersions": "0+", "headerVersions": { "0+": "2" } }
    // FooResponse.json
    { "name": "FooResponse", "type": "response", "apiKey": 1, "fields": [],
    ^
      "validVersions": "0", "flexibleVersions": "0+" }

Instead:

    // FooRequest.json
    { "name": "FooRequest", "type": "request", "apiKey": 1, "fields": [],
      "validVersions": "0", "flexibleVersions": "0+", "headerVersions": { "0+": "2" } }
    // FooResponse.json
    { "name": "FooResponse", "type": "response", "apiKey": 1, "fields": [],
      "validVersions": "0", "flexibleVersions": "0+", "headerVersions": { "0+": "1" } }

Source: Kafka's generator since 4.5 (KAFKA-20923).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from flexwire.schema.header_versions import spec_header_versions
from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage, Directory


def _check(directory: Directory) -> Iterator[tuple[CheckedMessage, Position, str]]:
    readable = [
        message
        for message in directory.messages
        if message.readable and message.spec.type.is_api and message.spec.valid_versions
    ]
    if all(message.spec.header_versions is None for message in readable):
        return
    for message in readable:
        spec = message.spec
        if spec.header_versions is None:
            texts = json.dumps(spec_header_versions(spec).texts())
            reason = f"{spec.name} has no 'headerVersions', but other specs here do; add {texts}"
            yield message, message.top, reason


RULE = Rule(__name__, __doc__, Category.GENERATOR, directory=_check)
