"""The facts about an audit: which clients break on which release, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from flexwire.facts.units import count, plural
from flexwire.parties import VERDICTS, AuditVerdict, Party, Role


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """The verdict on one client for one release, and the reason.

    ``evidence`` identifies the rule behind the verdict, ``reason`` explains the verdict with
    numbers, and ``offered`` is the range in the captured broker's ApiVersions response. A finding
    without ``api_key`` concerns the client as a whole. ``requests``, ``first_time_us`` and
    ``last_time_us`` refer to the finding's version, or to the client if the finding has no version.
    ``connections``, ``apis``, ``groups`` and ``topics`` refer to the client. Only some groups and
    topics are listed, but the counts include all of them. ``team`` is the client's team according
    to the labels.
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
    """The share of requests and clients that use only the newest versions of a release.

    ``clients_at_newest`` counts the clients that send no older version. Requests that open a
    connection (ApiVersions, SASL) and requests from brokers and controllers are not counted.
    """

    release: str
    requests: int
    requests_at_newest: int
    clients: int
    clients_at_newest: int


@dataclass(frozen=True, slots=True)
class PinningSetting:
    """A setting that restricts a client to old versions."""

    client: str
    setting: str
    effect: str
    remedy: str
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FirstRelease:
    """The first release of a client library that works with Kafka 4, and the source.

    ``works_from`` is empty if no first release is known. In this case, ``remark`` contains the
    advice.
    """

    library: str
    works_from: str
    remark: str
    source: str


@dataclass(frozen=True, slots=True)
class AuditOmissions:
    """Counts of the findings that an audit leaves out if there are too many clients.

    ``clients`` is the number of clients that were not judged. These clients sent the fewest
    requests, ``requests`` in total. ``brokers`` is the number of brokers whose offers are unknown.
    ``findings`` counts the least serious findings that were left out, by verdict.
    """

    clients: int = 0
    requests: int = 0
    brokers: int = 0
    findings: tuple[tuple[AuditVerdict, int], ...] = ()

    @property
    def sentence(self) -> str:
        """The omissions in sentences, or an empty string if there are none.

        >>> AuditOmissions(2, 3, findings=(("not judged", 1),)).sentence
        '2 clients were not judged: those with the fewest requests (3 in total). 1 finding was \
left out: 1 not judged.'
        """
        parts = []
        if self.clients:
            of = "the one with" if self.clients == 1 else "those with"
            parts.append(
                f"{plural(self.clients, 'client')} {_was(self.clients)} not judged: {of} the "
                f"fewest requests ({count(self.requests)} in total)."
            )
        if self.brokers:
            parts.append(
                f"The versions that {plural(self.brokers, 'broker')} offered were not checked, "
                'so findings that depend on them are marked "cannot say".'
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

    ``evidence`` identifies the rule that led to the verdict, and ``reason`` explains the verdict
    with numbers. ``names`` contains the first affected topics, brokers or APIs, and ``count`` is
    their total number.
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

    ``asked`` is true if the user chose the releases. ``brokers`` lists the possible releases of the
    captured brokers, based on the versions that they offer. ``pins`` and ``libraries`` are filled
    in if a finding needs them. ``cluster`` contains the gates of the cluster itself.
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
    """Return the findings, the most serious first. The order is always the same."""
    return sorted(
        audit.findings,
        key=lambda finding: (
            VERDICTS.index(finding.verdict),
            -finding.requests,
            audit.releases.index(finding.release) if finding.release in audit.releases else -1,
            repr(finding),
        ),
    )
