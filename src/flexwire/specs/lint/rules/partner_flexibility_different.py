"""A request and its response are flexible in different versions.

Both headers depend on the same version, and a client that writes compact types also reads them.

Flagged:

    // FooRequest.json
    { "name": "FooRequest", "type": "request", "apiKey": 1,
      "validVersions": "0-3", "flexibleVersions": "1+", "fields": [] }
    // FooResponse.json
    { "name": "FooResponse", "type": "response", "apiKey": 1,
      "validVersions": "0-3", "flexibleVersions": "2+", "fields": [] }
                                                  ^

Instead:

    // FooRequest.json
    { "name": "FooRequest", "type": "request", "apiKey": 1,
      "validVersions": "0-3", "flexibleVersions": "1+", "fields": [] }
    // FooResponse.json
    { "name": "FooResponse", "type": "response", "apiKey": 1,
      "validVersions": "0-3", "flexibleVersions": "1+", "fields": [] }

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
        valid = request.spec.valid_versions
        requested = request.spec.flexible_versions & valid
        answered = response.spec.flexible_versions & valid
        if requested != answered:
            names = response.spec.name, request.spec.name
            reason = (
                f"{names[0]} is flexible in {answered}, but {names[1]} is flexible in {requested}"
            )
            yield response, response.at(None, "flexibleVersions"), reason


RULE = Rule(__name__, __doc__, Category.CONSISTENCY, directory=_check)
