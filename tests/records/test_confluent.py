"""confluent-kafka reads the records that flexwire writes, from a small broker."""

from __future__ import annotations

import asyncio
import base64
import logging
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, TopicPartition

from flexwire.codec import message
from flexwire.protocol import RequestFrame, response_header_version
from flexwire.records import Compression, Record, encode_batch
from tests.net.broker import Broker, run, serving

if TYPE_CHECKING:
    from flexwire.tap import HostPort
    from tests.net.broker import Answer

TOPIC = "t"
T0 = 1_700_000_000_000
HEADERS = [(b"k", b"1"), (b"", None), ("\u00e9".encode(), b""), (b"k", b"\xff")]
PAIRS = [(None, b"v"), (b"k", None), (b"", b""), (b"key" * 50, b"value" * 5000)] * 9
# The APIs by key, including those from which librdkafka infers a broker's features.
VERSIONS = {0: (0, 8), 1: (4, 11), 2: (1, 2), 3: (0, 4), 10: (0, 0), 18: (0, 3)}


def records(magic: int, first: int = 0) -> list[Record]:
    return [
        Record(
            first + index,
            T0 + index * 7 if magic else -1,
            key,
            value,
            HEADERS if magic > 1 and index % 2 else [],
        )
        for index, (key, value) in enumerate(PAIRS)
    ]


def logs() -> dict[str, tuple[bytes, list[Record]]]:
    """Return the bytes of each partition, and the records in them."""
    made: dict[str, tuple[bytes, list[Record]]] = {}
    for magic in (0, 1, 2):
        for compression in list(Compression)[: 5 if magic > 1 else 4]:
            first, then = records(magic), records(magic, 100)
            data = [
                encode_batch(part, magic=magic, compression=compression) for part in (first, then)
            ]
            made[f"{compression}-{magic}"] = b"".join(data), first + then
    written = encode_batch(records(2), producer_id=7, producer_epoch=0, is_transactional=True)
    commit = Record(len(PAIRS), T0, bytes.fromhex("00000001"), bytes.fromhex("000000000000"), [])
    marker = encode_batch(
        [commit], producer_id=7, producer_epoch=0, is_transactional=True, is_control=True
    )
    made["committed"] = written + marker + encode_batch(records(2, 50)), records(2) + records(2, 50)
    return made


def answers(held: dict[str, tuple[bytes, list[Record]]], address: list[HostPort]) -> Answer:
    """Answer the requests of a consumer that knows its partitions and offsets."""

    def answer(request: RequestFrame, payload: bytes) -> bytes:
        asked = message(request.message_name).decode(
            payload[request.body_offset :], request.api_version
        )
        name = request.message_name.replace("Request", "Response")
        body = bodies[name](asked.to_json(request.api_version))
        header = message("ResponseHeader").from_json({"correlationId": request.correlation_id}, 0)
        version = response_header_version(request.api_key, request.api_version)
        return header.encode(version) + message(name).from_json(body, request.api_version).encode(
            request.api_version
        )

    def versions(_: Any) -> dict[str, Any]:
        keys = [
            {"apiKey": key, "minVersion": low, "maxVersion": high}
            for key, (low, high) in VERSIONS.items()
        ]
        return {"errorCode": 0, "apiKeys": keys, "throttleTimeMs": 0}

    def metadata(_: Any) -> dict[str, Any]:
        [(host, port)] = address
        partitions = [
            {
                "errorCode": 0,
                "partitionIndex": index,
                "leaderId": 1,
                "replicaNodes": [1],
                "isrNodes": [1],
            }
            for index in range(len(held))
        ]
        topics = [{"errorCode": 0, "name": TOPIC, "isInternal": False, "partitions": partitions}]
        brokers = [{"nodeId": 1, "host": host, "port": port, "rack": None}]
        return {
            "throttleTimeMs": 0,
            "brokers": brokers,
            "clusterId": "c",
            "controllerId": 1,
            "topics": topics,
        }

    def fetch(asked: Any) -> dict[str, Any]:
        responses = [
            {"topic": TOPIC, "partitions": [partition_of(asked) for asked in one["partitions"]]}
            for one in asked["topics"]
        ]
        return {"throttleTimeMs": 0, "errorCode": 0, "sessionId": 0, "responses": responses}

    def partition_of(asked: Any) -> dict[str, Any]:
        data, given = list(held.values())[asked["partition"]]
        end = given[-1].offset + 1
        return {
            "partitionIndex": asked["partition"],
            "errorCode": 0,
            "highWatermark": end,
            "lastStableOffset": end,
            "logStartOffset": 0,
            "abortedTransactions": None,
            "preferredReadReplica": -1,
            "records": base64.b64encode(data if asked["fetchOffset"] < end else b"").decode(),
        }

    def no_coordinator(_: Any) -> dict[str, Any]:
        return {"errorCode": 15, "nodeId": -1, "host": "", "port": -1}

    bodies = {
        "ApiVersionsResponse": versions,
        "MetadataResponse": metadata,
        "FetchResponse": fetch,
        "FindCoordinatorResponse": no_coordinator,
    }
    return answer


def consume(address: HostPort, held: dict[str, tuple[bytes, list[Record]]]) -> dict[str, Any]:
    """Read all partitions with confluent-kafka."""
    quiet = logging.getLogger("tests.records.confluent")
    quiet.addHandler(logging.NullHandler())
    quiet.propagate = False
    names = list(held)
    found: dict[str, Any] = {name: [] for name in held}
    consumer = Consumer(
        {
            "bootstrap.servers": f"{address.host}:{address.port}",
            "group.id": "g",
            "check.crcs": True,
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "logger": quiet,
        }
    )
    try:
        consumer.assign([TopicPartition(TOPIC, index, 0) for index in range(len(held))])
        missing = sum(len(given) for _, given in held.values())
        while missing:
            polled: Any = consumer.poll(10)
            assert polled is not None, f"{missing} records did not come"
            assert polled.error() is None, polled.error()
            kind, timestamp = polled.timestamp()
            found[names[polled.partition()]].append(
                Record(
                    polled.offset(),
                    timestamp if kind else -1,
                    polled.key(),
                    polled.value(),
                    [(key.encode(), value) for key, value in polled.headers() or []],
                )
            )
            missing -= 1
    finally:
        consumer.close()
    return found


def test_confluent_kafka_reads_every_magic_and_compression() -> None:
    held = logs()

    async def job() -> dict[str, Any]:
        address: list[HostPort] = []
        async with serving(Broker(answers(held, address))) as served:
            address.append(served)
            return await asyncio.to_thread(consume, served, held)

    found = run(job())
    assert set(found) == set(held)
    assert len(held) == 14
    for name, (_, given) in held.items():
        assert found[name] == given, name
