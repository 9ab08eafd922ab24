"""The type of a message changed: request, response, header, record or data.

The type determines which bytes precede the message on the wire, and which program reads the
message.

Flagged: `"type": "request"` that is now `"type": "response"`.
Not flagged: data that is now `coordinator-key` or `coordinator-value`, because the new type only
declares the purpose that the message already had.

Instead: add a message.

Source: Kafka's EvolutionVerifier; the new types of the coordinators' records in Kafka 4.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.schema.spec import FIRST
from flexwire.specs.breaking.rule import BreakingRule, Breaks, became_a_record

if TYPE_CHECKING:
    from flexwire.schema.spec import MessageSpec
    from flexwire.specs.breaking.rule import Differences


def _find(old: MessageSpec, new: MessageSpec | None) -> Differences:
    if new is not None and old.type is not new.type and not became_a_record(old, new):
        text = f"{old.name} was a {old.type.value} and is now a {new.type.value}"
        yield FIRST, f"{text}; add a message instead"


RULE = BreakingRule(__name__, __doc__, Breaks.WIRE, message=_find)
