"""A broker's request log shows the same clients as a capture of the same traffic."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._scram import ScramCredentialInfo, ScramMechanism
from confluent_kafka.admin._scram import UserScramCredentialUpsertion as Upsertion
from confluent_kafka.cimpl import NewTopic

from flexwire.answers.chargeback import chargeback
from flexwire.client.notation import parse_host_port
from flexwire.spark.analyze import Analysis, analyze
from flexwire.spark.answers.outputs import open_tables
from flexwire.tap import Tap
from tests.kafka.asking import ask, until
from tests.protocol.payloads import frame, make, request_payload
from tools.broker import REQUEST_LOG, VERSIONS, broker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from flexwire.answers.asking.answer import AnalysisTables

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.slow]

CLIENTS = ("admin", "writer", "careless", "reader", "automatic")
BODY = ("client_id", "api_version", "correlation_id", "body")
MOST_SECONDS = 60


def drive(address: str) -> None:
    """Send requests with clients of every kind."""
    admin = AdminClient({"bootstrap.servers": address, "client.id": "admin"})
    for one in admin.create_topics([NewTopic("orders", 2, 1)]).values():
        one.result(MOST_SECONDS)
    info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    for done in admin.alter_user_scram_credentials([Upsertion("bob", info, b"secret")]).values():
        done.result(MOST_SECONDS)
    for name, acks in (("writer", "all"), ("careless", "0")):
        producer = Producer({"bootstrap.servers": address, "client.id": name, "acks": acks})
        for number in range(40):
            producer.produce("orders", b"value %d" % number, partition=number % 2)
        assert producer.flush(MOST_SECONDS) == 0
    automatic = Producer({"bootstrap.servers": address, "client.id": "automatic"})
    automatic.produce("by-itself", b"one")
    assert automatic.flush(MOST_SECONDS) == 0
    group = {"group.id": "readers", "auto.offset.reset": "earliest"}
    reader = Consumer({"bootstrap.servers": address, "client.id": "reader", **group})
    reader.subscribe(["orders"])
    seen = 0
    while seen < 80:
        found = reader.poll(MOST_SECONDS)
        assert found is not None
        seen += found.error() is None
    reader.commit(asynchronous=False)
    reader.close()


async def tapped(address: str, out: Path) -> None:
    host, port = parse_host_port(address)
    async with Tap(("127.0.0.1", 0), (host, port), out) as tap:
        listen = tap.listen_address
        await asyncio.to_thread(drive, f"{listen.host}:{listen.port}")


@dataclass(frozen=True)
class Both:
    logged: Analysis
    captured: Analysis


@pytest.fixture(scope="module", params=VERSIONS)
def both(
    request: pytest.FixtureRequest,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> Both:
    directory = tmp_path_factory.mktemp(f"logged-{request.param}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", REQUEST_LOG)
        with broker(request.param, directory / "broker") as address:
            patch.delenv("JAVA_TOOL_OPTIONS")
            asyncio.run(tapped(address, directory / "captures"))
    log = directory / "broker" / "broker.log"
    return Both(
        analyze([log], directory / "logged", spark=spark, timezone="Asia/Tokyo"),
        analyze([directory / "captures"], directory / "captured", spark=spark),
    )


def tables(spark: SparkSession, done: Analysis) -> AnalysisTables:
    return open_tables(spark, done.output.place.url)


def requests(spark: SparkSession, done: Analysis) -> Counter[tuple[Any, ...]]:
    frames = tables(spark, done).frames.where("direction = 'request'")
    rows = frames.select("client_id", "api_name", "api_version", "correlation_id").collect()
    return Counter(tuple(row) for row in rows if row.client_id in CLIENTS)


@pytest.mark.parametrize(("release", "lines"), [("3.9.0", 0), ("3.9.2", 1)])
def test_at_info_brokers_log_deprecated_versions_from_3_9_1_on(
    release: str, lines: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At level INFO, 3.9.0 logs nothing (KAFKA-18272), as docs/request-logs.md states."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", REQUEST_LOG.replace("=debug", "=info"))
    with broker(release, tmp_path) as address:
        # 4.0 removed version 0 of this API.
        for version in (0, 4):
            form: dict[str, Any] = {"resources": []}
            if version:
                form |= {"includeSynonyms": False, "includeDocumentation": False}
            ask(address, "DescribeConfigs", "3.9.2", most=version, **form)
    logged = (tmp_path / "broker.log").read_text(encoding="utf-8", errors="replace")
    assert logged.count("Completed request:") == lines


@pytest.mark.parametrize("release", ["3.9.2", "4.4.0"])
def test_a_client_id_that_is_null_is_logged_as_an_empty_one(
    release: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty client id in a line means that the client has none (KIP-1313)."""
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", REQUEST_LOG)
    body, log = make("MetadataRequest", topics=[]), tmp_path / "broker.log"
    sent = [frame(request_payload(3, 12, body, client_id=client)) for client in ("once", None)]
    with (
        broker(release, tmp_path) as address,
        socket.create_connection(parse_host_port(address), MOST_SECONDS) as connection,
    ):
        connection.sendall(b"".join(sent))
        until(lambda: len(logged_ids(log)) == len(sent), "the broker logged no two lines")
    assert logged_ids(log) == ["once", ""]


