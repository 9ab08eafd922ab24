"""The tap as a program: it starts, prints its address, and stops on a signal."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING

import pytest

from flexwire.codec import message
from flexwire.errors import CaptureError, TapError
from flexwire.tap import HostPort, Tap, TapStatistics, run_tap
from tests.net.broker import LOOPBACK, Broker, captured, connected, run, serving, settled
from tests.net.test_relay import asking, echo
from tests.net.test_rewriting import FAR, METADATA, metadata
from tests.protocol.payloads import frame, request_payload, response_payload

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.own_process
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_tap_with_its_capture_closed(number: int, tmp_path: Path) -> None:
    async def job() -> TapStatistics:
        started: asyncio.Future[Tap] = asyncio.get_running_loop().create_future()
        async with serving(Broker(echo)) as upstream:
            program = asyncio.create_task(
                run_tap(f"{LOOPBACK}:0", str(upstream), tmp_path, ready=started.set_result)
            )
            tap = await started
            async with connected(tap.listen_address) as client:
                await client.ask(asking(b""))
                os.kill(os.getpid(), number)
                stats = await program
            assert captured(tap.capture_paths)[client.port, upstream.port] == frame(asking(b""))
            return stats

    stats = run(job())
    assert (stats.connections, stats.open_connections, stats.requests) == (1, 0, 1)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_cancelled_tap_stops_as_cleanly(tmp_path: Path) -> None:
    async def job() -> None:
        started: asyncio.Future[Tap] = asyncio.get_running_loop().create_future()
        async with serving(Broker(echo)) as upstream:
            program = asyncio.create_task(
                run_tap(HostPort(LOOPBACK, 0), upstream, tmp_path, ready=started.set_result)
            )
            tap = await started
            async with connected(tap.listen_address) as client:
                await client.ask(asking(b""))
                program.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await program
            await settled(lambda: tap.stats.open_connections == 0)
            assert captured(tap.capture_paths)[client.port, upstream.port] == frame(asking(b""))

    run(job())


def test_a_port_that_is_taken_is_said(tmp_path: Path) -> None:
    async def job() -> None:
        async with serving(Broker(echo)) as taken:
            with pytest.raises(TapError, match=f"cannot listen on {taken}.*in use"):
                await run_tap(taken, HostPort(LOOPBACK, 1), tmp_path)

    run(job())


@pytest.mark.parametrize("host", ["x" * 70, "a..b"])
def test_a_host_that_is_none_is_said(host: str, tmp_path: Path) -> None:
    with pytest.raises(TapError, match="cannot listen on"):
        run(run_tap(f"{host}:0", "127.0.0.1:9092", tmp_path))


def test_a_directory_that_cannot_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(CaptureError, match="cannot create"):
        run(run_tap("127.0.0.1:0", "127.0.0.1:9092", tmp_path / "file"))


def test_a_tap_on_every_interface_advertises_the_address_that_the_client_used(
    tmp_path: Path,
) -> None:
    async def job() -> None:
        def answer(*_: object) -> bytes:
            return response_payload(METADATA, 1, metadata(1, FAR))

        async with (
            serving(Broker(answer)) as upstream,
            Tap(("0.0.0.0", 0), upstream, tmp_path) as tap,  # noqa: S104  # this is the test case
            connected(HostPort(LOOPBACK, tap.listen_address.port)) as client,
        ):
            payload = await client.ask(request_payload(METADATA, 1))
            body = message("MetadataResponse").decode(payload[4:], 1)
            (found,) = body.brokers  # type: ignore[attr-defined]  # the class is made at run time
            assert (found.host, found.port) == (LOOPBACK, tap.listeners[FAR].port)

    run(job())
