"""Start a real broker that accepts tickets from a real KDC, and clients with tickets.

Host names exist only in this realm. Java's clients and kcat get their addresses from the realm,
and the broker's keys are for one name.
"""

from __future__ import annotations

import subprocess
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flexwire.tap import HostPort, ListenTls, Tap, TapSecurity, UpstreamTls
from tests.kafka.secured import COUNT, LOOPBACK, TOPIC, prepare, talk
from tests.kafka.tapping import MOST_SECONDS
from tests.net.broker import free_ports
from tests.tls import Authority
from tools.broker import JAVA_OPTIONS, broker, jars
from tools.kdc import REALM, Kdc, kdc
from tools.maven import Jars

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

# The broker's name, a name with another broker's keys, and a name without keys.
BROKER, OTHER, STRANGER = "broker.test", "other.test", "stranger.test"
CLIENT = "alice"
_KAFKA = {"sasl.kerberos.service.name": "kafka"}
_MODULE = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"


@dataclass(frozen=True)
class Ticketed:
    """A broker's two listeners with GSSAPI, and the realm.

    On ``BESIDE`` the broker advertises its own name and the port of `tap`, on ``ELSEWHERE`` its
    own address.
    """

    version: str
    realm: Kdc
    authority: Authority
    own: dict[str, HostPort]
    tap: HostPort
    names: Path

    def beside(self) -> Tap:
        """Return a tap with the broker's advertised name and port, and TLS on both sides."""
        listen = ListenTls(*self.authority.certificate([BROKER], name="tap"))
        security = TapSecurity(listen, UpstreamTls(self.authority.path, name=BROKER))
        out = self.names.parent / "beside"
        return Tap(self.tap, self.own["BESIDE"], out, security=security, keep_addresses=True)

    def elsewhere(self, name: str, out: Path) -> Tap:
        """Return a tap on its own port; clients learn the tap's name from the tap."""
        return Tap((LOOPBACK, 0), self.own["ELSEWHERE"], out, advertised_host=name)

    @property
    def java_options(self) -> tuple[str, ...]:
        return (
            f"-Djava.security.krb5.conf={self.realm.config}",
            f"-Djdk.net.hosts.file={self.names}",
        )


@contextmanager
def ticketed(version: str, directory: Path) -> Iterator[Ticketed]:
    """Start a KDC and a broker that has keys for `BROKER`, and make a client's keys."""
    jars(version)
    with kdc(directory / "realm") as realm:
        for name in (BROKER, OTHER):
            realm.keytab(f"kafka/{name}")
        names = directory / "hosts"
        names.write_text(f"{LOOPBACK} {BROKER} {OTHER} {STRANGER} localhost\n")
        listeners = ("PLAINTEXT", "CONTROLLER", "BESIDE", "ELSEWHERE", "TAP")
        first = free_ports(len(listeners))
        own = {name: HostPort(LOOPBACK, first + place) for place, name in enumerate(listeners)}
        tap = HostPort(LOOPBACK, own.pop("TAP").port)
        authority = Authority(directory / "tls")
        found = Ticketed(version, realm, authority, own, tap, names)
        with broker(version, directory / "broker", _settings(found)):
            prepare(own["PLAINTEXT"])
            yield found


def _settings(found: Ticketed) -> dict[str, str]:
    certificate, key = found.authority.certificate([BROKER], name="broker")
    both = found.authority.directory / "both.pem"
    both.write_bytes(key.read_bytes() + certificate.read_bytes())
    login = _login(found, f"kafka/{BROKER}")
    advertised = {**found.own, "BESIDE": HostPort(BROKER, found.tap.port)}
    del advertised["CONTROLLER"]
    return {
        JAVA_OPTIONS: " ".join(found.java_options),
        "listeners": ",".join(f"{name}://{at}" for name, at in found.own.items()),
        "advertised.listeners": ",".join(f"{name}://{at}" for name, at in advertised.items()),
        "controller.quorum.voters": f"1@{found.own['CONTROLLER']}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
        "BESIDE:SASL_SSL,ELSEWHERE:SASL_PLAINTEXT",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(both),
        "sasl.enabled.mechanisms": "GSSAPI",
        **_KAFKA,
        "listener.name.beside.gssapi.sasl.jaas.config": login,
        "listener.name.elsewhere.gssapi.sasl.jaas.config": login,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": f"User:ANONYMOUS;User:{CLIENT}",
    }


