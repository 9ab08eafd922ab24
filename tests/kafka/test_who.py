"""`flexwire who` shows the same for captures and request logs of three brokers and 60 clients."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from flexwire.activity.sources import open_activity
from tests.kafka.driving import compiled
from tests.kafka.sidecars import sidecars
from tools.broker import REQUEST_LOG, VERSIONS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from flexwire.activity.sources import ActivitySource

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
MOST_SECONDS = 60
SETTLED_SECONDS = 5
TOPICS = 6
CLIENTS = [f"client-{number:02}" for number in range(60)]


def drive(address: str) -> None:
    """Run 40 producers and 20 consumers (five groups) at the same time until all have finished."""
    admin = AdminClient({"bootstrap.servers": address, "client.id": "admin"})
    topics = [NewTopic(f"topic-{number}", 3, 2) for number in range(TOPICS)]
    for one in admin.create_topics(topics).values():
        one.result(MOST_SECONDS)
    producers = [
        Producer({"bootstrap.servers": address, "client.id": name}) for name in CLIENTS[:40]
    ]
    for number, producer in enumerate(producers):
        for value in range(30):
            producer.produce(f"topic-{number % TOPICS}", b"value %d" % value)
    for producer in producers:
        assert producer.flush(MOST_SECONDS) == 0
    settings = {"bootstrap.servers": address, "auto.offset.reset": "earliest"}
    consumers = [
        Consumer({**settings, "client.id": name, "group.id": f"group-{number % 5}"})
        for number, name in enumerate(CLIENTS[40:])
    ]
    for number, consumer in enumerate(consumers):
        consumer.subscribe([f"topic-{number % TOPICS}"])
    for _ in range(40):
        for consumer in consumers:
            consumer.poll(0.05)
    for consumer in consumers:
        consumer.close()


def totals(source: ActivitySource) -> Counter[tuple[str, str]]:
    """Return the requests of the clients of `drive`, by client id and API."""
    found: Counter[tuple[str, str]] = Counter()
    for row in source.table:
        for api, requests in row.apis.items():
            if row.client_id in CLIENTS:
                found[row.client_id, api] += requests
    return found


def read(paths: Sequence[Path]) -> ActivitySource:
    source = open_activity(paths)
    for _ in source.read(must_exist=True):
        pass
    source.finish()
    return source


@pytest.mark.parametrize("release", VERSIONS)
def test_captures_and_request_logs_have_the_same_requests(
    release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", REQUEST_LOG)
    with sidecars(release, 3, tmp_path, compiled(release, tmp_path)) as cluster:
        monkeypatch.delenv("JAVA_TOOL_OPTIONS")
        drive(cluster.address("PLAINTEXT"))
        # Brokers still hold the responses to the last fetches, and log these requests later.
        time.sleep(SETTLED_SECONDS)
    captured = read([cluster.captures])
    logged = read([node.directory / "broker.log" for node in cluster.nodes])
    by_client = totals(captured)
    assert {client for client, _ in by_client} == {*CLIENTS}
    assert len([row for row in captured.table if row.client_id in CLIENTS]) > 120
    of_logs = totals(logged)
    assert {**(of_logs - by_client), **(by_client - of_logs)} == {}
    assert sum(by_client.values()) > 1_000
    topics = {name for row in logged.table if row.client_id in CLIENTS for name in row.topics}
    assert topics == {f"topic-{number}" for number in range(TOPICS)}
    assert {row.principal for row in logged.table if row.client_id in CLIENTS} == {"User:ANONYMOUS"}
