"""A message has another api key.

The api key is how a broker knows which request it reads.

Flagged: `"apiKey": 47` that is now `"apiKey": 48`.

Instead: leave it as it is.

Source: KIP-482, "JSON Schemas"; Kafka's EvolutionVerifier.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.check.breaking.rule import BreakingRule, Breaks
from flexwire.schema.spec import Position

if TYPE_CHECKING:
    from flexwire.check.breaking.rule import Differences
    from flexwire.schema.spec import MessageSpec


def _find(old: MessageSpec, new: MessageSpec | None) -> Differences:
    # A spec without versions may leave out its key.
    if new is not None and new.valid_versions and old.api_key != new.api_key:
        yield Position(1, 1), f"{old.name} had api key {old.api_key} and has now {new.api_key}"


RULE = BreakingRule(__name__, __doc__, Breaks.WIRE, message=_find)