def _login(found: Ticketed, principal: str) -> str:
    keytab = found.realm.keytab(principal)
    return f'{_MODULE} keyTab="{keytab}" principal="{principal}@{REALM}";'


def by_java(
    found: Ticketed, address: HostPort, prefix: str, properties: Path
) -> subprocess.CompletedProcess[str]:
    """Produce and consume with Kafka's own client of the broker's release."""
    told = {**_KAFKA, "bootstrap.servers": str(address), "sasl.mechanism": "GSSAPI"}
    told |= {"sasl.jaas.config": _login(found, CLIENT), "security.protocol": "SASL_PLAINTEXT"}
    # A client that gets no answer reports this by itself after a minute.
    told["max.block.ms"] = "20000" if address.host == BROKER else "5000"
    if address.port == found.tap.port:
        told |= {"security.protocol": "SASL_SSL", "ssl.truststore.type": "PEM"}
        told["ssl.truststore.location"] = str(found.authority.path)
    return talk(jars(found.version), told, prefix, properties, found.java_options)


def by_old_java(
    found: Ticketed, client: str, address: HostPort, prefix: str, properties: Path
) -> subprocess.CompletedProcess[str]:
    """Produce and consume with an old client, which finds its keys and the realm through Java."""
    wanted = (f"org.apache.kafka:kafka-clients:{client}", "org.slf4j:slf4j-simple:1.7.36")
    own = Jars(f"kafka-clients-{client}", wanted).bring()
    login = properties.with_name("jaas.conf")
    login.write_text(f"KafkaClient {{ {_login(found, CLIENT)} }};\n")
    told = {**_KAFKA, "bootstrap.servers": str(address), "security.protocol": "SASL_PLAINTEXT"}
    told["max.block.ms"] = "20000" if found.version < "4" else "5000"
    options = [*found.java_options, f"-Djava.security.auth.login.config={login}"]
    options += ["--add-exports", "java.security.jgss/sun.security.krb5=ALL-UNNAMED"]
    return talk(own, told, prefix, properties, options)


def by_kcat(found: Ticketed, address: HostPort, prefix: str) -> list[str]:
    """Produce and consume with Debian's librdkafka, because the wheels do not include GSSAPI."""
    sent = kcat(found, address, ["-P", "-t", TOPIC], [f"{prefix}{one}" for one in range(COUNT)])
    assert sent.returncode == 0, sent.stderr[-3000:]
    group = ["-X", "auto.offset.reset=earliest", "-G", f"{prefix}group", TOPIC, "-e"]
    read = kcat(found, address, group)
    assert read.returncode == 0, read.stderr[-3000:]
    return [one for one in read.stdout.split() if one.startswith(prefix)]


def kcat(
    found: Ticketed, address: HostPort, asked: list[str], values: Iterable[str] = ()
) -> subprocess.CompletedProcess[str]:
    """Run kcat with values to send."""
    told = {**_KAFKA, "bootstrap.servers": str(address), "sasl.mechanisms": "GSSAPI"}
    told |= {"sasl.kerberos.keytab": str(found.realm.keytab(CLIENT))}
    told |= {"sasl.kerberos.principal": f"{CLIENT}@{REALM}", "security.protocol": "SASL_PLAINTEXT"}
    if address.port == found.tap.port:
        told |= {"security.protocol": "SASL_SSL", "ssl.ca.location": str(found.authority.path)}
    (names,) = found.realm.programs.glob("**/libnss_wrapper.so")
    (plug_in,) = found.realm.programs.glob("**/sasl2/libgssapiv2.so")
    own = {"LD_PRELOAD": str(names), "NSS_WRAPPER_HOSTS": str(found.names)}
    return subprocess.run(
        ["kcat", *(f"-X{key}={value}" for key, value in told.items()), *asked],
        input="".join(f"{value}\n" for value in values),
        env={**found.realm.environment(), **own, "SASL_PATH": str(plug_in.parent)},
        capture_output=True,
        text=True,
        timeout=MOST_SECONDS,
        check=False,
    )
