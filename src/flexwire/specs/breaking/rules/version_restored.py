"""A version below the lowest valid version is valid again.

The old spec does not contain that version. Therefore nothing shows that the new spec has the same
layout as the releases that had this version. Peers that still know the version will use it.

Flagged: `"validVersions": "2-9"` that is now `"0-9"`.
Not flagged: a message that had no valid version; version 0 of a `coordinator-key` that was data.

Instead: keep the lowest version. If the version must return, compare the new spec with the last
release that had the version, and allow this finding.

Source: Kafka's checker of metadata records (`EvolutionVerifier`, KAFKA-16469), which refuses
restored versions for every message. Kafka restored versions once: 4.0.1 restored JoinGroup 0 and 1
with their layout from 3.9 (KAFKA-19444).
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
    if new is None or not old.valid_versions or continued(old, new) is not None:
        return
    lowest = old.valid_versions.lowest
    back = [version for version in new.valid_versions if version < lowest]
    if back:
        versions = f"versions {Versions.of(back)} are" if len(back) > 1 else f"version {back[0]} is"
        reason = f"{versions} valid again in {new.name}, whose lowest version was {lowest}"
        yield FIRST, f"{reason}; compare the layout with an older release"


RULE = BreakingRule(__name__, __doc__, Breaks.SUPPORT, message=_find)
