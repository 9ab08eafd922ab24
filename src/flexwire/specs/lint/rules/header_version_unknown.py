"""A message uses a header version that the header's own spec does not define.

A request needs a version that RequestHeader.json defines, and a response needs one that
ResponseHeader.json defines. The rule applies if the header's spec is in the same directory.

Flagged:

    // RequestHeader.json
    { "name": "RequestHeader", "type": "header", "fields": [],
      "validVersions": "1-2", "flexibleVersions": "2+" }
    // FooRequest.json
    { "name": "FooRequest", "type": "request", "apiKey": 1, "fields": [],
      "validVersions": "0", "flexibleVersions": "0+", "headerVersions": { "0+": "3" } }
                                                                        ^
    // FooResponse.json
    { "name": "FooResponse", "type": "response", "apiKey": 1, "fields": [],
      "validVersions": "0", "flexibleVersions": "0+", "headerVersions": { "0+": "1" } }

Instead:

    // RequestHeader.json
    { "name": "RequestHeader", "type": "header", "fields": [],
      "validVersions": "1-2", "flexibleVersions": "2+" }
    // FooRequest.json
    { "name": "FooRequest", "type": "request", "apiKey": 1, "fields": [],
      "validVersions": "0", "flexibleVersions": "0+", "headerVersions": { "0+": "2" } }
    // FooResponse.json
    { "name": "FooResponse", "type": "response", "apiKey": 1, "fields": [],
      "validVersions": "0", "flexibleVersions": "0+", "headerVersions": { "0+": "1" } }

Source: Kafka's generator since 4.5 (KAFKA-20923, lower bound in pull request 23457).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.schema.header_versions import HEADER_NAMES
from flexwire.schema.spec import MessageType
from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage, Directory


def _check(directory: Directory) -> Iterator[tuple[CheckedMessage, Position, str]]:
    valid = {
        message.spec.name: message.spec.valid_versions
        for message in directory.messages
        if message.readable and message.spec.type is MessageType.HEADER
    }
    for message in directory.messages:
        header_name = HEADER_NAMES.get(message.spec.type, "")
        if header_name not in valid:
            continue
        for versions, header in message.header_ranges:
            if header not in valid[header_name]:
                reason = (
                    f"versions {versions} use header version {header}, but {header_name} has only "
                    f"versions {valid[header_name]}"
                )
                yield message, message.at(None, "headerVersions"), reason


RULE = Rule(__name__, __doc__, Category.GENERATOR, directory=_check)
