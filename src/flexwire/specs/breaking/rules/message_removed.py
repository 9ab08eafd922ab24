"""A message is gone.

A peer that sends it is no longer understood, and what was written with it can no longer be read.

Flagged: a spec that is not there any more, or has another name.

Instead: keep the spec, with `"validVersions": "none"` if need be, so that its api key stays taken.

Source: what Kafka 4.0 did with the messages of ZooKeeper's time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.schema.spec import FIRST
from flexwire.specs.breaking.rule import BreakingRule, Breaks

if TYPE_CHECKING:
    from flexwire.schema.spec import MessageSpec
    from flexwire.specs.breaking.rule import Differences


def _find(old: MessageSpec, new: MessageSpec | None) -> Differences:
    if new is None and old.valid_versions:
        yield FIRST, f"{old.name} is gone; keep it with no valid versions at least"


RULE = BreakingRule(__name__, __doc__, Breaks.SUPPORT, message=_find)
