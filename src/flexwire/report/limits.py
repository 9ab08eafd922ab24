"""Facts of bounded size, whatever a capture holds: of very many the most important, and a count.

Clients name themselves, and topics and header keys are theirs too. What is kept of each list is
what the page would show first. The page is made of all; what is made anew of bounded facts counts
what they leave out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from flexwire.facts.audit import findings
from flexwire.report.matrix import use_order

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.facts.facts import Facts

TOPICS_OF_A_KEY: Final = 20
"""So many topics are named of a record header key."""

FINDINGS: Final = "audit.findings"
MOST_FINDINGS: Final = 5_000
MOST: Final = {
    "apis": 500,
    "clients": 2_000,
    "version_uses": 20_000,
    "topics": 4_000,
    "record_headers": 1_000,
    "tagged_fields": 1_000,
    "lenient_uses": 1_000,
}
"""So many of each the facts have."""

_FIRST: Final[dict[str, Callable[[Any], Any]]] = {
    "apis": lambda one: (-one.request_bytes - one.response_bytes, one.api_key),
    "clients": lambda one: (-one.bytes_sent - one.bytes_received, repr(one.client)),
    "version_uses": use_order,
    "topics": lambda one: (-one.records, one.topic, one.side),
    "record_headers": lambda one: (-one.records, one.key),
    "tagged_fields": lambda one: (one.name is not None, -one.times, repr(one)),
    "lenient_uses": lambda one: (-one.frames, repr(one)),
}


def bounded(facts: Facts) -> Facts:
    """The facts with at most so many of everything; what they leave out is in ``left_out``."""
    kept: dict[str, Any] = {}
    left_out = dict(facts.left_out)
    for name, most in MOST.items():
        every = getattr(facts, name)
        if len(every) > most:
            # In the order that they had.
            chosen = {id(one) for one in sorted(every, key=_FIRST[name])[:most]}
            kept[name] = tuple(one for one in every if id(one) in chosen)
            left_out[name] = left_out.get(name, 0) + len(every) - most
    audit = facts.audit
    if len(audit.findings) > MOST_FINDINGS:
        left_out[FINDINGS] = left_out.get(FINDINGS, 0) + len(audit.findings) - MOST_FINDINGS
        kept["audit"] = replace(audit, findings=tuple(findings(audit)[:MOST_FINDINGS]))
    headers = kept.get("record_headers", facts.record_headers)
    kept["record_headers"] = tuple(
        replace(
            one,
            topics=one.topics[:TOPICS_OF_A_KEY],
            topic_count=max(one.topic_count, len(one.topics)),
        )
        if len(one.topics) > TOPICS_OF_A_KEY
        else one
        for one in headers
    )
    return replace(facts, **kept, left_out=left_out)
