"""A tap with TLS forwards traffic, reaches the brokers, and names the principal."""

from __future__ import annotations

import asyncio
import random
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.capture.files.links import Segment, read_segments
from flexwire.capture.reassembly.assembly import FrameAssembler
from flexwire.client.tls import client_context, server_context
from flexwire.codec import message
from flexwire.errors import TapError, TlsError
from flexwire.tap import HostPort, ListenTls, Tap, TapSecurity, UpstreamTls, run_tap
from flexwire.tap.connections import LocalRunner
from tests.net.broker import (
    CHUNK_BYTES,
    LOOPBACK,
    Broker,
    captured,
    connected,
    run,
    serving,
    settled,
    tapped,
)
from tests.net.test_relay import SASL_HANDSHAKE, answering, asking, echo
from tests.net.test_rewriting import METADATA, metadata
from tests.protocol.payloads import frame, make, request_payload, response_payload
from tests.tls import Authority

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from flexwire.protocol import RequestFrame

RANDOM = random.Random(11)


@dataclass(frozen=True)
class Made:
    """Make one authority for both sides, the broker's certificate, and the clients'
    certificates.
    """

    authority: Authority
    broker: ssl.SSLContext
    client: ssl.SSLContext
    listen: ListenTls
    upstream: UpstreamTls

    @property
    def both(self) -> TapSecurity:
        return TapSecurity(self.listen, self.upstream)

    def mutual(self, name: str = "alice", authority: Authority | None = None) -> ssl.SSLContext:
        certificate, key = (authority or self.authority).certificate([], name=name)
        return client_context(self.authority.path, certificate=certificate, key=key)


def closing(paths: Iterable[Path]) -> list[tuple[str | None, bool]]:
    """Return the end that closed each captured connection, and whether it sent a reset."""
    assembler = FrameAssembler()
    for path in paths:
        for segment in read_segments(path):
            assert isinstance(segment, Segment)
            assembler.push(segment)
    assembler.finish()
    return [(one.closed_by, one.reset) for one in assembler.ended()]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    authority = Authority(tmp_path_factory.mktemp("tls"))
    return Made(
        authority,
        server_context(*authority.certificate()),
        client_context(authority.path),
        ListenTls(*authority.certificate(name="tap")),
        UpstreamTls(authority.path),
    )


@pytest.mark.slow
@pytest.mark.parametrize("size", [0, 1000, CHUNK_BYTES, 3 * CHUNK_BYTES + 5])
@pytest.mark.parametrize("sides", ["listen", "upstream", "both"])
def test_bytes_go_through_unchanged_and_are_captured_in_plain(
    sides: str, size: int, made: Made, tmp_path: Path
) -> None:
    # A tap buffers little data until the first answer.
    bodies = [b"", *[RANDOM.randbytes(size)] * 3]
    asked = b"".join(frame(asking(body)) for body in bodies)
    answered = b"".join(frame(answering(body)) for body in bodies)
    listens, connects = sides != "upstream", sides != "listen"
    security = TapSecurity(made.listen if listens else None, made.upstream if connects else None)

    async def job() -> None:
        broker = Broker(echo)
        async with (
            serving(broker, made.broker if connects else None) as upstream,
            tapped(upstream, tmp_path, security=security) as tap,
        ):
            async with connected(tap.listen_address, made.client if listens else None) as client:
                for body in bodies:
                    assert await client.ask(asking(body)) == answering(body)
            await settled(lambda: tap.stats.open_connections == 0)
            streams = captured(tap.capture_paths)
            assert bytes(broker.received[0]) == asked
            assert streams[client.port, upstream.port] == asked
            assert streams[upstream.port, client.port] == answered
            stats = tap.stats
            assert (stats.requests, stats.responses, stats.reset, stats.broken_off) == (4, 4, 0, 0)
            assert (stats.tls, stats.not_tls, stats.handshakes_failed, stats.withheld) == (0,) * 4

    run(job())


def advertising(*brokers: HostPort) -> Callable[[RequestFrame, bytes], bytes]:
    def answer(request: RequestFrame, payload: bytes) -> bytes:
        if request.api_key == METADATA:
            return response_payload(METADATA, 1, metadata(1, *brokers))
        return echo(request, payload)

    return answer


def told(payload: bytes) -> list[HostPort]:
    body: Any = message("MetadataResponse").decode(payload[4:], 1)
    return [HostPort(one.host, one.port) for one in body.brokers]


