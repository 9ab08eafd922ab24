"""The versions of a field begin above the valid versions of its message.

No valid version contains the field (or allows null, or uses its tag), although the spec suggests
otherwise. The usual reason is that the new version was not added to `validVersions`.

Flagged:

    { "name": "RackId", "type": "string", "versions": "4+", "about": "The rack." }
                                                      ^

Instead:

    { "name": "RackId", "type": "string", "versions": "3+", "about": "The rack." }

Source: flexwire; no released spec of Kafka does this, and Kafka's generator does not check it.
`FIELD_OUTSIDE_VALID` reports fields of removed versions, which are below the valid versions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    valid = message.spec.valid_versions
    for field, structure in message.fields():
        # If no version has a structure, the structure's fields are not reported in addition.
        if not valid or not structure.versions:
            continue
        ranges = {
            "versions": field.versions,
            "nullableVersions": field.nullable_versions,
            "taggedVersions": field.tagged_versions,
        }
        above = [
            key for key, versions in ranges.items() if versions and versions.lowest > valid.highest
        ]
        # STRUCT_NEVER_PRESENT reports a structure that defines its fields here.
        if above and not (field.fields and "versions" in above):
            key = above[0]
            reason = f"{key} {ranges[key]} of field {field.name} begin above the valid versions"
            yield message.at(field, key), f"{reason}, {valid}; make the next version valid too"


RULE = Rule(__name__, __doc__, Category.CONSISTENCY, message=_check)
