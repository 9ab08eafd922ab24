"""The header version of an existing version changed.

A peer reads the header version that it knows for the version of the message. The peer then looks
for the body in the wrong place, or reads tagged fields as the body. If a spec has no
`headerVersions`, its flexible versions determine the header version. The rule compares header
versions as numbers.

Flagged: `"headerVersions": { "0": "1", "1+": "2" }` that is now `{ "0": "1", "1+": "3" }`, where
version 1 was valid before.
Not flagged: a version that became flexible, which `VERSION_FLEXIBILITY_CHANGED` reports.

Instead: use the new header version only for a new version of the message.

Source: KIP-482, "Request and Response Headers"; Kafka's `headerVersions` since 4.5 (KAFKA-20923).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.schema.header_versions import spec_header_versions
from flexwire.schema.spec import FIRST
from flexwire.specs.breaking.rule import BreakingRule, Breaks
from flexwire.versions import Versions

if TYPE_CHECKING:
    from flexwire.schema.spec import MessageSpec
    from flexwire.specs.breaking.rule import Differences


def _find(old: MessageSpec, new: MessageSpec | None) -> Differences:
    if new is None or new.type is not old.type or not old.type.is_api:
        return
    before, now = spec_header_versions(old), spec_header_versions(new)
    changed: dict[tuple[int, int], list[int]] = {}
    for version in old.valid_versions & new.valid_versions:
        same_flexibility = (version in old.flexible_versions) == (version in new.flexible_versions)
        if before.of(version) != now.of(version) and same_flexibility:
            changed.setdefault((before.of(version), now.of(version)), []).append(version)
    for (header, other), versions in changed.items():
        yield (
            FIRST,
            (
                f"{old.name} {Versions.of(versions)} used {old.type.value} header version "
                f"{header} and now uses {other}; use header version {other} only for a new version"
            ),
        )


RULE = BreakingRule(__name__, __doc__, Breaks.WIRE, message=_find)
