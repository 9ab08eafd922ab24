"""The header version that every broker can read is no longer valid.

A broker that lacks the version of a request reads the request's header as version 1, regardless of
the real version, and answers with response header 0. Request header 1 and response header 0 must
therefore remain forever.

Flagged: `"validVersions": "1-3"` in RequestHeader.json that is now `"2-3"`.

Instead: keep version 1.

Source: Kafka, KAFKA-21160; first in 4.5.0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.schema.header_versions import READ_BY_ALL
from flexwire.schema.spec import FIRST, MessageType
from flexwire.specs.breaking.rule import BreakingRule, Breaks

if TYPE_CHECKING:
    from flexwire.schema.spec import MessageSpec
    from flexwire.specs.breaking.rule import Differences


def _find(old: MessageSpec, new: MessageSpec | None) -> Differences:
    kept = READ_BY_ALL.get(old.name)
    if old.type is not MessageType.HEADER or kept is None or kept not in old.valid_versions:
        return
    if new is None or kept not in new.valid_versions:
        yield FIRST, f"version {kept} of {old.name}, which every broker reads, was removed; keep it"


RULE = BreakingRule(__name__, __doc__, Breaks.WIRE, message=_find)
