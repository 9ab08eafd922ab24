"""A version range is written backwards.

Such a range contains no version, so its field or message never exists.

Flagged:

    { "name": "Id", "type": "int32", "versions": "3-1" }
                                                 ^

Instead:

    { "name": "Id", "type": "int32", "versions": "1-3" }

Source: flexwire; Kafka's generator reads "3-1" as "none".
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.schema.text import JsonScalar
from flexwire.specs.lint.rule import Category, Rule
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


_KEYS = {
    "validVersions",
    "deprecatedVersions",
    "versions",
    "nullableVersions",
    "taggedVersions",
    "flexibleVersions",
    "versionsWithOptional",
}


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    for json_object in message.objects():
        for key in _KEYS & json_object.members.keys():
            value = json_object.members[key].value
            if isinstance(value, JsonScalar) and _backwards(value.text.strip()):
                at = message.text.position(value.offset)
                yield at, f"{key} {value.text!r} are backwards, so they contain no version"


def _backwards(text: str) -> bool:
    try:
        return text not in ("", "none", "null") and not Versions.parse(text)
    except ValueError:
        return False


RULE = Rule(__name__, __doc__, Category.CONSISTENCY, message=_check)
