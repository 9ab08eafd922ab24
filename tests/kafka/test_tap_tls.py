"""Clients of real brokers with TLS work through a tap, and the capture contains their traffic."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaException, Producer

from flexwire.capture.files.comments import read_stamps
from flexwire.tap import ListenTls, TapSecurity, UpstreamTls
from flexwire.tap.header_stamps import HeaderTag, StampConfig
from tests.kafka.secured import (
    COUNT,
    MECHANISMS,
    PASSWORD,
    TOPIC,
    Secured,
    by_aiokafka,
    by_java,
    by_librdkafka,
    secured,
    tapping,
    values,
)
from tools.broker import VERSIONS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.kafka, pytest.mark.slow]


@pytest.fixture(scope="module", params=VERSIONS)
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Secured]:
    with secured(request.param, tmp_path_factory.mktemp(f"tls-{request.param}")) as found:
        yield found


def own(broker: Secured) -> ListenTls:
    return ListenTls(*broker.authority.certificate(name="tap"))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_client_speaks_through_the_tap_and_the_capture_has_all_of_it(
    broker: Secured, mechanism: str, tmp_path: Path
) -> None:
    security = TapSecurity(own(broker), UpstreamTls(broker.authority.path))
    ca = broker.authority.path
    with tapping(broker.upstream(mechanism), tmp_path / "out", security) as tap:
        at = str(tap.listen_address)
        read = by_librdkafka(at, ca, mechanism, f"c-{mechanism}-")
        read += by_java(
            at, ca, mechanism, f"j-{mechanism}-", broker.version, tmp_path / "client.properties"
        )
        read += asyncio.run(by_aiokafka(at, ca, mechanism, f"a-{mechanism}-"))
        paths = tap.capture_paths
    sent = {f"{who}-{mechanism}-{number}" for who in "cja" for number in range(COUNT)}
    assert Counter(read) == Counter(sent)
    produced, unused = values(paths, "ProduceRequest")
    assert Counter(produced) == Counter(sent)
    assert unused <= {"token"}
    assert sent <= set(values(paths, "FetchResponse")[0])
    stats = tap.stats
    assert (stats.handshakes_failed, stats.not_tls, stats.broker_handshakes_failed) == (0, 0, 0)
    assert (stats.failures, stats.not_frames, stats.undecodable, stats.tls) == (0, 0, 0, 0)
    assert stats.is_captured
    assert stats.rewritten > 0
    assert (stats.withheld > 0) is (mechanism != "none")
    assert not any(PASSWORD.encode() in path.read_bytes() for path in paths)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
def test_stamped_requests_pass_and_those_of_sasl_are_not_stamped(
    broker: Secured, mechanism: str, tmp_path: Path
) -> None:
    ca, out = broker.authority.path, tmp_path / "out"
    security = TapSecurity(own(broker), UpstreamTls(ca))
    stamping = StampConfig([HeaderTag(10_042, "for {client}")])
    with tapping(broker.upstream(mechanism), out, security, stamping) as tap:
        at, properties = str(tap.listen_address), tmp_path / "client.properties"
        read = by_java(at, ca, mechanism, f"s-{mechanism}-", broker.version, properties)
    assert Counter(read) == Counter(f"s-{mechanism}-{number}" for number in range(COUNT))
    stats, stamps = tap.stats, [one for path in tap.capture_paths for one in read_stamps(path)]
    # Kafka's own client begins SASL with ApiVersions v0; all its other requests are flexible.
    assert stats.unstamped_not_flexible == stats.connections
    assert stats.unstamped_sasl >= 2 * stats.connections
    assert stats.stamped == len(stamps) > stats.connections
    unstamped = stats.unstamped_not_flexible + stats.unstamped_sasl
    assert stats.stamped + unstamped == stats.requests
    assert all(one.tags == {10_042: f"for {one.client}".encode()} for one in stamps)


@pytest.mark.parametrize("name", ["the-tap", "a-stranger"])
def test_with_a_certificate_of_its_own_the_tap_is_the_principal_that_acls_know(
    broker: Secured, name: str, tmp_path: Path
) -> None:
    certificate, key = broker.authority.certificate([], name=name)
    theirs = UpstreamTls(broker.authority.path, certificate, key)
    security = TapSecurity(own(broker), theirs, as_one_principal=True)
    with tapping(broker.listeners["MTLS"], tmp_path, security) as tap:
        told = {"bootstrap.servers": str(tap.listen_address), "security.protocol": "ssl"}
        told |= {"ssl.ca.location": str(broker.authority.path)}
        refused: list[object] = []
        producer = Producer({**told, "log_level": 2, "message.timeout.ms": 30_000})
        producer.produce(
            TOPIC, b"as one", on_delivery=lambda error, _: refused.append(error and error.name())
        )
        producer.flush(60)
    assert refused == ([None] if name == "the-tap" else ["TOPIC_AUTHORIZATION_FAILED"])
    assert values(tap.capture_paths, "ProduceRequest")[0] == ["as one"] * (name == "the-tap")


def test_without_a_certificate_where_brokers_ask_for_one_their_reason_is_logged(
    broker: Secured, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    security = TapSecurity(None, UpstreamTls(broker.authority.path))
    with (
        caplog.at_level("INFO", "flexwire.tap"),
        tapping(broker.listeners["MTLS"], tmp_path, security) as tap,
    ):
        producer = Producer({"bootstrap.servers": str(tap.listen_address), "log_level": 0})
        with pytest.raises(KafkaException):
            producer.list_topics(timeout=3)
        del producer
    said = [one.getMessage() for one in caplog.records if one.name == "flexwire.tap"]
    (one,) = said
    assert one.startswith(
        f"{broker.listeners['MTLS']}: connection closed, because TLS could not be started: "
    )
    assert one.endswith(
        "does not accept our certificate, or requires a certificate but none was given"
    )
    # The client retries until the end, so its last connection may end with the tap.
    assert tap.stats.connections - tap.stats.broker_handshakes_failed <= 1
    assert tap.stats.reset == 0
