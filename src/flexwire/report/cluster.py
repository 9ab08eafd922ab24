"""The audit's gates for the whole cluster, as a table and as sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.facts import units
from flexwire.parties import VERDICTS, AuditVerdict
from flexwire.report.tables import ReportCell, ReportColumn, ReportTable, build, text

if TYPE_CHECKING:
    from flexwire.facts.audit import Audit, ClusterGate
    from flexwire.facts.facts import Facts

_NAMES = 3
# The verdicts that require somebody to act or to check something.
_NOT_SAID: AuditVerdict = "cannot say"
_TOLD = VERDICTS[: VERDICTS.index("will do nothing") + 1]


def cluster_table(facts: Facts) -> ReportTable:
    """Return the table of the cluster's gates, with the most serious first."""

    def row(gate: ClusterGate) -> list[ReportCell]:
        named = ", ".join(gate.names[:_NAMES])
        more = f" and {gate.count - _NAMES:,} more" if gate.count > _NAMES else ""
        return [
            text(gate.gate, f"on {gate.release}"),
            ReportCell(gate.verdict, note=gate.evidence, verdict=gate.verdict),
            text(gate.subject),
            ReportCell(gate.remedy or units.DASH),
            ReportCell(gate.reason, note=gate.source),
            text(f"{named}{more}" or units.DASH),
        ]

    columns = (
        ReportColumn("Gate", "text", "what was checked, and for which release"),
        ReportColumn("Verdict", "verdict"),
        ReportColumn("Subject", "text", "the configuration or feature"),
        ReportColumn("Remedy", "reason"),
        ReportColumn("Why", "reason"),
        ReportColumn("Names", "text", "the affected topics, brokers or APIs"),
    )
    return build(
        "Findings about the cluster itself, most serious first", columns, gates(facts.audit), row
    )


def gates(audit: Audit) -> list[ClusterGate]:
    """Return the gates, with the most serious first."""
    return sorted(
        audit.cluster,
        key=lambda gate: (
            VERDICTS.index(gate.verdict),
            audit.releases.index(gate.release) if gate.release in audit.releases else -1,
            gate.gate,
            gate.subject,
        ),
    )


def cluster_sentences(audit: Audit, release: str) -> list[tuple[AuditVerdict, str]]:
    """Return a release's effects on the cluster: verdicts and sentences, worst first.

    All gates about which nothing was observed share one sentence. Open gates are listed only in the
    table and have no sentence.
    """
    open_gates = [gate for gate in gates(audit) if gate.release == release]
    sentences: list[tuple[AuditVerdict, str]] = [
        (gate.verdict, f"The cluster {gate.verdict}: {gate.gate}, {gate.subject}; {gate.reason}.")
        for gate in open_gates
        if gate.verdict in _TOLD and gate.verdict != _NOT_SAID
    ]
    unseen = list(dict.fromkeys(gate.gate for gate in open_gates if gate.verdict == _NOT_SAID))
    if unseen:
        of = units.plural(len(unseen), "gate")
        sentences.append(
            (_NOT_SAID, f"The cluster: the input shows nothing about {of} ({', '.join(unseen)}).")
        )
    return sentences
