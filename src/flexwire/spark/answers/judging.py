"""From what was gathered of clients to the facts of the audit, and to the rows of its table."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from flexwire.errors import UnknownMessageError
from flexwire.facts.audit import (
    Audit,
    AuditFinding,
    ClusterGate,
    FirstRelease,
    LeftOut,
    NewestShare,
    PinningSetting,
)
from flexwire.measures.evidence import Touched, key_of
from flexwire.protocol import api_name
from flexwire.protocol.audit import (
    LIBRARIES,
    OPENING_APIS,
    PINS,
    VERDICTS,
    audited_releases,
    judge,
    judge_cluster,
    libraries_are_about,
    newest_version,
)
from flexwire.report.audit_files import audit_row
from flexwire.schema.catalog import catalog
from flexwire.spark.answers.labels import team_of
from flexwire.tables.schema import AUDIT_TABLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from flexwire.measures.evidence import Evidence, Gathered, Key
    from flexwire.protocol.audit import ClusterSeen, Conduct, Finding, Party
    from flexwire.spark.answers.labels import Labels

# What is said of a client, up to here in the order of verdicts, needs somebody to ask about it.
_NAMED = VERDICTS[: VERDICTS.index("documented as unsupported") + 1]
_BREAKS = VERDICTS[: VERDICTS.index("cannot say")]
MOST_FINDINGS: Final = 100_000
"""So many findings an audit has; what is left out of more is counted by verdict."""
_Judged = list[tuple["Party", "Conduct", "Finding"]]


def gather_audit(
    gathered: Gathered,
    releases: Sequence[str] = (),
    brokers: Sequence[str] = (),
    *,
    labels: Labels | None = None,
) -> Audit:
    """Audit what was gathered.

    ``releases`` are names as `Catalog.release` takes them; without any it is every major from the
    captured brokers' on. ``brokers`` are these brokers' releases, where somebody knows them; else
    what they offer in ApiVersions says it. ``labels`` say whose team a client is. Raises
    `UnknownMessageError` for a release that there is not.
    """
    named = tuple(dict.fromkeys(map(catalog().release, releases)))
    evidence = gathered.evidence()
    running = tuple(brokers) or evidence.brokers
    chosen = named or audited_releases(running)
    judged, left_out = _judged(evidence, chosen, running)
    flagged = {party for party, _, finding in judged if finding.verdict in _NAMED}
    touched = gathered.touched(flagged) if flagged else {}
    findings = [_finding(*one, touched, labels or {}) for one in judged]
    # The same captures should give the same file.
    findings.sort(key=lambda one: (chosen.index(one.release), VERDICTS.index(one.verdict),
                                   -one.requests, repr(one)))  # fmt: skip
    return Audit(
        releases=chosen,
        asked=bool(named),
        brokers=running,
        findings=tuple(findings),
        newest=tuple(_newest(evidence, release) for release in chosen),
        pins=_pins(judged),
        libraries=_libraries(judged),
        left_out=LeftOut(
            evidence.clients_left_out,
            evidence.requests_left_out,
            evidence.brokers_left_out,
            tuple((verdict, left_out[verdict]) for verdict in VERDICTS if left_out[verdict]),
        ),
        cluster=cluster_gates(evidence.cluster, chosen),
    )


def cluster_gates(seen: ClusterSeen, releases: Sequence[str]) -> tuple[ClusterGate, ...]:
    """The gates of a cluster on these releases, in their order, the gravest first."""
    return tuple(
        ClusterGate(**asdict(one)) for release in releases for one in judge_cluster(seen, release)
    )


def _judged(
    evidence: Evidence, releases: Sequence[str], brokers: Sequence[str]
) -> tuple[_Judged, Counter[str]]:
    """All findings, and the verdicts of those left out.

    Of very many the gravest are kept, of these those about most requests.
    """
    judged: _Judged = []
    left_out = Counter[str]()

    def keep_gravest() -> None:
        judged.sort(key=_gravest_first)
        left_out.update(finding.verdict for _, _, finding in judged[MOST_FINDINGS:])
        del judged[MOST_FINDINGS:]

    for party, conduct in evidence.conducts.items():
        for release in releases:
            found = judge(party, conduct, release, brokers=brokers)
            judged.extend((party, conduct, one) for one in found)
        if len(judged) > 2 * MOST_FINDINGS:
            keep_gravest()
    if len(judged) > MOST_FINDINGS:
        keep_gravest()
    return judged, left_out


def _gravest_first(judged: tuple[Party, Conduct, Finding]) -> tuple[int, int]:
    # Sorting is stable, and clients come in an order that does not depend on how they were seen.
    return VERDICTS.index(judged[2].verdict), -judged[2].requests


def _finding(
    party: Party,
    conduct: Conduct,
    finding: Finding,
    touched: Mapping[Key, Touched],
    labels: Labels,
) -> AuditFinding:
    own = touched.get(key_of(party), Touched())
    return AuditFinding(
        finding.release,
        finding.verdict,
        finding.evidence,
        finding.reason,
        conduct.role,
        party,
        finding.requests,
        finding.first_us,
        finding.last_us,
        conduct.connections,
        len(conduct.api_keys),
        api_key=finding.api_key,
        api_name=None if finding.api_key is None else _name(finding.api_key),
        version=finding.version,
        offered=None if finding.offered is None else str(finding.offered),
        last_accepting_release=finding.last_accepting,
        first_refusing_release=finding.first_refusing,
        groups=own.groups,
        group_count=own.group_count,
        topics=own.topics,
        topic_count=own.topic_count,
        remedy=finding.remedy,
        source=finding.source,
        team=team_of(labels, party.client_id),
    )


def _name(api_key: int) -> str | None:
    try:
        return api_name(api_key)
    except UnknownMessageError:
        return None


def _newest(evidence: Evidence, release: str) -> NewestShare:
    """Who is at the newest versions of a release: only they would take up a version after it."""
    asked, newest, clients, up_to_date = 0, 0, 0, 0
    for conduct in evidence.clients.values():
        at = Counter[bool]()
        for use in conduct.uses:
            highest = newest_version(use.api_key, release)
            if use.api_key not in OPENING_APIS and highest is not None:
                at[use.version >= highest] += use.requests
        asked += at.total()
        newest += at[True]
        clients += bool(at)
        up_to_date += bool(at[True]) and not at[False]
    return NewestShare(release, asked, newest, clients, up_to_date)


def _pins(judged: _Judged) -> tuple[PinningSetting, ...]:
    if not any(one.verdict in _BREAKS and one.api_key is not None for _, _, one in judged):
        return ()
    return tuple(
        PinningSetting(pin.client, pin.setting, pin.effect, pin.remedy, pin.sources) for pin in PINS
    )


def _libraries(judged: _Judged) -> tuple[FirstRelease, ...]:
    if not any(
        one.verdict in _BREAKS and one.api_key is not None and libraries_are_about(one.release)
        for _, _, one in judged
    ):
        return ()
    return tuple(
        FirstRelease(one.library, one.works_from or "", one.remedy or one.note, one.said)
        for one in LIBRARIES
    )


def audit_rows(audit: Audit) -> pa.RecordBatch:
    """The findings as rows of their table."""
    rows = [audit_row(one) for one in audit.findings]
    return pa.RecordBatch.from_pylist(rows, AUDIT_TABLE)
