"""The facts of an audit: which clients break on which release, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from flexwire.facts.units import count, plural
from flexwire.parties import VERDICTS, AuditVerdict, Party, Role


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """The verdict on one client for one release, with the reason.

    ``evidence`` names what led to the verdict, ``reason`` states it with its figures, and
    ``offered`` is the range in the captured broker's ApiVersions response. A finding without
    ``api_key`` is about the client as a whole. ``requests``, ``first_time_us`` and ``last_time_us``
    belong to the finding's version, or to the client if there is none. ``connections``, ``apis``,
    ``groups`` and ``topics`` belong to the client. Only some groups and topics are named; the
    counts are complete. ``team`` owns the client, if labels say so.
    """

    release: str
    verdict: AuditVerdict
    evidence: str
    reason: str
    role: Role
    client: Party
    requests: int
    first_time_us: int
    last_time_us: int
    connections: int
    apis: int
    api_key: int | None = None
    api_name: str | None = None
    version: int | None = None
    offered: str | None = None
    last_accepting_release: str | None = None
    first_refusing_release: str | None = None
    groups: tuple[str, ...] = ()
    group_count: int = 0
    topics: tuple[str, ...] = ()
    topic_count: int = 0
    remedy: str = ""
    source: str = ""
    team: str | None = None


@dataclass(frozen=True, slots=True)
class NewestShare:
    """Among the requests of APIs that a release has, how many use the release's newest version.

    ``clients_at_newest`` counts the clients that send nothing older. Requests that open a
    connection (ApiVersions, SASL), and those of brokers and controllers, are not counted.
    """

    release: str
    requests: int
    requests_at_newest: int
    clients: int
    clients_at_newest: int


@dataclass(frozen=True, slots=True)
class PinningSetting:
    """A setting that keeps a client at old versions."""

    client: str
    setting: str
    effect: str
    remedy: str
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FirstRelease:
    """The first release of a client library that works on Kafka 4, with the source.

    ``works_from`` is empty if no first release is known; ``remark`` then says what to do.
    """

    library: str
    works_from: str
    remark: str
    source: str


@dataclass(frozen=True, slots=True)
class AuditOmissions:
    """Counts of the findings that an audit leaves out if there are too many clients.

    ``clients`` are not judged; they sent the fewest requests, ``requests`` in all. The offers of
    ``brokers`` are unknown. ``findings`` counts the least grave findings that were left out, by
    verdict.
    """

    clients: int = 0
    requests: int = 0
    brokers: int = 0
    findings: tuple[tuple[AuditVerdict, int], ...] = ()

    @property
    def sentence(self) -> str:
        """The omissions in sentences; empty if there are none.

        >>> AuditOmissions(2, 3, findings=(("not judged", 1),)).sentence
        '2 clients were not judged: those with fewest requests, 3 in all. 1 finding was left out: \
1 not judged.'
        """
        parts = []
        if self.clients:
            of = "that with" if self.clients == 1 else "those with"
            parts.append(
                f"{plural(self.clients, 'client')} {_was(self.clients)} not judged: {of} fewest "
                f"requests, {count(self.requests)} in all."
            )
        if self.brokers:
            parts.append(
                f"The versions that {plural(self.brokers, 'broker')} offered were not looked at, "
                'so findings that depend on them say "cannot say".'
            )
        if self.findings:
            findings = sum(number for _, number in self.findings)
            each = ", ".join(f"{count(number)} {verdict}" for verdict, number in self.findings)
            parts.append(f"{plural(findings, 'finding')} {_was(findings)} left out: {each}.")
        return " ".join(parts)


def _was(number: int) -> str:
    return "was" if number == 1 else "were"


NOTHING_LEFT_OUT: Final = AuditOmissions()


@dataclass(frozen=True, slots=True)
class ClusterGate:
    """The verdict of one gate on the cluster as a whole, for one release.

    ``evidence`` names what led to the verdict, and ``reason`` states it with its figures. ``names``
    are the first topics, brokers or APIs concerned, and ``count`` counts all of them.
    """

    release: str
    gate: str
    verdict: AuditVerdict
    subject: str
    evidence: str
    reason: str
    remedy: str = ""
    names: tuple[str, ...] = ()
    count: int = 0
    source: str = ""


@dataclass(frozen=True, slots=True)
class Audit:
    """The audit of one capture.

    ``asked``: the user chose the releases. ``brokers`` are the releases that the captured brokers
    may be, by what they offer. ``pins`` and ``libraries`` are filled if a finding calls for them.
    ``cluster`` holds the gates of the cluster itself.
    """

    releases: tuple[str, ...] = ()
    asked: bool = False
    brokers: tuple[str, ...] = ()
    findings: tuple[AuditFinding, ...] = ()
    newest: tuple[NewestShare, ...] = ()
    pins: tuple[PinningSetting, ...] = ()
    libraries: tuple[FirstRelease, ...] = ()
    left_out: AuditOmissions = NOTHING_LEFT_OUT
    cluster: tuple[ClusterGate, ...] = ()


def findings(audit: Audit) -> list[AuditFinding]:
    """Return the findings, the gravest first, in an order that does not depend on theirs."""
    return sorted(
        audit.findings,
        key=lambda finding: (
            VERDICTS.index(finding.verdict),
            -finding.requests,
            audit.releases.index(finding.release) if finding.release in audit.releases else -1,
            repr(finding),
        ),
    )
