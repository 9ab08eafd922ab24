"""The clients that break: the sentences and the tables of an audit."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from flexwire.facts import units
from flexwire.facts.audit import findings
from flexwire.report.matrix import client_name
from flexwire.report.tables import ReportCell, ReportColumn, ReportTable, build, number, text
from flexwire.schema.catalog import is_preview

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.facts.audit import Audit, AuditFinding, FirstRelease, PinningSetting
    from flexwire.facts.facts import Facts
    from flexwire.parties import Party

NOTHING, NOT_JUDGED, DOCUMENTED = (
    "nothing seen against it",
    "not judged",
    "documented as unsupported",
)
_NAMES = 3
_VERSIONS = 3
# The sentences for each verdict, in one form for a single client and in another for several
# clients.
_SAID: dict[str, tuple[str, str]] = {
    "broke": ("already broke", "already broke"),
    "will break": ("will break", "will break"),
    "known to break": ("is known to break", "are known to break"),
    "cannot say": (
        "may break, and the capture does not show whether it does",
        "may break, and the capture does not show whether they do",
    ),
    "will do nothing": (
        "sets a field that the release accepts but ignores",
        "set a field that the release accepts but ignores",
    ),
}
# Remarks that appear in addition to the finding for which a client is counted.
_REMARKED = (
    "is documented as unsupported (a remark, not a verdict)",
    "are documented as unsupported (a remark, not a verdict)",
)


def title(facts: Facts) -> str:
    """Return the question that the page answers first."""
    named = facts.audit.releases
    if not named:
        return "Who breaks?"
    last = f" and {named[-1]}" if len(named) > 1 else named[-1]
    return f"Who breaks on Kafka {', '.join(named[:-1])}{last}?"


def chosen(facts: Facts) -> str:
    """Return a sentence about why the audit covers these releases and which previews it omits."""
    previews = [release for release in facts.releases if is_preview(release)]
    if not previews:
        return _reason(facts.audit)
    is_one = len(previews) == 1
    preview = "is a preview and receives" if is_one else "are previews and receive"
    return f"{_reason(facts.audit)} {' and '.join(previews)} {preview} no verdict."


def _reason(audit: Audit) -> str:
    may_be = (
        "Based on the versions that they offer, the captured brokers may be running Kafka "
        f"{' or '.join(audit.brokers)}"
    )
    if audit.asked:
        basis = may_be if audit.brokers else "The captured brokers' release is unknown"
        return f"Clients are judged against the releases that you requested. {basis}."
    if audit.brokers:
        return (
            "Clients are judged against the newest release of each major version, starting with "
            f"the brokers' version. {may_be}."
        )
    return (
        "The captured brokers' release is unknown, so clients are judged against the newest "
        "releases of the last two major versions; use --release to choose others."
    )


def sentences(facts: Facts) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return the answer to "Who breaks?" for each release: verdicts and sentences, worst first."""
    by_release: defaultdict[str, list[AuditFinding]] = defaultdict(list)
    for finding in findings(facts.audit):
        by_release[finding.release].append(finding)
    return [(release, _sentences(by_release[release])) for release in facts.audit.releases]


def _sentences(findings_of_one: list[AuditFinding]) -> list[tuple[str, str]]:
    if not findings_of_one:
        return [("cannot say", "No request was decoded, so there is no verdict.")]
    clients = {finding.client for finding in findings_of_one if finding.role == "client"}
    of = units.plural(len(clients), "client")
    # Each client counts only once, with its most serious finding, so that the numbers add up.
    gravest: dict[Party, str] = {}
    for finding in findings_of_one:
        gravest.setdefault(finding.client, finding.verdict)
    lines: list[tuple[str, str]] = []
    for verdict, does in _SAID.items():
        hits = [
            finding
            for finding in findings_of_one
            if finding.verdict == verdict == gravest[finding.client]
        ]
        lines += _finding_lines(verdict, hits, of, does)
    remarks = [finding for finding in findings_of_one if finding.verdict == DOCUMENTED]
    lines += _finding_lines(DOCUMENTED, remarks, of, _REMARKED)
    return lines + _about_the_rest(findings_of_one, of)


