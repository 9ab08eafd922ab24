"""The beginning of a header changed, or a header gained an untagged field.

A broker reads the beginning of a request's header before it knows the request's version. All
versions of a header must therefore begin with the same fields, in the same order and with the same
types. New fields must be tagged.

Flagged: an untagged field in version 3 of RequestHeader.json that version 2 does not have.

Instead: give the field a tag.

Source: Kafka, KAFKA-21160 and pull requests 7479 and 23665; first in 4.5.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.schema.resolve import resolve
from flexwire.schema.spec import FIRST, MessageType
from flexwire.specs.breaking.rule import BreakingRule, Breaks

if TYPE_CHECKING:
    from flexwire.schema.spec import MessageSpec, Position
    from flexwire.specs.breaking.rule import Differences


def _find(old: MessageSpec, new: MessageSpec | None) -> Differences:
    if new is None or not (old.type is new.type is MessageType.HEADER) or not old.valid_versions:
        return
    highest = old.valid_versions.highest
    names = _inline(old, highest)
    for version in new.valid_versions:
        if version not in old.valid_versions and _inline(new, version) != names:
            what = (
                f"version {version} of {new.name} has different inline fields from "
                f"version {highest}"
            )
            place = _first_new(new, {name for name, _ in names}, version)
            yield place, f"{what}; tag new fields"


def _inline(spec: MessageSpec, version: int) -> list[tuple[str, str]]:
    schema = resolve(spec, version)
    return [(field.name, field.type.name) for field in schema.inline]


def _first_new(spec: MessageSpec, names: set[str], version: int) -> Position:
    added = (
        field.position
        for field in spec.fields
        if field.name not in names and version in field.versions and field.tag is None
    )
    return next(added, FIRST)


RULE = BreakingRule(__name__, __doc__, Breaks.WIRE, message=_find)