@pytest.mark.parametrize("name", ["localhost", LOOPBACK])
def test_every_advertised_listener_leads_to_one_with_tls_and_a_name_that_holds(
    name: str, made: Made, tmp_path: Path
) -> None:
    asked: list[str | None] = []
    shown = server_context(*made.authority.certificate(["localhost"]))
    shown.sni_callback = lambda _object, sni, _context: asked.append(sni)

    async def job() -> None:
        async with serving(Broker(echo), shown) as second:
            far = HostPort("localhost", second.port)
            broker = Broker(advertising(far, far))
            async with (
                serving(broker, made.broker) as upstream,
                tapped(upstream, tmp_path, security=made.both) as tap,
            ):
                async with connected(tap.listen_address, made.client, name) as client:
                    (one, same) = told(await client.ask(request_payload(METADATA, 1)))
                # The tap connects by the name that the broker's certificate covers.
                assert one == same == HostPort(name, tap.listeners[far].port)
                async with connected(HostPort(LOOPBACK, one.port), made.client, one.host) as client:
                    assert await client.ask(asking(b"there")) == answering(b"there")
                # The client asked for the broker by its advertised name.
                assert asked == ["localhost"]

    run(job())


def test_a_name_that_is_given_is_the_one_that_is_advertised(made: Made, tmp_path: Path) -> None:
    far = HostPort("broker-3.cluster.example", 29092)

    async def advertised(security: TapSecurity, **options: Any) -> HostPort:
        async with (
            serving(Broker(advertising(far))) as upstream,
            tapped(upstream, tmp_path, security=security, **options) as tap,
        ):
            tls = None if security.listen is None else made.client
            async with connected(tap.listen_address, tls) as client:
                (one,) = told(await client.ask(request_payload(METADATA, 1)))
            return one

    plain, listens = TapSecurity(), TapSecurity(made.listen)
    assert run(advertised(listens, advertised_host="tap.example")).host == "tap.example"
    assert run(advertised(plain, advertised_host="tap.example")).host == "tap.example"
    assert run(advertised(plain)).host == LOOPBACK
    assert run(advertised(listens, keep_addresses=True)) == far
    assert run(advertised(plain, keep_addresses=True)) == far


def test_a_broker_at_another_address_is_known_by_the_name_that_is_given(
    made: Made, tmp_path: Path
) -> None:
    shown = server_context(*made.authority.certificate(["broker-1.example"]))

    async def answered(**options: Any) -> bytes:
        theirs = UpstreamTls(made.authority.path, **options)
        async with (
            serving(Broker(echo), shown) as upstream,
            tapped(upstream, tmp_path, security=TapSecurity(None, theirs)) as tap,
            connected(tap.listen_address) as client,
        ):
            await client.send(frame(asking(b"x")))
            return await client.reader.read(4)

    assert run(answered()) == b""
    assert run(answered(name="broker-2.example")) == b""
    assert run(answered(name="broker-1.example")) != b""
    assert run(answered(check_names=False)) != b""


def test_the_tap_comes_with_its_certificate_and_asks_for_clients(
    made: Made, tmp_path: Path
) -> None:
    came: list[str] = []

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        subject = writer.get_extra_info("peercert")["subject"]
        came.append(dict(pair for one in subject for pair in one)["commonName"])
        await Broker(echo)(reader, writer)

    ca = made.authority.path
    shown = server_context(*made.authority.certificate(), ca=ca, client_auth="required")
    own, key = made.authority.certificate([], name="the-tap", password="opens")  # noqa: S106 - of a test
    security = TapSecurity(
        ListenTls(made.listen.certificate, made.listen.key, None, ca, "required"),
        UpstreamTls(made.authority.path, own, key, "opens"),
        as_one_principal=True,
    )

    async def job() -> None:
        async with (
            serving(handler, shown) as upstream,
            tapped(upstream, tmp_path, security=security) as tap,
        ):
            for name in ("alice", "bob"):
                async with connected(tap.listen_address, made.mutual(name)) as client:
                    assert await client.ask(asking(b"x")) == answering(b"x")
            assert came == ["the-tap", "the-tap"]

    run(job())
    assert "opens" not in repr(security)


