"""Start a real broker with a plain and a secured listener, and write its clients' files."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flexwire.client import Broker
from tests.net.broker import LOOPBACK, free_ports
from tests.tls import Authority
from tools.broker import broker, new_id

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LOGIN = "org.apache.kafka.common.security"
_PLAIN = f"{_LOGIN}.plain.PlainLoginModule required"
_SCRAM = f"{_LOGIN}.scram.ScramLoginModule required"
PASSWORD = 'pen"cil, =\\ü'  # noqa: S105 - it is not a secret
_SECRET = "for tests"  # noqa: S105 - it is not a secret
# Kafka's number for each SCRAM mechanism, and the mechanism's hash.
SCRAM = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}
ITERATIONS = 4096


@dataclass(frozen=True)
class Secured:
    """A broker: its release, three listeners, and the authority that signed its certificate."""

    release: str
    plain: str
    secure: str
    controllers: str
    authority: Authority
    directory: Path

    def config(self, mechanism: str, **others: str) -> Path:
        """Write a client's properties file for one login mechanism."""
        module = _PLAIN if mechanism == "PLAIN" else _SCRAM
        password = PASSWORD.replace("\\", "\\\\").replace('"', '\\"')
        found = {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": f'{module} username="alice" password="{password}";',
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority.path),
            **{key.replace("_", "."): value for key, value in others.items()},
        }
        path = self.directory / f"{mechanism}.properties"
        lines = [f"{key}={_escaped(value)}\n" for key, value in found.items()]
        path.write_text("".join(lines), encoding="ascii")
        return path


@contextlib.contextmanager
def secured(release: str, directory: Path) -> Iterator[Secured]:
    """Start a broker that accepts "alice" by PLAIN and both SCRAM mechanisms."""
    first = free_ports(3)
    plain, secure, controllers = (f"{LOOPBACK}:{first + at}" for at in range(3))
    authority = Authority(directory)
    chain, key = authority.certificate()
    store = directory / "broker.pem"
    store.write_text(key.read_text() + chain.read_text())
    listeners = f"PLAINTEXT://{plain},SECURE://{secure},CONTROLLER://{controllers}"
    user = f'user_alice="{_java(PASSWORD)}"'
    settings = {
        "listeners": listeners,
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL,"
        "CONTROLLER:PLAINTEXT",
        "controller.quorum.voters": f"1@{controllers}",
        "delegation.token.secret.key": _SECRET,
        "listener.name.secure.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.secure.plain.sasl.jaas.config": _escaped(f"{_PLAIN} {user};"),
        "listener.name.secure.scram-sha-256.sasl.jaas.config": f"{_SCRAM};",
        "listener.name.secure.scram-sha-512.sasl.jaas.config": f"{_SCRAM};",
        "listener.name.secure.ssl.keystore.type": "PEM",
        "listener.name.secure.ssl.keystore.location": str(store),
        "listener.name.secure.ssl.truststore.type": "PEM",
        "listener.name.secure.ssl.truststore.location": str(authority.path),
    }
    with broker(release, directory / "broker", settings):
        made = Secured(release, plain, secure, controllers, authority, directory)
        add_scram_users(plain)
        yield made


@dataclass(frozen=True)
class Separate:
    """Two controllers, nodes 2 and 3, and node 1, which is only a broker."""

    broker: str
    controllers: dict[int, str]


@contextlib.contextmanager
def separate(release: str, directory: Path) -> Iterator[Separate]:
    """Start a cluster whose controllers are not brokers."""
    first = free_ports(3)
    addresses = {node: f"{LOOPBACK}:{first + node - 1}" for node in (1, 2, 3)}
    cluster = new_id()
    common = {
        "controller.quorum.voters": ",".join(f"{node}@{addresses[node]}" for node in (2, 3)),
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
    }

    def node(number: int, role: str, listener: str) -> contextlib.AbstractContextManager[str]:
        data = directory / str(number) / "data"
        data.mkdir(parents=True)
        # The directories must belong to one cluster; formatted separately, they would not.
        facts = f"version=1\ncluster.id={cluster}\nnode.id={number}\n"
        (data / "meta.properties").write_text(facts)
        own = {
            "process.roles": role,
            "node.id": str(number),
            "listeners": f"{listener}://{addresses[number]}",
        }
        return broker(release, data.parent, {**common, **own})

    with contextlib.ExitStack() as running, ThreadPoolExecutor() as pool:
        # Two controllers need each other to start.
        begun = [node(number, "controller", "CONTROLLER") for number in (2, 3)]
        list(pool.map(running.enter_context, begun))
        running.enter_context(node(1, "broker", "PLAINTEXT"))
        yield Separate(addresses[1], {number: addresses[number] for number in (2, 3)})


def add_scram_users(address: str) -> None:
    """Create the user "alice" with both SCRAM mechanisms, as the broker's own tool would."""
    with Broker.connect(address) as asked:
        for number, digest in SCRAM.values():
            salt = os.urandom(16)
            salted = hashlib.pbkdf2_hmac(digest, PASSWORD.encode(), salt, ITERATIONS)
            upsertion = {
                "name": "alice",
                "mechanism": number,
                "iterations": ITERATIONS,
                "salt": base64.b64encode(salt).decode(),
                "saltedPassword": base64.b64encode(salted).decode(),
            }
            # A request may alter each user only once.
            body = {"deletions": [], "upsertions": [upsertion]}
            answer = asked.call("AlterUserScramCredentials", body)
            assert not answer.error_codes, answer.to_json(names=True)


def _java(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _escaped(value: str) -> str:
    """Return a value in the form that a properties file needs."""
    text = value.replace("\\", "\\\\")
    return "".join(one if one.isascii() else f"\\u{ord(one):04x}" for one in text)
