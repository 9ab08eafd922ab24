"""A failing handshake is described and counted, and no other client loses its connection."""

from __future__ import annotations

import asyncio
import errno
import logging
import ssl
from contextlib import suppress
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.client.tls import classify_handshake, client_context, explain_failure, server_context
from flexwire.tap import ListenTls, TapSecurity, TapStatistics, UpstreamTls
from flexwire.tap import connections as tap_brokers
from flexwire.tap import listeners as tap_listening
from tests.net.broker import (
    LOOPBACK,
    Broker,
    connected,
    run,
    serving,
    settled,
    tapped,
)
from tests.net.test_relay import answering, asking, echo
from tests.net.test_tap_tls import Made, made
from tests.protocol.payloads import frame
from tests.tls import Authority

if TYPE_CHECKING:
    from pathlib import Path

    from flexwire.tap import HostPort

__all__ = ["made"]


async def raw(address: HostPort, data: bytes) -> None:
    """Send these bytes without TLS, and return the answer."""
    async with connected(address) as client:
        await client.send(data)
        await client.reader.read()


async def by_tls(address: HostPort, context: ssl.SSLContext) -> None:
    reader, writer = await asyncio.open_connection(*address, ssl=context)
    try:
        assert await reader.read() == b""
    finally:
        writer.transport.abort()


async def plain(address: HostPort, _made: Made, _path: Path) -> None:
    await raw(address, frame(asking(b"")))


async def http(address: HostPort, _made: Made, _path: Path) -> None:
    await raw(address, b"GET /metrics HTTP/1.1\r\n\r\n")


async def nothing(address: HostPort, _made: Made, _path: Path) -> None:
    async with connected(address):
        pass


async def in_hello(address: HostPort, _made: Made, _path: Path) -> None:
    async with connected(address) as client:
        await client.send(b"\x16\x03\x01\x02\x00\x01")


async def hanging(address: HostPort, _made: Made, _path: Path) -> None:
    await raw(address, b"\x16\x03")


async def distrusting(address: HostPort, _made: Made, path: Path) -> None:
    await by_tls(address, client_context(Authority(path, "others").path))


async def nameless(address: HostPort, made: Made, _path: Path) -> None:
    await by_tls(address, made.client)


async def of_others(address: HostPort, made: Made, path: Path) -> None:
    await by_tls(address, made.mutual(authority=Authority(path, "others")))


async def expired(address: HostPort, made: Made, _path: Path) -> None:
    certificate, key = made.authority.certificate([], expired=True)
    context = client_context(made.authority.path, certificate=certificate, key=key)
    await by_tls(address, context)


