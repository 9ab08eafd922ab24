"""GSSAPI works through the tap with a real KDC and real brokers, as docs/tap.md describes."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.capture.messages import CapturedMessage, read_messages
from flexwire.codec import message
from flexwire.protocol.sasl import is_ticket
from flexwire.tap import HostPort
from tests.kafka.reaching import reach
from tests.kafka.secured import COUNT, TOPIC, values
from tests.kafka.tapping import running
from tests.kafka.tickets import (
    BROKER,
    OTHER,
    STRANGER,
    Ticketed,
    by_java,
    by_kcat,
    by_old_java,
    kcat,
    ticketed,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flexwire.tap import Tap

pytestmark = [pytest.mark.kafka, pytest.mark.slow]
# Clients that send bare tokens: without a handshake, and after a version 0 handshake.
OLD = {"0.9.0.1": 0, "0.10.2.2": 1}
# SASL_AUTHENTICATION_FAILED.
REFUSED = 58


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ticketed]:
    with ticketed("4.4.0", tmp_path_factory.mktemp("tickets-4.4.0")) as found:
        yield found


@pytest.fixture(scope="module")
def older(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ticketed]:
    with ticketed("3.9.2", tmp_path_factory.mktemp("tickets-3.9.2")) as found:
        yield found


@contextmanager
def warned(caplog: pytest.LogCaptureFixture, *, of_names: bool) -> Iterator[None]:
    """Check that the tap warns once that tickets are for a name, or does not warn at all."""
    with caplog.at_level("INFO", "flexwire.tap"):
        yield
    said = [one.getMessage() for one in caplog.records if one.name == "flexwire.tap"]
    assert len(said) == of_names, said
    assert all("give the tap the broker's own name" in one for one in said)


def all_is_well(tap: Tap) -> bool:
    stats = tap.stats
    assert (stats.handshakes_failed, stats.not_tls, stats.broker_handshakes_failed) == (0, 0, 0)
    assert (stats.failures, stats.not_frames, stats.not_requests, stats.unpaired) == (0, 0, 0, 0)
    assert (stats.undecodable, stats.not_rerouted, stats.not_captured, stats.tls) == (0, 0, 0, 0)
    return stats.is_captured


def told(paths: list[Path], name: str) -> list[Any]:
    """Return the messages with this name in captures."""
    return [
        message(name).decode(one.body, one.version)
        for one in read_messages(paths)
        if isinstance(one, CapturedMessage) and one.name == name
    ]


def test_a_tap_that_has_the_broker_s_name_and_tls_is_not_noticed(
    broker: Ticketed, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    at = HostPort(BROKER, broker.tap.port)
    with warned(caplog, of_names=False), running([tap := broker.beside()]):
        ran = by_java(broker, at, "j-", tmp_path / "client.properties")
        assert ran.returncode == 0, ran.stderr[-3000:]
        read = ran.stdout.split() + by_kcat(broker, at, "c-")
    sent = {f"{who}-{number}" for who in "jc" for number in range(COUNT)}
    assert Counter(read) == Counter(sent)
    assert Counter(values(tap.capture_paths, "ProduceRequest")[0]) == Counter(sent)
    assert all_is_well(tap)
    assert tap.stats.gssapi == tap.stats.connections > 4
    # The capture contains the sizes of the tickets, but no ticket.
    tokens = [one.auth_bytes for one in told(tap.capture_paths, "SaslAuthenticateRequest")]
    assert {*b"".join(tokens)} == {*b"*"}
    assert max(map(len, tokens)) > 500
    assert tap.stats.withheld >= 2 * len(tokens) - tap.stats.connections


def test_on_the_broker_s_host_a_tap_may_have_another_port(
    broker: Ticketed, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tap = broker.elsewhere(BROKER, tmp_path / "out")
    with warned(caplog, of_names=True), running([tap]):
        at = HostPort(BROKER, tap.listen_address.port)
        ran = by_java(broker, at, "jp-", tmp_path / "client.properties")
        assert ran.returncode == 0, ran.stderr[-3000:]
        read = ran.stdout.split() + by_kcat(broker, at, "cp-")
    sent = {f"{who}-{number}" for who in ("jp", "cp") for number in range(COUNT)}
    assert Counter(read) == Counter(sent)
    assert Counter(values(tap.capture_paths, "ProduceRequest")[0]) == Counter(sent)
    reached = reach(tap.capture_paths)
    assert (reached.unlike, dict(reached.unused)) == ([], {})
    assert all_is_well(tap)
    assert tap.stats.gssapi == tap.stats.connections
    assert tap.stats.rewritten > 0
    shakes = told(tap.capture_paths, "SaslHandshakeRequest")
    assert [one.mechanism for one in shakes] == ["GSSAPI"] * tap.stats.connections
    # Without TLS nothing is withheld: the first token on each connection is a whole ticket.
    tokens = [one.auth_bytes for one in told(tap.capture_paths, "SaslAuthenticateRequest")]
    assert sum(map(is_ticket, tokens)) == tap.stats.connections
    answers = told(tap.capture_paths, "SaslAuthenticateResponse")
    assert {one.error_code for one in answers} == {0}
    assert len(answers) == len(tokens)


def test_a_ticket_for_another_s_name_is_refused_by_the_broker(
    broker: Ticketed, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tap = broker.elsewhere(OTHER, tmp_path / "out")
    with warned(caplog, of_names=True), running([tap]):
        at = HostPort(OTHER, tap.listen_address.port)
        ran = by_java(broker, at, "jo-", tmp_path / "client.properties")
        assert "errors.SaslAuthenticationException" in ran.stderr
        refused = kcat(broker, at, ["-P", "-t", TOPIC], ["refused"])
        assert "SASL authentication error" in refused.stderr
    answers = told(tap.capture_paths, "SaslAuthenticateResponse")
    assert {one.error_code for one in answers} == {REFUSED}
    assert len(answers) == tap.stats.gssapi == tap.stats.connections
    assert all_is_well(tap)
    assert values(tap.capture_paths, "ProduceRequest")[0] == []


def test_for_a_name_without_keys_clients_have_no_ticket_and_leave(
    broker: Ticketed, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tap = broker.elsewhere(STRANGER, tmp_path / "out")
    with warned(caplog, of_names=True), running([tap]):
        at = HostPort(STRANGER, tap.listen_address.port)
        ran = by_java(broker, at, "js-", tmp_path / "client.properties")
        # The client does not report why it failed, and retries again and again.
        assert "errors.TimeoutException" in ran.stderr
        assert "terminated during authentication" in ran.stderr
        refused = kcat(broker, at, ["-P", "-t", TOPIC], ["refused"])
        assert re.search(r"kafka/stranger.test@.* not found in Kerberos database", refused.stderr)
    names = {
        one.name for one in read_messages(tap.capture_paths) if isinstance(one, CapturedMessage)
    }
    assert names == {
        f"{api}{kind}"
        for api in ("ApiVersions", "SaslHandshake")
        for kind in ("Request", "Response")
    }
    assert tap.stats.gssapi == tap.stats.connections > 2
    assert all_is_well(tap)


@pytest.mark.parametrize("client", OLD)
def test_bare_tokens_of_old_clients_are_told_from_requests(
    older: Ticketed, client: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tap = older.elsewhere(BROKER, tmp_path / "out")
    with warned(caplog, of_names=True), running([tap]):
        at = HostPort(BROKER, tap.listen_address.port)
        ran = by_old_java(older, client, at, f"{client}-", tmp_path / "client.properties")
        assert ran.returncode == 0, ran.stderr[-3000:]
    sent = Counter(f"{client}-{number}" for number in range(COUNT))
    assert Counter(ran.stdout.split()) == sent
    produced, unused = values(tap.capture_paths, "ProduceRequest")
    assert (Counter(produced), unused) == (sent, {"token"})
    count = tap.stats.connections
    assert tap.stats.gssapi == count
    assert len(told(tap.capture_paths, "SaslHandshakeRequest")) == count * OLD[client]
    # The ticket, and the client's reply to the broker's offer, to which the broker does not
    # respond.
    tokens = [
        one for one in read_messages(tap.capture_paths) if not isinstance(one, CapturedMessage)
    ]
    assert len(tokens) == 3 * count
    assert all_is_well(tap)


def test_brokers_of_4_take_no_ticket_without_a_handshake(broker: Ticketed, tmp_path: Path) -> None:
    tap = broker.elsewhere(BROKER, tmp_path / "out")
    with running([tap]):
        at = HostPort(BROKER, tap.listen_address.port)
        ran = by_old_java(broker, "0.9.0.1", at, "o-", tmp_path / "client.properties")
    assert "Failed to update metadata" in ran.stderr
    # These brokers close the connection without a message.
    assert tap.stats.gssapi == tap.stats.requests == tap.stats.connections > 1
    assert tap.stats.responses == 0
    assert all_is_well(tap)
