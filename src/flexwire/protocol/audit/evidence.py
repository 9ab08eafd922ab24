"""The evidence about a client in an audit: its requests, and the release of its broker.

Other modules collect the evidence, and `flexwire.protocol.audit.verdicts` judges it. This module
defines the types that these modules share.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from itertools import groupby
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple

from flexwire.protocol.apis import request_entries
from flexwire.schema.catalog import catalog, is_preview, per_catalog
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from flexwire.parties import AuditVerdict, Role
    from flexwire.protocol.configurations import ConfiguredKind
    from flexwire.schema.catalog import CatalogEntry


NegotiationEvidence = Literal["here", "elsewhere", "never", "unseen"]
"""Where a client sent ApiVersions, if anywhere.

"here": on this connection. "elsewhere": on another connection. "never": on no connection, although
the capture contains this connection from its start. "unseen": perhaps before the capture began.
"""


@dataclass(frozen=True, slots=True)
class Use:
    """One client's requests for one API and version, on connections with the same evidence.

    ``offered`` is the API's version range in the ApiVersions responses of the captured broker. It
    is None if no response was seen, and `Versions.NONE` if the response lacks the API. ``closed``
    means that the broker closed these connections without answering requests in this version.
    """

    api_key: int
    version: int
    requests: int
    first_us: int
    last_us: int
    asked: NegotiationEvidence
    offered: Versions | None = None
    closed: bool = False


class ConfigurationUse(NamedTuple):
    """A configuration that a request sets: the resource type, the API, and the name."""

    kind: ConfiguredKind
    api_key: int
    name: str


@dataclass(frozen=True, slots=True)
class Conduct:
    """All observations about one client, with the evidence.

    ``connections`` is the number of the client's connections. Each connection belongs to only one
    client. ``configured`` contains the configurations that the client set and some release lacks.
    ``mechanisms`` contains the mechanisms in the client's SASL handshakes. ``whole`` is true if
    all of the client's connections were captured from the start, and therefore all of its
    handshakes.
    """

    role: Role
    uses: tuple[Use, ...]
    connections: int = 1
    mechanisms: frozenset[str] = frozenset()
    whole: bool = False
    configured: frozenset[ConfigurationUse] = frozenset()

    @property
    def requests(self) -> int:
        """The number of the client's requests."""
        return sum(use.requests for use in self.uses)

    @property
    def api_keys(self) -> frozenset[int]:
        """The APIs that the client used."""
        return frozenset(use.api_key for use in self.uses)


@dataclass(frozen=True, slots=True)
class ClientFinding:
    """A verdict about one client on one release, with its evidence.

    ``evidence`` is the name of the rule behind the verdict. ``reason`` is a sentence that explains
    the verdict with numbers. A finding about a version has ``api_key`` and ``version``, and its
    counts include all of the client's requests in that version. A finding about the software, or
    about the client as a whole, has neither ``api_key`` nor ``version``. ``last_accepting`` is the
    last release that reads the version, and ``first_refusing`` is the first release after that.
    Either of the two is None if the catalog contains no such release.
    """

    release: str
    verdict: AuditVerdict
    evidence: str
    reason: str
    requests: int
    first_us: int
    last_us: int
    api_key: int | None = None
    version: int | None = None
    offered: Versions | None = field(default=None)
    last_accepting: str | None = None
    first_refusing: str | None = None
    remedy: str = ""
    source: str = ""


# These APIs are advertised from version 0 even if fewer versions are read, because some clients
# mistake a broker without version 0 for a very old broker (KAFKA-18659).
_PRODUCE = 0
# If the brokers' release is unknown, this many major versions are used. An upgrade rarely skips
# more.
_MAJORS = 2
_NUMBER, _UNNUMBERED = re.compile(r"\d+"), 1_000_000


@per_catalog
@cache
def read_versions(api_key: int, release: str) -> Versions:
    """Return the request versions that a broker of exactly this release reads, if there are any.

    A broker may advertise more versions than it reads: 4.x advertises Produce from version 0 but
    reads it only from version 3.

    >>> read_versions(1, "3.9.2")
    Versions('0-17')
    """
    versions = Versions.NONE
    for entry in request_entries(api_key):
        versions |= entry.releases.get(release, Versions.NONE)
    return versions


