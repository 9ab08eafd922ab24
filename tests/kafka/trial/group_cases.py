"""The groups of the trial: their members, and the group in which a member moves."""

from __future__ import annotations

from dataclasses import dataclass

from tools.clients.installing import Go, Java, RdKafka
from tools.clients.roster import NEWEST_RDKAFKA, OLD_RDKAFKA

RELEASE = "4.4.0"
"""The release of all brokers."""
TOPIC, PATTERN = "moved", "^mov.*"
# RE2J does not support back references.
BACK_REFERENCE = r"^m(o)ved\1?$"
BROKERS = {
    "default": {},
    "policy": {"group.consumer.migration.policy": "disabled"},
    "narrow": {"group.consumer.max.size": "2", "group.consumer.assignors": "range"},
    "off": {},
}
"""The settings of brokers by name. In ``OFF``, the feature for the protocol is turned off."""
OFF = "off"


@dataclass(frozen=True, slots=True)
class Software:
    """A client library of a release, and how its program is configured.

    ``library`` is the name that the client sends in ApiVersions. ``protocol`` contains the settings
    that turn on the consumer protocol, and ``client_id`` is the name of the client id's setting.
    ``kept`` names settings that also exist in the consumer protocol.
    """

    name: str
    library: str
    way: Java | RdKafka | Go
    protocol: tuple[str, ...] = ("group.protocol=consumer",)
    client_id: str = "client.id"
    kept: tuple[str, ...] = ("group.instance.id",)
    arguments: tuple[str, ...] = ()

    def __str__(self) -> str:
        """Return the name of the client."""
        return self.name


@dataclass(frozen=True, slots=True)
class Application:
    """A program that runs a whole group, with a member for each of its threads or workers.

    A consumer of `JAVA` joins its group, because the program itself cannot change its protocol.
    """

    name: str
    members: int

    def __str__(self) -> str:
        """Return the name of the program."""
        return self.name


# The jars with which the members of all releases are compiled.
OLDEST_MEMBER = "2.8.2"


def _java(version: str) -> Software:
    return Software(
        f"kafka-clients {version}", "apache-kafka-java", Java(version, "Members", "2.8.2")
    )


JAVA, EARLY_JAVA, OLD_JAVA = map(_java, ("4.4.0", "3.9.2", OLDEST_MEMBER))
_MEMBERS = "tools.clients.rdkafka_members"
RDKAFKA, OLD_RDKAFKA_MEMBERS = (
    Software(f"librdkafka {version}", "librdkafka", RdKafka(*wheel, module=_MEMBERS))
    for version, wheel in (("2.16.0", NEWEST_RDKAFKA), ("1.8.2", OLD_RDKAFKA))
)
EARLY_RDKAFKA = Software(
    "librdkafka 2.6.1",
    "librdkafka",
    RdKafka("2.6.1", "311", "cp311", "manylinux_2_28_x86_64", _MEMBERS),
)
FRANZ = Software(
    "franz-go 1.22.2", "kgo", Go("franz"), ("ServerSideBalancer=",), "ClientID", ("InstanceID",),
    ("members",),
)  # fmt: skip
STREAMS = Application("Kafka Streams 4.3.1", 2)
CONNECT = Application("Kafka Connect 4.3.1", 1)

