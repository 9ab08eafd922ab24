"""Whether requests come from a client, from a broker or from a controller."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from flexwire.protocol.apis import request_entries
from flexwire.schema.catalog import per_catalog

if TYPE_CHECKING:
    from collections.abc import Collection

    from flexwire.parties import Role
    from flexwire.schema.entry import Entry

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
# Tools abort transactions with it too (KIP-664), after other requests; a transaction coordinator
# sends nothing else.
_WRITE_TXN_MARKERS = 27
# What any connection may begin with, a client's or a broker's.
OPENING_APIS = frozenset({17, 18, 36})
"""SaslHandshake, ApiVersions and SaslAuthenticate."""


def role_of(api_keys: Collection[int], *, is_replica: bool = False) -> Role:
    """Whose requests these are, by all the APIs that were used under one client id and address.

    ``is_replica`` means that a Fetch among them names a replica that fetches (its id is not
    negative), which consumers never do.

    >>> role_of({18, 4}), role_of({18, 63}), role_of({18, 1}, is_replica=True), role_of({18, 1})
    ('controller', 'broker', 'broker', 'client')
    """
    if any(key in _CONTROLLERS for key in api_keys):
        return "controller"
    sent = set(api_keys) - OPENING_APIS
    only_markers = sent == {_WRITE_TXN_MARKERS}
    if is_replica or only_markers or any(_is_brokers_own(key) for key in sent):
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
