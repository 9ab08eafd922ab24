"""Kafka connections are recognized in tables and facts, with and without named brokers."""

from __future__ import annotations

import struct
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.errors import CaptureError
from flexwire.spark.analyze import Analysis, analyze
from tests.spark.traffic import BROKER, Traffic, framed, made, request, response

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Row, SparkSession

pytestmark = pytest.mark.spark

TLS_HELLO = bytes.fromhex("16030100b5010000b10303") + bytes(170)
# The first bytes of a ZooKeeper client look like a Produce v0 request with an empty client id.
ZOOKEEPER_SESSION = framed(struct.pack(">iqiqi", 0, 0, 18000, 0, 16) + bytes(17))
SECRET = b"GET /login?password=hunter2 HTTP/1.1\r\n\r\n"
KAFKA_CLIENT, OTHERS = 7000, {7001: TLS_HELLO, 7002: ZOOKEEPER_SESSION, 7003: SECRET}
NOISE_CLIENT, SILENT_CLIENT = 7004, 7005
# A Produce v1 header with an empty client id, without a body.
NOISE = framed(struct.pack(">hhih", 0, 1, 5, 0) + b"\x7f\xff" * 9)


def _host(port: int) -> tuple[str, int]:
    return "10.0.0.7", port


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    traffic = Traffic(tmp_path_factory.mktemp("connections") / "capture")
    kafka = traffic.connect(_host(KAFKA_CLIENT))
    traffic.exchange(kafka, made("ApiVersionsRequest"), made("ApiVersionsResponse"), 3, 1)
    traffic.send(kafka, "request", request(made("MetadataRequest"), 12, 2)[:-1])
    traffic.send_raw(kafka, "response", framed(response(made("MetadataResponse"), 12, 2))[:-1])
    kafka.close(timestamp_us=traffic.now_us)
    for port, data in OTHERS.items():
        other = traffic.connect(_host(port))
        traffic.send_raw(other, "request", data)
        traffic.send_raw(other, "response", framed(b"\0\0\0\7 some answer"))
    noise = traffic.connect(_host(NOISE_CLIENT))
    traffic.send_raw(noise, "request", NOISE)
    traffic.connect(_host(SILENT_CLIENT)).close(timestamp_us=traffic.now_us)
    # A new connection on the ports of the first one.
    again = traffic.connect(_host(KAFKA_CLIENT))
    traffic.send(again, "request", request(made("HeartbeatRequest"), 4, 1))
    traffic.close()
    return traffic.directory


def _analyzed(spark: SparkSession, capture: Path, out: Path, **given: Any) -> Analysis:
    return analyze([capture], out, spark=spark, **given)


def _rows(spark: SparkSession, table: Path) -> list[Row]:
    return spark.read.parquet(str(table)).collect()


@pytest.fixture(scope="module")
def by_evidence(
    spark: SparkSession, capture: Path, tmp_path_factory: pytest.TempPathFactory
) -> Analysis:
    return _analyzed(spark, capture, tmp_path_factory.mktemp("by-evidence"))


