"""What a release means to the cluster as a whole: the audit's gates as a table and as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.facts import units
from flexwire.parties import VERDICTS, AuditVerdict
from flexwire.report.tables import ReportCell, ReportColumn, ReportTable, build, text

if TYPE_CHECKING:
    from flexwire.facts.audit import Audit, ClusterGate
    from flexwire.facts.facts import Facts

_NAMES = 3
# What needs somebody to act, or to look.
_NOT_SAID: AuditVerdict = "cannot say"
_TOLD = VERDICTS[: VERDICTS.index("will do nothing") + 1]


def cluster_table(facts: Facts) -> ReportTable:
    """The gates of the cluster, the gravest first."""

    def row(one: ClusterGate) -> list[ReportCell]:
        named = ", ".join(one.names[:_NAMES])
        more = f" and {one.count - _NAMES:,} more" if one.count > _NAMES else ""
        return [
            text(one.gate, f"on {one.release}"),
            ReportCell(one.verdict, note=one.evidence, verdict=one.verdict),
            text(one.subject),
            ReportCell(one.reason, note=one.source),
            ReportCell(one.remedy or units.DASH),
            text(f"{named}{more}" or units.DASH),
        ]

    columns = (
        ReportColumn("Gate", "text", "what was looked at, and for which release"),
        ReportColumn("Verdict", "verdict"),
        ReportColumn("Of", "text", "the configuration or feature"),
        ReportColumn("Why", "reason"),
        ReportColumn("Remedy", "reason"),
        ReportColumn("Names", "text", "topics, brokers or APIs that it is about"),
    )
    return build("The cluster itself, gravest first", columns, gates(facts.audit), row)


def gates(audit: Audit) -> list[ClusterGate]:
    """The gates, the gravest first."""
    return sorted(
        audit.cluster,
        key=lambda one: (
            VERDICTS.index(one.verdict),
            audit.releases.index(one.release) if one.release in audit.releases else -1,
            one.gate,
            one.subject,
        ),
    )


def cluster_sentences(audit: Audit, release: str) -> list[tuple[AuditVerdict, str]]:
    """What a release means to the cluster: a verdict and a sentence each, the gravest first.

    Gates that nothing was seen of share one sentence. A gate that is open has none; it is in the
    table.
    """
    found = [one for one in gates(audit) if one.release == release]
    told: list[tuple[AuditVerdict, str]] = [
        (one.verdict, f"The cluster {one.verdict}: {one.gate}, {one.subject}; {one.reason}.")
        for one in found
        if one.verdict in _TOLD and one.verdict != _NOT_SAID
    ]
    unseen = list(dict.fromkeys(one.gate for one in found if one.verdict == _NOT_SAID))
    if unseen:
        of = units.plural(len(unseen), "gate")
        told.append((_NOT_SAID, f"The cluster: {of} not seen ({', '.join(unseen)})."))
    return told
