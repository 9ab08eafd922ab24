"""A version is no longer valid.

A peer that knows only that version or older versions can no longer exchange this message.

Flagged: `"validVersions": "0-9"` that is now `"3-9"`.
Not flagged: version 2 of data that is now a `coordinator-key` with api key 2, because the two have
the same bytes.

Instead: deprecate versions first, `"deprecatedVersions": "0-2"`, and remove them with a major
release.

Source: KIP-896, which removed versions this way for Kafka 4.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.schema.spec import FIRST
from flexwire.specs.breaking.rule import BreakingRule, Breaks, continued
from flexwire.versions import Versions

if TYPE_CHECKING:
    from flexwire.schema.spec import MessageSpec
    from flexwire.specs.breaking.rule import Differences


def _find(old: MessageSpec, new: MessageSpec | None) -> Differences:
    if new is None:
        return
    same = continued(old, new)
    gone = [
        version
        for version in old.valid_versions
        if version not in new.valid_versions and (same is None or version != same[0])
    ]
    if gone:
        versions = f"versions {Versions.of(gone)} are" if len(gone) > 1 else f"version {gone[0]} is"
        yield FIRST, f"{versions} no longer valid in {old.name}"


RULE = BreakingRule(__name__, __doc__, Breaks.SUPPORT, message=_find)