Member = tuple[Software, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class GroupCase:
    """A group called ``name``, and how the table describes it.

    ``also`` contains settings for the moving member only. ``unseen`` is the number of the entry of
    `flexwire.protocol.audit.consumer_protocol.UNSEEN` that prevents a verdict. If ``empties``, all
    members then leave and one of them joins again, which is the remedy for a group that the broker
    does not convert.
    """

    name: str
    situation: str
    members: tuple[Member, ...] = ()
    application: Application | None = None
    broker: str = "default"
    topic: str = TOPIC
    also: tuple[str, ...] = ()
    unseen: int | None = None
    empties: bool = False

    @property
    def movers(self) -> tuple[Member, ...]:
        """The members that move one after another, one of each kind."""
        return tuple(dict.fromkeys(self.members)) if self.members else ((JAVA, ()),)

    @property
    def size(self) -> int:
        """The number of members before one moves."""
        return self.application.members if self.application else len(self.members)

    @property
    def clients(self) -> str:
        """The software of the members, as the table names it."""
        names = [str(software) for software, _ in self.members] or [str(self.application)]
        return " and ".join(dict.fromkeys(names))


def _two(software: Software, *settings: str) -> tuple[Member, ...]:
    return ((software, settings),) * 2


def _each(name: str, situation: str, **where: object) -> tuple[GroupCase, ...]:
    """Return the case of each library that supports the protocol, with the library's defaults."""
    libraries = {"java": JAVA, "librdkafka": RDKAFKA, "franz": FRANZ}
    return tuple(
        GroupCase(f"{library}-{name}", situation, _two(software), **where)  # type: ignore[arg-type]  # one type for all of them
        for library, software in libraries.items()
    )


_STRATEGY, _TIMEOUT = "partition.assignment.strategy", "session.timeout.ms"
_FULL = "group.consumer.max.size=2, and a third member"
_BEAT = "heartbeat.interval.ms=2000"
_OWN = f"{_STRATEGY}=Members$"
_JAVA_S = "org.apache.kafka.clients.consumer."

CASES = (
    *_each("plain", "defaults"),
    GroupCase(
        "java-cooperative", "one assignor of its own",
        _two(JAVA, f"{_STRATEGY}={_JAVA_S}CooperativeStickyAssignor"),
    ),
    GroupCase(
        "java-sticky", "user data in subscriptions only",
        _two(JAVA, f"{_STRATEGY}={_JAVA_S}StickyAssignor"),
    ),
    GroupCase("java-timeout", "a session timeout of 6 s", _two(JAVA, f"{_TIMEOUT}=6000")),
    GroupCase(
        "java-both", "both settings",
        _two(JAVA, f"{_STRATEGY}={_JAVA_S}RoundRobinAssignor", f"{_TIMEOUT}=60000"),
    ),
    GroupCase("java-own", "a custom assignor without user data", _two(JAVA, f"{_OWN}Plain")),
    GroupCase(
        "java-marked", "a custom assignor with user data", _two(JAVA, f"{_OWN}Marked"),
        empties=True,
    ),
    GroupCase("java-pattern", "a subscription by java.util.regex", _two(JAVA), topic=PATTERN),
    GroupCase(
        "java-static", "static members, of which one is replaced",
        ((JAVA, ("group.instance.id=1",)), (JAVA, ("group.instance.id=2",))),
    ),
    GroupCase("java-old", "a library without the protocol", _two(OLD_JAVA)),
    GroupCase("java-early", "a library with early access", _two(EARLY_JAVA)),
    GroupCase("streams", "Kafka Streams, classic", application=STREAMS),
    GroupCase("connect", "a group of Connect's workers", application=CONNECT),
    GroupCase(
        "librdkafka-timeout", "a session timeout of 6 s", _two(RDKAFKA, f"{_TIMEOUT}=6000")
    ),
    GroupCase(
        "librdkafka-roundrobin", "another assignor", _two(RDKAFKA, f"{_STRATEGY}=roundrobin")
    ),
    GroupCase(
        "librdkafka-sticky", "cooperative-sticky, which echoes user data",
        _two(RDKAFKA, f"{_STRATEGY}=cooperative-sticky"), empties=True,
    ),
    GroupCase("librdkafka-pattern", "a pattern that RE2J knows", _two(RDKAFKA), topic=PATTERN),
    GroupCase("librdkafka-old", "a library without the protocol", _two(OLD_RDKAFKA_MEMBERS)),
    GroupCase("librdkafka-early", "a library with early access", _two(EARLY_RDKAFKA)),
    GroupCase("franz-roundrobin", "another balancer", _two(FRANZ, "Balancers=roundrobin")),
    GroupCase("franz-range", "the range balancer", _two(FRANZ, "Balancers=range")),
    GroupCase("franz-timeout", "a session timeout of 6 s", _two(FRANZ, "SessionTimeout=6000")),
    GroupCase("franz-pattern", "a pattern that RE2J knows", _two(FRANZ), topic=PATTERN),
    GroupCase(
        "franz-marked", "a custom balancer with user data", _two(FRANZ, "Balancers=marked"),
        empties=True,
    ),
    GroupCase(
        "franz-unreadable", "assignments in another format", _two(FRANZ, "Balancers=unreadable"),
        empties=True,
    ),
    GroupCase(
        "franz-connect", "another protocol type", _two(FRANZ, "GroupProtocol=connect"),
        empties=True,
    ),
    GroupCase("java-and-old", "two releases of a library", ((JAVA, ()), (OLD_JAVA, ()))),
    GroupCase("java-and-librdkafka", "two libraries", ((JAVA, ()), (RDKAFKA, ()))),
    *_each("policy", "group.consumer.migration.policy=disabled", broker="policy", unseen=0),
    GroupCase(
        "java-size", "group.consumer.max.size=2, and three members", ((JAVA, ()),) * 3,
        broker="narrow", unseen=1,
    ),
    GroupCase("java-full", _FULL, _two(JAVA), broker="narrow", unseen=2),
    GroupCase("librdkafka-full", _FULL, _two(RDKAFKA), broker="narrow", unseen=2),
    GroupCase("franz-full", _FULL, _two(FRANZ, "Balancers=range"), broker="narrow", unseen=2),
    GroupCase(
        "java-assignor", "group.consumer.assignors=range, asked for uniform", ((JAVA, ()),),
        broker="narrow", also=("group.remote.assignor=uniform",), unseen=3,
    ),
    GroupCase(
        "librdkafka-assignor", "group.consumer.assignors=range, asked for uniform",
        ((RDKAFKA, ()),), broker="narrow", also=("group.remote.assignor=uniform",), unseen=3,
    ),
    GroupCase(
        "franz-assignor", "group.consumer.assignors=range, asked for uniform", ((FRANZ, ()),),
        broker="narrow", unseen=3,
    ),
    *_each("off", "the feature group.version is at level 0", broker=OFF, unseen=4),
    GroupCase(
        "librdkafka-reference", "a pattern that RE2J does not know", _two(RDKAFKA),
        topic=BACK_REFERENCE, unseen=5,
    ),
    GroupCase("java-heartbeat", _BEAT, _two(JAVA, _BEAT), unseen=6),
    GroupCase(
        "java-same", "session.timeout.ms=45000, its default", _two(JAVA, f"{_TIMEOUT}=45000"),
        unseen=6,
    ),
    GroupCase("librdkafka-heartbeat", _BEAT, _two(RDKAFKA, _BEAT), unseen=6),
)  # fmt: skip
