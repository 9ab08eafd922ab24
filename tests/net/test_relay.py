"""Bytes pass through unchanged, and each connection lives and ends independently."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING

import pytest

from flexwire.capture.files import pcapng
from flexwire.errors import CaptureError
from flexwire.tap import HostPort
from tests.net.broker import (
    CHUNK_BYTES,
    LOOPBACK,
    Broker,
    captured,
    connected,
    free_ports,
    run,
    serving,
    settled,
    tapped,
)
from tests.protocol.payloads import frame, make, request_payload, response_payload

if TYPE_CHECKING:
    from pathlib import Path

    from flexwire.capture.files.pcapng import TappedConnection
    from flexwire.protocol import RequestFrame

PRODUCE, METADATA, LIST_GROUPS, SASL_HANDSHAKE, API_VERSIONS = 0, 3, 16, 17, 18
FAR = HostPort("broker-3.cluster.example", 29092)
RANDOM = random.Random(7)  # bytes to compare, not secrets


def echo(request: RequestFrame, payload: bytes) -> bytes:
    """Return the request's body as the response's body: any bytes."""
    body = payload[request.body_offset :]
    return response_payload(
        request.api_key, request.api_version, body, correlation_id=request.correlation_id
    )


def asking(body: bytes, *, correlation_id: int = 7, client_id: str = "tests") -> bytes:
    return request_payload(LIST_GROUPS, 3, body, correlation_id=correlation_id, client_id=client_id)


def answering(body: bytes, *, correlation_id: int = 7) -> bytes:
    return response_payload(LIST_GROUPS, 3, body, correlation_id=correlation_id)


@pytest.mark.parametrize("size", [0, 1, 1000, CHUNK_BYTES - 20, CHUNK_BYTES, 3 * CHUNK_BYTES + 5])
def test_bytes_go_through_unchanged_and_into_the_capture(size: int, tmp_path: Path) -> None:
    # A tap buffers little data until the first answer.
    bodies = [b"", *[RANDOM.randbytes(size)] * 3]
    asked = b"".join(frame(asking(body)) for body in bodies)
    answered = b"".join(frame(answering(body)) for body in bodies)

    async def job() -> None:
        broker = Broker(echo)
        async with serving(broker) as upstream, tapped(upstream, tmp_path) as tap:
            async with connected(tap.listen_address) as client:
                for body in bodies:
                    assert await client.ask(asking(body)) == answering(body)
            await settled(lambda: tap.stats.open_connections == 0)
            streams = captured(tap.capture_paths)
            assert bytes(broker.received[0]) == asked
            assert streams[client.port, upstream.port] == asked
            assert streams[upstream.port, client.port] == answered
            stats = tap.stats
            assert (stats.requests, stats.responses, stats.reset, stats.broken_off) == (4, 4, 0, 0)
            assert stats.request_bytes == len(asked)
            assert stats.response_bytes == len(answered)

    run(job())


@pytest.mark.parametrize("piece", [1, 3, 7])
def test_pieces_of_any_size_are_put_together(piece: int, tmp_path: Path) -> None:
    stream = frame(asking(b"abc")) + frame(request_payload(METADATA, 1)) + frame(asking(b""))
    metadata = make("MetadataResponse").encode(1)

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(stream))
        answers = frame(answering(b"xyz")) + frame(response_payload(METADATA, 1, metadata))
        for start in range(0, len(answers), piece):
            writer.write(answers[start : start + piece])
            await writer.drain()
            await asyncio.sleep(0)

    async def job() -> None:
        async with (
            serving(handler) as upstream,
            tapped(upstream, tmp_path) as tap,
            connected(tap.listen_address) as client,
        ):
            for start in range(0, len(stream), piece):
                await client.send(stream[start : start + piece])
                await asyncio.sleep(0)
            assert await client.receive() == answering(b"xyz")
            assert await client.receive() == response_payload(METADATA, 1, metadata)
            assert (tap.stats.requests, tap.stats.unpaired) == (3, 0)

    run(job())


def test_a_long_response_begins_to_arrive_before_it_ends(tmp_path: Path) -> None:
    whole = frame(answering(RANDOM.randbytes(500_000)))
    half = len(whole) // 2
    seen = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(frame(asking(b""))))
        writer.write(whole[:half])
        await writer.drain()
        await seen.wait()
        writer.write(whole[half:])
        await writer.drain()

    async def job() -> None:
        async with (
            serving(handler) as upstream,
            tapped(upstream, tmp_path) as tap,
            connected(tap.listen_address) as client,
        ):
            await client.send(frame(asking(b"")))
            assert await client.reader.readexactly(half) == whole[:half]
            seen.set()
            assert await client.reader.readexactly(len(whole) - half) == whole[half:]
            await client.reader.read()
        assert captured(tap.capture_paths)[upstream.port, client.port] == whole

    run(job())


@pytest.mark.slow
def test_a_client_that_does_not_read_stops_its_broker(tmp_path: Path) -> None:
    body = bytes(1 << 20)
    count = 64
    sent = 0

    async def handler(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        for _n in range(count):
            writer.write(frame(answering(body)))
            await writer.drain()
            sent += 1

    async def job() -> None:
        async with (
            serving(handler) as upstream,
            tapped(upstream, tmp_path) as tap,
            connected(tap.listen_address) as client,
        ):
            before = -1
            while before != sent or sent == 0:
                before = sent
                await asyncio.sleep(0.1)
            # Bytes in transit fill the sockets' buffers, not the tap's memory.
            assert sent < count // 2
            for _ in range(count):
                assert len(await client.receive()) == len(answering(body))

    run(job())


def test_many_connections_at_once_keep_apart(tmp_path: Path) -> None:
    async def job() -> None:
        async with serving(Broker(echo)) as upstream, tapped(upstream, tmp_path) as tap:

            async def talk(number: int) -> tuple[int, bytes, bytes]:
                sent = received = b""
                async with connected(tap.listen_address) as client:
                    for turn in range(20):
                        body = RANDOM.randbytes(number * 50)
                        ask = asking(body, correlation_id=turn, client_id=f"c{number}")
                        answer = await client.ask(ask)
                        assert answer == answering(body, correlation_id=turn)
                        sent += frame(ask)
                        received += frame(answer)
                    return client.port, sent, received

            talks = await asyncio.gather(*map(talk, range(20)))
            await settled(lambda: tap.stats.open_connections == 0)
            streams = captured(tap.capture_paths)
            for port, sent, received in talks:
                assert streams[port, upstream.port] == sent
                assert streams[upstream.port, port] == received
            assert (tap.stats.connections, tap.stats.unpaired) == (20, 0)

    run(job())


GARBAGE = [
    b"GET / HTTP/1.1\r\nHost: kafka\r\n\r\n",
    b"\xff\xff\xff\xff" + bytes(100),
    frame(b"abc"),
    frame(b"\x7f\x7f" + bytes(20)),
    frame(b""),
    frame(asking(b""))[:-1] + b"\xff" + frame(b"\xff" * 50),
]


@pytest.mark.parametrize("garbage", GARBAGE)
def test_garbage_loses_only_its_own_connection(garbage: bytes, tmp_path: Path) -> None:
    received = bytearray()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not received:
            received.extend(await reader.readexactly(len(garbage)))
            return
        await broker(reader, writer)

    broker = Broker(echo)

    async def job() -> None:
        async with serving(handler) as upstream, tapped(upstream, tmp_path) as tap:
            async with connected(tap.listen_address) as bad:
                await bad.send(garbage)
                await settled(lambda: len(received) == len(garbage))
                async with connected(tap.listen_address) as good:
                    assert await good.ask(asking(b"still here")) == answering(b"still here")
                    # The broker closed the bad connection, so the tap closes its side too.
                    assert await bad.reader.read() == b""
                    assert await good.ask(asking(b"and now")) == answering(b"and now")
            await settled(lambda: tap.stats.open_connections == 0)
            assert bytes(received) == garbage
            assert captured(tap.capture_paths)[bad.port, upstream.port] == garbage
            assert tap.stats.not_requests + tap.stats.not_frames > 0

    run(job())


@pytest.mark.parametrize("garbage", [b"\xff\xff\xff\xffabc", frame(b"ab"), frame(bytes(9))])
def test_garbage_from_a_broker_reaches_the_client_and_the_capture(
    garbage: bytes, tmp_path: Path
) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(frame(answering(b"fine")) + garbage)
        await writer.drain()
        # An invalid length must not hold back the bytes that have arrived.
        await reader.read()

    async def job() -> None:
        async with (
            serving(handler) as upstream,
            tapped(upstream, tmp_path) as tap,
            connected(tap.listen_address) as client,
        ):
            assert await client.ask(asking(b"")) == answering(b"fine")
            assert await client.reader.readexactly(len(garbage)) == garbage
            assert tap.stats.not_frames + tap.stats.unpaired > 0
        expected = frame(answering(b"fine")) + garbage
        assert captured(tap.capture_paths)[upstream.port, client.port] == expected

    run(job())


@pytest.mark.parametrize("length", [1, 4, 11, 40])
def test_what_a_client_sent_before_it_left_is_in_the_capture(length: int, tmp_path: Path) -> None:
    cut_off = frame(asking(bytes(50)))[:length]

    async def job() -> None:
        broker = Broker(echo)
        async with serving(broker) as upstream, tapped(upstream, tmp_path) as tap:
            async with connected(tap.listen_address) as client:
                assert await client.ask(asking(b"")) == answering(b"")
                await client.send(cut_off)
            await settled(lambda: tap.stats.open_connections == 0)
            expected = frame(asking(b"")) + cut_off
            assert captured(tap.capture_paths)[client.port, upstream.port] == expected
            assert tap.stats.broken_off == 1

    run(job())


@pytest.mark.parametrize("api_key", [LIST_GROUPS, METADATA])
@pytest.mark.parametrize("length", [1, 6, 30])
def test_what_a_broker_said_before_it_left_reaches_the_client_and_the_capture(
    api_key: int, length: int, tmp_path: Path
) -> None:
    body = make("MetadataResponse", cluster_id="a cluster whose id is long enough").encode(8)
    cut_off = frame(response_payload(METADATA, 8, body))[:length]

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(4)
        writer.write(cut_off)
        await writer.drain()
        await reader.readexactly(10)

    async def job() -> None:
        version = 8 if api_key == METADATA else 2
        async with serving(handler) as upstream, tapped(upstream, tmp_path) as tap:
            async with connected(tap.listen_address) as client:
                await client.send(frame(request_payload(api_key, version, b"12345678")))
                try:
                    arrived = await client.reader.read()
                except ConnectionResetError:
                    arrived = cut_off  # the broker did not read all bytes, which causes a reset
                assert arrived == cut_off
            await settled(lambda: tap.stats.open_connections == 0)
            streams = captured(tap.capture_paths)
            assert streams[upstream.port, client.port] == cut_off
            assert tap.stats.broken_off == 1

    run(job())


def test_a_half_closed_client_still_gets_its_response(tmp_path: Path) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        everything = await reader.read()  # until the client has closed its sending side
        assert everything == frame(asking(b"last"))
        writer.write(frame(answering(b"words")))
        await writer.drain()

    async def job() -> None:
        async with (
            serving(handler) as upstream,
            tapped(upstream, tmp_path) as tap,
            connected(tap.listen_address) as client,
        ):
            await client.send(frame(asking(b"last")))
            client.writer.write_eof()
            assert await client.receive() == answering(b"words")
            assert await client.reader.read() == b""

    run(job())


def test_an_unreachable_broker_closes_the_connection_and_is_counted(tmp_path: Path) -> None:
    async def job() -> None:
        upstream = HostPort(LOOPBACK, free_ports())
        async with tapped(upstream, tmp_path) as tap, connected(tap.listen_address) as client:
            assert await client.reader.read() == b""
            assert (tap.stats.unreachable, tap.stats.connections) == (1, 1)

    run(job())


@pytest.mark.parametrize("host", ["a..b", "x" * 70, "nul\0"])
def test_an_impossible_broker_address_is_only_unreachable(host: str, tmp_path: Path) -> None:
    async def job() -> None:
        address = HostPort(host, 9092)
        async with tapped(address, tmp_path) as tap, connected(tap.listen_address) as client:
            assert await client.reader.read() == b""
            assert tap.stats.unreachable == 1

    run(job())


@pytest.mark.parametrize("pieces", [1, 2])
def test_tls_is_recognised_and_passed_on(
    pieces: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    hello = bytes.fromhex("16030100c8010000c40303") + bytes(200)

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert await reader.readexactly(len(hello)) == hello
        writer.write(b"\x16\x03\x03\x00\x7aserver hello")
        await writer.drain()

    async def job() -> None:
        async with serving(handler) as upstream, tapped(upstream, tmp_path) as tap:
            async with connected(tap.listen_address) as client:
                first = 1 if pieces == 2 else len(hello)
                await client.send(hello[:first])
                if pieces == 2:
                    await settled(lambda: tap.stats.request_bytes == 1)
                await client.send(hello[first:])
                assert await client.reader.read() == b"\x16\x03\x03\x00\x7aserver hello"
            await settled(lambda: tap.stats.open_connections == 0)
            stats = tap.stats
            assert (stats.tls, stats.not_frames, stats.broken_off) == (1, 0, 0)
            streams = captured(tap.capture_paths)
            assert streams[client.port, upstream.port] == hello
            assert streams[upstream.port, client.port].endswith(b"server hello")

    run(job())
    assert "the client speaks TLS" in caplog.text


def test_what_a_client_repeats_is_logged_once_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def handler(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        while await reader.read(CHUNK_BYTES):
            pass

    async def job() -> None:
        async with serving(handler) as upstream, tapped(upstream, tmp_path) as tap:
            async with connected(tap.listen_address) as client:
                await client.send(frame(b"") * 1000)
            await settled(lambda: tap.stats.open_connections == 0)
            assert tap.stats.not_requests == 1000

    with caplog.at_level("INFO", "flexwire.tap"):
        run(job())
    assert caplog.text.count("are not a request") == 1


def test_what_was_held_of_a_response_is_not_lost_where_a_client_speaks_tls(tmp_path: Path) -> None:
    hello = bytes.fromhex("16030100c8010000c40303") + bytes(200)

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # There are too few bytes to decide which response they belong to.
        writer.write(b"\0\0\0\x09ear")
        await writer.drain()
        assert await reader.readexactly(len(hello)) == hello
        writer.write(b"late")
        await writer.drain()

    async def job() -> None:
        async with (
            serving(handler) as upstream,
            tapped(upstream, tmp_path) as tap,
            connected(tap.listen_address) as client,
        ):
            await settled(lambda: tap.stats.response_bytes > 0)
            await client.send(hello)
            assert await client.reader.read() == b"\0\0\0\x09earlate"
            await settled(lambda: tap.stats.open_connections == 0)
            said = captured(tap.capture_paths)[upstream.port, client.port]
            assert said == b"\0\0\0\x09earlate"

    run(job())


def test_sasl_tokens_pass_without_being_taken_for_requests(tmp_path: Path) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in (response_payload(SASL_HANDSHAKE, 0, bytes(6)), b"", answering(b"in")):
            length = int.from_bytes(await reader.readexactly(4), "big")
            await reader.readexactly(length)
            writer.write(frame(answer))
            await writer.drain()

    async def job() -> None:
        handshake = make("SaslHandshakeRequest", mechanism="PLAIN")
        async with (
            serving(handler) as upstream,
            tapped(upstream, tmp_path) as tap,
            connected(tap.listen_address) as client,
        ):
            await client.ask(request_payload(SASL_HANDSHAKE, 0, handshake))
            assert await client.ask(b"\0alice\0secret") == b""
            assert await client.ask(asking(b"")) == answering(b"in")
            assert (tap.stats.not_requests, tap.stats.unpaired) == (0, 0)

    run(job())


def test_a_capture_that_fails_cuts_nobody_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(_: TappedConnection, *__: object, **___: object) -> None:
        raise CaptureError("cannot write: no space left on device", source="tap-00001.pcapng")

    async def job() -> None:
        async with (
            serving(Broker(echo)) as upstream,
            tapped(upstream, tmp_path) as tap,
            connected(tap.listen_address) as client,
        ):
            await client.ask(asking(b""))
            monkeypatch.setattr(pcapng.TappedConnection, "send", full)
            assert await client.ask(asking(b"on")) == answering(b"on")
            assert tap.stats.capture_failures == 2

    run(job())
    assert "no space left on device" in caplog.text


def test_a_frame_above_the_limit_passes_and_ends_the_reading(tmp_path: Path) -> None:
    big = asking(bytes(5000))

    async def job() -> None:
        broker = Broker(echo)
        async with (
            serving(broker) as upstream,
            tapped(upstream, tmp_path, frame_limit=1000) as tap,
            connected(tap.listen_address) as client,
        ):
            assert await client.ask(big) == answering(bytes(5000))
            assert tap.stats.not_frames == 2
            assert await client.ask(asking(b"")) == answering(b"")
        streams = captured(tap.capture_paths)
        assert streams[client.port, upstream.port] == frame(big) + frame(asking(b""))

    run(job())


def test_closing_the_tap_ends_open_connections_and_keeps_what_they_said(tmp_path: Path) -> None:
    async def job() -> None:
        async with serving(Broker(echo)) as upstream, tapped(upstream, tmp_path) as tap:
            async with connected(tap.listen_address) as client:
                await client.ask(asking(b"early"))
                await client.send(frame(asking(b"late"))[:20])
                await settled(lambda: tap.stats.request_bytes > len(frame(asking(b"early"))))
                await tap.close()
                with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                    await client.receive()
            await tap.close()
            expected = frame(asking(b"early")) + frame(asking(b"late"))[:20]
            assert captured(tap.capture_paths)[client.port, upstream.port] == expected
            with pytest.raises(OSError, match=r"refused|Connect"):
                await asyncio.open_connection(LOOPBACK, client.writer.get_extra_info("peername")[1])

    run(job())
