"""Run confluent-kafka (librdkafka): all compression types, both kinds of groups, transactions."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

import confluent_kafka
from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

from flexwire.demo.content import SampleRecord, make_samples
from flexwire.demo.outcome import OutcomeRecorder

if TYPE_CHECKING:
    from flexwire.demo.outcome import ClientOutcome

_PART = "every compression type, both kinds of consumer groups, transactions"
_SECONDS = 60.0
_RECORDS = 120

_Config = dict[str, str | int | bool | logging.Logger]

# The columns contain the client id, the topic, and the other settings of the producer.
_PRODUCERS: tuple[tuple[str, str, _Config], ...] = (
    ("orders-service", "orders", {"compression.type": "zstd", "enable.idempotence": True}),
    ("billing-batch", "payments", {"compression.type": "gzip", "linger.ms": 50}),
    ("web-frontend", "clicks", {"compression.type": "lz4", "acks": 1}),
    ("inventory-sync", "inventory", {"compression.type": "snappy"}),
    ("audit-trail", "audit", {"compression.type": "none"}),
)

# The columns contain the client id, the group id, the topics, and the other settings of the
# consumer.
_CONSUMERS: tuple[tuple[str, str, tuple[str, ...], _Config], ...] = (
    ("orders-projector", "orders-projection", ("orders",), {}),
    ("billing-dashboard", "billing", ("payments", "audit"), {"group.protocol": "consumer"}),
    (
        "analytics-loader",
        "analytics",
        ("clicks", "inventory"),
        {"partition.assignment.strategy": "cooperative-sticky", "client.rack": "rack-b"},
    ),
)


def run(bootstrap: str) -> ClientOutcome:
    """Produce, consume in groups, commit, and produce in transactions."""
    # librdkafka reports every broker that closes a connection, even at the end of the demo, so
    # these reports are ignored. Serious problems are returned as errors.
    quiet = logging.getLogger("flexwire.demo.confluent")
    quiet.addHandler(logging.NullHandler())
    quiet.propagate = False
    base: _Config = {"bootstrap.servers": bootstrap, "logger": quiet}
    library, _ = confluent_kafka.libversion()
    ledger = OutcomeRecorder(
        "confluent-kafka", f"{confluent_kafka.__version__} (librdkafka {library})", part=_PART
    )
    try:
        for client_id, topic, settings in _PRODUCERS:
            _produce(ledger, base | settings | {"client.id": ledger.client_id(client_id)}, topic)
        for client_id, group, topics, settings in _CONSUMERS:
            ledger.client_id(client_id)
            names: _Config = {"group.id": group, "client.id": client_id}
            _consume(ledger, base | names | settings, topics)
        _transact(ledger, base | {"client.id": ledger.client_id("ledger-writer")})
    except KafkaException as error:
        return ledger.outcome(error=f"KafkaException: {error}")
    return ledger.outcome()


def _send(producer: Producer, batch: list[SampleRecord]) -> list[str]:
    """Send records, wait, and return the errors of refused or unacknowledged records."""
    refused: list[str] = []

    def delivered(error: object, _message: Message) -> None:
        if error is not None:
            refused.append(str(error))

    for sample in batch:
        producer.produce(
            sample.topic,
            value=sample.value,
            key=sample.key,
            headers=list(sample.headers),
            on_delivery=delivered,
        )
        producer.poll(0)
    left = producer.flush(_SECONDS)
    return refused + [f"{left} records were never acknowledged"] * bool(left)


def _produce(ledger: OutcomeRecorder, config: _Config, topic: str) -> None:
    batch = make_samples(topic, _RECORDS)
    producer = Producer(config)
    # The records are sent in several calls, in order to create several record batches.
    for start in range(0, len(batch), _RECORDS // 4):
        part = batch[start : start + _RECORDS // 4]
        refused = _send(producer, part)
        ledger.expect(not refused, f"{topic}: {'; '.join(sorted(set(refused)))}")
        ledger.produced(part)
    ledger.step(f"produced {len(batch)} to {topic} ({config['compression.type']})")


def _consume(ledger: OutcomeRecorder, config: _Config, topics: tuple[str, ...]) -> None:
    consumer = Consumer(
        config
        | {"auto.offset.reset": "earliest", "enable.auto.commit": False, "fetch.wait.max.ms": 100}
    )
    try:
        consumer.subscribe(list(topics))
        expected = _RECORDS * len(topics)
        read: list[SampleRecord] = []
        until = time.monotonic() + _SECONDS
        while len(read) < expected and time.monotonic() < until:
            for message in consumer.consume(50, 0.2):
                error = message.error()
                if error is not None:
                    raise KafkaException(error)
                read.append(_sample(message))
        ledger.consumed(read)
        consumer.commit(asynchronous=False)
        assigned = consumer.assignment()
        committed = consumer.committed(assigned, timeout=_SECONDS)
        # A partition without records has no committed offset; the reported offset is then negative.
        total = sum(max(partition.offset, 0) for partition in committed)
        ledger.expect(
            total == len(read), f"{config['group.id']}: committed {total} of {len(read)} offsets"
        )
        ends = sum(_end(consumer, partition) for partition in assigned)
        ledger.expect(ends == len(read), f"{config['group.id']}: partitions end at {ends}")
    finally:
        consumer.close()
    protocol = config.get("group.protocol", "classic")
    ledger.step(f"consumed {', '.join(topics)} in a {protocol} group and committed offsets")


def _end(consumer: Consumer, partition: TopicPartition) -> int:
    marks = consumer.get_watermark_offsets(partition, timeout=_SECONDS)
    return -1 if marks is None else marks[1]


def _sample(message: Message) -> SampleRecord:
    topic, key, value = message.topic(), message.key(), message.value()
    headers = message.headers() or []
    pairs = headers.items() if isinstance(headers, dict) else headers
    return SampleRecord(
        topic or "",
        _bytes(key),
        _bytes(value),
        tuple((name, _bytes(content)) for name, content in pairs),
    )


def _bytes(content: str | bytes | None) -> bytes | None:
    return content.encode() if isinstance(content, str) else content


def _transact(ledger: OutcomeRecorder, config: _Config) -> None:
    """Run two transactions that commit (one with a group's offsets) and one that aborts.

    The records of these transactions are not read back, because the mock ends a transaction with a
    control batch whose CRC is 0.
    """
    producer = Producer(config | {"transactional.id": "ledger-1", "compression.type": "zstd"})
    producer.init_transactions(_SECONDS)
    batch = make_samples("ledger", 30)
    for number, part in enumerate((batch[:10], batch[10:20], batch[20:])):
        producer.begin_transaction()
        refused = _send(producer, part)
        ledger.expect(not refused, f"ledger: {'; '.join(sorted(set(refused)))}")
        if number == 1:
            _send_offsets(producer, config)
        if number < 2:  # noqa: PLR2004 - every transaction except the third
            producer.commit_transaction(_SECONDS)
        else:
            producer.abort_transaction(_SECONDS)
    ledger.step("2 transactions committed, 1 aborted on ledger")


def _send_offsets(producer: Producer, config: _Config) -> None:
    consumer = Consumer(config | {"group.id": "ledger-input"})
    try:
        producer.send_offsets_to_transaction(
            [TopicPartition("orders", 0, 5)], consumer.consumer_group_metadata(), _SECONDS
        )
    finally:
        consumer.close()
