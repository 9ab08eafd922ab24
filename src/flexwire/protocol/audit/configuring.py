"""Requests that set configurations which a release does not have.

CreateTopics, AlterConfigs and IncrementalAlterConfigs are judged by the names in them, because the
versions of these requests say nothing about that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flexwire.protocol.apis import api_name
from flexwire.protocol.configurations import gone

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.parties import AuditVerdict
    from flexwire.protocol.audit.evidence import Configured


@dataclass(frozen=True, slots=True)
class ToldOfConfiguration:
    """What a release makes of one configuration that a client sets."""

    configured: Configured
    verdict: AuditVerdict
    evidence: str
    reason: str
    remedy: str
    source: str


def judge_configured(
    configured: frozenset[Configured], release: str
) -> Iterator[ToldOfConfiguration]:
    """Return what a release makes of configurations that it lacks, in the order of their names.

    Of a topic the release answers INVALID_CONFIG (40) to the whole request. Of a broker it accepts
    any name, so the configuration silently does nothing.
    """
    for one in sorted(configured):
        since = gone(one.kind, one.name, release)
        if since is None:
            continue
        what = f"it sets {one.name} of a {one.kind} in {api_name(one.api_key)}"
        remedy = f"leave {one.name} out of the request"
        if one.kind == "topic":
            reason = f"{what}, and Kafka {release} answers INVALID_CONFIG (40)"
            yield ToldOfConfiguration(
                one, "will break", "configuration gone", reason, remedy, "KIP-724"
            )
        else:
            reason = f"{what}, which Kafka {release} accepts without effect; {since.last} has it"
            yield ToldOfConfiguration(
                one, "will do nothing", "configuration without effect", reason, remedy, ""
            )
