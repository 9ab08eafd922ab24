"""The facts of an audit: which clients break on which release and why, and which are up to date."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from flexwire.facts.units import count, plural
from flexwire.parties import VERDICTS, AuditVerdict, Party, Role


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """What one release means to one client, and why.

    ``evidence`` names what gave the verdict, ``reason`` says it with its figures, ``offered`` is
    the range in the captured broker's ApiVersions response. A finding without ``api_key`` is about
    the client as a whole. ``requests``, ``first_time_us`` and ``last_time_us`` are of the finding's
    version if it has one, else of all; ``connections``, ``apis``, ``groups`` and ``topics`` are the
    client's. Only some groups and topics are named; their counts are of all. ``team`` is whose
    client it is, if labels say so.
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
    """Of the requests whose API a release has, how many are at its newest version there.

    ``clients_at_newest`` counts the clients that send nothing older. What a connection begins with
    (ApiVersions, SASL) is not counted, nor the requests of brokers and controllers.
    """

    release: str
    requests: int
    requests_at_newest: int
    clients: int
    clients_at_newest: int


@dataclass(frozen=True, slots=True)
class PinningSetting:
    """A setting of a client that keeps it at old versions."""

    client: str
    setting: str
    effect: str
    remedy: str
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FirstRelease:
    """The first release of a client library that works on Kafka 4, and where that is said.

    ``works_from`` is empty where no release is known to be the first; ``remark`` says what to do.
    """

    library: str
    works_from: str
    remark: str
    source: str


@dataclass(frozen=True, slots=True)
class AuditOmissions:
    """What an audit of very many clients leaves out.

    ``clients``, of those with fewest requests, are not judged; they sent ``requests``. What
    ``brokers`` offer is not known. ``findings`` are those of clients that are judged, the least
    grave: each verdict, and how many.
    """

    clients: int = 0
    requests: int = 0
    brokers: int = 0
    findings: tuple[tuple[AuditVerdict, int], ...] = ()

    @property
    def told(self) -> str:
        """It in sentences; empty where nothing is left out.

        >>> LeftOut(2, 3, findings=(("not judged", 1),)).told
        '2 clients were not judged: those with fewest requests, 3 in all. 1 finding was left out: \
1 not judged.'
        """
        told = []
        if self.clients:
            of = "that with" if self.clients == 1 else "those with"
            told.append(
                f"{plural(self.clients, 'client')} {_was(self.clients)} not judged: {of} fewest "
                f"requests, {count(self.requests)} in all."
            )
        if self.brokers:
            told.append(
                f"What {plural(self.brokers, 'broker')} offered was not looked at, so what depends "
                "on it cannot be said."
            )
        if self.findings:
            findings = sum(number for _, number in self.findings)
            each = ", ".join(f"{count(number)} {verdict}" for verdict, number in self.findings)
            told.append(f"{plural(findings, 'finding')} {_was(findings)} left out: {each}.")
        return " ".join(told)


def _was(number: int) -> str:
    return "was" if number == 1 else "were"


NOTHING_LEFT_OUT: Final = AuditOmissions()


@dataclass(frozen=True, slots=True)
class ClusterGate:
    """What one release means to the cluster as a whole, by one gate.

    ``evidence`` names what gave the verdict, ``reason`` says it with its figures. ``names`` are the
    first topics, brokers or APIs that it is about, ``count`` all of them.
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

    ``asked``: the releases were asked for, and not chosen here. ``brokers`` are the releases that
    the captured brokers may be, by what they offer. ``pins`` and ``libraries`` are there where a
    finding gives reason to look for them. ``cluster`` are the gates of the cluster itself.
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
    """The findings, the gravest first, in an order that does not depend on theirs."""
    return sorted(
        audit.findings,
        key=lambda one: (
            VERDICTS.index(one.verdict),
            -one.requests,
            audit.releases.index(one.release) if one.release in audit.releases else -1,
            repr(one),
        ),
    )