@per_catalog
@cache
def stable_versions(api_key: int, release: str) -> Versions:
    """Return the versions that a broker offers with its default configuration."""
    versions = read_versions(api_key, release)
    if not versions:
        return versions
    for entry in request_entries(api_key):
        if versions.highest in entry.releases.get(release, Versions.NONE):
            spec = entry.spec(versions.highest, release)
            last = spec.latest_version_unstable and versions.highest == spec.valid_versions.highest
            return Versions(versions.lowest, versions.highest - last)
    return versions


def offered_versions(api_key: int, release: str) -> Versions:
    """Return the range that a broker advertises, or an empty range if the release lacks the API.

    >>> offered_versions(0, "4.0.2"), stable_versions(0, "4.0.2")
    (Versions('0-12'), Versions('3-12'))
    """
    versions = stable_versions(api_key, release)
    return Versions(0, versions.highest) if versions and api_key == _PRODUCE else versions


def newest_version(api_key: int, release: str) -> int | None:
    """Return the newest stable version of an API in a release, or None if the API is missing."""
    versions = stable_versions(api_key, release)
    return versions.highest if versions else None


def refusal(api_key: int, version: int, release: str) -> tuple[str | None, str | None]:
    """Return the last release (up to this one) that reads the version, and the first to refuse it.

    Both results are None if no release up to this one reads the version.

    >>> refusal(1, 3, catalog().newest_release)[0] in catalog().releases
    True
    """
    releases = catalog().final_releases
    upto = releases[: releases.index(release) + 1]
    reading = [
        place
        for place, candidate in enumerate(upto)
        if version in read_versions(api_key, candidate)
    ]
    if not reading or reading[-1] + 1 == len(upto):
        return None, None
    return upto[reading[-1]], upto[reading[-1] + 1]


def find_release_reading_again(api_key: int, version: int, release: str) -> str | None:
    """Return the first later release that reads the version again, as 4.0.1 reads JoinGroup 0."""
    releases = catalog().final_releases
    later = releases[releases.index(release) + 1 :]
    return next(
        (candidate for candidate in later if version in read_versions(api_key, candidate)), None
    )


def fitting_releases(offered: Mapping[int, Versions]) -> tuple[str, ...]:
    """Return the releases whose brokers answer ApiVersions with these ranges, oldest first.

    The range of each API must equal the range in the release, with or without its unstable version.
    An API may be missing, because some listeners and ZooKeeper mode omit APIs. API keys that are in
    no release belong to a vendor. The result is empty for brokers that are not Apache Kafka.
    """
    released = {key: versions for key, versions in offered.items() if request_entries(key)}
    if not released:
        return ()
    return tuple(release for release in catalog().releases if _fits(released, release))


def _fits(offered: Mapping[int, Versions], release: str) -> bool:
    return all(
        versions in _advertised(key, release) for key, versions in offered.items() if versions
    )


def _advertised(api_key: int, release: str) -> set[Versions]:
    read = {read_versions(api_key, release), stable_versions(api_key, release)} - {Versions.NONE}
    if api_key == _PRODUCE:
        return read | {Versions(0, versions.highest) for versions in read}
    return read


