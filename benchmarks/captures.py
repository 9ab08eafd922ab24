"""Make large captures for `benchmarks/pipeline.py`: ``python benchmarks/captures.py OUT --mb
1000``.

"heavy" is Produce v9 and Fetch v12 with batches of 100 records. A record has 100 bytes and two
record headers. Half of the connections use lz4, and half no compression. Two record batches at the
same place differ only in their base offsets. "small" is Heartbeat, FindCoordinator, OffsetFetch,
ApiVersions and, once in 20, Metadata of 100 topics with 10 partitions each.

All connections run at once: each packet is a segment of a random connection. A connection begins
with SYN and ApiVersions, ends with FIN, and each request has a response. Files are raw-IP pcapng
and may end between any two packets. Checksums are 0, as with a network card that computes them.
Frames are made once; a kernel copies them into packets and inserts correlation ids, client ids and
base offsets.
"""

from __future__ import annotations

import argparse
import json
import random
import struct
import time
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from packets import (
    ALIVE,
    BLOCK_BYTES,
    CARRIED,
    CHANCE,
    CLOCK,
    COUNTS,
    MADE,
    PACKETS,
    SENT,
    SEQUENCES,
    STATE,
    fill,
)

from flexwire.codec import message
from flexwire.protocol import request_header_version, response_header_version
from flexwire.records import Record, encode_batch

BATCHES, FRAMES = 60, 24
RECORDS, VALUE_BYTES = 100, 100
BUFFER = 16 * 1024 * 1024
START_US = 1_790_000_000_000_000
TOPICS = 10
WORDS = [b"order", b"paid", b"shipped", b"user", b"amount", b"EUR", b"status", b"item", b"price"]


@dataclass(frozen=True)
class Asked:
    """The properties of a capture."""

    kind: str = "heavy"
    mb: float = 85
    connections: int = 50
    segment: int = 1448
    file_mb: float = 64
    seed: int = 7


@dataclass(frozen=True)
class Made:
    """The content of a capture."""

    bytes: int
    files: int
    packets: int
    frames: int
    records: int


@dataclass
class Frame:
    """A frame with its length, and the places of its batches' base offsets."""

    data: bytes
    offsets: list[int]


@dataclass
class Exchange:
    asked: Frame
    answer: Frame
    records: int = 0


def made(name: str, /, **values: Any) -> Any:
    return message(name)(**values)


def nested(name: str, struct_name: str, /, **values: Any) -> Any:
    return getattr(message(name), struct_name)(**values)


def framed(header: bytes, body: bytes, batches: list[bytes]) -> Frame:
    data = struct.pack(">i", len(header) + len(body)) + header + body
    offsets, at = [], 0
    for one in batches:
        at = data.index(one, at)
        offsets.append(at)
        at += len(one)
    return Frame(data, offsets)


def exchange(asked: Any, answer: Any, version: int, batches: Any = ((), ())) -> Exchange:
    """Return a request and its response, and the batches in each, in order."""
    key = asked.entry.api_key
    head = made(
        "RequestHeader", request_api_key=key, request_api_version=version, client_id="client-00"
    ).encode(request_header_version(key, version))
    back = made("ResponseHeader").encode(response_header_version(key, version))
    return Exchange(
        framed(head, asked.encode(version), batches[0]),
        framed(back, answer.encode(version), batches[1]),
        RECORDS * sum(map(len, batches)),
    )


def value(chance: random.Random) -> bytes:
    text = b'{"id":%d,"user":%d' % (chance.randrange(10**9), chance.randrange(10**6))
    while len(text) < VALUE_BYTES:
        text += b',"%s":%d' % (chance.choice(WORDS), chance.randrange(10**5))
    return text[: VALUE_BYTES - 1] + b"}"


def batch(chance: random.Random, number: int, compression: str) -> bytes:
    trace = [chance.randbytes(24).hex().encode() for _ in range(RECORDS)]
    records = [
        Record(
            offset,
            START_US // 1000 + number * 1000 + offset,
            b"key-%08d" % chance.randrange(10**8),
            value(chance),
            [(b"traceparent", b"00-" + trace[offset] + b"-01"), (b"content-type", b"text/json")],
        )
        for offset in range(RECORDS)
    ]
    return encode_batch(records, compression=compression)


def heavy(chance: random.Random) -> list[list[Exchange]]:
    """Return the exchanges of connections without compression, and of those with it."""
    return [
        [one for _ in range(FRAMES) for one in (produce(chance, pool), fetch(chance, pool))]
        for pool in ([batch(chance, n, kind) for n in range(BATCHES)] for kind in ("none", "lz4"))
    ]


