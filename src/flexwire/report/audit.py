"""Which clients break: the sentences of an audit, and its tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from flexwire.facts import units
from flexwire.facts.audit import findings
from flexwire.report.matrix import client_name
from flexwire.report.tables import ReportCell, ReportColumn, ReportTable, build, number, text

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
# One and several clients.
_SAID: dict[str, tuple[str, str]] = {
    "broke": ("broke already", "broke already"),
    "will break": ("will break", "will break"),
    "known to break": ("is known to break", "are known to break"),
    "cannot say": (
        "may break, and the capture does not show whether it does",
        "may break, and the capture does not show whether they do",
    ),
    "will do nothing": (
        "sets what it accepts without effect",
        "set what it accepts without effect",
    ),
}
# Beside what a client counts for already.
_REMARKED = (
    "is documented as unsupported (a remark, not a verdict)",
    "are documented as unsupported (a remark, not a verdict)",
)


def title(facts: Facts) -> str:
    """The question that the page answers first."""
    named = facts.audit.releases
    if not named:
        return "Who breaks?"
    last = f" and {named[-1]}" if len(named) > 1 else named[-1]
    return f"Who breaks on Kafka {', '.join(named[:-1])}{last}?"


def chosen(audit: Audit) -> str:
    """Why these releases."""
    may_be = f"the captured brokers may be Kafka {' or '.join(audit.brokers)}, by what they offer"
    if audit.asked:
        known = may_be if audit.brokers else "which release the captured brokers are is not known"
        return f"Judged by the releases that were asked for; {known}."
    if audit.brokers:
        return f"Judged by the newest release of every major from the brokers' on: {may_be}."
    return (
        "Which release the captured brokers are is not known, so these are the newest releases "
        "of the last two majors; --release names others."
    )


def sentences(facts: Facts) -> list[tuple[str, list[tuple[str, str]]]]:
    """By release: the answer to "Who breaks?", a verdict and a sentence each, gravest first."""
    by_release: defaultdict[str, list[AuditFinding]] = defaultdict(list)
    for one in findings(facts.audit):
        by_release[one.release].append(one)
    return [(one, _sentences(by_release[one])) for one in facts.audit.releases]


def _sentences(found: list[AuditFinding]) -> list[tuple[str, str]]:
    if not found:
        return [("cannot say", "No request was decoded, so nothing can be said.")]
    clients = {one.client for one in found if one.role == "client"}
    of = units.plural(len(clients), "client")
    # Each client counts once, by its gravest finding, so that the sentences add up.
    gravest: dict[Party, str] = {}
    for one in found:
        gravest.setdefault(one.client, one.verdict)
    told: list[tuple[str, str]] = []
    for verdict, does in _SAID.items():
        hits = [one for one in found if one.verdict == verdict == gravest[one.client]]
        told += _told(verdict, hits, of, does)
    remarks = [one for one in found if one.verdict == DOCUMENTED]
    told += _told(DOCUMENTED, remarks, of, _REMARKED)
    return told + _about_the_rest(found, of)


def _told(
    verdict: str, hits: list[AuditFinding], of: str, does: tuple[str, str]
) -> list[tuple[str, str]]:
    whose = {one.client for one in hits}
    if not whose:
        return []
    said = does[0] if len(whose) == 1 else does[1]
    return [(verdict, f"{len(whose):,} of {of} {said}: {_named(hits)}.")]


def _about_the_rest(found: list[AuditFinding], of: str) -> list[tuple[str, str]]:
    told = []
    free = {one.client: one for one in found if one.verdict == NOTHING}
    if free:
        first = min(one.first_time_us for one in free.values())
        last = max(one.last_time_us for one in free.values())
        connections = units.plural(sum(one.connections for one in free.values()), "connection")
        seen = f"{connections}, {units.span(last - first)} of traffic"
        told.append((NOTHING, f"{len(free):,} of {of}: no problem seen ({seen})."))
    apart = Counter(one.role for one in found if one.verdict == NOT_JUDGED)
    if apart:
        roles = " and ".join(units.plural(apart[role], role) for role in sorted(apart))
        told.append((NOT_JUDGED, f"Not judged: {roles}, upgraded with the cluster."))
    return told


def _named(hits: Sequence[AuditFinding]) -> str:
    uses: defaultdict[Party, list[AuditFinding]] = defaultdict(list)
    for one in hits:
        uses[one.client].append(one)
    named = list(uses.items())[:_NAMES]
    names = [f"{client_name(party.client)}{_versions(own)}" for party, own in named]
    if len(uses) > _NAMES:
        names.append(f"and {len(uses) - _NAMES:,} more")
    return "; ".join(names)


def _versions(own: list[AuditFinding]) -> str:
    numbers: defaultdict[str, set[int]] = defaultdict(set)
    for one in own:
        if one.version is not None:
            numbers[_api(one)].add(one.version)
    if not numbers:
        return f" ({own[0].client.software or own[0].evidence})"
    parts = [f"{name} v{units.ranges(tuple(sorted(some)))}" for name, some in numbers.items()]
    more = len(parts) - _VERSIONS
    rest = f" and {units.plural(more, 'more API')}" if more > 0 else ""
    return f" ({', '.join(parts[:_VERSIONS])}{rest})"


def _api(one: AuditFinding) -> str:
    return one.api_name or f"api key {one.api_key}"


def _whose(one: AuditFinding) -> ReportCell:
    party = one.client
    team = f"team {one.team}" if one.team else None
    known = (party.address, party.principal, party.software or "software unknown", team)
    return text(client_name(party.client), " · ".join(filter(None, known)))


def _when(one: AuditFinding) -> ReportCell:
    seen = units.period(one.first_time_us, one.last_time_us)
    return ReportCell(units.count(one.requests), sort=one.requests, note=seen)


def finding_table(facts: Facts) -> ReportTable:
    """What was found against clients: one row for all the releases that it holds for."""

    def row(item: tuple[AuditFinding, list[str]]) -> list[ReportCell]:
        one, releases = item
        version = "the client" if one.version is None else f"{_api(one)} v{one.version}"
        where = [*_touched("group", one.groups, one.group_count)]
        where += _touched("topic", one.topics, one.topic_count)
        return [
            _whose(one),
            ReportCell(one.verdict, note=one.evidence, verdict=one.verdict),
            text(version, f"on {', '.join(releases)}"),
            ReportCell(one.reason, note=one.source),
            ReportCell(one.remedy or units.DASH),
            _when(one),
            text("; ".join(where) or units.DASH),
            ReportCell(one.last_accepting_release or units.DASH,
                 note=f"not by {one.first_refusing_release}" if one.first_refusing_release else ""),
        ]  # fmt: skip

    columns = (
        ReportColumn("Client", "text", "its client id, address, principal, software and team"),
        ReportColumn("Verdict", "verdict"),
        ReportColumn("What", "text", "the API and version, and the releases it is about"),
        ReportColumn("Why", "reason"),
        ReportColumn("Remedy", "reason"),
        ReportColumn("Requests", "number", "how many, the first and the last"),
        ReportColumn("Groups and topics", "text", "that it named, whichever API it named them in"),
        ReportColumn(
            "Last read by", "text", "the last release that reads it, the first that does not"
        ),
    )
    # One row for all releases with the same evidence, with the remedy for the last of them.
    merged: dict[AuditFinding, tuple[AuditFinding, list[str]]] = {}
    for one in findings(facts.audit):
        if one.verdict not in {NOTHING, NOT_JUDGED}:
            same = replace(one, release="", remedy="", last_accepting_release=None,
                           first_refusing_release=None)  # fmt: skip
            _, releases = merged.get(same, (one, []))
            merged[same] = (one, [*releases, one.release])
    return build("What was found, gravest first", columns, merged.values(), row)


def _touched(noun: str, names: Sequence[str], count: int) -> list[str]:
    if not count:
        return []
    shown = ", ".join(names[:_NAMES])
    more = f" and {count - _NAMES:,} more" if count > _NAMES else ""
    return [f"{noun if count == 1 else noun + 's'} {shown}{more}"]


def client_table(facts: Facts) -> ReportTable:
    """The clients against which nothing was seen, and the brokers and controllers."""

    def row(one: AuditFinding) -> list[ReportCell]:
        return [
            _whose(one),
            ReportCell(
                one.verdict, note="" if one.role == "client" else one.role, verdict=one.verdict
            ),
            number(one.apis),
            number(one.connections),
            _when(one),
            ReportCell(units.span(one.last_time_us - one.first_time_us)),
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
        one
        for one in findings(audit)
        if one.verdict in {NOTHING, NOT_JUDGED} and one.release == last
    ]
    return build(f"Nothing seen against them on Kafka {last}, or not judged",
                 columns, shown, row)  # fmt: skip


def pin_table(facts: Facts) -> ReportTable:
    """The settings that keep clients at old versions."""

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
    """The first releases of client libraries that work."""

    def row(one: FirstRelease) -> list[ReportCell]:
        return [
            text(one.library),
            text(one.works_from or units.DASH),
            ReportCell(one.remark or units.DASH),
            ReportCell(one.source),
        ]

    columns = (
        ReportColumn("Library", "text"),
        ReportColumn("Works from", "text", "the first release that is known to work on Kafka 4"),
        ReportColumn("Remark", "reason"),
        ReportColumn("Source", "text"),
    )
    return build("First releases that work on Kafka 4", columns, facts.audit.libraries, row)