def _finding_lines(
    verdict: str, hits: list[AuditFinding], of: str, does: tuple[str, str]
) -> list[tuple[str, str]]:
    whose = {hit.client for hit in hits}
    if not whose:
        return []
    said = does[0] if len(whose) == 1 else does[1]
    return [(verdict, f"{len(whose):,} of {of} {said}: {_named(hits)}.")]


def _about_the_rest(own: list[AuditFinding], of: str) -> list[tuple[str, str]]:
    lines = []
    free = {finding.client: finding for finding in own if finding.verdict == NOTHING}
    if free:
        first = min(finding.first_time_us for finding in free.values())
        last = max(finding.last_time_us for finding in free.values())
        connections = units.plural(
            sum(finding.connections for finding in free.values()), "connection"
        )
        extent = f"{connections}, {units.span(last - first)} of traffic"
        lines.append((NOTHING, f"{len(free):,} of {of}: no problem seen ({extent})."))
    apart = Counter(finding.role for finding in own if finding.verdict == NOT_JUDGED)
    if apart:
        roles = " and ".join(units.plural(apart[role], role) for role in sorted(apart))
        lines.append((NOT_JUDGED, f"Not judged: {roles} (upgraded with the cluster)."))
    return lines


def _named(hits: Sequence[AuditFinding]) -> str:
    uses: defaultdict[Party, list[AuditFinding]] = defaultdict(list)
    for hit in hits:
        uses[hit.client].append(hit)
    named = list(uses.items())[:_NAMES]
    names = [f"{client_name(party.client)}{_versions(own)}" for party, own in named]
    if len(uses) > _NAMES:
        names.append(f"and {len(uses) - _NAMES:,} more")
    return "; ".join(names)


def _versions(own: list[AuditFinding]) -> str:
    numbers: defaultdict[str, set[int]] = defaultdict(set)
    for hit in own:
        if hit.version is not None:
            numbers[_api(hit)].add(hit.version)
    if not numbers:
        return f" ({own[0].client.software or own[0].evidence})"
    parts = [f"{name} v{units.ranges(tuple(sorted(some)))}" for name, some in numbers.items()]
    more = len(parts) - _VERSIONS
    rest = f" and {units.plural(more, 'more API')}" if more > 0 else ""
    return f" ({', '.join(parts[:_VERSIONS])}{rest})"


def _api(finding: AuditFinding) -> str:
    return finding.api_name or f"api key {finding.api_key}"


def _whose(finding: AuditFinding) -> ReportCell:
    party = finding.client
    team = f"team {finding.team}" if finding.team else None
    lines = (party.address, party.principal, party.software or "software unknown", team)
    return text(client_name(party.client), " · ".join(filter(None, lines)))


def _when(finding: AuditFinding) -> ReportCell:
    period = units.period(finding.first_time_us, finding.last_time_us)
    return ReportCell(units.count(finding.requests), sort=finding.requests, note=period)


