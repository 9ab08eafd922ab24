"""Two messages of the same type in a directory have the same api key.

Each of these types has its own api keys: requests, responses, metadata records, and the keys and
the values of a coordinator's records.

Flagged:

    // FooRecord.json
    { "name": "FooRecord", "type": "metadata", "apiKey": 1,
      "validVersions": "0", "flexibleVersions": "0+", "fields": [] }
    // GooRecord.json
    { "name": "GooRecord", "type": "metadata", "apiKey": 1,
                                                         ^
      "validVersions": "0", "flexibleVersions": "0+", "fields": [] }

Instead:

    // FooRecord.json
    { "name": "FooRecord", "type": "metadata", "apiKey": 1,
      "validVersions": "0", "flexibleVersions": "0+", "fields": [] }
    // GooRecord.json
    { "name": "GooRecord", "type": "metadata", "apiKey": 2,
      "validVersions": "0", "flexibleVersions": "0+", "fields": [] }

Source: Kafka's generator, "Found more than one request with API key K", "Duplicate metadata record
entry for type K", "Duplicate coordinator record key for type K".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.lint.message import WITH_API_KEYS
from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import MessageType, Position
    from flexwire.specs.lint.message import CheckedMessage, Directory


def _check(directory: Directory) -> Iterator[tuple[CheckedMessage, Position, str]]:
    first: dict[tuple[MessageType, int | None], CheckedMessage] = {}
    for message in directory.messages:
        spec = message.spec
        if not message.readable or spec.api_key is None or spec.type not in WITH_API_KEYS:
            continue
        before = first.setdefault((spec.type, spec.api_key), message)
        if before is not message:
            reason = f"api key {spec.api_key} is already used by {before.spec.name}"
            yield message, message.at(None, "apiKey"), reason


RULE = Rule(__name__, __doc__, Category.GENERATOR, directory=_check)