@pytest.mark.parametrize("side", ["listen", "upstream"])
def test_principals_are_not_taken_away_unasked(side: str, made: Made, tmp_path: Path) -> None:
    own = made.listen.certificate, made.listen.key
    security = {
        "listen": TapSecurity(ListenTls(*own, client_auth="requested")),
        "upstream": TapSecurity(None, UpstreamTls(made.authority.path, *own)),
    }[side]
    with pytest.raises(TapError, match="one principal") as caught:
        run(run_tap(HostPort(LOOPBACK, 0), HostPort(LOOPBACK, 1), tmp_path, security=security))
    assert "--as-one-principal" in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_a_certificate_that_cannot_be_read_is_said_before_anything_is_written(
    tmp_path: Path,
) -> None:
    security = TapSecurity(ListenTls(tmp_path / "no.pem"))
    with pytest.raises(TlsError, match=r"no\.pem: expected a certificate and its key in PEM"):
        run(run_tap(HostPort(LOOPBACK, 0), HostPort(LOOPBACK, 1), tmp_path, security=security))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("listen", "upstream", "security", "wording"),
    [
        ("ssl://127.0.0.1:0", "127.0.0.1:1", "none", "TLS needs a certificate"),
        (
            "127.0.0.1:0",
            "ssl://127.0.0.1:1",
            "listen",
            "a certificate requires ssl:// before the address",
        ),
        ("ssl://127.0.0.1:0", "plaintext://127.0.0.1:1", "both", "the TLS options require ssl://"),
        ("http://127.0.0.1:0", "127.0.0.1:1", "none", "expected one of plaintext://, .*'http://'"),
        ("ssl://127.0.0.1", "127.0.0.1:1", "listen", "expected host:port"),
    ],
)
def test_addresses_and_options_that_do_not_fit_are_said(
    listen: str, upstream: str, security: str, wording: str, made: Made, tmp_path: Path
) -> None:
    given = {"none": TapSecurity(), "listen": TapSecurity(made.listen), "both": made.both}[security]
    with pytest.raises(TapError, match=wording):
        run(run_tap(listen, upstream, tmp_path, security=given))


def test_a_program_with_protocols_before_its_addresses(made: Made, tmp_path: Path) -> None:
    async def job() -> None:
        started: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        async with serving(Broker(echo), made.broker) as upstream:
            program = asyncio.create_task(
                run_tap(
                    f"SASL_SSL://{LOOPBACK}:0",
                    f"ssl://{upstream}",
                    tmp_path,
                    security=made.both,
                    ready=started.set_result,
                )
            )
            tap = await started
            async with connected(tap.listen_address, made.client) as client:
                assert await client.ask(asking(b"x")) == answering(b"x")
            program.cancel()
            await asyncio.gather(program, return_exceptions=True)

    run(job())


def shakes(version: int) -> bytes:
    handshake = make("SaslHandshakeRequest", mechanism="GSSAPI")
    return request_payload(SASL_HANDSHAKE, version, handshake)


TICKET = bytes.fromhex("600d06092a864886f712010202") + b"secret"


