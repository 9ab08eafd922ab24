"""If a process of the tap fails, or its channel fails, only its own connections are affected."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import socket
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.capture.files.retention import NO_LIMIT, KeepLimit
from flexwire.errors import TapError
from flexwire.tap import HostPort, Tap, processes
from flexwire.tap.config import TapConfig
from flexwire.tap.processes import ProcessRunner
from flexwire.tap.worker import IGNORED_SIGNALS, MESSAGE_BYTES, Worker, _LineBuffer
from tests.net.broker import LOOPBACK, Broker, connected, run, serving, settled
from tests.net.test_processes import processes_of, there, there_on_disk
from tests.net.test_relay import asking, echo

if TYPE_CHECKING:
    from pathlib import Path

ONE, TWO = HostPort("one.example", 9092), HostPort("two.example", 9092)


class Told:
    """A worker without a process, and the tap's ends of both channels."""

    def __init__(self, directory: Path, *, with_limit: bool = False) -> None:
        pair = socket.AF_UNIX, socket.SOCK_SEQPACKET
        self.control, control = socket.socketpair(*pair)
        self.ask, ask = socket.socketpair(*pair)
        ask.settimeout(0.05)
        control.setblocking(False)
        keep = KeepLimit(max_files=9) if with_limit else NO_LIMIT
        config = TapConfig(HostPort(LOOPBACK, 0), ONE, directory, keep=keep)
        self._theirs = control, ask
        self.worker = Worker(config, control, ask, _LineBuffer())

    def close(self) -> None:
        for one in (self.control, self.ask, *self._theirs):
            one.close()


def test_a_late_answer_is_not_taken_for_that_about_another_broker(tmp_path: Path) -> None:
    async def job() -> None:
        told = Told(tmp_path)
        assert told.worker._port_for(ONE) is None, "the tap was not at hand"
        told.worker._asks_again = 0.0
        told.ask.recv(MESSAGE_BYTES)
        told.ask.send(json.dumps((ONE, 1111)).encode())
        told.ask.send(json.dumps((TWO, 2222)).encode())
        assert told.worker._port_for(TWO) == 2222
        # A late report is discarded, and requested again.
        told.ask.send(json.dumps((ONE, 1111)).encode())
        assert told.worker._port_for(ONE) == 1111
        told.ask.close()
        told.worker._asks_again = 0.0
        assert told.worker._port_for(HostPort("three.example", 9092)) is None
        told.close()

    run(job())


def test_a_tap_that_does_not_answer_is_not_waited_for_again_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def job() -> None:
        told = Told(tmp_path)
        assert told.worker._port_for(ONE) is None
        began = time.monotonic()
        # The test sets the time, so a busy machine changes nothing.
        monkeypatch.setattr("flexwire.tap.worker.time.monotonic", lambda: began)
        for number in range(100):
            assert told.worker._port_for(HostPort(f"{number}.example", 9092)) is None
        # Only the first process was asked.
        assert json.loads(told.ask.recv(MESSAGE_BYTES)) == [*ONE]
        told.ask.setblocking(False)
        with pytest.raises(BlockingIOError):
            told.ask.recv(MESSAGE_BYTES)
        monkeypatch.setattr("flexwire.tap.worker.time.monotonic", lambda: began + 60)
        told.ask.send(json.dumps((TWO, 2222)).encode())
        assert told.worker._port_for(TWO) == 2222
        told.close()

    run(job())


def test_a_file_is_told_when_it_begins(tmp_path: Path) -> None:
    async def job() -> None:
        told = Told(tmp_path)
        told.control.setblocking(False)
        carrier = told.worker._carrier
        await carrier.start(LOOPBACK)
        told.worker._say_path()
        writer = carrier._writer
        assert writer is not None
        for _ in range(3):
            writer._next_file()
        # If the messages must wait, they are sent later, and each is sent once.
        for path in writer.paths:
            assert json.loads(told.control.recv(MESSAGE_BYTES)) == ["paths", [str(path)]]
        filled = 0
        with suppress(BlockingIOError):
            while True:
                told._theirs[0].send(bytes(1000))
                filled += 1
        for _ in range(2):
            writer._next_file()
        missed = writer.paths[-2:]
        for _ in range(filled):
            told.control.recv(MESSAGE_BYTES)
        await told.worker._tell()
        assert json.loads(told.control.recv(MESSAGE_BYTES)) == ["paths", [*map(str, missed)]]
        await carrier.close()
        told.close()

    run(job())


