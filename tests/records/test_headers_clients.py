"""Typed headers pass through a real client and a real broker's record batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Message, Producer, TopicPartition

from flexwire.demo.cluster import MockCluster
from flexwire.records.headers import Headers, typed_headers
from flexwire.records.typed import Typed, TypedDialect

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 15.0


@pytest.fixture(scope="module")
def cluster() -> Iterator[MockCluster]:
    with MockCluster() as started:
        started.create_topic("typed", 1)
        yield started


def through(cluster: MockCluster, headers: Headers | None) -> Headers:
    """Produce a record with these headers and consume it; return the consumed headers."""
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "linger.ms": 0})
    offsets: list[int] = []

    def delivered(error: object, message: Message) -> None:
        assert error is None
        offsets.append(message.offset() or 0)

    pairs = [] if headers is None else headers.to_pairs()
    producer.produce("typed", value=b"v", headers=[*pairs], on_delivery=delivered)
    assert producer.flush(SECONDS) == 0
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "typed"})
    try:
        consumer.assign([TopicPartition("typed", 0, offsets[0])])
        message = consumer.poll(SECONDS)
        assert message is not None
        assert message.error() is None
        dialect = TypedDialect.DOCUMENT if headers is None else headers.dialect
        return typed_headers(message.headers(), dialect=dialect)
    finally:
        consumer.close()


def test_an_int64_goes_in_and_an_int64_comes_back(cluster: MockCluster) -> None:
    headers = Headers()
    headers.put_long("user", 2**40)
    headers.put_long("user", -1)
    headers.put_integer("user", -1)
    headers.put_string("città", "Forlì")
    headers.put_bytes("empty", b"")
    again = through(cluster, headers)
    assert again == headers
    assert again.get_typed("user") == [Typed("long", 2**40), Typed("long", -1), Typed("int", -1)]


def test_the_earlier_dialect_has_null(cluster: MockCluster) -> None:
    headers = Headers(dialect=TypedDialect.EARLIER)
    headers.put("gone", Typed("null"))
    headers.put_boolean("gone", False)
    assert through(cluster, headers).get("gone") == [None, False]


def test_a_record_without_headers_has_none(cluster: MockCluster) -> None:
    assert len(through(cluster, None)) == 0
