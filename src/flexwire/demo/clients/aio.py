"""Run aiokafka, a client that still uses the protocol of Kafka 2.x."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

import aiokafka
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError

from flexwire.demo.content import SampleRecord, make_samples
from flexwire.demo.outcome import OutcomeRecorder

if TYPE_CHECKING:
    from flexwire.demo.outcome import ClientOutcome

_SECONDS = 60.0
_RECORDS = 100

# The columns are client id, topic, compression, and whether the producer is idempotent.
_PRODUCERS = (
    ("shipping-service", "shipments", "gzip", False),
    ("customer-sync", "customers", "snappy", True),
    ("returns-desk", "returns", "lz4", False),
    ("price-feed", "prices", "zstd", False),
)


def run(bootstrap: str) -> ClientOutcome:
    """Produce with every compression type, consume in groups, commit, and describe the cluster."""
    ledger = OutcomeRecorder(
        "aiokafka",
        aiokafka.__version__,
        part="a Kafka 2.x client: every compression type, groups, admin",
    )
    try:
        asyncio.run(_run(ledger, bootstrap))
    except (KafkaError, TimeoutError) as error:
        return ledger.outcome(error=f"{type(error).__name__}: {error}")
    return ledger.outcome()


async def _run(ledger: OutcomeRecorder, bootstrap: str) -> None:
    await asyncio.gather(
        *(
            _produce(ledger, bootstrap, client_id, topic, compression, idempotent=idempotent)
            for client_id, topic, compression, idempotent in _PRODUCERS
        )
    )
    await _consume(ledger, bootstrap, "shipping-tracker", ("shipments", "returns"))
    await _consume(ledger, bootstrap, "crm-loader", ("customers", "prices"))
    await _ask(ledger, bootstrap)


async def _produce(
    ledger: OutcomeRecorder,
    bootstrap: str,
    client_id: str,
    topic: str,
    compression: str,
    *,
    idempotent: bool,
) -> None:
    producer = aiokafka.AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        client_id=ledger.client_id(client_id),
        compression_type=compression,
        enable_idempotence=idempotent,
        request_timeout_ms=int(_SECONDS * 1000),
        linger_ms=20,
    )
    await producer.start()
    try:
        batch = make_samples(topic, _RECORDS)
        for start in range(0, len(batch), _RECORDS // 4):
            part = batch[start : start + _RECORDS // 4]
            sent = [
                await producer.send(
                    topic, value=sample.value, key=sample.key, headers=list(sample.headers)
                )
                for sample in part
            ]
            await asyncio.wait_for(asyncio.gather(*sent), _SECONDS)
            ledger.produced(part)
    finally:
        await producer.stop()
    ledger.step(f"produced {_RECORDS} to {topic} ({compression})")


async def _consume(
    ledger: OutcomeRecorder, bootstrap: str, client_id: str, topics: tuple[str, ...]
) -> None:
    consumer = aiokafka.AIOKafkaConsumer(
        *topics,
        bootstrap_servers=bootstrap,
        client_id=ledger.client_id(client_id),
        group_id=f"{client_id}s",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        fetch_max_wait_ms=100,
    )
    await asyncio.wait_for(consumer.start(), _SECONDS)
    try:
        read: list[SampleRecord] = []
        until = time.monotonic() + _SECONDS
        while len(read) < _RECORDS * len(topics) and time.monotonic() < until:
            for records in (await consumer.getmany(timeout_ms=200)).values():
                read.extend(
                    SampleRecord(record.topic, record.key, record.value, tuple(record.headers))
                    for record in records
                )
        ledger.consumed(read)
        await asyncio.wait_for(consumer.commit(), _SECONDS)
        partitions = consumer.assignment()
        total = sum([await consumer.committed(partition) or 0 for partition in partitions])
        ledger.expect(total == len(read), f"{client_id}s: committed {total} of {len(read)} offsets")
        ends = await consumer.end_offsets(list(partitions))
        ledger.expect(sum(ends.values()) == len(read), f"{client_id}s: partitions end at {ends}")
    finally:
        await consumer.stop()
    ledger.step(f"consumed {', '.join(topics)} in a group and committed offsets")


async def _ask(ledger: OutcomeRecorder, bootstrap: str) -> None:
    admin = AIOKafkaAdminClient(
        bootstrap_servers=bootstrap, client_id=ledger.client_id("ops-console")
    )
    await asyncio.wait_for(admin.start(), _SECONDS)
    try:
        topics = await asyncio.wait_for(admin.list_topics(), _SECONDS)
        ledger.expect("shipments" in topics, f"the admin client sees only {sorted(topics)}")
        cluster = await asyncio.wait_for(admin.describe_cluster(), _SECONDS)
        brokers = len(cluster["brokers"])
        ledger.expect(brokers > 1, f"the admin client sees {brokers} brokers")
    finally:
        await admin.close()
    ledger.step("listed topics and described the cluster")
