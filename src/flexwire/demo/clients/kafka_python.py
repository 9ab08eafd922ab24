"""Run kafka-python: one client with its newest versions, and three clients for old brokers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import kafka
from kafka.errors import KafkaError

from flexwire.demo.content import SampleRecord, make_samples
from flexwire.demo.outcome import OutcomeRecorder

if TYPE_CHECKING:
    from flexwire.demo.outcome import ClientOutcome

_SECONDS = 60.0
_RECORDS = 80

# The columns contain the client id, the topic, the broker version that the client assumes, and the
# compression.
_PAIRS: tuple[tuple[str, str, tuple[int, ...] | None, str | None], ...] = (
    ("crm-export", "invoices", None, "gzip"),
    ("warehouse-2018", "stock", (2, 0), "gzip"),
    ("legacy-erp", "mainframe", (0, 11), None),
    ("plant-floor", "gauges", (0, 10, 1), None),
)


def run(bootstrap: str) -> ClientOutcome:
    """Produce, and consume in a group, like clients from today and from the years 2016 to 2018."""
    ledger = OutcomeRecorder(
        "kafka-python", kafka.__version__, part="clients from 2016, 2017, 2018 and today"
    )
    servers = bootstrap.split(",")
    try:
        for client_id, topic, api_version, compression in _PAIRS:
            name = ledger.client_id(client_id)
            _produce(ledger, servers, name, topic, api_version, compression)
            _consume(ledger, servers, name, topic, api_version)
            assumed = (
                "" if api_version is None else f", as with Kafka {'.'.join(map(str, api_version))}"
            )
            ledger.step(f"produced {_RECORDS} to {topic}, consumed and committed offsets{assumed}")
    except KafkaError as error:
        return ledger.outcome(error=f"{type(error).__name__}: {error}")
    return ledger.outcome()


def _produce(
    ledger: OutcomeRecorder,
    servers: list[str],
    client_id: str,
    topic: str,
    api_version: tuple[int, ...] | None,
    compression: str | None,
) -> None:
    producer = kafka.KafkaProducer(
        bootstrap_servers=servers,
        client_id=client_id,
        api_version=api_version,
        compression_type=compression,
        # Brokers before 0.11 do not support idempotent producers, and 0.11 allows one request in
        # flight.
        enable_idempotence=api_version is None,
        max_block_ms=int(_SECONDS * 1000),
        linger_ms=20,
    )
    try:
        # kafka-python refuses null record headers. Brokers before 0.11 do not support record
        # headers at all.
        with_headers = api_version is None or api_version >= (0, 11)
        batch = make_samples(topic, _RECORDS, null_headers=False, headers=with_headers)
        for start in range(0, len(batch), _RECORDS // 4):
            part = batch[start : start + _RECORDS // 4]
            sent = [
                producer.send(
                    topic, value=sample.value, key=sample.key, headers=list(sample.headers)
                )
                for sample in part
            ]
            for future in sent:
                future.get(timeout=_SECONDS)
            ledger.produced(part)
    finally:
        producer.close(timeout=_SECONDS)


def _consume(
    ledger: OutcomeRecorder,
    servers: list[str],
    client_id: str,
    topic: str,
    api_version: tuple[int, ...] | None,
) -> None:
    consumer = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=servers,
        client_id=client_id,
        api_version=api_version,
        group_id=f"{client_id}-readers",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        fetch_max_wait_ms=100,
    )
    try:
        read: list[SampleRecord] = []
        until = time.monotonic() + _SECONDS
        while len(read) < _RECORDS and time.monotonic() < until:
            # `poll` returns only records that exist. If a client ends while the group is answering,
            # the client joins again. The group accepts the client only after its first session has
            # expired, which takes almost a minute.
            for records in consumer.poll(timeout_ms=int(_SECONDS * 1000)).values():
                read.extend(
                    SampleRecord(record.topic, record.key, record.value, tuple(record.headers))
                    for record in records
                )
        ledger.consumed(read)
        consumer.commit()
        partitions = consumer.assignment()
        total = sum(consumer.committed(partition) or 0 for partition in partitions)
        ledger.expect(total == len(read), f"{client_id}: committed {total} of {len(read)} offsets")
        ends = sum(consumer.end_offsets(list(partitions)).values())
        ledger.expect(ends == len(read), f"{client_id}: partitions end at {ends}")
    finally:
        consumer.close(autocommit=False, timeout_ms=int(_SECONDS * 1000))
