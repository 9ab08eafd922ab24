"""What an audit knows of clients, put together from the uses of versions that were summed up."""

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

# Where brokers say what they read, where clients say how they authenticate, and who fetches.
OFFERS_MESSAGE: Final = "ApiVersionsResponse"
MECHANISMS_MESSAGE: Final = "SaslHandshakeRequest"
REPLICAS_MESSAGE: Final = "FetchRequest"
SOFTWARE: Final = ("client_software_name", "client_software_version")
PORT: Final = r":\d+$"
"""What an end has after its address. An IPv6 address stands in brackets, and has colons too."""
SHOWN: Final = 20
"""The names of a client's groups, and of its topics, that are kept; all are counted."""

Key = tuple[str | None, str | None, str | None]
"""What tells clients apart: the client id, the address and the principal.

Software is per connection, and a client that never asks has none.
"""
Software = tuple[str | None, str | None]
Offers = dict[str, dict[int, Versions]]
"""By broker and API: what all of its ApiVersions responses offer, so that no doubt is left."""


class SeenUse(NamedTuple):
    """How often a client sent a version, on connections with the same evidence around it.

    ``asked``: it asked for ApiVersions on them; ``closed``: the broker closed them, and answered
    no such request. ``lowest`` and ``highest`` are what the broker offers of the API, null where
    it does not; ``is_range_seen``: whether it was seen to offer anything.
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
        """Which client it is."""
        return self.client_id, self.address, self.principal

    @property
    def software(self) -> Software:
        """What the client says that it is, on these connections."""
        return self.client_software_name, self.client_software_version


@dataclass(slots=True)
class SeenClient:
    """What is known of a client besides its requests.

    ``connections`` are those that count for it, by the software that it names on them: each
    connection counts for one client. ``whole``: all on which it sends were seen from their start.
    """

    connections: Counter[Software] = field(default_factory=Counter)
    whole: bool = True
    mechanisms: set[str] = field(default_factory=set)
    is_replica: bool = False
    # Each as `configured_of` reads it.
    configured: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class AuditEvidence:
    """What was seen of every client, and of which releases the brokers may be.

    Of very many clients ``clients_left_out`` are not among them, which sent ``requests_left_out``,
    and what ``brokers_left_out`` offer is not.
    """

    conducts: dict[Party, Conduct]
    brokers: tuple[str, ...]
    clients_left_out: int = 0
    requests_left_out: int = 0
    brokers_left_out: int = 0
    cluster: ClusterSeen = field(default_factory=ClusterSeen)

    @property
    def clients(self) -> dict[Party, Conduct]:
        """Those that are neither brokers nor controllers."""
        return {one: seen for one, seen in self.conducts.items() if seen.role == "client"}


@dataclass(frozen=True, slots=True)
class ClusterEvidence:
    """What was told of a cluster, as `ClusterSeen` has it."""

    features: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    configured: Mapping[tuple[ConfiguredKind, str], NameSample] = field(default_factory=dict)
    described: Mapping[ConfiguredKind, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NamedEntities:
    """The groups and topics a client named: the first in alphabetical order, and how many."""

    groups: tuple[str, ...] = ()
    group_count: int = 0
    topics: tuple[str, ...] = ()
    topic_count: int = 0


class AuditSource(Protocol):
    """What an audit is made from."""

    def evidence(self) -> AuditEvidence:
        """What was seen of every client."""

    def touched(self, parties: Collection[Party]) -> Mapping[Key, NamedEntities]:
        """Which groups and topics these clients named in requests."""


def evidence_of(
    uses: Iterable[SeenUse],
    clients: Mapping[Key, SeenClient],
    offers: Offers,
    told: ClusterEvidence,
) -> AuditEvidence:
    """Put the evidence together, in an order that does not depend on how it was gathered."""
    seen = sorted(uses, key=repr)
    highest: defaultdict[Key, dict[int, int]] = defaultdict(dict)
    for one in seen:
        sent = highest[one.key]
        sent[one.api_key] = max(one.api_version, sent.get(one.api_key, one.api_version))
    conducts = {}
    alone = _named_alone(seen)
    connections = _connections(clients, alone)
    for party, own in _uses(seen, alone).items():
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
    for one in seen:
        requests[one.api_key] += one.requests
    cluster = ClusterSeen(
        told.features,
        told.configured,
        told.described,
        frozenset(api_key for ranges in offers.values() for api_key in ranges),
        dict(sorted(requests.items())),
    )
    return AuditEvidence(conducts, _brokers(offers), cluster=cluster)


def configured_of(told: str) -> ConfigurationUse:
    """Return the configuration that a client was seen to set.

    >>> configured_of("topic:19:message.format.version")
    Configured(kind='topic', api_key=19, name='message.format.version')
    """
    kind, api_key, name = told.split(":", 2)
    return ConfigurationUse("topic" if kind == "topic" else "broker", int(api_key), name)


def key_of(party: Party) -> Key:
    """Which client a party is, whatever software it has."""
    return party.client_id, party.address, party.principal


def _brokers(offers: Offers) -> tuple[str, ...]:
    """The releases that the brokers may be; none where one of them is of no release."""
    fitting = [fitting_releases(one) for _, one in sorted(offers.items())]
    if not fitting or not all(fitting):
        return ()
    # In the catalog's order, whose names do not sort like numbers.
    return tuple(dict.fromkeys(one for some in sorted(fitting, key=len) for one in some))


def _named_alone(seen: Iterable[SeenUse]) -> dict[Key, Software]:
    """Return the software of each client that names one and no other, on whatever connection."""
    named: defaultdict[Key, set[Software]] = defaultdict(set)
    for one in seen:
        if one.client_software_name is not None:
            named[one.key].add(one.software)
    return {key: next(iter(some)) for key, some in named.items() if len(some) == 1}


def _party(key: Key, software: Software, alone: Mapping[Key, Software]) -> Party:
    if software[0] is None:
        # It says so on one of its connections, and is the same client on the others.
        software = alone.get(key, software)
    return Party(*key, *software)


def _connections(
    clients: Mapping[Key, SeenClient], alone: Mapping[Key, Software]
) -> Counter[Party]:
    found = Counter[Party]()
    for key, client in clients.items():
        for software, count in client.connections.items():
            found[_party(key, software, alone)] += count
    return found


def _uses(seen: list[SeenUse], alone: Mapping[Key, Software]) -> dict[Party, list[Use]]:
    asking = {one.key for one in seen if one.asked}
    found: defaultdict[Party, list[Use]] = defaultdict(list)
    for one in seen:
        party = _party(one.key, one.software, alone)
        found[party].append(_use(one, is_asking=one.key in asking))
    return found


def _use(seen: SeenUse, *, is_asking: bool) -> Use:
    asked: NegotiationEvidence = "here" if seen.asked else "elsewhere" if is_asking else "unseen"
    if seen.from_start and asked == "unseen":
        asked = "never"
    offered = Versions.NONE if seen.is_range_seen else None
    if seen.lowest is not None and seen.highest is not None:
        offered = Versions(seen.lowest, seen.highest)
    return Use(
        seen.api_key,
        seen.api_version,
        seen.requests,
        seen.first_us,
        seen.last_us,
        asked,
        offered,
        closed=seen.closed,
    )