def produce(chance: random.Random, pool: list[bytes]) -> Exchange:
    batches = [chance.choice(pool) for _ in range(4)]
    topic = f"topic-{chance.randrange(TOPICS):04}"
    data = [
        nested("ProduceRequest", "PartitionProduceData", index=index, records=one)
        for index, one in enumerate(batches)
    ]
    answers = [
        nested("ProduceResponse", "PartitionProduceResponse", index=index, base_offset=1000)
        for index in range(4)
    ]
    topics = [nested("ProduceRequest", "TopicProduceData", name=topic, partition_data=data)]
    told = [
        nested("ProduceResponse", "TopicProduceResponse", name=topic, partition_responses=answers)
    ]
    asked = made("ProduceRequest", acks=-1, timeout_ms=30000, topic_data=topics)
    return exchange(asked, made("ProduceResponse", responses=told), 9, (batches, []))


def fetch(chance: random.Random, pool: list[bytes]) -> Exchange:
    pairs = [[chance.choice(pool), chance.choice(pool)] for _ in range(4)]
    wanted = [
        nested(
            "FetchRequest",
            "FetchTopic",
            topic=f"topic-{topic:04}",
            partitions=[
                nested("FetchRequest", "FetchPartition", partition=index, fetch_offset=1000)
                for index in range(4)
            ],
        )
        for topic in range(3)
    ]
    parts = [
        nested("FetchResponse", "PartitionData", partition_index=index, records=b"".join(pair))
        for index, pair in enumerate(pairs)
    ]
    topic = f"topic-{chance.randrange(TOPICS):04}"
    found = nested("FetchResponse", "FetchableTopicResponse", topic=topic, partitions=parts)
    answer = made("FetchResponse", session_id=1, responses=[found])
    batches = [one for pair in pairs for one in pair]
    return exchange(made("FetchRequest", topics=wanted), answer, 12, ([], batches))


def greeting() -> Exchange:
    keys = [
        nested("ApiVersionsResponse", "ApiVersion", api_key=key, max_version=10)
        for key in range(60)
    ]
    software = {"client_software_name": "apache-kafka-java", "client_software_version": "4.0.0"}
    asked, answer = (
        made("ApiVersionsRequest", **software),
        made("ApiVersionsResponse", api_keys=keys),
    )
    return exchange(asked, answer, 3)


def metadata() -> Exchange:
    def partition(number: int) -> Any:
        return nested(
            "MetadataResponse",
            "MetadataResponsePartition",
            partition_index=number,
            leader_id=number % 3,
            leader_epoch=5,
            replica_nodes=[0, 1, 2],
            isr_nodes=[0, 1, 2],
        )

    topics = [
        nested(
            "MetadataResponse",
            "MetadataResponseTopic",
            name=f"topic-{topic:04}",
            topic_id=uuid.UUID(int=topic + 1),
            partitions=[partition(number) for number in range(10)],
        )
        for topic in range(100)
    ]
    brokers = [
        nested(
            "MetadataResponse", "MetadataResponseBroker", node_id=node, host=f"broker-{node}.local"
        )
        for node in range(3)
    ]
    answer = made("MetadataResponse", brokers=brokers, topics=topics, cluster_id="a" * 22)
    return exchange(made("MetadataRequest", topics=None), answer, 12)


def offsets() -> Exchange:
    names = [f"topic-{topic:04}" for topic in range(3)]
    wanted = [
        nested(
            "OffsetFetchRequest",
            "OffsetFetchRequestTopics",
            name=name,
            partition_indexes=list(range(10)),
        )
        for name in names
    ]
    found = [
        nested(
            "OffsetFetchResponse",
            "OffsetFetchResponseTopics",
            name=name,
            partitions=[
                nested(
                    "OffsetFetchResponse",
                    "OffsetFetchResponsePartitions",
                    partition_index=number,
                    committed_offset=12345 + number,
                    metadata="",
                )
                for number in range(10)
            ],
        )
        for name in names
    ]
    asked = nested("OffsetFetchRequest", "OffsetFetchRequestGroup", group_id="g", topics=wanted)
    told = nested("OffsetFetchResponse", "OffsetFetchResponseGroup", group_id="g", topics=found)
    return exchange(
        made("OffsetFetchRequest", groups=[asked]), made("OffsetFetchResponse", groups=[told]), 8
    )