def test_a_client_for_which_there_is_no_file_is_counted_and_forgotten(tmp_path: Path) -> None:
    async def job() -> None:
        told = Told(tmp_path)
        told.control.send(json.dumps({"client": 7, "upstream": ONE}).encode())
        told.worker._hear()
        assert told.worker._carrier.stats.failures == 1
        await told.worker._tell()
        said = [json.loads(told.control.recv(MESSAGE_BYTES)) for _ in range(2)]
        assert [one[0] for one in said] == ["ended", "counts"], "who is counted out has left"
        assert said[0][1] == [7]
        told.close()

    run(job())


def test_the_longest_lines_of_the_log_are_whole_messages(tmp_path: Path) -> None:
    async def job() -> None:
        told = Told(tmp_path)
        told.worker._lines.handle(logging.makeLogRecord({"msg": "\U0001f600" * 100_000}))
        await told.worker._tell()
        kind, _ = json.loads(told.control.recv(MESSAGE_BYTES))
        assert kind == "line"
        told.close()

    run(job())


@pytest.mark.long
@pytest.mark.slow
def test_the_file_of_a_process_that_was_killed_makes_room_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flexwire.tap.processes._RESTART_SECONDS", 0.05)
    keep = KeepLimit(max_files=3)

    async def job() -> None:
        async with (
            serving(Broker(echo)) as upstream,
            Tap((LOOPBACK, 0), upstream, tmp_path, processes=2, keep=keep) as tap,
        ):
            for _ in range(3):
                victim = processes_of(tap)._running[0]
                # The process named its first file before it reported that it was ready.
                assert victim.unfinished
                victim.process.kill()
                await settled(lambda one=victim: one not in processes_of(tap)._running)  # type: ignore[misc]  # the same
                await settled(
                    lambda: [one.is_ready for one in processes_of(tap)._running] == [True] * 2
                )
                async with connected(tap.listen_address) as client:
                    await client.ask(asking(b""))
            await settled(lambda: all(one.unfinished for one in processes_of(tap)._running))
            assert len(there(tap)) == 3
            assert there(tap) == there_on_disk(tmp_path)
            assert tap.stats.removed_files == 2

    run(job())


@pytest.mark.long
@pytest.mark.slow
def test_signals_while_a_process_starts_do_not_end_it(tmp_path: Path) -> None:
    async def job() -> None:
        tap = Tap((LOOPBACK, 0), (LOOPBACK, 1), tmp_path, processes=2)
        starting = asyncio.create_task(tap.start())
        await settled(lambda: bool(processes_of(tap)._running))
        for one in processes_of(tap)._running:
            for number in IGNORED_SIGNALS:
                assert one.process.pid is not None
                os.kill(one.process.pid, number)
        await starting
        await tap.close()
        assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) & {*IGNORED_SIGNALS} == set()

    run(job())


@pytest.mark.long
@pytest.mark.slow
def test_a_process_that_cannot_be_started_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("flexwire.tap.processes._RESTART_SECONDS", 0.05)
    really, failed = processes._start, threading.Event()

    def start(process: Any) -> None:
        if not failed.is_set():
            failed.set()
            raise BlockingIOError("no more processes")
        really(process)

    async def job() -> None:
        async with Tap((LOOPBACK, 0), (LOOPBACK, 1), tmp_path, processes=2) as tap:
            monkeypatch.setattr("flexwire.tap.processes._start", start)
            processes_of(tap)._running[0].process.kill()
            await settled(failed.is_set)
            await settled(lambda: len(processes_of(tap)._running) == 2)
            await settled(lambda: all(one.is_ready for one in processes_of(tap)._running))

    run(job())
    assert "cannot be started: no more processes" in caplog.text


def test_a_process_that_comes_too_late_does_not_come_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flexwire.tap.processes._START_SECONDS", 0.01)

    async def job() -> None:
        config = TapConfig(HostPort(LOOPBACK, 0), ONE, tmp_path, processes=2)
        carrier = ProcessRunner(config, lambda _: None)
        with pytest.raises(TapError, match="not ready"):
            await carrier._start_one()
        assert carrier._running == []

    run(job())
