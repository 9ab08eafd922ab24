"""Real TLS clients reach a TLS cluster through a tap."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from flexwire.demo.cluster import MockCluster
from flexwire.tap import HostPort, ListenTls, TapSecurity, UpstreamTls
from tests.kafka.secured import (
    COUNT,
    TOPIC,
    by_aiokafka,
    by_kafka_python,
    by_librdkafka,
    tapping,
    values,
)
from tests.tls import Authority

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def upstream(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostPort]:
    """Yield a cluster with a tap in front of each broker, so every advertised listener uses TLS."""
    inner = TapSecurity(ListenTls(*authority.certificate(name="broker")))
    with MockCluster() as cluster:
        cluster.create_topic(TOPIC, 3)
        there = HostPort(*cluster.addresses[0])
        with tapping(there, tmp_path_factory.mktemp("inner"), inner) as tap:
            yield tap.listen_address


@pytest.mark.parametrize("client", ["librdkafka", "aiokafka", "kafka-python"])
def test_a_client_reads_back_what_it_wrote_and_the_capture_has_it(
    client: str, upstream: HostPort, authority: Authority, tmp_path: Path
) -> None:
    own = ListenTls(*authority.certificate(name="tap"))
    security = TapSecurity(own, UpstreamTls(authority.path))
    prefix = f"{client}-"
    with tapping(upstream, tmp_path, security) as tap:
        at = str(tap.listen_address)
        if client == "librdkafka":
            read = by_librdkafka(at, authority.path, "none", prefix)
        elif client == "aiokafka":
            read = asyncio.run(by_aiokafka(at, authority.path, "none", prefix))
        else:
            read = by_kafka_python(at, authority.path, prefix)
        # All three brokers, each with its own listener.
        assert len(tap.listeners) >= 3
    sent = Counter(f"{prefix}{number}" for number in range(COUNT))
    assert Counter(read) == sent
    produced, unused = values(tap.capture_paths, "ProduceRequest")
    assert Counter(produced) == sent
    assert unused == set()
    assert tap.stats.rewritten > 0
    assert (tap.stats.handshakes_failed, tap.stats.failures, tap.stats.undecodable) == (0, 0, 0)
