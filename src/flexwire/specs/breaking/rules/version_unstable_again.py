"""A stable version became unstable.

Brokers offer an unstable version only where `unstable.api.versions.enable` is set, so peers that
use the version lose it. An unstable version may also change, although peers already use it.

Flagged: `"latestVersionUnstable": true` added to a request whose highest version is the old one.
Not flagged: the same change with a new highest version, because then only the new version is
unstable.

Instead: add a new version and mark that version as unstable.

Source: Kafka's `unstable.api.versions.enable` (KAFKA-14391). No Kafka release has done this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.schema.spec import FIRST
from flexwire.specs.breaking.rule import BreakingRule, Breaks

if TYPE_CHECKING:
    from flexwire.schema.spec import MessageSpec
    from flexwire.specs.breaking.rule import Differences


def _find(old: MessageSpec, new: MessageSpec | None) -> Differences:
    if new is None or not new.latest_version_unstable or not new.valid_versions:
        return
    highest = new.valid_versions.highest
    was = old.latest_version_unstable and old.valid_versions.highest == highest
    if highest in old.valid_versions and not was:
        reason = f"version {highest} of {new.name} was stable and is now unstable"
        yield FIRST, f"{reason}; mark only a new version as unstable"


RULE = BreakingRule(__name__, __doc__, Breaks.SUPPORT, message=_find, needs_own_text=True)