def logged_ids(log: Path) -> list[str | None]:
    """Return the client ids of Metadata requests in a broker's log."""
    text = log.read_text(encoding="utf-8", errors="replace")
    headers = re.findall(r'"requestHeader":(\{[^{}]*"requestApiKey":3,[^{}]*\})', text)
    return [json.loads(header)["clientId"] for header in headers]


def test_both_have_the_same_requests_of_each_client(spark: SparkSession, both: Both) -> None:
    logged, captured = requests(spark, both.logged), requests(spark, both.captured)
    assert logged == captured
    assert sum(logged.values()) > 30


def test_both_have_the_same_bodies(spark: SparkSession, both: Both) -> None:
    logged, captured = tables(spark, both.logged), tables(spark, both.captured)
    names = [one for one in both.captured.output.message_names() if "SaslA" not in one]
    compared = 0
    for name in names:
        mine, theirs = logged.message(name), captured.message(name)
        assert mine is not None, name
        assert theirs is not None
        found, expected = (
            Counter(
                (*row[:3], repr(row.body))
                for row in table.select(*BODY).collect()
                if row.client_id in CLIENTS
            )
            for table in (mine, theirs)
        )
        assert found >= expected, name
        # A broker answers a consumer that has closed its connection.
        late = {one[0] for one in found - expected}
        assert late <= ({"reader"} if name.endswith("Response") else set()), name
        compared += expected.total()
    assert compared > 60


def test_times_are_those_of_the_capture(spark: SparkSession, both: Both) -> None:
    def times(done: Analysis) -> dict[tuple[Any, ...], Any]:
        frames = tables(spark, done).frames.where("direction = 'request'")
        return {
            (row.client_id, row.api_name, row.correlation_id): row.time
            for row in frames.where("client_id = 'writer' and api_name = 'Produce'").collect()
        }

    logged, captured = times(both.logged), times(both.captured)
    assert logged.keys() == captured.keys()
    assert all(abs((logged[one] - captured[one]).total_seconds()) < 30 for one in logged)


def test_bytes_of_records_are_the_same(spark: SparkSession, both: Both) -> None:
    def charged(done: Analysis) -> set[tuple[Any, ...]]:
        rows = chargeback(tables(spark, done)).where("topic = 'orders'").collect()
        return {(one.client_id, one.requests, one.sent_bytes, one.received_bytes) for one in rows}

    assert charged(both.logged) == charged(both.captured) != set()


def test_what_the_client_never_sent_is_told_apart(spark: SparkSession, both: Both) -> None:
    told = both.logged.facts.request_logs
    assert told is not None
    assert (told.cut, told.unused, told.left_out_fields) == (0, 0, 0)
    place = both.logged.output.where("tables/forwarded_requests")
    rows = spark.read.parquet(place).collect()
    assert len(rows) == told.forwarded > 0
    sent = requests(spark, both.captured)
    made = [one for one in rows if one.client_id == "automatic"]
    assert made
    assert {one.api_name for one in made} == {"CreateTopics"}
    assert not [one for one in sent if one[:2] == ("automatic", "CreateTopics")]
    assert Path(place).is_dir()
