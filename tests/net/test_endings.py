"""Different ends and failures of connections are distinguished, counted, and logged once."""

from __future__ import annotations

import asyncio
import logging
import socket
import struct
from typing import TYPE_CHECKING

import pytest

from flexwire.tap import HostPort
from tests.net.broker import (
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
from tests.net.test_relay import answering, asking, echo
from tests.net.test_rewriting import METADATA, metadata
from tests.protocol.payloads import frame, request_payload, response_payload

if TYPE_CHECKING:
    from pathlib import Path


def reset_on_close(writer: asyncio.StreamWriter) -> None:
    # With a linger time of 0, a close is a reset.
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.mark.parametrize("polite", [True, False])
def test_a_client_that_closes_before_its_answer_has_not_reset(
    polite: bool,  # noqa: FBT001  # pytest passes each case
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    gone = asyncio.Event()
    answer = frame(answering(bytes(300_000)))

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(frame(asking(b""))))
        await gone.wait()
        if polite:
            assert await reader.read() == b""  # the tap has forwarded the client's end
        while not writer.transport.is_closing():
            writer.write(answer)
            await writer.drain()

    async def job() -> None:
        async with serving(handler) as upstream, tapped(upstream, tmp_path) as tap:
            async with connected(tap.listen_address) as client:
                await client.send(frame(asking(b"")))
                await settled(lambda: tap.stats.requests == 1)
                if not polite:
                    reset_on_close(client.writer)
            gone.set()
            await settled(lambda: tap.stats.open_connections == 0)
            stats = tap.stats
            assert (stats.reset, stats.left_early) == ((0, 1) if polite else (1, 0))
            # A broker's response is captured even if the client has left.
            said = captured(tap.capture_paths).get((upstream.port, client.port), b"")
            assert not polite or said.startswith(answer[:100_000])

    with caplog.at_level(logging.INFO, "flexwire.tap"):
        run(job())
    assert ("ended:" in caplog.text) is not polite


def test_a_broker_that_resets_is_counted_as_that(tmp_path: Path) -> None:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(4)
        reset_on_close(writer)

    async def job() -> None:
        async with (
            serving(handler) as upstream,
            tapped(upstream, tmp_path) as tap,
            connected(tap.listen_address) as client,
        ):
            await client.send(frame(asking(b"")))
            assert await client.reader.read() == b""
            await settled(lambda: tap.stats.open_connections == 0)
            assert (tap.stats.reset, tap.stats.left_early) == (1, 0)

    run(job())


def test_an_unreachable_broker_is_said_once_until_it_is_reached(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def said() -> list[str]:
        return [one.getMessage() for one in caplog.records if one.name == "flexwire.tap"]

    async def knock(tap_address: HostPort, times: int) -> None:
        for _ in range(times):
            async with connected(tap_address) as client:
                assert await client.reader.read() == b""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await Broker(echo)(reader, writer)
        writer.close()

    async def job() -> None:
        upstream = HostPort(LOOPBACK, free_ports())
        async with tapped(upstream, tmp_path) as tap:
            await knock(tap.listen_address, 5)
            (first,) = said()
            assert first.startswith(f"cannot reach {upstream}: ")
            server = await asyncio.start_server(handler, LOOPBACK, upstream.port)
            async with server, connected(tap.listen_address) as client:
                assert await client.ask(asking(b"now")) == answering(b"now")
            await settled(lambda: tap.stats.open_connections == 0)
            assert said()[1:] == [f"{upstream} is reachable again; 5 connections were closed"]
            await knock(tap.listen_address, 2)
            assert said()[2:] == [first]
            assert tap.stats.unreachable == 7
        assert said()[3:] == [f"{upstream} is still unreachable; 2 connections were closed"]

    with caplog.at_level(logging.INFO, "flexwire.tap"):
        run(job())


def test_frames_that_came_together_are_all_captured_passed_on_and_counted(tmp_path: Path) -> None:
    asked = [asking(bytes(n), correlation_id=n) for n in range(60)]
    answered = [answering(bytes(n), correlation_id=n) for n in range(60)]

    async def job() -> None:
        async with serving(Broker(echo)) as upstream, tapped(upstream, tmp_path) as tap:
            async with connected(tap.listen_address) as client:
                await client.send(b"".join(map(frame, asked)))
                assert [await client.receive() for _ in asked] == answered
            await settled(lambda: tap.stats.open_connections == 0)
            streams = captured(tap.capture_paths)
            assert streams[client.port, upstream.port] == b"".join(map(frame, asked))
            assert streams[upstream.port, client.port] == b"".join(map(frame, answered))
            stats = tap.stats
            assert (stats.requests, stats.responses, stats.unpaired) == (60, 60, 0)

    run(job())


def test_a_tap_ends_while_brokers_come_up(tmp_path: Path) -> None:
    # Each answer names one more broker, and each broker needs a listener.
    count = 300
    asked = b"".join(
        frame(request_payload(METADATA, 1, correlation_id=one)) for one in range(count)
    )

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(asked))
        for one in range(count):
            body = metadata(1, HostPort("broker.example", 1 + one))
            writer.write(frame(response_payload(METADATA, 1, body, correlation_id=one)))
            await asyncio.sleep(0)
        await reader.read()

    async def job() -> None:
        async with (
            serving(handler) as upstream,
            tapped(upstream, tmp_path) as tap,
            connected(tap.listen_address) as client,
        ):
            await client.send(asked)
            await settled(lambda: len(tap.listeners) > 5)
            await tap.close()
            assert tap.listeners == {}

    run(job())