def audited_releases(brokers: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the releases that are audited by default: one for each major version.

    ``brokers`` contains the possible releases of the captured brokers. The result begins with the
    major version of the oldest of these. If the releases are unknown, the two newest major versions
    in the catalog are used. Each major version is represented by its newest release, because that
    release is the target of an upgrade. Each finding contains the release in which the refusal
    began. Previews of releases are left out.
    """
    releases = catalog().releases
    majors = [list(group) for _, group in groupby(catalog().final_releases, key=_major)]
    running = [_major(broker) for broker in brokers if broker in releases]
    if not running:
        return tuple(group[-1] for group in majors[-_MAJORS:])
    return tuple(group[-1] for group in majors if _major(group[0]) >= min(running))


def to_audited_releases(names: Iterable[str]) -> tuple[str, ...]:
    """Return the catalog's releases with these names, without repetitions.

    Raises `UnknownMessageError` for a release that is not in the catalog, and `ArgumentError` for a
    preview of a release.
    """
    return tuple(dict.fromkeys(map(catalog().final_release, names)))


def _major(release: str) -> int:
    number = _NUMBER.match(release)
    # A release with a different form of name comes from a custom catalog and counts as the newest.
    return int(number[0]) if number else _UNNUMBERED


# The listeners of clients, in the "listeners" of request specs. If only brokers in ZooKeeper mode
# ("zkBroker") accept a request in its newest release, it is not a client's request.
_CLIENTS_LISTENER = "broker"
# Requests that no client listener accepts belong to brokers and controllers. The specs do not
# distinguish between these two.
_CONTROLLERS = {
    4: "LeaderAndIsr: the controller tells brokers which partitions to lead or follow "
    "(ZooKeeper mode)",
    5: "StopReplica: the controller stops replicas (ZooKeeper mode)",
    6: "UpdateMetadata: the controller tells brokers about all other brokers (ZooKeeper mode)",
    52: "Vote: one controller asks another for its vote (KIP-595)",
    53: "BeginQuorumEpoch: a new leader of the quorum announces itself to the other voters "
    "(KIP-595)",
    54: "EndQuorumEpoch: the leader of the quorum resigns (KIP-595)",
    70: "ControllerRegistration: a controller registers with the active controller (KIP-919)",
    82: "UpdateRaftVoter: a controller tells the quorum its address (KIP-853)",
}
# Requests that brokers send to each other on the clients' listener.
_BROKERS = {
    83: "InitializeShareGroupState: sent by a group coordinator to a share coordinator (KIP-932)",
    84: "ReadShareGroupState: sent by a share partition's leader to a share coordinator (KIP-932)",
    85: "WriteShareGroupState: sent by a share partition's leader to a share coordinator (KIP-932)",
    86: "DeleteShareGroupState: sent by a group coordinator to a share coordinator (KIP-932)",
    87: "ReadShareGroupStateSummary: sent by a group coordinator to a share coordinator (KIP-932)",
}
# Clients send lower versions of these requests. Only brokers send these versions and higher
# versions.
_BROKERS_FROM = {
    24: (
        4,
        "AddPartitionsToTxn: sent by a partition's leader to a transaction coordinator (KIP-890)",
    ),
}
# Tools also use this request to abort transactions (KIP-664), after other requests. A transaction
# coordinator sends only this request.
_WRITE_TXN_MARKERS = 27
# The requests with which any connection may begin, from a client or a broker.
OPENING_APIS = frozenset({17, 18, 36})
"""SaslHandshake, ApiVersions and SaslAuthenticate."""


def role_of(
    api_keys: Collection[int],
    *,
    is_replica: bool = False,
    highest: Mapping[int, int] = MappingProxyType({}),
) -> Role:
    """Return the role of a sender, based on all APIs used with one client id and address.

    ``is_replica`` is true if a Fetch request contains a replica's id (one that is not negative),
    which consumers never send. ``highest`` contains the highest version of each API that was sent,
    if known, because only brokers send the higher versions of some requests.

    >>> role_of({18, 4}), role_of({18, 63}), role_of({18, 1}, is_replica=True), role_of({18, 1})
    ('controller', 'broker', 'broker', 'client')
    >>> role_of({18, 24}, highest={24: 4}), role_of({18, 24}, highest={24: 3})
    ('broker', 'client')
    """
    if any(key in _CONTROLLERS for key in api_keys):
        return "controller"
    sent = set(api_keys) - OPENING_APIS
    only_markers = sent == {_WRITE_TXN_MARKERS}
    is_later = any(
        key in sent and version >= _BROKERS_FROM[key][0]
        for key, version in highest.items()
        if key in _BROKERS_FROM
    )
    if is_replica or only_markers or is_later or any(_is_brokers_own(key) for key in sent):
        return "broker"
    return "client"


@per_catalog
@cache
def _is_brokers_own(api_key: int) -> bool:
    if api_key in _BROKERS:
        return True
    entries = request_entries(api_key)
    return bool(entries) and not any(_has_clients_listener(entry) for entry in entries)


def _has_clients_listener(entry: CatalogEntry) -> bool:
    listeners = listeners_of(entry)
    return _CLIENTS_LISTENER in listeners or not listeners


def listeners_of(entry: CatalogEntry) -> tuple[str, ...]:
    """Return the listeners of a request in the newest release that reads it, if there are any.

    4.x still contains the specs of removed requests. A preview is considered only if no final
    release reads the request.
    """
    reading = [release for release, versions in entry.releases.items() if versions]
    if not reading:
        return ()
    newest = max(reading, key=lambda release: (not is_preview(release), reading.index(release)))
    return entry.spec(entry.releases[newest].highest, newest).listeners
