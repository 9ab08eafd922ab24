"""A number or a boolean is written as a string, or a tag as a fraction.

Jackson accepts such values, but other programs that read specs may reject the values.

Flagged:

    { "name": "RackId", "type": "string", "versions": "1+", "about": "The rack.",
      "tag": "0", "taggedVersions": "1+" }
             ^

Instead:

    { "name": "RackId", "type": "string", "versions": "1+", "about": "The rack.",
      "tag": 0, "taggedVersions": "1+" }

Source: flexwire; BrokerHeartbeatRequest.json contains "tag": "0", and DeleteTopicsResponse.json
contains "ignorable": "true".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.schema.text import JsonScalar, ScalarKind
from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


_KINDS = {
    "apiKey": ScalarKind.NUMBER,
    "tag": ScalarKind.NUMBER,
    "ignorable": ScalarKind.BOOLEAN,
    "mapKey": ScalarKind.BOOLEAN,
    "zeroCopy": ScalarKind.BOOLEAN,
    "latestVersionUnstable": ScalarKind.BOOLEAN,
    "type": ScalarKind.STRING,
    "versions": ScalarKind.STRING,
    "validVersions": ScalarKind.STRING,
}


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    for json_object in message.objects():
        for key in _KINDS.keys() & json_object.members.keys():
            value, kind = json_object.members[key].value, _KINDS[key]
            if not isinstance(value, JsonScalar) or value.kind is ScalarKind.NULL:
                continue
            if value.kind is not kind or (key in {"tag", "apiKey"} and not _whole(value.text)):
                at = message.text.position(value.offset)
                yield at, f"{key!r} must be {kind.value}, got {value.kind.value}"


def _whole(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


RULE = Rule(__name__, __doc__, Category.PEDANTIC, message=_check)
