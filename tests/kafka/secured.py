"""Start a real broker with TLS on three listeners, its clients, and a tap between them."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import subprocess
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, Producer
from confluent_kafka import admin as confluent_admin
from confluent_kafka.cimpl import NewTopic

from flexwire.capture.messages import CapturedMessage, read_messages
from flexwire.codec import message
from flexwire.records import decode_batches
from flexwire.spark.java import find_java
from flexwire.tap import HostPort, Tap, TapSecurity
from flexwire.tap.security import PLAIN
from tests.kafka.tapping import MOST_SECONDS, running
from tests.tls import Authority
from tools.broker import broker, jars

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from flexwire.tap.header_stamps import StampConfig

LOOPBACK = "127.0.0.1"
COUNT = 20
TOPIC = "spoken"
PASSWORD = "alices-own-s3cret"  # noqa: S105 - of a test
# The listener of each protocol, and the mechanisms that are tried on it.
MECHANISMS = ("none", "PLAIN", "SCRAM-SHA-512", "OAUTHBEARER")
TALK = Path(__file__).parents[2] / "tools" / "java" / "Talk.java"
_SECURITY = "org.apache.kafka.common.security"
_MODULES = {
    "PLAIN": f"{_SECURITY}.plain.PlainLoginModule",
    "SCRAM-SHA-512": f"{_SECURITY}.scram.ScramLoginModule",
    "OAUTHBEARER": f"{_SECURITY}.oauthbearer.OAuthBearerLoginModule",
}


@dataclass(frozen=True)
class Secured:
    """A broker's listeners, and the authority that signed its certificate."""

    version: str
    authority: Authority
    listeners: dict[str, HostPort]

    def upstream(self, mechanism: str) -> HostPort:
        return self.listeners["SSL" if mechanism == "none" else "SASL_SSL"]


@contextmanager
def secured(version: str, directory: Path) -> Iterator[Secured]:
    """Start a broker with PLAINTEXT, SSL, SASL_SSL and MTLS listeners, and its own authority."""
    authority = Authority(directory / "tls")
    names = ("PLAINTEXT", "CONTROLLER", "SSL", "SASL_SSL", "MTLS")
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.create_server((LOOPBACK, 0))) for _ in names]
        found = [HostPort(LOOPBACK, one.getsockname()[1]) for one in sockets]
    listeners = dict(zip(names, found, strict=True))
    with broker(version, directory, _settings(authority, listeners)):
        prepare(listeners["PLAINTEXT"])
        yield Secured(version, authority, listeners)


def _settings(authority: Authority, listeners: dict[str, HostPort]) -> dict[str, str]:
    certificate, key = authority.certificate([LOOPBACK, "localhost"], name="broker")
    both = authority.directory / "both.pem"
    both.write_bytes(key.read_bytes() + certificate.read_bytes())
    own = {
        "PLAIN": f'username="admin" password="x" user_alice="{PASSWORD}"',
        "SCRAM-SHA-512": "",
        "OAUTHBEARER": 'unsecuredLoginStringClaim_sub="bob"',
    }
    jaas = {
        f"listener.name.sasl_ssl.{name.lower()}.sasl.jaas.config": (
            f"{_MODULES[name]} required {options};"
        )
        for name, options in own.items()
    }
    return {
        "listeners": ",".join(f"{name}://{at}" for name, at in listeners.items()),
        "controller.quorum.voters": f"1@{listeners['CONTROLLER']}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SSL:SSL,"
        "SASL_SSL:SASL_SSL,MTLS:SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(both),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.path),
        "listener.name.mtls.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": ",".join(own),
        **jaas,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS;User:alice;User:bob;User:CN=the-tap",
        "num.partitions": "2",
    }


def prepare(plain: HostPort) -> None:
    """Create the topic and a SCRAM user."""
    admin: Any = confluent_admin
    client = admin.AdminClient({"bootstrap.servers": str(plain)})
    for made in client.create_topics([NewTopic(TOPIC, 2, 1)]).values():
        made.result(MOST_SECONDS)
    scram = admin.ScramCredentialInfo(admin.ScramMechanism.SCRAM_SHA_512, 4096)
    asked = admin.UserScramCredentialUpsertion("alice", scram, PASSWORD.encode())
    for altered in client.alter_user_scram_credentials([asked]).values():
        altered.result(MOST_SECONDS)


@contextmanager
def tapping(
    upstream: HostPort,
    out: Path,
    security: TapSecurity = PLAIN,
    stamping: StampConfig | None = None,
) -> Iterator[Tap]:
    """Run a tap in its own thread until the end of the block."""
    tap = Tap((LOOPBACK, 0), upstream, out, security=security, stamping=stamping)
    with running([tap]):
        yield tap


