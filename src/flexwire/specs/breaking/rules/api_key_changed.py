"""The api key of a message changed.

The api key identifies the request for a broker, and the record for a coordinator.

Flagged: `"apiKey": 47` that is now `"apiKey": 48`; data that becomes a `coordinator-key` with an
api key that is not one of the old versions. Before this change, the versions were the record types.
Not flagged: data that becomes a `coordinator-value`, or a key whose number was its version.

Instead: keep the api key.

Source: KIP-482, "JSON Schemas"; Kafka's EvolutionVerifier; the coordinators' specs of Kafka 4.1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.schema.spec import FIRST
from flexwire.specs.breaking.rule import BreakingRule, Breaks, became_a_record, continued

if TYPE_CHECKING:
    from flexwire.schema.spec import MessageSpec
    from flexwire.specs.breaking.rule import Differences


def _find(old: MessageSpec, new: MessageSpec | None) -> Differences:
    # A spec without versions may leave out its key.
    if new is None or not new.valid_versions or old.api_key == new.api_key:
        return
    if not became_a_record(old, new):
        yield FIRST, f"{old.name} had api key {old.api_key} and now has {new.api_key}"
    elif same := continued(old, new):
        before, after = same
        if old.valid_versions and before not in old.valid_versions:
            text = f"{old.name} had record type {old.valid_versions} (its version) and now has"
            yield FIRST, f"{text} {before} (its api key); restore the old number"
        elif after not in new.valid_versions:
            text = f"{old.name} had record type {after} (its api key) and now has"
            yield FIRST, f"{text} {new.valid_versions} (its version); restore that version"


RULE = BreakingRule(__name__, __doc__, Breaks.WIRE, message=_find)
