"""Make a capture of a company's cluster, for a look at a report: ``python benchmarks/company.py
OUT``.

By default it has 60 clients and 1,000 topics on three brokers, over two hours. Services produce in
different versions and codecs. Consumer groups commit, lag and rebalance. A job connects anew each
time, and an old client sends versions that brokers refuse. Leaders and coordinators return errors.
Names are as people choose them, some of them long or hostile. A seed determines everything.
"""

from __future__ import annotations

import argparse
import random
import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from flexwire.capture.files.pcapng import PcapngWriter
from flexwire.codec import message
from flexwire.protocol import request_header_version, response_header_version
from flexwire.records import Record, encode_batch

START_US = 1_790_000_000_000_000
HOURS = 2
BROKERS = tuple((f"10.20.0.{number}", 9092) for number in (11, 12, 13))
TEAMS = ("orders", "billing", "shipping", "search", "fraud", "payments", "catalog", "web", "ml")
PARTS = ("gateway", "enricher", "api", "worker", "sink", "indexer", "exporter")
EVENTS = ("created", "updated", "deleted", "snapshot", "dlq", "retry", "audit", "metrics")
REGIONS = ("eu-west-1", "us-east-1", "ap-south-1")
SOFTWARE = (
    ("apache-kafka-java", "4.1.0"), ("apache-kafka-java", "3.6.1"), ("librdkafka", "2.6.1"),
    ("librdkafka", "1.9.2"), ("franz-go", "v1.18.0"), ("aiokafka", "0.12.0"), ("", ""),
)  # fmt: skip
# The versions that each software sends, in the order of SOFTWARE.
VERSIONS = {
    "Produce": (12, 9, 8, 7, 11, 3, 2),
    "Fetch": (17, 13, 11, 11, 16, 4, 3),
    "Metadata": (13, 12, 12, 9, 12, 5, 1),
    "OffsetCommit": (9, 8, 7, 7, 9, 3, 2),
    "Heartbeat": (4, 4, 3, 3, 4, 1, 0),
    "JoinGroup": (9, 9, 5, 5, 9, 2, 0),
}
HOSTILE = (
    "=cmd|' /C calc'!A1", "<script>alert(1)</script>", "a" * 240, "\u202eevil\x1b[31m", "",
    "inventory-sync-worker-eu-west-1a-pool-0007-blue-green-canary-2024-11",
)  # fmt: skip
# The share of cases.
KNOWN, SUCCEEDS, PRODUCES, BEATS = 0.975, 0.985, 0.5, 0.3
OLD_FORMAT = 2
"""Up to this version Produce takes message sets, which this does not make."""
CODECS = ("none", "lz4", "zstd", "gzip", "snappy")
NOT_LEADER, UNKNOWN_TOPIC, REBALANCING, UNKNOWN_MEMBER = 6, 3, 27, 25


@dataclass
class Client:
    """A client: its software, and what it reads and writes."""

    name: str
    host: str
    software: int
    topics: list[str]
    group: str
    weight: float
    codec: str
    is_short: bool
    next_id: int = 0
    next_port: int = field(default=40_000)


def made(name: str, /, **values: Any) -> Any:
    return message(name)(**values)


def part(name: str, struct_name: str, /, **values: Any) -> Any:
    return getattr(message(name), struct_name)(**values)


def topic_names(chance: random.Random, count: int) -> list[str]:
    every = [
        f"{team}.{what}.{event}.{region}"
        for team in TEAMS
        for what in ("order", "invoice", "parcel", "item", "user", "session", "price", "stock")
        for event in EVENTS
        for region in REGIONS
    ]
    chance.shuffle(every)
    return [*every[: count - 2], "x" * 249, "__consumer_offsets"][:count]