def finding_table(facts: Facts) -> ReportTable:
    """Return the table of findings about clients, with one row per finding for all its releases."""

    def row(item: tuple[AuditFinding, list[str]]) -> list[ReportCell]:
        finding, releases = item
        version = "the client" if finding.version is None else f"{_api(finding)} v{finding.version}"
        where = [*_touched("group", finding.groups, finding.group_count)]
        where += _touched("topic", finding.topics, finding.topic_count)
        refusing = finding.first_refusing_release
        refusing = f"not by {refusing}" if refusing else ""
        return [
            _whose(finding),
            ReportCell(finding.verdict, note=finding.evidence, verdict=finding.verdict),
            ReportCell(finding.remedy or units.DASH),
            text(version, f"on {', '.join(releases)}"),
            ReportCell(finding.reason, note=finding.source),
            _when(finding),
            text("; ".join(where) or units.DASH),
            ReportCell(finding.last_accepting_release or units.DASH, note=refusing),
        ]

    columns = (
        ReportColumn(
            "Client", "text", "the client id, address, principal, software and team of the client"
        ),
        ReportColumn("Verdict", "verdict"),
        ReportColumn("Remedy", "reason"),
        ReportColumn(
            "What", "text", "the API and version, and the releases to which the finding applies"
        ),
        ReportColumn("Why", "reason"),
        ReportColumn(
            "Requests",
            "number",
            "the number of requests, and the times of the first and the last request",
        ),
        ReportColumn(
            "Groups and topics",
            "text",
            ("the groups and topics in the client's requests, across all APIs"),
        ),
        ReportColumn(
            "Last read by",
            "text",
            "the last release that supports the version, and the first release that does not",
        ),
    )
    # One row lists all releases with the same evidence, together with the remedy for the last of
    # them.
    merged: dict[AuditFinding, tuple[AuditFinding, list[str]]] = {}
    for finding in findings(facts.audit):
        if finding.verdict not in {NOTHING, NOT_JUDGED}:
            same = replace(finding, release="", remedy="", last_accepting_release=None,
                           first_refusing_release=None)  # fmt: skip
            _, releases = merged.get(same, (finding, []))
            merged[same] = (finding, [*releases, finding.release])
    return build("Findings, most serious first", columns, merged.values(), row)


def _touched(noun: str, names: Sequence[str], count: int) -> list[str]:
    if not count:
        return []
    shown = ", ".join(names[:_NAMES])
    more = f" and {count - _NAMES:,} more" if count > _NAMES else ""
    return [f"{noun if count == 1 else noun + 's'} {shown}{more}"]


def client_table(facts: Facts) -> ReportTable:
    """Return the table of clients without findings, and of brokers and controllers."""

    def row(finding: AuditFinding) -> list[ReportCell]:
        return [
            _whose(finding),
            ReportCell(
                finding.verdict,
                note="" if finding.role == "client" else finding.role,
                verdict=finding.verdict,
            ),
            number(finding.apis),
            number(finding.connections),
            _when(finding),
            ReportCell(units.span(finding.last_time_us - finding.first_time_us)),
        ]

    columns = (
        ReportColumn("Client", "text"),
        ReportColumn("Verdict", "verdict"),
        ReportColumn("APIs"),
        ReportColumn("Connections"),
        ReportColumn("Requests"),
        ReportColumn("Seen for", "text"),
    )
    audit = facts.audit
    last = audit.releases[-1] if audit.releases else ""
    shown = [
        finding
        for finding in findings(audit)
        if finding.verdict in {NOTHING, NOT_JUDGED} and finding.release == last
    ]
    return build(f"Clients that have no problem on Kafka {last} or were not judged",
                 columns, shown, row)  # fmt: skip


def pin_table(facts: Facts) -> ReportTable:
    """Return the table of settings that pin clients to old versions."""

    def row(pin: PinningSetting) -> list[ReportCell]:
        return [
            text(pin.client),
            text(pin.setting),
            ReportCell(pin.effect),
            ReportCell(pin.remedy),
            ReportCell(", ".join(pin.sources)),
        ]

    columns = (
        ReportColumn("Client", "text"),
        ReportColumn("Setting", "code"),
        ReportColumn("What it does", "reason"),
        ReportColumn("Remedy", "reason"),
        ReportColumn("Source", "text"),
    )
    return build("Settings that pin versions", columns, facts.audit.pins, row)


def library_table(facts: Facts) -> ReportTable:
    """Return the table of the first client library releases that will work."""

    def row(release: FirstRelease) -> list[ReportCell]:
        return [
            text(release.library),
            text(release.works_from or units.DASH),
            ReportCell(release.remark or units.DASH),
            ReportCell(release.source),
        ]

    columns = (
        ReportColumn("Library", "text"),
        ReportColumn("Works from", "text", "the first release that is known to work on Kafka 4"),
        ReportColumn("Remark", "reason"),
        ReportColumn("Source", "text"),
    )
    return build("First releases that work on Kafka 4", columns, facts.audit.libraries, row)