def by_librdkafka(address: str, ca: Path, mechanism: str, prefix: str) -> list[str]:
    """Produce and consume with librdkafka; return the records that were read."""
    told: dict[str, Any] = {"bootstrap.servers": address, "ssl.ca.location": str(ca)}
    told |= {"security.protocol": "ssl" if mechanism == "none" else "sasl_ssl", "log_level": 2}
    if mechanism != "none":
        told["sasl.mechanisms"] = mechanism
    if mechanism == "OAUTHBEARER":
        told |= {
            "enable.sasl.oauthbearer.unsecure.jwt": True,
            "sasl.oauthbearer.config": "principal=bob",
        }
    elif mechanism != "none":
        told |= {"sasl.username": "alice", "sasl.password": PASSWORD}
    producer = Producer(told)
    for number in range(COUNT):
        producer.produce(TOPIC, f"{prefix}{number}".encode())
    assert producer.flush(MOST_SECONDS) == 0
    consumer = Consumer({**told, "group.id": f"{prefix}group", "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    read: list[str] = []
    end = time.monotonic() + MOST_SECONDS
    while len(read) < COUNT and time.monotonic() < end:
        for one in consumer.consume(50, 0.5):
            assert one.error() is None
            value = one.value()
            assert isinstance(value, bytes)
            read += [value.decode()] * value.startswith(prefix.encode())
    consumer.commit(asynchronous=False)
    consumer.close()
    return read


def by_java(
    address: str, ca: Path, mechanism: str, prefix: str, version: str, properties: Path
) -> list[str]:
    """Produce and consume with Kafka's own client."""
    protocol = "SSL" if mechanism == "none" else "SASL_SSL"
    told = {"bootstrap.servers": address, "security.protocol": protocol}
    told |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(ca)}
    if mechanism != "none":
        who = f'username="alice" password="{PASSWORD}"'
        if mechanism == "OAUTHBEARER":
            who = 'unsecuredLoginStringClaim_sub="bob"'
        told["sasl.mechanism"] = mechanism
        told["sasl.jaas.config"] = f"{_MODULES[mechanism]} required {who};"
    ran = talk(jars(version), told, prefix, properties)
    assert ran.returncode == 0, ran.stderr[-3000:]
    return ran.stdout.split()


def talk(
    jars: Path, told: dict[str, str], prefix: str, properties: Path, options: Iterable[str] = ()
) -> subprocess.CompletedProcess[str]:
    """Run Kafka's own client of a release; its properties are written to a file."""
    properties.write_text("".join(f"{key}={value}\n" for key, value in told.items()))
    java = str(find_java() / "bin" / "java")
    command = [java, "-Xmx128m", *options, "-cp", f"{jars}/*", str(TALK), str(properties)]
    command += [TOPIC, prefix, str(COUNT)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=MOST_SECONDS, check=False
    )


def unsecured_jws(subject: str) -> str:
    """Return an unsigned token that Kafka's default validator accepts."""
    now = int(time.time())
    claims = {"sub": subject, "iat": now, "exp": now + 3600}
    parts = (
        base64.urlsafe_b64encode(json.dumps(one).encode()) for one in ({"alg": "none"}, claims)
    )
    return ".".join(part.decode().rstrip("=") for part in parts) + "."


async def by_aiokafka(address: str, ca: Path, mechanism: str, prefix: str) -> list[str]:
    """Produce and consume with aiokafka."""
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer  # noqa: PLC0415 - one client of several
    from aiokafka.abc import AbstractTokenProvider  # noqa: PLC0415 - see above

    from flexwire.client.tls import client_context  # noqa: PLC0415 - see above

    class Tokens(AbstractTokenProvider):  # type: ignore[misc]  # it comes without types
        async def token(self) -> str:
            return unsecured_jws("bob")

    told: dict[str, Any] = {"bootstrap_servers": address, "ssl_context": client_context(ca)}
    told["security_protocol"] = "SSL" if mechanism == "none" else "SASL_SSL"
    if mechanism == "OAUTHBEARER":
        told |= {"sasl_mechanism": mechanism, "sasl_oauth_token_provider": Tokens()}
    elif mechanism != "none":
        told |= {"sasl_mechanism": mechanism, "sasl_plain_username": "alice"}
        told["sasl_plain_password"] = PASSWORD
    async with AIOKafkaProducer(**told) as producer:
        for number in range(COUNT):
            await producer.send_and_wait(TOPIC, f"{prefix}{number}".encode())
    read: list[str] = []
    group: dict[str, Any] = {"group_id": f"{prefix}group", "auto_offset_reset": "earliest"}
    async with AIOKafkaConsumer(TOPIC, **group, **told) as consumer, asyncio.timeout(MOST_SECONDS):
        while len(read) < COUNT:
            value = (await consumer.getone()).value.decode()
            read += [value] * value.startswith(prefix)
    return read


def by_kafka_python(address: str, ca: Path, prefix: str) -> list[str]:
    """Produce and consume with kafka-python."""
    from kafka import KafkaConsumer, KafkaProducer  # noqa: PLC0415 - one client of several

    told: dict[str, Any] = {"bootstrap_servers": address, "security_protocol": "SSL"}
    told["ssl_cafile"] = str(ca)
    producer = KafkaProducer(**told)
    for number in range(COUNT):
        producer.send(TOPIC, f"{prefix}{number}".encode()).get(MOST_SECONDS)
    producer.close()
    consumer = KafkaConsumer(TOPIC, group_id=f"{prefix}group", auto_offset_reset="earliest", **told)
    read: list[str] = []
    for one in consumer:
        value = one.value.decode()
        read += [value] * value.startswith(prefix)
        if len(read) == COUNT:
            break
    consumer.close()
    return read


def values(paths: list[Path], name: str) -> tuple[list[str], set[str]]:
    """Return the values of records in messages with this name, and why other bytes are invalid."""
    read: list[str] = []
    unused: set[str] = set()
    for found in read_messages(paths):
        if not isinstance(found, CapturedMessage):
            unused.add(found.kind)
        elif found.name == name:
            body: Any = message(name).decode(found.body, found.version)
            for records in _records(body):
                for batch in decode_batches(records):
                    read += [(one.value or b"").decode() for one in batch.records]
    return read, unused


def _records(body: Any) -> Iterator[bytes]:
    """Yield the records fields of produce requests and fetch responses."""
    topics: Any = getattr(body, "topic_data", None) or getattr(body, "responses", ())
    for topic in topics:
        for partition in getattr(topic, "partition_data", None) or topic.partitions:
            if partition.records:
                yield partition.records