def all_clients(chance: random.Random, count: int, topics: list[str]) -> list[Client]:
    names = [
        f"{TEAMS[number % len(TEAMS)]}-{PARTS[number % len(PARTS)]}-{number:02}"
        for number in range(count)
    ]
    names[-len(HOSTILE) :] = HOSTILE[:count]
    share = -(-len(topics) // count)
    return [
        Client(
            name, f"10.20.{1 + number // 20}.{10 + number % 20}", number % len(SOFTWARE),
            topics[number * share : (number + 1) * share] + chance.sample(topics, 3),
            f"{name[:40]}-group", chance.paretovariate(1.1), CODECS[number % len(CODECS)],
            not number % 9,
        )
        for number, name in enumerate(names)
    ]  # fmt: skip


class Company:
    """Write the clients' exchanges, each at its time."""

    def __init__(self, out: Path, chance: random.Random) -> None:
        self.chance = chance
        self.writer = PcapngWriter(out)
        self.now_us = START_US

    def talk(self, client: Client, until_us: int, slow: float) -> None:
        """Write one connection of a client: it opens, sends requests, and closes."""
        client.next_port += 1
        ends = (client.host, client.next_port), self.chance.choice(BROKERS)
        connection = self.writer.open_connection(*ends, timestamp_us=self.now_us)
        if SOFTWARE[client.software][0]:
            name, version = SOFTWARE[client.software]
            asked = made("ApiVersionsRequest", client_software_name=name,
                         client_software_version=version)  # fmt: skip
            self._exchange(connection, client, asked, made("ApiVersionsResponse"), 3, slow)
        self._metadata(connection, client, slow)
        exchanges = 1 if client.is_short else min(30, 2 + int(6 * client.weight))
        for _ in range(exchanges):
            self._step(connection, client, slow)
            self.now_us += int((until_us - self.now_us) * self.chance.random() / exchanges)
        connection.close(timestamp_us=self.now_us)

    def _step(self, connection: Any, client: Client, slow: float) -> None:
        topic = self.chance.choice(client.topics)
        fate = self.chance.random()
        error = NOT_LEADER if fate > SUCCEEDS else UNKNOWN_TOPIC if fate > KNOWN else 0
        if self.chance.random() < PRODUCES:
            self._produce(connection, client, topic, error, slow)
        else:
            self._fetch(connection, client, topic, error, slow)
            self._commit(connection, client, topic, slow)
        if self.chance.random() < BEATS:
            self._group(connection, client, slow)

    def _metadata(self, connection: Any, client: Client, slow: float) -> None:
        topics = [part("MetadataRequest", "MetadataRequestTopic", name=one)
                  for one in client.topics]  # fmt: skip
        told = [part("MetadataResponse", "MetadataResponseTopic", name=one)
                for one in client.topics]  # fmt: skip
        answer = made("MetadataResponse", topics=told)
        asked = made("MetadataRequest", topics=topics)
        self._exchange(connection, client, asked, answer, self._version("Metadata", client), slow)

    def _produce(
        self, connection: Any, client: Client, topic: str, error: int, slow: float
    ) -> None:
        version = min(self._version("Produce", client), 12)
        partition = part("ProduceRequest", "PartitionProduceData", records=self._batch(client))
        data = part("ProduceRequest", "TopicProduceData", name=topic, partition_data=[partition])
        asked = made("ProduceRequest", acks=1, timeout_ms=30_000, topic_data=[data])
        said = part("ProduceResponse", "PartitionProduceResponse", error_code=error)
        answer = made("ProduceResponse", responses=[part(
            "ProduceResponse", "TopicProduceResponse", name=topic,
            partition_responses=[said])])  # fmt: skip
        self._exchange(connection, client, asked, answer, version, slow)

    def _fetch(self, connection: Any, client: Client, topic: str, error: int, slow: float) -> None:
        version = min(self._version("Fetch", client), 12)
        asked = made("FetchRequest", max_wait_ms=500, topics=[part(
            "FetchRequest", "FetchTopic", topic=topic,
            partitions=[part("FetchRequest", "FetchPartition")])])  # fmt: skip
        records = b"" if error else self._batch(client)
        partition = part("FetchResponse", "PartitionData", error_code=error, records=records,
                         high_watermark=self.chance.randrange(1000, 100_000))  # fmt: skip
        answer = made("FetchResponse", responses=[part(
            "FetchResponse", "FetchableTopicResponse", topic=topic,
            partitions=[partition])])  # fmt: skip
        wait = self.chance.choice((1.0, 1.0, 120.0))
        self._exchange(connection, client, asked, answer, version, slow * wait)

    def _commit(self, connection: Any, client: Client, topic: str, slow: float) -> None:
        partition = part("OffsetCommitRequest", "OffsetCommitRequestPartition",
                         committed_offset=self.chance.randrange(1000))  # fmt: skip
        asked = made("OffsetCommitRequest", group_id=client.group, topics=[part(
            "OffsetCommitRequest", "OffsetCommitRequestTopic", name=topic,
            partitions=[partition])])  # fmt: skip
        code = self.chance.choice((0,) * 30 + (UNKNOWN_MEMBER,))
        said = part("OffsetCommitResponse", "OffsetCommitResponsePartition", error_code=code)
        answer = made("OffsetCommitResponse", topics=[part(
            "OffsetCommitResponse", "OffsetCommitResponseTopic", name=topic,
            partitions=[said])])  # fmt: skip
        version = self._version("OffsetCommit", client)
        self._exchange(connection, client, asked, answer, version, slow)

    def _group(self, connection: Any, client: Client, slow: float) -> None:
        code = self.chance.choice((0, 0, 0, 0, REBALANCING))
        beat = made("HeartbeatRequest", group_id=client.group, member_id="m-1", generation_id=3)
        version = self._version("Heartbeat", client)
        answer = made("HeartbeatResponse", error_code=code)
        self._exchange(connection, client, beat, answer, version, slow)
        if code:
            protocol = part("JoinGroupRequest", "JoinGroupRequestProtocol", name="range")
            asked = made("JoinGroupRequest", group_id=client.group, session_timeout_ms=45_000,
                         protocol_type="consumer", protocols=[protocol])  # fmt: skip
            joined = made("JoinGroupResponse", generation_id=4, protocol_name="range",
                          leader="m-1", member_id="m-1")  # fmt: skip
            join = self._version("JoinGroup", client)
            self._exchange(connection, client, asked, joined, join, slow * 300)

    def _batch(self, client: Client) -> bytes:
        size = self.chance.choice((40, 90, 250))
        headers = [(b"traceparent", b"00-" + self.chance.randbytes(8).hex().encode() + b"-01")]
        records = [
            Record(
                number, self.now_us // 1000, b"key-%d" % self.chance.randrange(1000),
                self.chance.randbytes(size // 2).hex().encode(),
                headers if client.software % 2 else [],
            )
            for number in range(self.chance.randrange(1, 12))
        ]  # fmt: skip
        if VERSIONS["Produce"][client.software] <= OLD_FORMAT:
            return b""
        codec = "lz4" if client.codec == "zstd" and client.software > 1 else client.codec
        return encode_batch(records, compression=codec)

    def _version(self, api: str, client: Client) -> int:
        return VERSIONS[api][client.software]

    def _exchange(
        self, connection: Any, client: Client, asked: Any, answer: Any, version: int, slow: float
    ) -> None:
        client.next_id += 1
        key = asked.entry.api_key
        head = made("RequestHeader", request_api_key=key, request_api_version=version,
                    correlation_id=client.next_id, client_id=client.name)  # fmt: skip
        back = made("ResponseHeader", correlation_id=client.next_id)
        sent = head.encode(request_header_version(key, version)) + asked.encode(version)
        told = back.encode(response_header_version(key, version)) + answer.encode(version)
        wait = max(1, int(self.chance.lognormvariate(0, 0.7) * slow * 1500))
        for direction, payload, after in (("request", sent, 1000), ("response", told, wait)):
            self.now_us += after
            data = struct.pack(">i", len(payload)) + payload
            connection.send(direction, data, timestamp_us=self.now_us)


def write(out: Path, clients: int = 60, topics: int = 1000, seed: int = 7) -> None:
    """Write the capture into a directory."""
    chance = random.Random(seed)
    company = Company(out, chance)
    people = all_clients(chance, clients, topic_names(chance, topics))
    turns = [one for one in people for _ in range(24 if one.is_short else 6)]
    chance.shuffle(turns)
    step = HOURS * 3_600_000_000 // len(turns)
    for number, one in enumerate(turns):
        company.now_us = max(company.now_us + 1, START_US + number * step)
        company.talk(one, company.now_us + step, slow=1 + one.software * 0.6)
    company.writer.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--clients", type=int, default=60)
    parser.add_argument("--topics", type=int, default=1000)
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    write(given.out, given.clients, given.topics)
