"""The traffic of frames that are alike, and what the report says of apis and clients from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from flexwire.capture.pairing.state import FAILED
from flexwire.errors import UnknownMessageError
from flexwire.facts.facts import ApiFacts, ClientFacts, VersionUse
from flexwire.protocol import api_name
from flexwire.tables.spec_places import CARRYING_RESPONSES

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from typing import TypeVar

    from flexwire.facts.facts import Latency
    from flexwire.parties import Client

    _Key = TypeVar("_Key")

REQUEST, RESPONSE = "request", "response"


class Traffic(NamedTuple):
    """Frames of one client, api version, direction and outcome: how many, and their sums."""

    client: Client
    api_key: int | None
    api_version: int | None
    direction: str
    outcome: str
    has_message: bool
    frames: int
    bytes: int
    unanswered: int
    withheld: int


def frames_of(traffic: Iterable[Traffic], direction: str) -> int:
    """Give how many frames go in a direction."""
    return sum(one.frames for one in traffic if one.direction == direction)


def bytes_of(traffic: Iterable[Traffic], direction: str) -> int:
    """Give how many bytes go in a direction."""
    return sum(one.bytes for one in traffic if one.direction == direction)


def api_facts(traffic: Iterable[Traffic], latencies: Mapping[int, Latency]) -> tuple[ApiFacts, ...]:
    """Give the facts of each api key."""
    return tuple(
        ApiFacts(
            api_key=api_key,
            name=name_of(api_key),
            requests=frames_of(some, REQUEST),
            responses=frames_of(some, RESPONSE),
            request_bytes=bytes_of(some, REQUEST),
            response_bytes=bytes_of(some, RESPONSE),
            failures=sum(one.frames for one in some if one.outcome == FAILED),
            versions=tuple(
                sorted({one.api_version for one in some if one.api_version is not None})
            ),
            latency=latencies.get(api_key),
            may_wait=may_wait(api_key),
        )
        for api_key, some in _by(traffic, lambda one: one.api_key).items()
        if api_key is not None
    )


def client_facts(
    traffic: Iterable[Traffic], connections: Mapping[Client, Collection[str]]
) -> tuple[ClientFacts, ...]:
    """Give the facts of each client that named itself in a message."""
    by_client = _by((one for one in traffic if one.has_message), lambda one: one.client)
    return tuple(
        ClientFacts(
            client=client,
            connections=len(connections[client]),
            requests=frames_of(some, REQUEST),
            bytes_sent=bytes_of(some, REQUEST),
            bytes_received=bytes_of(some, RESPONSE),
            apis=len({one.api_key for one in some} - {None}),
        )
        for client, some in by_client.items()
    )


def version_uses(traffic: Iterable[Traffic]) -> tuple[VersionUse, ...]:
    """Give who sent which version of which api, and how often."""
    requests = (one for one in traffic if one.direction == REQUEST)
    by_use = _by(requests, lambda one: (one.client, one.api_key, one.api_version))
    return tuple(
        VersionUse(client, key, name_of(key), version, sum(one.frames for one in some))
        for (client, key, version), some in by_use.items()
        if key is not None and version is not None
    )


def name_of(api_key: int) -> str | None:
    """Give the name of an api, where a release has it."""
    try:
        return api_name(api_key)
    except UnknownMessageError:
        return None


def may_wait(api_key: int) -> bool:
    """Return whether the broker may wait for records before it responds."""
    return f"{name_of(api_key)}Response" in CARRYING_RESPONSES


def _by(traffic: Iterable[Traffic], key: Callable[[Traffic], _Key]) -> dict[_Key, list[Traffic]]:
    found: dict[_Key, list[Traffic]] = {}
    for one in traffic:
        found.setdefault(key(one), []).append(one)
    return found
