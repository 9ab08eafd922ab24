"""The clients of the trial: each with its release, and optionally a setting that pins a version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tools.clients.installing import Go, Java, Node, Python, RdKafka

if TYPE_CHECKING:
    from tools.clients.installing import Way


@dataclass(frozen=True, slots=True)
class Client:
    """A row of the trial: software, release, and a setting in the form that its program accepts."""

    name: str
    way: Way
    setting: str = ""
    # The setting as a user would write it.
    told: str = ""

    @property
    def slug(self) -> str:
        """The prefix of the client's topics and groups."""
        pinned = "-pinned" if self.setting else ""
        return self.name.replace(" ", "-") + pinned

    @property
    def client_id(self) -> str:
        """The client id of its connections; for Java, it has the form of a consumer's client id."""
        return f"consumer-{self.slug}-1" if isinstance(self.way, Java) else self.slug

    def __str__(self) -> str:
        """Return the client's name in a table.

        >>> str(Client("sarama 1.30.0", Go("sarama"), "0.10.0.0", "Version 0.10.0.0"))
        'sarama 1.30.0, Version 0.10.0.0'
        """
        return f"{self.name}, {self.told}" if self.told else self.name


_PINNED = "api.version.request=false,broker.version.fallback=0.9.0"
_OLD, _MIDDLE = "manylinux1_x86_64", "manylinux2010_x86_64"
OLD_RDKAFKA = ("1.8.2", "39", "cp39", _MIDDLE)
# The wheel of 2.16.1 contains librdkafka 2.16.0.
NEWEST_RDKAFKA = ("2.16.1", "311", "cp311", "manylinux_2_28_x86_64")

_JAVA = ("0.10.1.1", "0.10.2.2", "0.11.0.3", "2.0.1", "2.1.1", "2.8.2", "3.9.2", "4.4.0")

CLIENTS = (
    *(Client(f"kafka-clients {version}", Java(version)) for version in _JAVA),
    Client("kafka-python 1.4.7", Python("kafka-python-1.4.7", "tools.clients.kafka_python")),
    Client(
        "kafka-python 2.0.2",
        Python("kafka-python-2.0.2", "tools.clients.kafka_python"),
        "0.10.1",
        "api_version=(0, 10, 1)",
    ),
    Client("kafka-python 2.0.2", Python("kafka-python-2.0.2", "tools.clients.kafka_python")),
    Client("kafka-python 3.0.12", Python("kafka-python-3.0.12", "tools.clients.kafka_python")),
    Client("librdkafka 0.11.4", RdKafka("0.11.4", "36", "cp36m", _OLD)),
    Client("librdkafka 0.11.6", RdKafka("0.11.6", "37", "cp37m", _OLD)),
    Client("librdkafka 1.0.1", RdKafka("1.0.1", "37", "cp37m", _OLD)),
    Client("librdkafka 1.8.2", RdKafka(*OLD_RDKAFKA)),
    Client(
        "librdkafka 1.8.2",
        RdKafka(*OLD_RDKAFKA),
        _PINNED,
        "broker.version.fallback=0.9.0",
    ),
    Client("librdkafka 2.16.0", RdKafka(*NEWEST_RDKAFKA)),
    Client("sarama 1.30.0", Go("sarama", "v1.30.mod")),
    Client("sarama 1.30.0", Go("sarama", "v1.30.mod"), "0.10.2.0", "Version 0.10.2.0"),
    Client("sarama 1.45.2", Go("sarama", "v1.45.mod")),
    Client("sarama 1.61.1", Go("sarama")),
    Client("franz-go 1.22.2", Go("franz")),
    Client("franz-go 1.22.2", Go("franz"), "0.10.1", "MaxVersions 0.10.1"),
    Client("kafka-go 0.4.42", Go("kafka-go", "v0.4.42.mod")),
    Client("kafka-go 0.4.51", Go("kafka-go")),
    Client("KafkaJS 2.2.4", Node("kafkajs")),
    Client("kafka-node 5.0.0", Node("kafka-node")),
)
