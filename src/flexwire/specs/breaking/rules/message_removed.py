"""A message was removed.

Peers may still send the message, but nobody can read it. Data that was written with the message can
no longer be read.

Flagged: a spec that no longer exists, or that has another name.

Instead: keep the spec, with `"validVersions": "none"` if necessary, so that its api key is not
reused.

Source: the removal of the ZooKeeper messages in Kafka 4.0.
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
        yield FIRST, f"{old.name} was removed; keep its spec, with no valid versions"


RULE = BreakingRule(__name__, __doc__, Breaks.SUPPORT, message=_find)