def coordinator() -> Exchange:
    found = nested("FindCoordinatorResponse", "Coordinator", key="g", node_id=1, host="broker-1")
    asked = made("FindCoordinatorRequest", coordinator_keys=["g"])
    return exchange(asked, made("FindCoordinatorResponse", coordinators=[found]), 4)


def small(_chance: random.Random) -> list[list[Exchange]]:
    asked = made(
        "HeartbeatRequest", group_id="g", generation_id=7, member_id="consumer-" + "a" * 36
    )
    heartbeat = exchange(asked, made("HeartbeatResponse"), 4)
    return [
        [metadata(), greeting(), *[offsets()] * 3, *[coordinator()] * 3, *[heartbeat] * 12],
    ] * 2


@dataclass
class Pool:
    """All frames in one array, with their places by number.

    A number is twice the exchange's, plus one for the response. Exchange 0 is the greeting, and the
    cycles follow.
    """

    data: np.ndarray
    starts: np.ndarray
    sizes: np.ndarray
    offsets_from: np.ndarray
    offsets: np.ndarray
    records: np.ndarray
    cycles: np.ndarray


def pooled(cycles: list[list[Exchange]]) -> Pool:
    every = [greeting(), *(one for cycle in cycles for one in cycle)]
    frames = [frame for one in every for frame in (one.asked, one.answer)]
    sizes = np.array([len(one.data) for one in frames], np.int64)
    counts = [len(one.offsets) for one in frames]
    length = len(cycles[0])
    return Pool(
        np.frombuffer(b"".join(one.data for one in frames), np.uint8),
        np.cumsum(sizes) - sizes,
        sizes,
        np.cumsum([0, *counts]).astype(np.int64),
        np.array([at for one in frames for at in one.offsets], np.int64),
        np.array([one.records for one in every], np.int64),
        1 + np.arange(len(cycles) * length, dtype=np.int64).reshape(len(cycles), length),
    )


def file_head() -> bytes:
    """Return a section of unknown length, and an interface of raw IP."""
    section = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    return section + struct.pack("<IIHHII", 1, 20, 101, 0, 0, 20)


def make(out: Path, asked: Asked) -> Made:
    """Write a capture's files below ``out``."""
    chance = random.Random(asked.seed)
    pool = pooled({"heavy": heavy, "small": small}[asked.kind](chance))
    frames = (pool.data, pool.starts, pool.sizes, pool.offsets_from, pool.offsets)
    frames += (pool.records, pool.cycles)
    state = np.zeros((asked.connections, STATE), np.int64)
    state[:, SEQUENCES : SEQUENCES + 2] = [
        [chance.getrandbits(32), chance.getrandbits(32)] for _ in range(asked.connections)
    ]
    counts = np.zeros(len(COUNTS), np.int64)
    counts[CLOCK], counts[CHANCE], counts[ALIVE] = START_US, asked.seed, asked.connections
    alive = np.arange(asked.connections)
    head, room = file_head(), BLOCK_BYTES + asked.segment + 4
    file_bytes, target = int(asked.file_mb * 1e6), int(asked.mb * 1e6)
    buffer = np.zeros(min(BUFFER, max(file_bytes, room)), np.uint8)
    out.mkdir(parents=True, exist_ok=True)
    files = 0
    while counts[ALIVE]:
        files += 1
        left = max(file_bytes - len(head), room)
        with (out / f"cap-{files:06}.pcapng").open("wb") as file:
            file.write(head)
            while counts[ALIVE] and left >= room:
                limit = min(left, len(buffer))
                used = fill((buffer, counts, state), limit, target, alive, frames, asked.segment)
                file.write(buffer[:used].data)
                left -= used
    size = int(counts[MADE]) + files * len(head)
    return Made(size, files, int(counts[PACKETS]), int(counts[SENT]), int(counts[CARRIED]))


def add_options(parser: argparse.ArgumentParser) -> None:
    defaults = Asked()
    parser.add_argument("--kind", choices=["heavy", "small"], default=defaults.kind)
    parser.add_argument("--connections", type=int, default=defaults.connections)
    parser.add_argument(
        "--segment", type=int, default=defaults.segment, help="bytes, at most 65455"
    )
    parser.add_argument("--file-mb", type=float, default=defaults.file_mb)
    parser.add_argument("--seed", type=int, default=defaults.seed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("--mb", type=float, default=Asked.mb)
    add_options(parser)
    given = vars(parser.parse_args())
    folder = given.pop("out")
    began = time.perf_counter()
    done = make(folder, Asked(**given))
    seconds = time.perf_counter() - began
    print(json.dumps({**asdict(done), "seconds": round(seconds, 1)}))
