"""A real broker's JVM logs the secrets of its TLS connections, which decrypt a capture."""

from __future__ import annotations

import socket
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from flexwire.capture.tls import KeyLog, open_captures
from flexwire.tap import HostPort
from tests.kafka.secured import COUNT, LOOPBACK, by_java, by_librdkafka, tapping, values
from tests.tls import Authority
from tools.broker import broker, jars
from tools.maven import Jars

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flexwire.tap import Tap

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

VERSION = "4.4.0"
# The agent needs none of its declared dependencies.
AGENT = Jars(
    "extract-tls-secrets-4.0.0", ("name.neykov:extract-tls-secrets:4.0.0",), left_out=("*:*",)
)


@dataclass(frozen=True)
class Logged:
    """A broker that logs TLS secrets, a tap that sees only TLS, and the certificate authority."""

    tap: Tap
    secrets: Path
    ca: Path


@contextmanager
def logged(directory: Path, protocol: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Logged]:
    authority = Authority(directory / "tls")
    certificate, key = authority.certificate([LOOPBACK], name="broker")
    both = directory / "both.pem"
    both.write_bytes(key.read_bytes() + certificate.read_bytes())
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server((LOOPBACK, 0))) for _ in range(2)]
        own, controller = (HostPort(LOOPBACK, one.getsockname()[1]) for one in sockets)
    jars(VERSION)
    (agent,) = AGENT.bring().iterdir()
    secrets = directory / "secrets.log"
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", f"-javaagent:{agent}={secrets}")
    with tapping(own, directory / "captured") as tap:
        settings = {
            "listeners": f"SSL://{own},CONTROLLER://{controller}",
            "advertised.listeners": f"SSL://{tap.listen_address}",
            "controller.quorum.voters": f"1@{controller}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,SSL:SSL",
            "inter.broker.listener.name": "SSL",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(both),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(authority.path),
            "ssl.enabled.protocols": protocol,
        }
        with broker(VERSION, directory, settings):
            monkeypatch.delenv("JAVA_TOOL_OPTIONS")
            yield Logged(tap, secrets, authority.path)


@pytest.mark.parametrize("protocol", ["TLSv1.3", "TLSv1.2"])
def test_what_clients_said_in_tls_is_read(
    tmp_path: Path, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with logged(tmp_path, protocol, monkeypatch) as found:
        at = str(found.tap.listen_address)
        read = by_librdkafka(at, found.ca, "none", "c-")
        read += by_java(at, found.ca, "none", "j-", VERSION, tmp_path / "client.properties")
        assert found.tap.stats.tls > 0
    paths = found.tap.capture_paths
    keys = KeyLog()
    keys.add_file(found.secrets)
    done = open_captures(list(map(str, paths)), tmp_path / "plain", keys)
    sent = {f"{who}-{number}" for who in "cj" for number in range(COUNT)}
    assert Counter(read) == Counter(sent)
    assert Counter(values(list(done.paths), "ProduceRequest")[0]) == Counter(sent)
    assert sent <= set(values(list(done.paths), "FetchResponse")[0])
    counts = done.counts
    assert counts.opened >= 4
    assert (counts.partly, counts.unopened, counts.lost_bytes) == ({}, {}, 0)
