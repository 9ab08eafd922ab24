"""Connect to a cluster: send each request to its route's broker, over one connection per broker."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from flexwire.arguments import to_int, to_version
from flexwire.client.broker import DEFAULT_CLIENT_ID, LATEST, Broker, parse_address
from flexwire.client.connection import DEFAULT_SECONDS
from flexwire.client.notation import HIGHEST_PORT, HostPort
from flexwire.client.security import PLAINTEXT, Security
from flexwire.client.write_requests import why_it_writes
from flexwire.closeable import Closeable
from flexwire.codec import message
from flexwire.errors import (
    ArgumentError,
    CallError,
    CodecError,
    FrameError,
    LoginError,
    NoRouteError,
    VersionNotOfferedError,
    short,
)
from flexwire.protocol import SENT_FRAME_LIMIT
from flexwire.protocol.apis import api_key_of
from flexwire.protocol.credentials import METADATA_TOPIC
from flexwire.protocol.error_codes import NO_ERROR
from flexwire.protocol.readable_json import describe_error_code
from flexwire.versions import Versions
from flexwire.wire.limits import INT32_MAX
from flexwire.wire.schema import Presence

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from flexwire.client.answers import BrokerAnswer
    from flexwire.codec import Message


Kind = Literal["any", "node", "leader", "coordinator", "controller"]
# The key types of FindCoordinator.
COORDINATORS: Final = {"group": 0, "transaction": 1, "share": 2}
# The endpoint types of DescribeCluster (KIP-919).
_CONTROLLERS: Final = 2
_SHARE_KEY: Final = re.compile(r"[^:]+:[A-Za-z0-9_-]{22}:\d+")
_DIGITS: Final = len(str(INT32_MAX))
_ACTIVE: Final = "the active controller"
FORMS: Final = (
    "any, NODE_ID, leader:TOPIC-PARTITION, group:ID, transaction:ID, "
    "share:GROUP:TOPIC_ID:PARTITION or controller"
)


@dataclass(frozen=True, slots=True)
class Route:
    """The broker to call: any, a node, a partition's leader, a coordinator or the controller.

    ``name`` is the topic, or the coordinator's key. ``number`` is the node, the partition or the
    key type.
    """

    kind: Kind
    name: str = ""
    number: int = -1


ANY: Final = Route("any")


def parse_route(text: str) -> Route:
    """Return the route that a string describes. Raises `ArgumentError` for any other string.

    >>> parse_route("leader:orders-eu-3")
    Route(kind='leader', name='orders-eu', number=3)
    >>> parse_route("2"), parse_route("group:billing")
    (Route(kind='node', name='', number=2), Route(kind='coordinator', name='billing', number=0))
    """
    if text in {"any", "controller"}:
        return Route(text)  # type: ignore[arg-type]  # mypy does not narrow by a set
    if _is_number(text):
        return Route("node", number=int(text))
    kind, _, name = text.partition(":")
    topic, dash, partition = name.rpartition("-")
    if kind == "leader" and topic and dash and _is_number(partition):
        return Route("leader", topic, int(partition))
    if kind in COORDINATORS and name and (kind != "share" or _SHARE_KEY.fullmatch(name)):
        return Route("coordinator", name, COORDINATORS[kind])
    raise ArgumentError(f"expected {FORMS}, got {short(text)}")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= _DIGITS and int(text) <= INT32_MAX


def find_broker(route: Route, broker: Broker, *, among_controllers: bool = False) -> HostPort:
    """Return the address of a route's broker, as reported by a broker of the cluster.

    With ``among_controllers``, the broker that is asked is a controller, on the controllers' own
    listener. Raises `CallError` if the broker reports no address.
    """
    if route.kind == "leader":
        return _leader(route, broker)
    if route.kind == "coordinator":
        return _coordinator(route, broker)
    if among_controllers and route.kind in {"controller", "node"}:
        return _among_controllers(route, broker)
    if route.kind == "controller":
        return _controller(broker)
    if route.kind == "node":
        nodes = _brokers(_metadata(broker))
        return _node(nodes, route.number, f"node {route.number}", broker)
    return broker.address


def node_addresses(broker: Broker, *, among_controllers: bool = False) -> list[HostPort]:
    """Return the addresses of all nodes that a broker or controller knows, by node id."""
    nodes = _controllers(broker)[0] if among_controllers else _brokers(_metadata(broker))
    return [_address(*nodes[node], f"node {node}", broker) for node in sorted(nodes)]


def _leader(route: Route, broker: Broker) -> HostPort:
    name = f"{route.name}-{route.number}"
    topics = [{"name": route.name}]
    metadata = _ask(broker, "Metadata", {"topics": topics, "allowAutoTopicCreation": False})
    for topic in metadata.topics:
        _check(topic.error_code, f"the leader of {name}", broker)
        for partition in topic.partitions:
            if partition.partition_index == route.number:
                if partition.leader_id < 0:
                    _check(partition.error_code, f"the leader of {name}", broker)
                return _node(
                    _brokers(metadata), partition.leader_id, f"the leader of {name}", broker
                )
    raise CallError(f"{broker.address} knows no partition {name}")


def _coordinator(route: Route, broker: Broker) -> HostPort:
    kind = next(name for name, number in COORDINATORS.items() if number == route.number)
    what = f"the coordinator of {kind} {route.name}"
    body = {"key": route.name, "keyType": route.number, "coordinatorKeys": [route.name]}
    response = _ask(broker, "FindCoordinator", body)
    # Since version 4, one request can contain several keys.
    answer = response.coordinators[0] if response.coordinators else response
    _check(answer.error_code, what, broker)
    return _address(answer.host, answer.port, what, broker)


def _controller(broker: Broker) -> HostPort:
    if not broker.offered.get(api_key_of("DescribeQuorum"), Versions.NONE):
        # With ZooKeeper, one of the brokers is the controller, and the Metadata response names it.
        metadata = _metadata(broker)
        return _node(_brokers(metadata), metadata.controller_id, _ACTIVE, broker)
    partitions = [{"partitionIndex": 0}]
    topics = [{"topicName": METADATA_TOPIC, "partitions": partitions}]
    quorum = _ask(broker, "DescribeQuorum", {"topics": topics})
    _check(quorum.error_code, _ACTIVE, broker)
    states = [partition for topic in quorum.topics for partition in topic.partitions]
    if not states:
        raise CallError(f"{broker.address} does not report the quorum's leader")
    _check(states[0].error_code, _ACTIVE, broker)
    leader = states[0].leader_id
    # A node that is also a broker is reached through its client listener. All other nodes have a
    # separate listener, which the answer has contained since version 2.
    nodes = _brokers(_metadata(broker))
    if leader not in nodes:
        nodes |= {
            node.node_id: HostPort(node.listeners[0].host, node.listeners[0].port)
            for node in quorum.nodes
            if node.listeners
        }
    return _node(nodes, leader, f"{_ACTIVE} (node {leader})", broker)


def _among_controllers(route: Route, broker: Broker) -> HostPort:
    """Return the address that a controller reports. Every controller knows the active one."""
    nodes, active = _controllers(broker)
    if route.kind == "controller":
        return _node(nodes, active, _ACTIVE, broker)
    return _node(nodes, route.number, f"node {route.number}", broker)


def _controllers(broker: Broker) -> tuple[dict[int, HostPort], int]:
    """Return the controllers, and the id of the active one."""
    response = _ask(broker, "DescribeCluster", {"endpointType": _CONTROLLERS})
    _check(response.error_code, "the controllers", broker)
    nodes = {node.broker_id: HostPort(node.host, node.port) for node in response.brokers}
    return nodes, response.controller_id


def _metadata(broker: Broker) -> Any:
    return _ask(broker, "Metadata", {"topics": []})


def _brokers(metadata: Any) -> dict[int, HostPort]:
    return {broker.node_id: HostPort(broker.host, broker.port) for broker in metadata.brokers}


def _node(nodes: dict[int, HostPort], node: int, what: str, broker: Broker) -> HostPort:
    if node not in nodes:
        listed = ", ".join(map(str, sorted(nodes))) or "none"
        raise CallError(f"{broker.address} does not know {what}; known nodes: {listed}")
    return _address(*nodes[node], what, broker)


def _address(host: str, port: int, what: str, broker: Broker) -> HostPort:
    if not host or not 0 < port <= HIGHEST_PORT:
        raise CallError(f"{broker.address} reports no address for {what}: {host!r}, port {port}")
    return HostPort(host, port)


def _check(code: int, what: str, broker: Broker) -> None:
    if code != NO_ERROR:
        raise NoRouteError(
            f"{broker.address} does not know {what}: {code} {describe_error_code(code)}", code=code
        )


def _ask(broker: Broker, name: str, body: dict[str, Any]) -> Any:
    """Send a request in the newest version, with the fields that exist in that version."""
    version = broker.newest(name)
    fields = message(f"{name}Request").definition.schema(version).fields
    names = {field.json_name for field in fields if field.presence is not Presence.ABSENT}
    body_fields = {field: value for field, value in body.items() if field in names}
    return broker.ask(name, body_fields, version).readable()


RETRIES: Final = 5
"""How many times a misrouted request is sent again, if retries are requested."""

_FIRST_PAUSE: Final = 0.2


class Cluster(Closeable):
    """A cluster, given by the addresses of one or more of its brokers: "one:9092,two:9092".

    A connection to a broker is opened when it is first needed, and then stays open. With
    ``controllers``, these are the addresses of the controllers' own listener.
    """

    def __init__(
        self,
        bootstrap: str,
        security: Security = PLAINTEXT,
        *,
        client_id: str | None = DEFAULT_CLIENT_ID,
        timeout: float = DEFAULT_SECONDS,
        frame_limit: int = SENT_FRAME_LIMIT,
        controllers: bool = False,
    ) -> None:
        self._bootstrap = [parse_address(address) for address in bootstrap.split(",")]
        self._security = security
        self._controllers = controllers
        self._options: dict[str, Any] = {
            "client_id": client_id,
            "timeout": timeout,
            "frame_limit": frame_limit,
        }
        self._brokers: dict[HostPort, Broker] = {}

    def broker(self, route: Route | str = ANY) -> Broker:
        """Ask the cluster for a route's broker, and connect to it."""
        route = parse_route(route) if isinstance(route, str) else route
        first = self._first()
        return self._connected(find_broker(route, first, among_controllers=self._controllers))

    def call(
        self,
        message_name: str,
        body: Message | Mapping[str, Any] | None = None,
        version: int | str = LATEST,
        *,
        to: Route | str = ANY,
        retries: int = 0,
        **options: Any,
    ) -> BrokerAnswer:
        """Send a request to a route's broker and return its answer, as `Broker.call` does.

        If an error code means that another broker can answer (NOT_LEADER_OR_FOLLOWER,
        NOT_COORDINATOR, NOT_CONTROLLER), or that the same broker can answer later, the answer is
        returned unchanged. With ``retries``, the request is sent again up to that many times, each
        time after looking up the route again. A request that may change something is sent again
        only if no part of it succeeded.
        """
        return self.ask(message_name, body, version, to=to, retries=retries, **options).exact()

    def ask(
        self,
        message_name: str,
        body: Message | Mapping[str, Any] | None = None,
        version: int | str = LATEST,
        *,
        to: Route | str = ANY,
        retries: int = 0,
        **options: Any,
    ) -> BrokerAnswer:
        """Do the same as `call`, but return even an answer that is not in Kafka's format.

        See `Broker.ask`. With ``any_version=False``, the broker is first asked for its versions. A
        version that the broker does not offer then raises `VersionNotOfferedError`.
        """
        any_version = options.pop("any_version", True)
        to_int(retries, "retries", least=0)
        route = parse_route(to) if isinstance(to, str) else to
        pause = _FIRST_PAUSE
        asked: list[HostPort] = []
        for left in range(retries, -1, -1):
            try:
                broker = self._other(asked) if asked and route == ANY else self.broker(route)
            except LoginError:
                raise
            except CallError:
                if not left:
                    raise
            else:
                if version != LATEST and not any_version:
                    broker = self._checked(broker, message_name, to_version(version))
                answer = broker.ask(message_name, body, version, **options)
                if not left or not _goes_again(answer):
                    return answer
                asked.append(broker.address)
            time.sleep(pause)
            pause *= 2
        raise AssertionError  # The last attempt returns or raises.

    def _checked(self, broker: Broker, message_name: str, version: int) -> Broker:
        """Return the broker if it offers a version, or if it does not report its versions."""
        try:
            broker.check_version(message_name, version)
        except VersionNotOfferedError:
            raise
        except (CallError, CodecError, FrameError):
            # Some brokers do not know ApiVersions and close the connection; others send invalid
            # answers.
            broker.close()
            return self._connected(broker.address)
        return broker

    def close(self) -> None:
        """End all connections."""
        for broker in self._brokers.values():
            broker.close()
        self._brokers.clear()

    def _other(self, asked: list[HostPort]) -> Broker:
        """Return a connection to the broker that was asked least recently, or never."""
        first = self._first()
        every = node_addresses(first, among_controllers=self._controllers) or [first.address]
        fresh = [address for address in every if address not in asked]
        return self._connected(fresh[0] if fresh else min(every, key=_latest_in(asked)))

    def _first(self) -> Broker:
        """Return a connection to the first reachable bootstrap address."""
        failed = []
        for address in self._bootstrap:
            try:
                return self._connected(address)
            except LoginError:
                raise
            except CallError as error:
                failed.append(str(error))
        raise CallError("; ".join(failed))

    def _connected(self, address: HostPort) -> Broker:
        broker = self._brokers.get(address)
        if broker is None or not broker.is_open:
            broker = Broker.connect(address, self._security, **self._options)
            self._brokers[address] = broker
        return broker


def _latest_in(asked: list[HostPort]) -> Callable[[HostPort], int]:
    """Return a sort key: the last position of each address in a list."""
    return {address: at for at, address in enumerate(asked)}.__getitem__


def _goes_again(answer: BrokerAnswer) -> bool:
    reads = why_it_writes(answer.api_name, answer.request) is None
    return answer.is_moved and (reads or answer.did_nothing)
