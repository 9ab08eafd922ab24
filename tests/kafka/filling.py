"""Write topics of every kind to a broker with librdkafka."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from flexwire.messages import MetadataRequest
from flexwire.records.headers import Headers

if TYPE_CHECKING:
    from pathlib import Path

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
COMPACT = {"cleanup.policy": "compact", "segment.ms": "100", "min.cleanable.dirty.ratio": "0.001"}
# Topics with one configuration each; the others have none.
TOPICS: dict[str, dict[str, str]] = {
    **{f"in-{codec}": {} for codec in CODECS},
    "in-broker-zstd": {"compression.type": "zstd"},
    "typed": {},
    "appended": {"message.timestamp.type": "LogAppendTime"},
    "compacted": COMPACT,
    "transactions": {},
}
INTERNAL = ("__consumer_offsets", "__transaction_state")
# The versions of the messages in the topic "typed".
VERSIONS = (1, 9, 12)
MOST_SECONDS = 60


@dataclass(frozen=True)
class Broker:
    address: str
    logs: Path

    def producer(self, **settings: Any) -> Producer:
        # After the broker was stopped, librdkafka continues to log that it lost the broker.
        quiet = {"bootstrap.servers": self.address, "linger.ms": 20, "log_level": 2}
        return Producer({**quiet, **settings})

    def consumer(self, group: str) -> Consumer:
        own = {"enable.auto.commit": False, "enable.partition.eof": True, "log_level": 2}
        return Consumer({"bootstrap.servers": self.address, "group.id": group, **own})


def fill(broker: Broker) -> Broker:
    admin = AdminClient({"bootstrap.servers": broker.address})
    asked = [NewTopic(name, 2, 1, config=config) for name, config in TOPICS.items()]
    for created in admin.create_topics(asked).values():
        created.result(MOST_SECONDS)
    for name, codec in [*((f"in-{one}", one) for one in CODECS), ("in-broker-zstd", "lz4")]:
        write_any(broker, name, codec)
    write_any(broker, "appended", "none")
    write_typed(broker)
    write_transactions(broker)
    write_compacted(broker)
    commit_offsets(broker)
    return broker


def write_any(broker: Broker, topic: str, codec: str, count: int = 500) -> None:
    """Write null, empty and long keys, values and headers, in several batches of each partition."""
    chosen = random.Random(topic)
    producer = broker.producer(**{"compression.type": codec, "batch.num.messages": 40})
    texts = [None, b"", b"k", "ключ".encode(), bytes(range(256)), b"long " * 400]
    for number in range(count):
        pairs: list[tuple[str, str | bytes | None]] = [
            (chosen.choice(["a", "b", "", "ключ"]), chosen.choice(texts))
            for _ in range(chosen.choice([0, 0, 1, 3]))
        ]
        # Timestamps within a year, in random order.
        timestamp = 1_700_000_000_000 + chosen.randrange(30_000_000_000)
        producer.produce(
            topic,
            key=chosen.choice(texts),
            value=chosen.choice(texts),
            partition=number % 2,
            timestamp=timestamp,
            headers=pairs or None,
        )
    assert producer.flush(MOST_SECONDS) == 0


def typed(number: int) -> Headers:
    headers = Headers()
    headers.put_long("user", number)
    headers.put_string("tag", f"tag {number}")
    headers.put_boolean("even", number % 2 == 0)
    headers.put_bytes("trace", bytes([number]) * 8)
    return headers


def message(number: int) -> tuple[int, bytes]:
    """Return each version with a message in this version that names one topic."""
    version = VERSIONS[number % len(VERSIONS)]
    wanted = MetadataRequest.MetadataRequestTopic(name=f"topic {number}")
    return version, bytes(MetadataRequest(topics=[wanted]).encode(version=version))


def write_typed(broker: Broker, start: int = 0, count: int = 60) -> None:
    producer = broker.producer()
    for number in range(start, start + count):
        version, value = message(number)
        pairs: list[tuple[str, str | bytes | None]] = [*typed(number).to_pairs()]
        if number % 10 == 9:
            pairs = []
        producer.produce("typed", key=b"%d" % version, value=value, partition=0, headers=pairs)
    assert producer.flush(MOST_SECONDS) == 0


def write_transactions(broker: Broker) -> None:
    """Write a mix of committed, aborted and plain records, and a transaction that has not ended."""
    plain = broker.producer()
    # The longest timeout that a broker allows; then it aborts unfinished transactions.
    lasting = {"transaction.timeout.ms": 900_000}
    names = [f"t-{one}" for one in range(3)]
    producers = [broker.producer(**{"transactional.id": name}, **lasting) for name in names]
    for producer in producers:
        producer.init_transactions(MOST_SECONDS)
    for turn in range(6):
        for producer in producers:
            producer.begin_transaction()
        for number in range(30):
            which = producers[number % 3]
            which.produce("transactions", b"%d of %d" % (number % 3, turn), partition=turn % 2)
            if number % 5 == 0:
                which.flush(MOST_SECONDS)
                plain.produce("transactions", b"plain", partition=turn % 2)
                plain.flush(MOST_SECONDS)
        for number, producer in enumerate(producers):
            if (number + turn) % 3:
                producer.commit_transaction(MOST_SECONDS)
            else:
                # Records that are still in the producer's queue would never be sent.
                producer.flush(MOST_SECONDS)
                producer.abort_transaction(MOST_SECONDS)
    producers[0].begin_transaction()
    producers[0].produce("transactions", b"open", partition=0)
    producers[0].flush(MOST_SECONDS)
    plain.produce("transactions", b"after what is open", partition=0)
    assert plain.flush(MOST_SECONDS) == 0
    # The transaction must stay open while the broker runs.
    _KEPT.append(producers)


def write_compacted(broker: Broker) -> None:
    """Write repeated keys, some of them deleted in the end, to a log that the broker cleans."""
    for turn in range(5):
        producer = broker.producer(**{"compression.type": CODECS[turn]})
        for number in range(100):
            value = None if turn == 4 and number < 20 else b"%d of %d" % (number, turn)
            producer.produce("compacted", key=b"%d" % number, value=value, partition=number % 2)
        assert producer.flush(MOST_SECONDS) == 0
        # The next batch begins a new segment, and the cleaner processes all but the last segment.
        time.sleep(0.2)
    end = time.monotonic() + MOST_SECONDS
    while oldest(broker, "compacted", 0) == 0 or oldest(broker, "compacted", 1) == 0:
        assert time.monotonic() < end, "the cleaner has not come"
        time.sleep(0.2)


def oldest(broker: Broker, topic: str, partition: int) -> int:
    """Return the first offset that a partition still contains."""
    consumer = broker.consumer("looks")
    try:
        consumer.assign([TopicPartition(topic, partition, 0)])
        found = consumer.poll(MOST_SECONDS)
        assert found is not None
        assert found.error() is None
        return int(found.offset() or 0)
    finally:
        consumer.close()


def consumed(broker: Broker, topic: str) -> list[tuple[int, int, int, bytes | None, bytes | None]]:
    """Return the records that librdkafka's consumer reads: partition, offset, time, key, value."""
    consumer, found = broker.consumer("reads all"), []
    partitions = consumer.list_topics(topic, MOST_SECONDS).topics[topic].partitions
    consumer.assign([TopicPartition(topic, one, 0) for one in partitions])
    ended: set[int] = set()
    while len(ended) < len(partitions):
        got = consumer.poll(MOST_SECONDS)
        assert got is not None
        error = got.error()
        if error is not None:
            assert error.code() == KafkaError._PARTITION_EOF
            ended.add(int(got.partition() or 0))
        else:
            at = (int(got.partition() or 0), int(got.offset() or 0), got.timestamp()[1])
            found.append((*at, got.key(), got.value()))
    consumer.close()
    return sorted(found)


def delete_before(broker: Broker, topic: str, offset: int) -> None:
    """Write a hundred records to a new topic of one partition, and move its log start offset."""
    admin = AdminClient({"bootstrap.servers": broker.address})
    for created in admin.create_topics([NewTopic(topic, 1, 1)]).values():
        created.result(MOST_SECONDS)
    producer = broker.producer(**{"batch.num.messages": 20})
    for number in range(100):
        producer.produce(topic, b"%d" % number)
    assert producer.flush(MOST_SECONDS) == 0
    for deleted in admin.delete_records([TopicPartition(topic, 0, offset)]).values():
        assert deleted.result(MOST_SECONDS).low_watermark == offset


def commit_offsets(broker: Broker) -> None:
    """Make a group commit, so that the groups' internal topic contains records."""
    consumer = broker.consumer("commits")
    for offset in range(1, 20):
        at = [TopicPartition("typed", 0, offset), TopicPartition("in-none", 1, offset)]
        consumer.commit(offsets=at, asynchronous=False)
    consumer.close()


_KEPT: list[list[Producer]] = []
