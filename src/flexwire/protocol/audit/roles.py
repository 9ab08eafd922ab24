"""Whether requests come from a client, from a broker or from a controller."""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from flexwire.protocol.apis import request_entries
from flexwire.schema.catalog import per_catalog

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from flexwire.parties import Role
    from flexwire.schema.catalog import Entry

# Where clients connect, in the "listeners" of request specs: what brokers in ZooKeeper mode alone
# take ("zkBroker") in the newest release that has the request is no client's.
_CLIENTS_LISTENER = "broker"
# Requests on no clients' listener are brokers' and controllers' own, and no spec says whose.
_CONTROLLERS = {
    4: "LeaderAndIsr: the controller tells brokers whom they lead and follow (ZooKeeper mode)",
    5: "StopReplica: the controller stops replicas (ZooKeeper mode)",
    6: "UpdateMetadata: the controller tells brokers of all others (ZooKeeper mode)",
    52: "Vote: one controller asks another for its vote (KIP-595)",
    53: "BeginQuorumEpoch: the leader of the quorum tells the other voters (KIP-595)",
    54: "EndQuorumEpoch: the leader of the quorum resigns (KIP-595)",
    70: "ControllerRegistration: a controller registers with the active one (KIP-919)",
    82: "UpdateRaftVoter: a controller tells the quorum its address (KIP-853)",
}
# Requests that brokers send each other on the clients' listener.
_BROKERS = {
    83: "InitializeShareGroupState: a group coordinator asks a share coordinator (KIP-932)",
    84: "ReadShareGroupState: a share partition's leader asks a share coordinator (KIP-932)",
    85: "WriteShareGroupState: a share partition's leader tells a share coordinator (KIP-932)",
    86: "DeleteShareGroupState: a group coordinator tells a share coordinator (KIP-932)",
    87: "ReadShareGroupStateSummary: a group coordinator asks a share coordinator (KIP-932)",
}
# Requests that clients send in lower versions, and only brokers from these on.
_BROKERS_FROM = {
    24: (4, "AddPartitionsToTxn: a partition's leader asks a transaction coordinator (KIP-890)"),
}
# Tools abort transactions with it too (KIP-664), after other requests; a transaction coordinator
# sends nothing else.
_WRITE_TXN_MARKERS = 27
# What any connection may begin with, a client's or a broker's.
OPENING_APIS = frozenset({17, 18, 36})
"""SaslHandshake, ApiVersions and SaslAuthenticate."""


def role_of(
    api_keys: Collection[int],
    *,
    is_replica: bool = False,
    highest: Mapping[int, int] = MappingProxyType({}),
) -> Role:
    """Return whose requests these are, by all the APIs used under one client id and address.

    ``is_replica`` means that a Fetch among them names a replica that fetches (its id is not
    negative), which consumers never do. ``highest`` is the highest version that was sent of each
    API, where that is known: some requests are brokers' own from a version on.

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


def _has_clients_listener(entry: Entry) -> bool:
    # The newest release that still reads the request: 4.x keeps specs of what it has removed.
    for release, versions in reversed(entry.releases.items()):
        if versions:
            listeners = entry.spec(versions.highest, release).listeners
            return _CLIENTS_LISTENER in listeners or not listeners
    return True
