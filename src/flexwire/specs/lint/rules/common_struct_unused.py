"""No field uses a common structure.

Flagged:

    { "name": "FooRequest", "type": "request", "apiKey": 1,
      "validVersions": "0", "flexibleVersions": "0+", "fields": [
        { "name": "Next", "type": "int32", "versions": "0+" }
      ], "commonStructs": [
        { "name": "Cursor", "versions": "0+", "fields": [
                  ^
          { "name": "Next", "type": "int32", "versions": "0+" }
        ] }
      ] }

Instead:

    { "name": "FooRequest", "type": "request", "apiKey": 1,
      "validVersions": "0", "flexibleVersions": "0+", "fields": [
        { "name": "Cursor", "type": "Cursor", "versions": "0+" }
      ], "commonStructs": [
        { "name": "Cursor", "versions": "0+", "fields": [
          { "name": "Next", "type": "int32", "versions": "0+" }
        ] }
      ] }

Source: flexwire. Kafka's generator does not check this, and StreamsGroupDescribeResponse.json in
4.1 contains an unused structure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    used = {field.type.name for field in message.spec.walk()}
    for common in message.spec.common_structs:
        # A structure whose name begins with a lowercase letter cannot be used. See
        # STRUCT_NAME_LOWERCASE.
        if common.name[:1].isupper() and common.name not in used:
            reason = f"no field uses common structure {common.name}; remove it"
            yield message.at(common, "name"), reason


RULE = Rule(__name__, __doc__, Category.PEDANTIC, message=_check)