@pytest.mark.slow
@pytest.mark.parametrize("begins", [[shakes(1)], [shakes(0), TICKET], [TICKET]])
@pytest.mark.parametrize("keeps", [True, False])
def test_gssapi_is_counted_and_said_once_where_its_ticket_cannot_be_for_the_tap(
    keeps: Any, begins: list[bytes], made: Made, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:

    async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for one in begins:
            await reader.readexactly(4 + len(one))
            # A handshake's correlation id, error code 0, and the same mechanism.
            told = b"secret" if one == TICKET else one[4:8] + b"\0\0\0\0\0\1\0\6GSSAPI"
            writer.write(frame(told))

    async def job() -> None:
        async with (
            serving(answers) as upstream,
            tapped(
                upstream, tmp_path, security=TapSecurity(made.listen), keep_addresses=keeps
            ) as tap,
        ):
            for _ in range(2):
                async with connected(tap.listen_address, made.client) as client:
                    for one in begins:
                        await client.ask(one)
            await settled(lambda: tap.stats.open_connections == 0)
            assert (tap.stats.gssapi, tap.stats.not_requests, tap.stats.unpaired) == (2, 0, 0)
            assert tap.stats.withheld == 4 * (TICKET in begins)
        assert not any(b"secret" in path.read_bytes() for path in tap.capture_paths)

    run(job())
    assert caplog.text.count("a client uses Kerberos (GSSAPI)") == (0 if keeps else 1)


# How connections end.


def test_a_client_that_does_not_answer_the_end_of_tls_is_let_go_with_the_tap(
    made: Made, tmp_path: Path
) -> None:
    async def job() -> None:
        async with serving(Broker(echo)) as upstream:
            async with tapped(upstream, tmp_path, security=TapSecurity(made.listen)) as tap:
                reader, writer = await asyncio.open_connection(*tap.listen_address, ssl=made.client)
                writer.write(frame(asking(b"x")))
                await reader.readexactly(4)
                # The client reads no more, so it never notices that the tap has ended TLS.
                transport: Any = writer.transport
                transport._ssl_protocol._transport.pause_reading()
            writer.transport.abort()

    run(job())


def test_a_client_that_ends_its_direction_still_gets_its_answers_from_a_broker_with_tls(
    made: Made, tmp_path: Path
) -> None:
    ended = asyncio.Event()

    class Slow(Broker):
        async def __call__(
            self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
        ) -> None:
            await ended.wait()
            await super().__call__(reader, writer)

    async def job() -> None:
        security = TapSecurity(None, made.upstream)
        async with (
            serving(Slow(echo), made.broker) as upstream,
            tapped(upstream, tmp_path, security=security) as tap,
        ):
            async with connected(tap.listen_address) as client:
                await client.send(frame(asking(b"1")) + frame(asking(b"2")))
                client.writer.write_eof()
                await settled(lambda: tap.stats.requests == 2)
                ended.set()
                assert await client.receive() == answering(b"1")
                assert await client.receive() == answering(b"2")
                assert await client.reader.read() == b""
            await settled(lambda: tap.stats.open_connections == 0)
            assert (tap.stats.reset, tap.stats.left_early) == (0, 0)

    run(job())


@pytest.mark.parametrize("both", ["listen", "both"])
def test_a_client_that_ends_tls_ends_its_connection_and_is_counted(
    both: str, made: Made, tmp_path: Path
) -> None:
    left = asyncio.Event()
    gone = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(frame(asking(b""))))
        await left.wait()
        with suppress(OSError):  # a broker with TLS learns that the client left
            writer.write(frame(answering(b"too late")))
            await writer.drain()
            assert await reader.read() == b""
        gone.set()

    connects = both == "both"
    security = TapSecurity(made.listen, made.upstream if connects else None)

    async def job() -> None:
        async with (
            serving(handler, made.broker if connects else None) as upstream,
            tapped(upstream, tmp_path, security=security) as tap,
        ):
            async with connected(tap.listen_address, made.client) as client:
                await client.send(frame(asking(b"")))
                await settled(lambda: tap.stats.requests == 1)
            left.set()
            await gone.wait()
            await settled(lambda: tap.stats.open_connections == 0)
            assert (tap.stats.reset, tap.stats.left_early) == (0, 0 if connects else 1)

    run(job())


@pytest.mark.parametrize("listens", [True, False])
@pytest.mark.parametrize("size", [10, 300_000])
@pytest.mark.parametrize("before", [0, 1])
def test_a_broker_that_answers_a_client_that_has_left_has_not_reset(
    listens: bool,  # noqa: FBT001  # pytest passes each case
    size: int,
    before: int,
    made: Made,
    tmp_path: Path,
) -> None:
    has_left = threading.Event()

    def serve(listener: socket.socket) -> None:
        accepted, _ = listener.accept()
        with made.broker.wrap_socket(accepted, server_side=True) as secured:
            for _ in range(before):
                secured.recv(len(frame(asking(b""))))
                secured.sendall(frame(answering(b"")))
            secured.recv(len(frame(asking(b""))))
            # A fetch waits for records. The client ends the connection, which the tap does not
            # notice yet.
            assert has_left.wait(30)
            with suppress(OSError):
                secured.sendall(frame(answering(bytes(size))))
                secured.unwrap()

    async def job() -> None:
        security = TapSecurity(made.listen if listens else None, made.upstream)
        with socket.create_server((LOOPBACK, 0)) as listener:
            serving = asyncio.create_task(asyncio.to_thread(serve, listener))
            upstream = HostPort(LOOPBACK, listener.getsockname()[1])
            async with tapped(upstream, tmp_path, security=security) as tap:
                async with connected(
                    tap.listen_address, made.client if listens else None
                ) as client:
                    for _ in range(before):
                        assert await client.ask(asking(b"")) == answering(b"")
                    await client.send(frame(asking(b"")))
                    await settled(lambda: tap.stats.requests == before + 1)
                has_left.set()
                await settled(lambda: tap.stats.open_connections == 0)
                assert (tap.stats.reset, tap.stats.broker_handshakes_failed) == (0, 0)
                # Without TLS, the answer may be written before the tap knows that nobody reads it.
                assert tap.stats.left_early == 1 or not listens
                await serving
            assert closing(tap.capture_paths) == [("client", False)]

    run(job())


