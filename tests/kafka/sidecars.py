"""Start a cluster of combined nodes with a tap before every listener, so the taps see everything.

The taps use the names and ports that nodes advertise, as docs/tap.md describes for taps beside
brokers. So all requests are captured: from clients, between brokers, and from nodes to the
controller.
"""

from __future__ import annotations

import contextlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flexwire.tap import HostPort, Tap
from tests.kafka.tapping import running
from tests.net.broker import LOOPBACK, free_ports
from tools.broker import CLASS_PATH, CLUSTER_ID, broker, new_id

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flexwire.tap.metrics import TapStatistics

LISTENERS = ("PLAINTEXT", "SASL", "CONTROLLER")
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
_SHARE_STATE = "share.coordinator.state.topic"
# The settings that enable groups of all types. In 4.0 share groups and their APIs are early access.
_OF_RELEASE = {
    "4.0": {
        "group.coordinator.rebalance.protocols": "classic,consumer,share",
        "unstable.api.versions.enable": "true",
    },
}


@dataclass(frozen=True)
class Node:
    """A node's number, its log directories, and the address of each listener and of its tap."""

    number: int
    directory: Path
    own: dict[str, HostPort]
    taps: dict[str, HostPort]

    @property
    def second(self) -> Path:
        """The second log directory of the node."""
        return self.directory / "second"


@dataclass(frozen=True)
class Sidecars:
    """A cluster: its release, its nodes, the directory of the captures, and each tap's counts."""

    release: str
    nodes: list[Node]
    captures: Path
    counts: list[TapStatistics]

    def address(self, listener: str) -> str:
        """Return the first node's address, through the tap."""
        return str(self.nodes[0].taps[listener])


@contextlib.contextmanager
def sidecars(release: str, count: int, directory: Path, plug_ins: Path) -> Iterator[Sidecars]:
    """Start this many combined nodes of a release, and their taps."""
    ports = iter(range(first := free_ports(6 * count), first + 6 * count))

    def places() -> dict[str, HostPort]:
        return {name: HostPort(LOOPBACK, next(ports)) for name in LISTENERS}

    nodes = [
        Node(number, directory / f"node-{number}", places(), places())
        for number in range(1, count + 1)
    ]
    captures = directory / "captures"
    settings = _settings(release, nodes, plug_ins)
    with contextlib.ExitStack() as running, ThreadPoolExecutor() as pool:
        pairs = [(node.taps[name], node.own[name]) for node in nodes for name in LISTENERS]
        counts = running.enter_context(_tapping(pairs, captures))
        begun = [broker(release, node.directory, {**settings, **_of_node(node)}) for node in nodes]
        stacks = [running.enter_context(contextlib.ExitStack()) for _ in begun]
        # Nodes need each other to start and to stop.
        list(pool.map(contextlib.ExitStack.enter_context, stacks, begun))
        yield Sidecars(release, nodes, captures, counts)
        list(pool.map(contextlib.ExitStack.close, stacks))


def _settings(release: str, nodes: list[Node], plug_ins: Path) -> dict[str, str]:
    replicas = str(len(nodes))
    replicated = {
        f"{topic}.replication.factor": replicas
        for topic in ("offsets.topic", "transaction.state.log", _SHARE_STATE)
    }
    return {
        CLUSTER_ID: new_id(),
        CLASS_PATH: str(plug_ins),
        "metric.reporters": "TakeTelemetry",
        "controller.quorum.voters": ",".join(
            f"{node.number}@{node.taps['CONTROLLER']}" for node in nodes
        ),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL:SASL_PLAINTEXT,"
        "CONTROLLER:PLAINTEXT",
        "listener.name.sasl.sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "listener.name.sasl.scram-sha-256.sasl.jaas.config": f"{_SCRAM};",
        "delegation.token.secret.key": "for tests",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:carol",
        **replicated,
        f"{_SHARE_STATE}.num.partitions": "2",
        # Some records have old timestamps.
        "log.retention.ms": "-1",
        **next((own for line, own in _OF_RELEASE.items() if release.startswith(line)), {}),
    }


def _of_node(node: Node) -> dict[str, str]:
    return {
        "node.id": str(node.number),
        "listeners": ",".join(f"{name}://{at}" for name, at in node.own.items()),
        "advertised.listeners": ",".join(f"{name}://{at}" for name, at in node.taps.items()),
        "log.dirs": f"{node.directory / 'data'},{node.second}",
    }


@contextlib.contextmanager
def _tapping(pairs: list[tuple[HostPort, HostPort]], out: Path) -> Iterator[list[TapStatistics]]:
    """Run taps in a thread, and close them at the end."""
    taps = [Tap(listen, upstream, out, keep_addresses=True) for listen, upstream in pairs]
    with running(taps):
        yield [tap.stats for tap in taps]
