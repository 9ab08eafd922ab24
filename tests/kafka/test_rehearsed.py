"""A tap that rehearses a release before a 3.9.2 broker behaves like a broker of that release."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, KafkaError, Producer
from kafka import KafkaProducer
from kafka.errors import KafkaError as PythonError

from flexwire.capture.files.comments import read_rehearsed
from flexwire.codec import message
from flexwire.protocol.apis import api_key_of
from flexwire.protocol.audit.evidence import offered_versions, stable_versions
from flexwire.tap import ListenTls, Tap, TapSecurity, UpstreamTls, parse_host_port
from flexwire.tap.rehearsal import RehearsalPlan
from tests.kafka.secured import COUNT, LOOPBACK, Secured, by_librdkafka, secured
from tests.kafka.tapping import MOST_SECONDS, running
from tests.protocol.payloads import frame, make, request_payload
from tools.broker import broker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flexwire.tap import HostPort

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

REAL, REHEARSED = "3.9.2", ("4.0.2", "4.4.0")
API_VERSIONS = 18
# Requests that change nothing, by API, with the fields that brokers require.
ASKED: dict[str, dict[str, Any]] = {
    "Produce": {"acks": -1},
    "Fetch": {},
    "ListOffsets": {"replica_id": -1},
    "Metadata": {},
    "DescribeGroups": {},
    "ListGroups": {},
    "CreateTopics": {},
    "DeleteTopics": {},
    "DescribeConfigs": {},
}


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured(REAL, tmp_path_factory.mktemp("old")) as found:
        yield found


@pytest.fixture(scope="module", params=REHEARSED)
def new(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, HostPort]]:
    directory = tmp_path_factory.mktemp(f"new-{request.param}")
    with broker(request.param, directory) as address:
        yield request.param, parse_host_port(address)


def said(address: HostPort, *payloads: bytes) -> list[bytes]:
    """Return the answers to requests on one connection; fewer answers if the broker closes it."""
    answers: list[bytes] = []
    with socket.create_connection(address, MOST_SECONDS) as plain, plain.makefile("rb") as heard:
        plain.sendall(b"".join(map(frame, payloads)))
        for _ in payloads:
            try:
                prefix = heard.read(4)
            except ConnectionResetError:
                break
            if len(prefix) < 4:
                break
            answers.append(heard.read(int.from_bytes(prefix, "big")))
    return answers


def asks(version: int) -> bytes:
    known = min(version, 5) if version >= 0 else 5
    told = {"client_software_name": "tests", "client_software_version": "1"} if known >= 3 else {}
    body = make("ApiVersionsRequest", **told).encode(known)
    payload = request_payload(
        API_VERSIONS, max(version, known), body, correlation_id=version & 0xFFFF
    )
    return payload[:2] + version.to_bytes(2, "big", signed=True) + payload[4:]


def shown(payload: bytes, version: int) -> Any:
    kind: Any = message("ApiVersionsResponse")
    return kind.decode(payload[4:], version)


def test_lists_are_those_of_the_release_but_for_what_is_documented(
    old: Secured, new: tuple[str, HostPort], tmp_path: Path
) -> None:
    release, real = new
    tap = Tap((LOOPBACK, 0), old.listeners["PLAINTEXT"], tmp_path, rehearsal=RehearsalPlan(release))
    highest = stable_versions(API_VERSIONS, release).highest
    equal = 0
    with running([tap]):
        for version in (*range(7), 99, 32767, -1, -32768):
            (theirs,), (ours,) = said(real, asks(version)), said(tap.listen_address, asks(version))
            if not 0 <= version <= highest:
                assert ours == theirs
                equal += 1
                continue
            # The documented differences are APIs that only 3.9.2 has, and facts about its own
            # cluster.
            (source,) = said(old.listeners["PLAINTEXT"], asks(min(version, 4)))
            from_old, found = shown(source, min(version, 4)), shown(ours, version)
            expected = shown(theirs, version)
            offers = {one.api_key: one for one in from_old.api_keys}
            kept = []
            for one in expected.api_keys:
                if one.api_key in offers:
                    one.min_version = max(one.min_version, offers[one.api_key].min_version)
                    one.max_version = min(one.max_version, offers[one.api_key].max_version)
                    kept += [one] if one.min_version <= one.max_version else []
            expected.api_keys = kept
            for field in ("supported_features", "finalized_features", "finalized_features_epoch"):
                setattr(expected, field, getattr(from_old, field))
            assert found.throttle_time_ms == from_old.throttle_time_ms
            assert ours == theirs[:4] + expected.encode(version)
    assert equal == 11 - highest - 1


def test_the_catalog_has_what_the_release_offers(new: tuple[str, HostPort]) -> None:
    release, real = new
    (payload,) = said(real, asks(4))
    for one in shown(payload, 4).api_keys:
        own = offered_versions(one.api_key, release)
        assert (one.min_version, one.max_version) == (own.lowest, own.highest), one.api_key


def test_what_the_release_refuses_is_refused_and_all_else_is_answered(
    old: Secured, new: tuple[str, HostPort], tmp_path: Path
) -> None:
    release, real = new
    tap = Tap((LOOPBACK, 0), old.listeners["PLAINTEXT"], tmp_path, rehearsal=RehearsalPlan(release))
    closed = 0
    with running([tap]):
        for name, fields in ASKED.items():
            api_key = api_key_of(name)
            for version in stable_versions(api_key, REAL):
                body = message(f"{name}Request")(**fields)
                payload = request_payload(api_key, version, body)
                # Earlier requests are answered first.
                both = [asks(0), payload]
                theirs, ours = said(real, *both), said(tap.listen_address, *both)
                assert len(ours) == len(theirs), (name, version)
                closed += len(ours) == 1
    assert closed >= 10
    assert tap.stats.rehearsed_closed == closed
    did = [one.did for path in tap.capture_paths for one in read_rehearsed(path)]
    assert did.count("closed") == closed


def test_clients_fail_and_go_on_as_with_the_release(
    old: Secured, new: tuple[str, HostPort], tmp_path: Path
) -> None:
    release, real = new
    tap = Tap((LOOPBACK, 0), old.listeners["PLAINTEXT"], tmp_path, rehearsal=RehearsalPlan(release))
    with running([tap]):
        for address in (real, tap.listen_address):
            assert by_confluent(str(address), f"confluent-{release}") == [b"0", b"1", b"2"]
            assert by_old_producer(str(address)) is False
        assert tap.stats.rehearsed_closed > 0
        # After the rehearsal ends, the same client works.
        tap.end_rehearsal()
        assert by_old_producer(str(tap.listen_address)) is True
    assert tap.rehearsal is not None
    assert {client_id for _, client_id in tap.rehearsal.failed} == {"old-producer"}


def by_confluent(address: str, topic: str) -> list[bytes]:
    """Write and read with a current client."""
    producer = Producer({"bootstrap.servers": address})
    for number in range(3):
        producer.produce(topic, str(number).encode(), partition=0)
    assert producer.flush(MOST_SECONDS) == 0
    told = {"bootstrap.servers": address, "group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer(told)
    consumer.subscribe([topic])
    found: list[bytes] = []
    while len(found) < 3:
        record = consumer.poll(MOST_SECONDS)
        assert record is not None
        error: KafkaError | None = record.error()
        if error is None:
            found.append(record.value() or b"")
        else:
            assert error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    consumer.close()
    return found


def by_old_producer(address: str) -> bool:
    """Return whether a client that sends requests as in Kafka 0.10, without ApiVersions, works."""
    producer = KafkaProducer(
        bootstrap_servers=address,
        client_id="old-producer",
        api_version=(0, 10, 2),
        max_block_ms=5000,
        request_timeout_ms=3000,
        retries=0,
    )
    try:
        producer.send("old", b"x").get(15)
    except PythonError:
        return False
    finally:
        producer.close(1)
    return True


@pytest.mark.parametrize("mechanism", ["none", "PLAIN"])
def test_it_works_before_a_login_and_under_tls(
    old: Secured, mechanism: str, tmp_path: Path
) -> None:
    ca = old.authority.path
    own = ListenTls(*old.authority.certificate(name=f"tap-{mechanism}"))
    tap = Tap(
        (LOOPBACK, 0),
        old.upstream(mechanism),
        tmp_path,
        security=TapSecurity(own, UpstreamTls(ca)),
        rehearsal=RehearsalPlan("4.4"),
    )
    with running([tap]):
        read = by_librdkafka(str(tap.listen_address), ca, mechanism, f"{mechanism}-")
        assert len([value for value in read if value.startswith(f"{mechanism}-")]) == COUNT
    assert tap.stats.rehearsed_narrowed + tap.stats.rehearsed_sent_on > 0
    assert tap.stats.rehearsed_closed == 0