@pytest.fixture(scope="module")
def given(spark: SparkSession, capture: Path, tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    return _analyzed(spark, capture, tmp_path_factory.mktemp("given"), ports=[BROKER[1]])


@pytest.fixture(scope="module")
def elsewhere(
    spark: SparkSession, capture: Path, tmp_path_factory: pytest.TempPathFactory
) -> Analysis:
    out = tmp_path_factory.mktemp("elsewhere")
    return _analyzed(spark, capture, out, brokers=["[::1]:9092"], show_credentials=True)


@pytest.mark.long
def test_the_connections_have_the_sums_of_their_frames(
    spark: SparkSession, by_evidence: Analysis, given: Analysis, elsewhere: Analysis
) -> None:
    for analysis in (by_evidence, given, elsewhere):
        counted: Counter[tuple[str, str]] = Counter()
        sizes: Counter[tuple[str, str]] = Counter()
        for frame in _rows(spark, analysis.tables.frames):
            counted[frame.connection, frame.direction] += 1
            sizes[frame.connection, frame.direction] += frame["size"]
        connections = _rows(spark, analysis.tables.connections)
        names = {one.connection for one in connections}
        assert len(names) == len(connections) == 7
        assert names >= {name for name, _ in counted}
        for one in connections:
            name = one.connection
            for direction in ("request", "response"):
                assert one[f"{direction}_frames"] == counted[name, direction]
                assert one[f"{direction}_bytes"] == sizes[name, direction]
            assert name.partition("#")[0] == f"{one.client}>{one.broker}"
            carried = one.request_bytes + one.response_bytes - one.lost_bytes
            assert one.captured_bytes == carried + one.repeated_bytes + one.late_bytes


def test_what_is_not_kafka_is_a_connection_and_nobodys_client(
    spark: SparkSession, by_evidence: Analysis
) -> None:
    connections = {one.client: one for one in _rows(spark, by_evidence.tables.connections)}
    is_kafka = {int(client.rpartition(":")[2]): one.is_kafka for client, one in connections.items()}
    assert is_kafka == {KAFKA_CLIENT: True} | dict.fromkeys(
        (*OTHERS, NOISE_CLIENT, SILENT_CLIENT), False
    )
    resembles = {one.looks_like for one in connections.values() if not one.is_kafka}
    assert resembles == {"TLS", "ZooKeeper", "HTTP", None}
    assert connections[f"10.0.0.7:{SILENT_CLIENT}"].evidence == "nothing was sent"
    frames = _rows(spark, by_evidence.tables.frames)
    others = [one for one in frames if one.outcome == "not Kafka"]
    assert sum(one["size"] for one in others) == sum(map(len, [*OTHERS.values(), NOISE])) + 3 * 20
    told = ("message", "api_key", "api_version", "correlation_id", "client_id", "error", "bytes")
    assert {one[name] for one in others for name in told} == {None}
    assert {one.withheld_credentials for one in others} == {0}
    clients = [one.client.client_id for one in by_evidence.facts.clients]
    assert clients == ["tests"]
    assert {use.client.client_id for use in by_evidence.facts.version_uses} == {"tests"}
    assert by_evidence.facts.totals.clients == 1


@pytest.mark.long
def test_the_facts_count_every_connection_frame_and_byte_once(
    spark: SparkSession, by_evidence: Analysis, given: Analysis, elsewhere: Analysis
) -> None:
    for analysis in (by_evidence, given, elsewhere):
        totals, facts = analysis.facts.totals, analysis.facts.connections
        rows = _rows(spark, analysis.tables.connections)
        frames = _rows(spark, analysis.tables.frames)
        assert len(rows) == totals.connections + facts.not_kafka + facts.silent
        assert len(frames) == totals.frames + facts.not_kafka_frames
        assert sum(one["size"] for one in frames) == totals.bytes + facts.not_kafka_bytes
        assert len(facts.others) == facts.not_kafka
        shown = sum(one.request_bytes + one.response_bytes for one in facts.others)
        assert shown == facts.not_kafka_bytes
    told = {one.facts.connections.given for one in (by_evidence, given, elsewhere)}
    assert told == {(), ("port 9092",), ("[::1]:9092",)}
    unread = [one.facts.connections.unread for one in (by_evidence, given, elsewhere)]
    assert unread == [0, 1, 0]


def test_the_report_says_how_it_was_decided(by_evidence: Analysis, given: Analysis) -> None:
    page = by_evidence.report.read_text()
    assert "No broker was specified" in page
    assert "Not Kafka: 4 connections" in page
    assert "10.0.0.7:7001" in page
    assert (
        "if one of its endpoints was specified as a broker: port 9092." in given.report.read_text()
    )


def test_a_damaged_frame_of_a_kafka_connection_is_a_failure_of_it(
    spark: SparkSession, by_evidence: Analysis
) -> None:
    failed = [one for one in _rows(spark, by_evidence.tables.frames) if one.outcome == "failed"]
    assert sorted(one.direction for one in failed) == ["request", "response"]
    # The headers are whole, so the senders are known.
    assert {one.client_id for one in failed} == {"tests"}
    assert by_evidence.facts.totals.decode_failures == 2


def test_who_closed_a_connection_is_told(spark: SparkSession, by_evidence: Analysis) -> None:
    rows = _rows(spark, by_evidence.tables.connections)
    ends = {one.connection: (one.closed_by, one.reset, one.seen_from_start) for one in rows}
    kafka = f"10.0.0.7:{KAFKA_CLIENT}>10.0.0.1:9092"
    assert ends[kafka] == ("client", False, True)
    # The capture ends before these frames end.
    assert ends[f"{kafka}#2"] == (None, False, True)
    assert all(one.first_time <= one.last_time for one in rows)
    first, again = (next(one for one in rows if one.connection == n) for n in (kafka, f"{kafka}#2"))
    assert first.last_time < again.first_time


def test_given_ports_say_what_is_kafka_but_not_that_other_protocols_are(
    spark: SparkSession, given: Analysis
) -> None:
    connections = {one.client: one for one in _rows(spark, given.tables.connections)}
    kafka = {int(name.rpartition(":")[2]) for name, one in connections.items() if one.is_kafka}
    assert kafka == {KAFKA_CLIENT, NOISE_CLIENT, SILENT_CLIENT}
    noise = connections[f"10.0.0.7:{NOISE_CLIENT}"]
    assert noise.evidence == (
        "10.0.0.1:9092 was given as a broker; nothing on the connection reads as Kafka"
    )
    assert not noise.reads_as_kafka
    # The bytes count as a failure with a reason, identify no client, and may contain credentials.
    (failed,) = [
        one for one in _rows(spark, given.tables.frames) if one.connection == noise.connection
    ]
    assert (failed.outcome, failed.message, failed.client_id) == ("failed", None, None)
    assert failed.error == "nothing on this connection reads as Kafka"
    assert (failed.bytes, failed.withheld_credentials) == (None, 1)
    assert [one.client.client_id for one in given.facts.clients] == ["tests"]


def test_a_broker_elsewhere_makes_everything_here_something_else(
    spark: SparkSession, elsewhere: Analysis
) -> None:
    connections = {one.connection: one for one in _rows(spark, elsewhere.tables.connections)}
    assert not any(one.is_kafka for one in connections.values())
    kafka = connections[f"10.0.0.7:{KAFKA_CLIENT}>10.0.0.1:9092"]
    assert kafka.looks_like == "Kafka"
    assert kafka.evidence.startswith(
        "neither end was given as a broker, but the data reads as Kafka"
    )
    assert elsewhere.tables.message_names() == []
    assert elsewhere.facts.totals.frames == 0
    # Credentials were requested, and other protocols may also contain credentials.
    shown = [bytes(one.bytes) for one in _rows(spark, elsewhere.tables.frames)]
    assert SECRET in {data[: len(SECRET)] for data in shown}


def test_credentials_of_other_protocols_are_withheld(by_evidence: Analysis) -> None:
    for path in (by_evidence.report, by_evidence.facts_file):
        text = path.read_bytes()
        assert SECRET[:20] not in text
        assert SECRET[:20].hex().encode() not in text


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"ports": [0]}, "a port must be from 1 to 65535, got 0"),
        ({"brokers": ["localhost:9092"]}, "got 'localhost:9092'; a capture contains addresses"),
    ],
)
def test_what_is_not_an_end_is_refused_before_anything_is_written(
    tmp_path: Path, given: dict[str, Any], told: str
) -> None:
    with pytest.raises(CaptureError, match=told):
        analyze([tmp_path], tmp_path / "out", **given)
    assert not (tmp_path / "out").exists()