CLIENTS = [
    (plain, "not_tls", "the other side does not speak TLS"),
    (http, "not_tls", "the other side does not speak TLS"),
    (nothing, "handshakes_left", "the other side closed the connection during the TLS handshake"),
    (in_hello, "handshakes_left", "the other side closed the connection during the TLS handshake"),
    (distrusting, "handshakes_left", "it refused our certificate without saying so"),
    (hanging, "handshakes_failed", "the TLS handshake took longer than"),
    (nameless, "handshakes_failed", "the other side sent no certificate"),
    (
        of_others,
        "handshakes_failed",
        "the other side's certificate has an issuer that is not trusted here",
    ),
    (
        expired,
        "handshakes_failed",
        "the other side's certificate is not valid: certificate has expired",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(("spoil", "count", "wording"), CLIENTS)
def test_a_client_whose_handshake_fails_is_counted_and_the_reason_said_once(  # noqa: PLR0917 - fixtures
    spoil: Any,
    count: str,
    wording: str,
    made: Made,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if spoil is hanging:
        monkeypatch.setattr(tap_listening, "HANDSHAKE_SECONDS", 0.05)
    asks = ListenTls(
        made.listen.certificate, made.listen.key, None, made.authority.path, "required"
    )
    security = TapSecurity(asks, as_one_principal=True)

    async def job() -> None:
        async with (
            serving(Broker(echo)) as upstream,
            tapped(upstream, tmp_path, security=security) as tap,
        ):
            for number in (1, 2):
                with suppress(OSError):  # refused, as expected
                    await spoil(tap.listen_address, made, tmp_path)
                await settled(lambda n=number: getattr(tap.stats, count) == n)  # type: ignore[misc]
            await settled(lambda: tap.stats.open_connections == 0)
            # Other connections are unaffected, and may take all the time that they need.
            monkeypatch.undo()
            async with connected(tap.listen_address, made.mutual()) as client:
                assert await client.ask(asking(b"x")) == answering(b"x")
            assert told(tap.stats) == {"connections": 3, count: 2}

    with caplog.at_level(logging.WARNING, "flexwire.tap"):
        run(job())
    (said,) = [one.getMessage() for one in caplog.records if one.name == "flexwire.tap"]
    assert said.startswith(f"{LOOPBACK}: connection closed, because TLS could not be started: ")
    assert wording in said


def told(stats: TapStatistics) -> dict[str, int]:
    """Return the counts from a run, except frames and bytes."""
    silent = {"requests", "responses", "request_bytes", "response_bytes", "open_connections"}
    names = {one.name for one in fields(stats)} - silent
    return {name: getattr(stats, name) for name in names if getattr(stats, name)}


async def closes(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def answers_in_plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read(1)
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")


async def says_nothing(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
    await reader.read()
    await reader.read()


def broker_of(what: str, made: Made, path: Path) -> tuple[Any, ssl.SSLContext | None]:
    if what in PLAIN_BROKERS:
        return PLAIN_BROKERS[what], None
    authority = Authority(path, "others") if what == "unknown" else made.authority
    hosts = ["elsewhere.example"] if what == "name" else [LOOPBACK]
    own = authority.certificate(hosts, expired=what == "expired")
    return Broker(echo), server_context(*own)


PLAIN_BROKERS = {"closes": closes, "plain": answers_in_plain, "hangs": says_nothing}
BROKERS = [
    ("unknown", "the other side's certificate has an issuer that is not trusted here"),
    ("expired", "the other side's certificate is not valid: certificate has expired"),
    ("name", "certificate is not valid for '127.0.0.1'"),
    ("closes", "the other side closed the connection during the TLS handshake"),
    ("plain", "the other side does not speak TLS"),
    ("hangs", "the TLS handshake took longer than"),
]


@pytest.mark.parametrize(("what", "wording"), BROKERS)
def test_a_broker_with_which_tls_cannot_be_begun_is_counted_and_said(
    what: str,
    wording: str,
    made: Made,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if what == "hangs":
        monkeypatch.setattr(tap_brokers, "HANDSHAKE_SECONDS", 0.05)
    handler, context = broker_of(what, made, tmp_path)

    async def job() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # the broker's
        async with (
            serving(handler, context) as upstream,
            tapped(upstream, tmp_path, security=TapSecurity(None, made.upstream)) as tap,
        ):
            for _ in range(2):
                async with connected(tap.listen_address) as client:
                    assert await client.reader.read() == b""
            assert told(tap.stats) == {"connections": 2, "broker_handshakes_failed": 2}

    with caplog.at_level(logging.WARNING, "flexwire.tap"):
        run(job())
    (said,) = [one.getMessage() for one in caplog.records if one.name == "flexwire.tap"]
    assert said.startswith(f"cannot reach {LOOPBACK}:")
    assert wording in said


def test_a_broker_that_asks_for_a_certificate_which_the_tap_does_not_have_is_counted(
    made: Made, tmp_path: Path
) -> None:
    ca = made.authority.path
    context = server_context(*made.authority.certificate(), ca=ca, client_auth="required")

    async def job() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)  # the broker's
        async with (
            serving(Broker(echo), context) as upstream,
            tapped(upstream, tmp_path, security=TapSecurity(None, UpstreamTls(ca))) as tap,
            connected(tap.listen_address) as client,
        ):
            await client.send(frame(asking(b"")))
            assert await client.reader.read() == b""
            await settled(lambda: tap.stats.open_connections == 0)
            # asyncio's servers end a failing handshake without a reason; Kafka's give a reason
            # (tests/kafka).
            assert tap.stats.responses == 0

    run(job())


@pytest.mark.parametrize(
    ("reason", "wording"),
    [
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "requires a certificate, but none was given"),
        ("TLSV1_ALERT_UNKNOWN_CA", "does not trust the issuer of our certificate"),
        ("SSLV3_ALERT_CERTIFICATE_UNKNOWN", "does not accept our certificate"),
        ("NO_SHARED_CIPHER", "no cipher in common"),
        ("SOMETHING_NEW", "what OpenSSL said"),
    ],
)
def test_what_the_other_side_says_is_worded(reason: str, wording: str) -> None:
    error = ssl.SSLError(1, "what OpenSSL said")
    error.reason = reason
    assert wording in explain_failure(error)
    assert classify_handshake(error) == "handshakes_failed"


def test_what_a_name_in_a_certificate_holds_is_escaped() -> None:
    error = ssl.SSLCertVerificationError(1, "no")
    error.verify_message = "valid for \x1b[2J"
    assert "\x1b" not in explain_failure(error)


def test_too_many_open_files_do_not_end_the_listener(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(tap_listening, "_RETRY_SECONDS", 0.0)

    async def job() -> None:
        loop = asyncio.get_running_loop()
        real = loop.sock_accept
        failed: list[Any] = []

        async def accept(sock: Any) -> Any:
            if len(failed) < 3:
                failed.append(sock)
                raise OSError(errno.EMFILE, "too many open files")
            return await real(sock)

        monkeypatch.setattr(loop, "sock_accept", accept)
        async with (
            serving(Broker(echo)) as upstream,
            tapped(upstream, tmp_path) as tap,
            connected(tap.listen_address) as client,
        ):
            assert await client.ask(asking(b"x")) == answering(b"x")
            assert len(failed) == 3

    run(job())
    assert "too many open files" in caplog.text
