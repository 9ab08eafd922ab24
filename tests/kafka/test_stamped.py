"""Real brokers accept stamped requests, and captures show which client sent which tags."""

from __future__ import annotations

import asyncio
import contextlib
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from kafka import KafkaConsumer, KafkaProducer

from flexwire.answers.header_tags import header_tags
from flexwire.capture.files.comments import read_stamps
from flexwire.capture.messages import CapturedMessage, read_messages
from flexwire.spark.analyze import analyze
from flexwire.spark.answers.outputs import open_tables
from flexwire.tap import parse_host_port
from flexwire.tap.header_stamps import StampConfig, parse_header_tag
from tests.kafka.secured import tapping

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from tests.kafka.filling import Broker

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

MOST_SECONDS = 60
FORWARDED, TRACE = 10_042, 2**31 - 1
STAMPING = StampConfig(
    [parse_header_tag(f"{FORWARDED}=for {{client}}"), parse_header_tag(f"{TRACE}={{trace_id}}")]
)
CLIENTS = ("confluent", "kafka-python", "aiokafka")
RECORDS = 20
OFTEN = {"ApiVersions", "Fetch", "InitProducerId", "Metadata", "OffsetCommit", "Produce"}


def test_stamped_traffic(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    with tapping(parse_host_port(kafka.address), tmp_path / "after") as after:
        address = after.listen_address
        with tapping(address, tmp_path / "before", stamping=STAMPING) as before:
            bootstrap = str(before.listen_address)
            use_confluent(bootstrap)
            use_kafka_python(bootstrap)
            asyncio.run(use_aiokafka(bootstrap))
    assert before.stats.failures == after.stats.failures == 0
    assert before.stats.stamped > 100
    assert after.stats.stamped == 0
    sent, arrived = of_clients(before.capture_paths), of_clients(after.capture_paths)
    assert not any(tags for requests in sent.values() for _, tags in requests)
    # The second tap received the requests as the first tap recorded them.
    stamps = [one.tags for path in before.capture_paths for one in read_stamps(path)]
    got = [tags for requests in arrived.values() for _, tags in requests if tags]
    assert len(stamps) == len(got) == before.stats.stamped
    assert sorted(map(str, stamps)) == sorted(map(str, got))
    assert all(one.keys() == {FORWARDED, TRACE} for one in got)
    assert len({one[TRACE] for one in got}) == len(got)
    apis = {client: {name for name, tags in arrived[client] if tags} for client in CLIENTS}
    assert apis["confluent"] >= OFTEN | {"DeleteTopics", "DescribeGroups"}
    assert apis["kafka-python"] >= OFTEN | {"FindCoordinator", "JoinGroup", "SyncGroup"}
    # This client sends versions that are not flexible, which pass unchanged.
    assert arrived["aiokafka"]
    assert apis["aiokafka"] == set()
    assert before.stats.unstamped_not_flexible >= len(arrived["aiokafka"])
    analyze([tmp_path / "after"], tmp_path / "out", spark=spark)
    tables = open_tables(spark, tmp_path / "out")
    rows = [row for row in header_tags(tables).collect() if row.tag == FORWARDED]
    assert {row.client_id for row in rows} == {"confluent", "kafka-python"}
    assert sum(row.messages for row in rows) == before.stats.stamped
    for row in rows:
        assert (row.sender, row.message_share) == ("client", 1)
        assert bytes(row.value).startswith(b"for 127.0.0.1:")


def of_clients(paths: list[Path]) -> dict[str, list[tuple[str, dict[int, bytes]]]]:
    """Return the API of each request and the tags in its header, by client id."""
    found: dict[str, list[tuple[str, dict[int, bytes]]]] = defaultdict(list)
    for one in read_messages(paths):
        header: Any = one.header if isinstance(one, CapturedMessage) else None
        if isinstance(one, CapturedMessage) and one.name.endswith("Request"):
            name = one.name.removesuffix("Request")
            found[header.client_id].append((name, header.unknown_tagged_fields))
    return found


def use_confluent(bootstrap: str) -> None:
    """Use librdkafka: create topics, send and read records, join a group, and send
    admin requests.
    """
    client: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "client.id": "confluent",
        "log_level": 2,
    }
    admin = AdminClient(client)
    names = [f"stamped-{one}" for one in CLIENTS]
    for made in admin.create_topics([NewTopic(name, 2, 1) for name in names]).values():
        made.result(MOST_SECONDS)
    producer = Producer(client | {"enable.idempotence": True})
    for number in range(RECORDS):
        producer.produce(names[0], str(number).encode())
    assert producer.flush(MOST_SECONDS) == 0
    own = {"group.id": "stamped-confluent", "auto.offset.reset": "earliest"}
    consumer = Consumer(client | own)
    consumer.subscribe([names[0]])
    found = 0
    while found < RECORDS:
        batch = consumer.consume(RECORDS, MOST_SECONDS)
        assert batch
        found += sum(one.error() is None for one in batch)
    consumer.commit(asynchronous=False)
    consumer.close()
    assert {*names} <= admin.list_topics(timeout=MOST_SECONDS).topics.keys()
    groups = admin.list_consumer_groups().result(MOST_SECONDS)
    assert "stamped-confluent" in {one.group_id for one in groups.valid}
    described = admin.describe_consumer_groups(["stamped-confluent"])
    assert described["stamped-confluent"].result(MOST_SECONDS).group_id == "stamped-confluent"
    admin.delete_topics([names[0]])[names[0]].result(MOST_SECONDS)


def use_kafka_python(bootstrap: str) -> None:
    topic, client = "stamped-kafka-python", "kafka-python"
    producer = KafkaProducer(bootstrap_servers=bootstrap, client_id=client)
    for number in range(RECORDS):
        producer.send(topic, str(number).encode())
    producer.close(timeout=MOST_SECONDS)
    consumer = KafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        client_id=client,
        group_id=topic,
        auto_offset_reset="earliest",
        consumer_timeout_ms=MOST_SECONDS * 1000,
    )
    with contextlib.closing(consumer):
        assert len([one for one, _ in zip(consumer, range(RECORDS), strict=False)]) == RECORDS


async def use_aiokafka(bootstrap: str) -> None:
    topic, client = "stamped-aiokafka", "aiokafka"
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, client_id=client)
    async with producer:
        for number in range(RECORDS):
            await producer.send_and_wait(topic, str(number).encode())
    consumer = AIOKafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        client_id=client,
        group_id=topic,
        auto_offset_reset="earliest",
    )
    async with consumer, asyncio.timeout(MOST_SECONDS):
        for _ in range(RECORDS):
            await consumer.getone()
