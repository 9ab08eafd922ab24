"""Limit the size of facts, whatever the capture contains, by keeping the most important entries.

Clients choose their own names, topic names and header keys. Each list keeps the rows that the page
would show first, and counts the others. The page itself is created from all facts. A page that is
created again from limited facts counts the rows that these facts lack.
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
"""The maximum number of topics that are listed for a record header key."""

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
"""The maximum number of items in each list in the facts."""

_FIRST: Final[dict[str, Callable[[Any], Any]]] = {
    "apis": lambda api: (-api.request_bytes - api.response_bytes, api.api_key),
    "clients": lambda client: (-client.bytes_sent - client.bytes_received, repr(client.client)),
    "version_uses": use_order,
    "topics": lambda topic: (-topic.records, topic.topic, topic.side),
    "record_headers": lambda header: (-header.records, header.key),
    "tagged_fields": lambda field: (field.name is not None, -field.times, repr(field)),
    "lenient_uses": lambda use: (-use.frames, repr(use)),
}


def bounded(facts: Facts) -> Facts:
    """Return the facts with lists of limited length; ``left_out`` counts the omitted items."""
    bounds: dict[str, Any] = {}
    left_out = dict(facts.left_out)
    for name, most in MOST.items():
        every = getattr(facts, name)
        if len(every) > most:
            # This statement keeps the original order.
            chosen = {id(item) for item in sorted(every, key=_FIRST[name])[:most]}
            bounds[name] = tuple(item for item in every if id(item) in chosen)
            left_out[name] = left_out.get(name, 0) + len(every) - most
    audit = facts.audit
    if len(audit.findings) > MOST_FINDINGS:
        left_out[FINDINGS] = left_out.get(FINDINGS, 0) + len(audit.findings) - MOST_FINDINGS
        bounds["audit"] = replace(audit, findings=tuple(findings(audit)[:MOST_FINDINGS]))
    headers = bounds.get("record_headers", facts.record_headers)
    bounds["record_headers"] = tuple(
        replace(
            header,
            topics=header.topics[:TOPICS_OF_A_KEY],
            topic_count=max(header.topic_count, len(header.topics)),
        )
        if len(header.topics) > TOPICS_OF_A_KEY
        else header
        for header in headers
    )
    return replace(facts, **bounds, left_out=left_out)
