"""A client captured at a newer broker is judged for an older one, and then run against it."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from flexwire.protocol.audit import judge
from flexwire.tap import HostPort
from tests.kafka.secured import tapping
from tests.spark.test_audit_sums import read, summed
from tools.broker import VERSIONS, broker

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
OLDER, NEWER = VERSIONS[0], VERSIONS[-1]
TOPIC, MOST_SECONDS, COUNT = "backwards", 30, 3
PROTOCOLS = ("classic", "consumer")
# The broker must enable the new protocol, or the client would fail for that reason.
SETTINGS = {"group.coordinator.rebalance.protocols": "classic,consumer"}


def prepare(address: str) -> None:
    admin: Any = AdminClient({"bootstrap.servers": address})
    for made in admin.create_topics([NewTopic(TOPIC, 1, 1)]).values():
        made.result(MOST_SECONDS)
    producer = Producer({"bootstrap.servers": address})
    for number in range(COUNT):
        producer.produce(TOPIC, f"{number}".encode())
    assert producer.flush(MOST_SECONDS) == 0


def consumed(address: str, protocol: str) -> int:
    """Return how many records a consumer reads; each protocol has its own client id."""
    told = {"bootstrap.servers": address, "group.id": f"g-{protocol}", "client.id": protocol}
    consumer = Consumer({**told, "group.protocol": protocol, "auto.offset.reset": "earliest"})
    consumer.subscribe([TOPIC])
    found = 0
    try:
        while found < COUNT:
            message = consumer.poll(MOST_SECONDS)
            if message is None:
                break
            error = message.error()
            if error is not None:
                raise KafkaException(error)
            found += 1
    finally:
        consumer.close()
    return found


def test_what_the_audit_foresees_of_an_older_broker_is_what_happens(tmp_path: Path) -> None:
    with broker(NEWER, tmp_path / NEWER) as address:
        prepare(address)
        host, _, port = address.rpartition(":")
        with tapping(HostPort(host, int(port)), tmp_path / "tap") as tap:
            for protocol in PROTOCOLS:
                assert consumed(str(tap.listen_address), protocol) == COUNT
    conducts = summed(read(sorted((tmp_path / "tap").iterdir()))).evidence().conducts
    verdicts = {
        party.client_id: {(one.verdict, one.evidence) for one in judge(party, conduct, OLDER)}
        for party, conduct in conducts.items()
    }
    assert verdicts == {
        "classic": {("nothing seen against it", "versions")},
        "consumer": {("will break", "no version in common")},
    }
    with broker(OLDER, tmp_path / OLDER, SETTINGS) as address:
        prepare(address)
        assert consumed(address, "classic") == COUNT
        # librdkafka reads nothing, however long the test waits; some releases report an error.
        with contextlib.suppress(KafkaException):
            assert consumed(address, "consumer") == 0
