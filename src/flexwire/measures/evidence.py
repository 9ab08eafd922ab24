"""The evidence for an audit, built from summed uses of versions."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from flexwire.protocol.audit import (
    ClusterSeen,
    Conduct,
    ConfigurationUse,
    NameSample,
    Party,
    Use,
    fitting_releases,
    role_of,
)
from flexwire.versions import Versions

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from flexwire.protocol.audit import NegotiationEvidence
    from flexwire.protocol.configurations import ConfiguredKind

# The messages in which brokers offer versions, clients choose a mechanism and replicas fetch.
OFFERS_MESSAGE: Final = "ApiVersionsResponse"
MECHANISMS_MESSAGE: Final = "SaslHandshakeRequest"
REPLICAS_MESSAGE: Final = "FetchRequest"
SOFTWARE: Final = ("client_software_name", "client_software_version")
PORT: Final = r":\d+$"
"""Matches the part of an endpoint after the address. IPv6 addresses are in brackets, because they
contain colons.
"""
SHOWN: Final = 20
"""The maximum number of a client's groups, and of its topics, whose names are kept. All groups and
topics are counted.
"""

Key = tuple[str | None, str | None, str | None]
"""The identity of a client: its client id, address and principal.

Software is known only per connection and is unknown for a client that never sends ApiVersions.
"""
Software = tuple[str | None, str | None]
Offers = dict[str, dict[int, Versions]]
"""For each broker and API, the versions that all of the broker's ApiVersions responses offer."""


class SeenUse(NamedTuple):
    """The number of a client's requests in one version, on connections with the same evidence.

    ``asked`` is true if the client sent ApiVersions on these connections. ``closed`` is true if the
    broker closed these connections and answered no request in this version. ``lowest`` and
    ``highest`` are the versions that the broker offers, or null if it lacks the API.
    ``is_range_seen`` is true if the broker's offer was captured.
    """

    client_id: str | None
    address: str | None
    principal: str | None
    client_software_name: str | None
    client_software_version: str | None
    api_key: int
    api_version: int
    asked: bool
    from_start: bool
    closed: bool
    is_range_seen: bool | None
    lowest: int | None
    highest: int | None
    requests: int
    first_us: int
    last_us: int

    @property
    def key(self) -> Key:
        """The key that identifies the client."""
        return self.client_id, self.address, self.principal

    @property
    def software(self) -> Software:
        """The software that the client named on these connections."""
        return self.client_software_name, self.client_software_version


@dataclass(slots=True)
class SeenClient:
    """The known facts about a client, except its requests.

    ``connections`` contains the number of the client's connections for each software name sent on
    them. Each connection counts for one client. ``whole`` is true if all of the client's
    connections were seen from their start.
    """

    connections: Counter[Software] = field(default_factory=Counter)
    whole: bool = True
    mechanisms: set[str] = field(default_factory=set)
    is_replica: bool = False
    # Each configuration is in the form that `configured_of` reads.
    configured: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class AuditEvidence:
    """The evidence about every client, and the releases that the brokers may have.

    If there are too many clients, ``clients_left_out`` of them are missing. These clients sent
    ``requests_left_out`` requests. The offers of ``brokers_left_out`` brokers are also missing.
    """

    conducts: dict[Party, Conduct]
    brokers: tuple[str, ...]
    clients_left_out: int = 0
    requests_left_out: int = 0
    brokers_left_out: int = 0
    cluster: ClusterSeen = field(default_factory=ClusterSeen)

    @property
    def clients(self) -> dict[Party, Conduct]:
        """Return the parties that are neither brokers nor controllers."""
        return {
            party: conduct for party, conduct in self.conducts.items() if conduct.role == "client"
        }


