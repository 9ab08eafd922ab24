"""A field was renamed.

The bytes are the same. The JSON form changes, and code that uses the old name must change too.

Flagged: `TopicName` that is now `Topic`, in the same place and of the same type; `Lag` that is now
`LagLegacy` in version 0, even if version 1 and later now have a field `Lag`.

Instead: keep the name, unless you know all programs that depend on it.

Source: KIP-482, "JSON Schemas"; the change to StreamsGroupHeartbeatResponse in Kafka 4.4.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.breaking.rule import BreakingRule, Breaks

if TYPE_CHECKING:
    from flexwire.schema.pairs import StructurePair
    from flexwire.specs.breaking.rule import Differences


def _find(pair: StructurePair) -> Differences:
    for old, new in pair.both():
        if old.name != new.name:
            text = f"{pair.path_of(old)} is now {new.name}"
            yield new.spec.position, f"{text}; JSON and code that use the old name no longer work"


RULE = BreakingRule(__name__, __doc__, Breaks.JSON, structure=_find)
