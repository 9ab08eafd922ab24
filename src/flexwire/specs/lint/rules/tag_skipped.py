"""The tags of a structure skip a number.

Tags count up from 0 in each structure, across all versions. Tags below 128 take one byte on the
wire, so none should be wasted. KIP-482's first draft has no such rule.

Flagged:

    { "name": "ClusterId", "type": "string", "versions": "1+", "tag": 0, "taggedVersions": "1+" },
    { "name": "RackId", "type": "string", "versions": "1+", "tag": 2, "taggedVersions": "1+" }
                                                                   ^

Instead:

    { "name": "ClusterId", "type": "string", "versions": "1+", "tag": 0, "taggedVersions": "1+" },
    { "name": "RackId", "type": "string", "versions": "1+", "tag": 1, "taggedVersions": "1+" }

Source: Kafka's generator, "the tag IDs are not contiguous. Make use of tag i before using any
higher tag IDs."
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.lint.rule import Category, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.schema.spec import Position
    from flexwire.specs.lint.message import CheckedMessage


def _check(message: CheckedMessage) -> Iterator[tuple[Position, str]]:
    if message.mode == "draft":
        return
    for structure in message.structures:
        # A tag that could not be read may be the missing tag.
        if any(field_spec.position in message.damaged for field_spec in structure.fields):
            continue
        tags = {field.tag: field for field in structure.fields if field.tag is not None}
        free = next(tag for tag in range(len(tags) + 1) if tag not in tags)
        above = [tag for tag in tags if tag > free]
        if above:
            field = tags[min(above)]
            reason = f"tag {free} is not used in {structure.name}; use it for {field.name}"
            yield message.at(field, "tag"), f"{reason}, not {field.tag}"


RULE = Rule(__name__, __doc__, Category.GENERATOR, message=_check)
