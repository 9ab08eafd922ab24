"""A message was renamed, but its api key and type are the same.

The bytes are the same. Code and JSON that use the old name no longer find the message.

Flagged: `ListOffsetRequest` that is now `ListOffsetsRequest`.

Instead: keep the name, unless you know all programs that depend on it.

Source: the new name of ListOffsets in Kafka 3.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.schema.spec import FIRST
from flexwire.specs.breaking.rule import BreakingRule, Breaks

if TYPE_CHECKING:
    from flexwire.schema.spec import MessageSpec
    from flexwire.specs.breaking.rule import Differences


def _find(old: MessageSpec, new: MessageSpec | None) -> Differences:
    if new is not None and old.name != new.name:
        yield FIRST, f"{old.name} is now {new.name}; all code that uses the old name must change"


RULE = BreakingRule(__name__, __doc__, Breaks.JSON, message=_find)