@pytest.mark.slow
def test_a_broker_that_is_told_the_end_and_never_ends_tls_has_not_reset(
    made: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flexwire.tap.connections.FLUSH_SECONDS", 0.2)
    is_over = threading.Event()

    def serve(listener: socket.socket) -> None:
        accepted, _ = listener.accept()
        with made.broker.wrap_socket(accepted, server_side=True) as secured:
            secured.recv(len(frame(asking(b""))))
            secured.sendall(frame(answering(b"")))
            # The client reads no more, so it never notices that the other side has ended.
            is_over.wait(30)

    async def job() -> None:
        security = TapSecurity(None, made.upstream)
        with socket.create_server((LOOPBACK, 0)) as listener:
            serving = asyncio.create_task(asyncio.to_thread(serve, listener))
            upstream = HostPort(LOOPBACK, listener.getsockname()[1])
            async with tapped(upstream, tmp_path, security=security) as tap:
                async with connected(tap.listen_address) as client:
                    assert await client.ask(asking(b"")) == answering(b"")
                await settled(lambda: tap.stats.open_connections == 0)
                assert (tap.stats.responses, tap.stats.reset) == (1, 0)
                is_over.set()
                await serving

    run(job())


def test_a_broker_that_ends_tls_ends_the_connection_with_all_that_it_said(
    made: Made, tmp_path: Path
) -> None:
    answer = frame(answering(bytes(500_000)))

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(frame(asking(b""))))
        writer.write(answer)

    async def job() -> None:
        async with (
            serving(handler, made.broker) as upstream,
            tapped(upstream, tmp_path, security=made.both) as tap,
        ):
            async with connected(tap.listen_address, made.client) as client:
                await client.send(frame(asking(b"")))
                assert await client.reader.read() == answer
            await settled(lambda: tap.stats.open_connections == 0)
            assert captured(tap.capture_paths)[upstream.port, client.port] == answer
            assert (tap.stats.reset, tap.stats.left_early) == (0, 0)

    run(job())


def test_the_end_of_the_tap_ends_its_connections_in_the_middle_of_a_handshake_too(
    made: Made, tmp_path: Path
) -> None:
    async def job() -> None:
        async with serving(Broker(echo)) as upstream:
            async with tapped(upstream, tmp_path, security=TapSecurity(made.listen)) as tap:
                _, writer = await asyncio.open_connection(*tap.listen_address)
                writer.write(b"\x16\x03\x01")
                await settled(lambda: tap.stats.open_connections == 1)
            writer.close()

    run(job())


def test_a_client_that_was_accepted_and_not_yet_begun_is_closed_with_the_tap(
    tmp_path: Path,
) -> None:
    async def job() -> None:
        async with serving(Broker(echo)) as upstream, tapped(upstream, tmp_path) as tap:
            left, right = socket.socketpair()
            tap._accepted(left, upstream)
            assert isinstance(tap._carrier, LocalRunner)
            (begun,) = tap._carrier._connections
            begun.cancel()
            await tap.close()
            assert left.fileno() == -1
            right.close()

    run(job())


def test_a_tap_that_leaves_tls_behind_warns(
    made: Made, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def start(listen: str, upstream: str, security: TapSecurity) -> None:
        started: asyncio.Future[Tap] = asyncio.get_running_loop().create_future()
        ready = started.set_result
        program = asyncio.create_task(
            run_tap(listen, upstream, tmp_path, security=security, ready=ready)
        )
        await started
        program.cancel()
        with suppress(asyncio.CancelledError):
            await program

    here, there = f"{LOOPBACK}:0", f"{LOOPBACK}:1"
    run(start(f"ssl://{here}", f"ssl://{there}", TapSecurity(made.listen)))
    run(start(here, there, TapSecurity()))
    run(start(here, f"ssl://{there}", TapSecurity()))
    assert "the tap connects to the brokers without TLS" not in caplog.text
    run(start(f"ssl://{here}", there, TapSecurity(made.listen)))
    assert "the tap connects to the brokers without TLS" in caplog.text
