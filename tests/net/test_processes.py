"""Several processes share one set of ports, and act as one tap to clients, monitors and disk."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.capture.files.comments import CaptureFilter, share_in
from flexwire.capture.files.reading import open_capture
from flexwire.capture.files.retention import KeepLimit
from flexwire.errors import ArgumentError, CaptureError
from flexwire.protocol import parse_request
from flexwire.tap import HostPort, Tap, TapSecurity
from flexwire.tap.header_stamps import HeaderTag, StampConfig
from flexwire.tap.metrics import TapStatistics
from flexwire.tap.processes import ProcessRunner
from tests.net.broker import LOOPBACK, Broker, captured, connected, run, serving, settled, tapped
from tests.net.test_relay import METADATA, answering, asking, echo
from tests.net.test_rewriting import metadata
from tests.net.test_tap_tls import Made, made
from tests.protocol.payloads import frame, request_payload, response_payload

if TYPE_CHECKING:
    from pathlib import Path

    from flexwire.protocol import RequestFrame

__all__ = ["made"]
CLIENTS, ROUNDS = 6, 4


def processes_of(tap: Tap) -> ProcessRunner:
    assert isinstance(tap._carrier, ProcessRunner)
    return tap._carrier


def there(tap: Tap) -> set[str]:
    return {path.name for path in tap.capture_paths}


def there_on_disk(directory: Path) -> set[str]:
    return {path.name for path in directory.glob("*.pcapng")}


@pytest.mark.long
@pytest.mark.slow
def test_clients_are_shared_out_and_all_is_captured_and_counted(tmp_path: Path, made: Made) -> None:
    broker = Broker(echo)
    looked = asyncio.Event()

    async def job() -> None:
        async with (
            serving(broker) as upstream,
            tapped(
                upstream, tmp_path, processes=2, sample=1.0, security=TapSecurity(made.listen)
            ) as tap,
        ):

            async def talk(number: int) -> tuple[int, bytes]:
                async with connected(tap.listen_address, made.client) as client:
                    asks = [asking(b"%d" % number, correlation_id=one) for one in range(ROUNDS)]
                    for one, payload in enumerate(asks):
                        expected = answering(b"%d" % number, correlation_id=one)
                        assert await client.ask(payload) == expected
                    await looked.wait()
                    return client.port, b"".join(map(frame, asks))

            talks = asyncio.gather(*map(talk, range(CLIENTS)))
            await settled(lambda: tap.stats.requests == CLIENTS * ROUNDS)
            shared = [len(one.clients) for one in processes_of(tap)._running]
            assert shared == [CLIENTS // 2] * 2
            assert b"flexwire_tap_clients 1\n" in tap.openmetrics()
            looked.set()
            said = dict(await talks)
            await settled(lambda: tap.stats.open_connections == 0)
            # Each process reports its own counts shortly afterwards.
            await settled(lambda: processes_of(tap).clients == 0)
            await tap.close()
            streams = captured(tap.capture_paths)
            assert {port: streams[port, upstream.port] for port in said} == said
            stats = tap.counts()
            assert (stats.connections, stats.responses) == (CLIENTS, CLIENTS * ROUNDS)
            assert stats.is_captured
            assert there(tap) == there_on_disk(tmp_path)
            assert len(tap.capture_paths) == 2

    run(job())


@pytest.mark.long
@pytest.mark.slow
def test_a_broker_has_one_port_whichever_process_met_it(tmp_path: Path) -> None:
    far = HostPort("broker-9.example", 9092)

    def answer(request: RequestFrame, _: bytes) -> bytes:
        body = metadata(1, far)
        return response_payload(METADATA, 1, body, correlation_id=request.correlation_id)

    async def job() -> None:
        async with (
            serving(Broker(answer)) as upstream,
            tapped(upstream, tmp_path, processes=3) as tap,
        ):
            answers = Counter[bytes]()
            for _ in range(3):
                async with connected(tap.listen_address) as client:
                    answers[await client.ask(request_payload(METADATA, 1))] += 1
            assert list(answers.values()) == [3]
            assert len(tap.listeners) == 2
            port = tap.listeners[far].port
            assert port.to_bytes(4, "big") in next(iter(answers))
            # The tap listens on these ports.
            async with connected(tap.listeners[far]) as client:
                assert await client.reader.read() == b""

    run(job())


@pytest.mark.long
@pytest.mark.slow
def test_what_is_kept_is_a_limit_for_all(tmp_path: Path) -> None:
    async def job() -> None:
        async with (
            serving(Broker(echo)) as upstream,
            tapped(
                upstream, tmp_path, processes=2, max_bytes=20_000, keep=KeepLimit(100_000)
            ) as tap,
        ):
            async with connected(tap.listen_address) as a, connected(tap.listen_address) as b:
                for one in range(60):
                    await a.ask(asking(bytes(3000), correlation_id=one))
                    await b.ask(asking(bytes(30 * (one % 2)), correlation_id=one))
            await settled(lambda: tap.stats.open_connections == 0)
            await settled(lambda: tap.stats.removed_files > 10)
            sizes = [path.stat().st_size for path in tap.capture_paths]
            assert sum(sizes) <= 100_000
            assert sum(sizes) > 40_000
            assert there(tap) == there_on_disk(tmp_path)
            assert tap.counts().removed_bytes > 200_000
            assert tap.counts().is_captured

    run(job())


@pytest.mark.long
@pytest.mark.slow
def test_rotation_filters_samples_and_tags_hold_in_every_process(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broker = Broker(echo)
    caplog.set_level(logging.INFO, "flexwire.tap")

    async def job() -> None:
        async with (
            serving(broker) as upstream,
            tapped(
                upstream,
                tmp_path,
                processes=2,
                sample=0.999999,
                only=CaptureFilter(client_ids=("in",)),
                stamping=StampConfig([HeaderTag(10042, "{connection}")]),
            ) as tap,
        ):
            for number in range(4):
                async with connected(tap.listen_address) as client:
                    name = "in" if number % 2 else "out"
                    await client.ask(asking(b"x", client_id=name))
            await settled(lambda: tap.stats.requests == 4)
            before = len(tap.capture_paths)
            tap.rotate()
            await settled(lambda: len(tap.capture_paths) > before)
            await settled(lambda: len(caplog.messages) > 0)
            assert caplog.messages[0] in {
                f"the capture continues in {path.name}" for path in tap.capture_paths
            }
            assert tap.counts().filtered_frames == 4
            assert tap.counts().stamped == 4
        for path in tap.capture_paths:
            with open_capture(str(path)) as (file, _):
                assert share_in(file) == 0.999999
        headers: list[Any] = [parse_request(bytes(one)[4:]).header for one in broker.received]
        tags = [one.unknown_tagged_fields[10042] for one in headers]
        assert sorted(tags) == [b"1", b"2", b"3", b"4"]

    run(job())


@pytest.mark.long
@pytest.mark.slow
def test_a_process_that_dies_is_replaced_and_the_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("flexwire.tap.processes._RESTART_SECONDS", 0.1)

    async def job() -> TapStatistics:
        async with serving(Broker(echo)) as upstream:
            tap = Tap((LOOPBACK, 0), upstream, tmp_path, processes=2)
            async with tap, connected(tap.listen_address) as a, connected(tap.listen_address) as b:
                await a.ask(asking(b"1"))
                await b.ask(asking(b"1"))
                first, second = processes_of(tap)._running
                await settled(lambda: tap.stats.requests == 2)
                victim = first.process.pid
                assert victim is not None
                os.kill(victim, signal.SIGKILL)
                assert await a.reader.read() == b""
                assert await b.ask(asking(b"2")) == answering(b"2")
                await settled(lambda: len(processes_of(tap)._running) == 2)
                await settled(processes_of(tap)._running[1].ready.done)
                async with connected(tap.listen_address) as c:
                    assert await c.ask(asking(b"3")) == answering(b"3")
            assert second.process.exitcode == 0
            return tap.counts()

    stats = run(job())
    assert "a tap process ended (closed connections: 1); a new" in caplog.text
    assert (stats.failures, stats.unended, stats.requests) == (1, 1, 4)
    assert not stats.is_captured


@pytest.mark.parametrize(
    ("keep", "said"),
    [
        (KeepLimit(3 * 64 * 1024 * 1024 - 1), "expected to keep at least 201,326,592 bytes"),
        (KeepLimit(max_files=1), "expected to keep at least one file for each process, got 1"),
    ],
)
def test_a_limit_that_the_processes_cannot_hold_is_refused(
    keep: KeepLimit, said: str, tmp_path: Path
) -> None:
    with pytest.raises(ArgumentError, match=said):
        Tap((LOOPBACK, 0), (LOOPBACK, 1), tmp_path, processes=2, keep=keep)
    with pytest.raises(ArgumentError, match="processes"):
        Tap((LOOPBACK, 0), (LOOPBACK, 1), tmp_path, processes=0)


@pytest.mark.long
@pytest.mark.slow
def test_a_capture_that_cannot_begin_is_said_by_the_tap(tmp_path: Path) -> None:
    place = tmp_path / "file"
    place.write_bytes(b"")

    async def job() -> None:
        tap = Tap((LOOPBACK, 0), (LOOPBACK, 1), place, processes=2)
        with pytest.raises(CaptureError, match="cannot create"):
            await tap.start()

    run(job())


def test_counts_of_several_are_added_name_by_name() -> None:
    both = TapStatistics(connections=1, tls=2) + TapStatistics(connections=5, failures=3)
    assert both == TapStatistics(connections=6, tls=2, failures=3)
