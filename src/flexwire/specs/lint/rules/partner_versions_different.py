"""A request and its response have different valid versions.

A response has the version of its request, so both need the same versions.

Flagged:

    // FooRequest.json
    { "name": "FooRequest", "type": "request", "apiKey": 1,
      "validVersions": "0-3", "flexibleVersions": "0+", "fields": [] }
    // FooResponse.json
    { "name": "FooResponse", "type": "response", "apiKey": 1,
      "validVersions": "0-2", "flexibleVersions": "0+", "fields": [] }
                       ^

Instead:

    // FooRequest.json
    { "name": "FooRequest", "type": "request", "apiKey": 1,
      "validVersions": "0-3", "flexibleVersions": "0+", "fields": [] }
    // FooResponse.json
    { "name": "FooResponse", "type": "response", "apiKey": 1,
      "validVersions": "0-3", "flexibleVersions": "0+", "fields": [] }

Source: flexwire; all releases of Kafka follow this rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage, Directory


def _check(directory: Directory) -> Iterator[tuple[CheckedMessage, Position, str]]:
    for request, response in directory.pairs():
        requested, answered = request.spec.valid_versions, response.spec.valid_versions
        if requested != answered:
            reason = (
                f"{response.spec.name} is valid in {answered}, but {request.spec.name} is "
                f"valid in {requested}"
            )
            yield response, response.at(None, "validVersions"), reason


RULE = Rule(__name__, __doc__, Category.CONSISTENCY, directory=_check)