@dataclass(frozen=True, slots=True)
class ClusterEvidence:
    """Facts about a cluster from messages, in the form that `ClusterSeen` uses."""

    features: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    configured: Mapping[tuple[ConfiguredKind, str], NameSample] = field(default_factory=dict)
    described: Mapping[ConfiguredKind, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NamedEntities:
    """The groups and topics in a client's requests: the first names, and the total numbers."""

    groups: tuple[str, ...] = ()
    group_count: int = 0
    topics: tuple[str, ...] = ()
    topic_count: int = 0


class AuditSource(Protocol):
    """The source of an audit's evidence: the sums of an analysis, or finished tables."""

    def evidence(self) -> AuditEvidence:
        """Return the evidence about every client."""

    def touched(self, parties: Collection[Party]) -> Mapping[Key, NamedEntities]:
        """Return the groups and topics in the requests of these clients."""


def evidence_of(
    uses: Iterable[SeenUse],
    clients: Mapping[Key, SeenClient],
    offers: Offers,
    cluster_evidence: ClusterEvidence,
) -> AuditEvidence:
    """Build the evidence. Its order does not depend on the order of the rows."""
    seen_uses = sorted(uses, key=repr)
    highest: defaultdict[Key, dict[int, int]] = defaultdict(dict)
    for use in seen_uses:
        sent = highest[use.key]
        sent[use.api_key] = max(use.api_version, sent.get(use.api_key, use.api_version))
    conducts = {}
    alone = _named_alone(seen_uses)
    connections = _connections(clients, alone)
    for party, own in _uses(seen_uses, alone).items():
        key = key_of(party)
        client = clients[key]
        conducts[party] = Conduct(
            role_of(highest[key], is_replica=client.is_replica, highest=highest[key]),
            tuple(own),
            connections=connections[party],
            mechanisms=frozenset(client.mechanisms),
            whole=client.whole,
            configured=frozenset(map(configured_of, client.configured)),
        )
    requests: Counter[int] = Counter()
    for use in seen_uses:
        requests[use.api_key] += use.requests
    cluster = ClusterSeen(
        cluster_evidence.features,
        cluster_evidence.configured,
        cluster_evidence.described,
        frozenset(api_key for ranges in offers.values() for api_key in ranges),
        dict(sorted(requests.items())),
    )
    return AuditEvidence(conducts, _brokers(offers), cluster=cluster)


def configured_of(text: str) -> ConfigurationUse:
    """Return the configuration that a client set.

    >>> configured_of("topic:19:message.format.version")
    ConfigurationUse(kind='topic', api_key=19, name='message.format.version')
    """
    kind, api_key, name = text.split(":", 2)
    return ConfigurationUse("topic" if kind == "topic" else "broker", int(api_key), name)


def key_of(party: Party) -> Key:
    """Return the identity of a party, regardless of its software."""
    return party.client_id, party.address, party.principal


def _brokers(offers: Offers) -> tuple[str, ...]:
    """Return the releases that the brokers may run, or none if a broker matches no release."""
    fitting = [fitting_releases(ranges) for _, ranges in sorted(offers.items())]
    if not fitting or not all(fitting):
        return ()
    # The catalog's order is used, because names of releases do not sort like numbers.
    return tuple(dict.fromkeys(release for some in sorted(fitting, key=len) for release in some))


def _named_alone(uses: Iterable[SeenUse]) -> dict[Key, Software]:
    """Return the software of each client that named exactly one software and version."""
    named: defaultdict[Key, set[Software]] = defaultdict(set)
    for use in uses:
        if use.client_software_name is not None:
            named[use.key].add(use.software)
    return {key: next(iter(some)) for key, some in named.items() if len(some) == 1}


def _party(key: Key, software: Software, alone: Mapping[Key, Software]) -> Party:
    if software[0] is None:
        # A client that sends its software name on one connection uses the same software on its
        # other connections.
        software = alone.get(key, software)
    return Party(*key, *software)


def _connections(
    clients: Mapping[Key, SeenClient], alone: Mapping[Key, Software]
) -> Counter[Party]:
    connections = Counter[Party]()
    for key, client in clients.items():
        for software, count in client.connections.items():
            connections[_party(key, software, alone)] += count
    return connections


def _uses(uses: list[SeenUse], alone: Mapping[Key, Software]) -> dict[Party, list[Use]]:
    asking = {use.key for use in uses if use.asked}
    uses_of: defaultdict[Party, list[Use]] = defaultdict(list)
    for use in uses:
        party = _party(use.key, use.software, alone)
        uses_of[party].append(_use(use, is_asking=use.key in asking))
    return uses_of


def _use(use: SeenUse, *, is_asking: bool) -> Use:
    asked: NegotiationEvidence = "here" if use.asked else "elsewhere" if is_asking else "unseen"
    if use.from_start and asked == "unseen":
        asked = "never"
    offered = Versions.NONE if use.is_range_seen else None
    if use.lowest is not None and use.highest is not None:
        offered = Versions(use.lowest, use.highest)
    return Use(
        use.api_key,
        use.api_version,
        use.requests,
        use.first_us,
        use.last_us,
        asked,
        offered,
        closed=use.closed,
    )
