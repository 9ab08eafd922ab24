"""Run several processes for connections to the same listeners, to use several cores.

The tap accepts clients, and passes each socket to the process with the fewest connections. Only the
tap opens listeners, so that each broker has one port for all processes. Only the tap removes
capture files, so that the limit applies to all processes together. Each process writes its own
files, and reports its counts four times a second.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import multiprocessing
import signal
import socket
from collections import Counter, deque
from contextlib import suppress
from multiprocessing import resource_tracker
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from flexwire.capture.files.retention import NO_LIMIT, FinishedFile, KeptFiles
from flexwire.client.notation import HostPort
from flexwire.errors import ArgumentError, CaptureError, TapError
from flexwire.tap.config import MOST_PROCESSES
from flexwire.tap.metrics import TapStatistics
from flexwire.tap.rehearsal import Rehearsal
from flexwire.tap.security import TapContexts
from flexwire.tap.worker import IGNORED_SIGNALS, MESSAGE_BYTES, run_worker

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.process import BaseProcess

    from flexwire.tap.config import TapConfig
    from flexwire.tap.rehearsal import RehearsalPlan

log = logging.getLogger("flexwire.tap")

_START_SECONDS: Final = 60.0
_CLOSE_SECONDS: Final = 20.0
_EXIT_SECONDS: Final = 2.0
# A process that ends as soon as it starts should not be restarted immediately.
_RESTART_SECONDS: Final = 5.0


class _WorkerHandle:
    """One process, from the tap's point of view."""

    def __init__(self, process: BaseProcess, control: socket.socket, ask: socket.socket) -> None:
        self.process = process
        self.control = control
        self.ask = ask
        self.counts = TapStatistics()
        self.clients: dict[int, str] = {}
        """The host of each open connection's client, by connection number."""
        self.unfinished: dict[Path, None] = {}
        """The capture files that the process has begun but not finished, if the kept files are
        limited.
        """
        self.waiting: deque[tuple[bytes, socket.socket | None]] = deque()
        self.ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.gone = asyncio.Event()
        self.is_over = False

    @property
    def is_ready(self) -> bool:
        """True if the process accepts clients."""
        return self.ready.done() and self.ready.exception() is None


class ProcessRunner:
    """Run connections in several processes. ``port_for`` is the same as for `LocalRunner`."""

    def __init__(self, config: TapConfig, port_for: Callable[[HostPort], int | None]) -> None:
        keep, count = config.keep, config.processes
        if count > MOST_PROCESSES:
            raise ArgumentError(f"expected at most {MOST_PROCESSES} processes, got {count}")
        if keep.max_bytes is not None and keep.max_bytes < (count + 1) * config.max_bytes:
            raise ArgumentError(
                f"{count} processes write files of {config.max_bytes:,} bytes: expected to keep at "
                f"least {(count + 1) * config.max_bytes:,} bytes, got {keep.max_bytes:,}"
            )
        if keep.max_files is not None and keep.max_files < count:
            raise ArgumentError(
                f"expected to keep at least one file for each process, got {keep.max_files}"
            )
        self._config = config
        self._count = count
        self._port_for = port_for
        self._host = ""
        self._files = KeptFiles(keep, growing=count)
        self._paths: list[Path] = []
        self._running: list[_WorkerHandle] = []
        # The counts of the tap itself, and of processes that have ended.
        self._own = TapStatistics()
        self._restarting: set[asyncio.Task[None]] = set()
        self._closing = False
        self._rehearsal: Rehearsal | None = None
        self._heard: dict[str, Callable[[_WorkerHandle, Any], None]] = {
            "counts": self._hear_counts,
            "line": self._hear_line,
            "ended": self._hear_ended,
            "paths": self._hear_paths,
            "finished": self._hear_finished,
            "failed": self._hear_failed,
            "refused": self._hear_refused,
            "rehearsed": self._hear_rehearsed,
            "ready": self._hear_ready,
            "over": self._hear_over,
        }

    async def start(self, host: str) -> None:
        """Start all processes.

        Raises `TlsError`, `CaptureError`, or `TapError` if a process fails.
        """
        self._host = host
        TapContexts(self._config.security)
        try:
            await asyncio.gather(*(self._start_one() for _ in range(self._count)))
        except BaseException:
            await self.close()
            raise

    def take(self, client: socket.socket, upstream: HostPort, number: int) -> None:
        """Pass a client to the process with the fewest clients. Close it if there is no process."""
        ready = [worker for worker in self._running if worker.is_ready]
        try:
            host = client.getpeername()[0]
        except OSError:
            client.close()
            return  # The client has already left.
        if self._closing or not ready:
            client.close()
            self._own.failures += not self._closing
            return
        chosen = min(ready, key=lambda worker: len(worker.clients))
        chosen.clients[number] = host
        self._say(chosen, {"client": number, "upstream": upstream}, client)

    def rotate(self) -> None:
        """Make all processes continue in their next capture files."""
        for worker in self._running:
            self._say(worker, {"rotate": True})

    def rehearse(self, plan: RehearsalPlan) -> None:
        """Make all processes rehearse a release. All processes choose the same clients."""
        self._config = dataclasses.replace(self._config, rehearsal=plan)
        self._rehearsal = Rehearsal(plan, self._config.only)

    def end_rehearsal(self, reason: str) -> None:
        """Make all processes let every later request pass."""
        if self._rehearsal is None or self._config.rehearsal is None:
            return
        self._rehearsal.end(reason)
        # A process that starts later does not rehearse.
        self._config = dataclasses.replace(self._config, rehearsal=None)
        for worker in self._running:
            self._say(worker, {"rehearsed": reason})

    @property
    def rehearsal(self) -> Rehearsal | None:
        """The current or the last rehearsal of all processes, or None."""
        return self._rehearsal

    async def close(self) -> None:
        """End all processes, and wait until their captures are written.

        Calling this again has no effect.
        """
        self._closing = True
        for task in self._restarting:
            task.cancel()
        await asyncio.gather(*self._restarting, return_exceptions=True)
        running = list(self._running)
        for worker in running:
            self._say(worker, {"over": True})
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                for worker in running:
                    await worker.gone.wait()
        except TimeoutError:
            log.error("a tap process did not end within %g seconds", _CLOSE_SECONDS)  # noqa: TRY400  # the message is enough
        finally:
            for worker in running:
                if not worker.gone.is_set():
                    worker.process.kill()
                    self._end(worker)
        for worker in running:
            await asyncio.to_thread(worker.process.join, _EXIT_SECONDS)
            # The process has reported everything, and may still be waiting for a broker's name.
            worker.process.kill()
            await asyncio.to_thread(worker.process.join, _EXIT_SECONDS)

    @property
    def stats(self) -> TapStatistics:
        """The counts that the processes have reported so far."""
        self._own.count_removed(self._files)
        total = self._own
        for worker in self._running:
            total = total + worker.counts
        return total

    def counts(self) -> TapStatistics:
        """Return the same counts as `stats`."""
        return self.stats

    @property
    def clients(self) -> int:
        """Return how many hosts have open connections."""
        return len(Counter(host for worker in self._running for host in worker.clients.values()))

    @property
    def capture_paths(self) -> list[Path]:
        """The capture files of all processes, except those that were removed to make room."""
        return list(self._paths)

    async def _start_one(self) -> None:
        control, theirs = _pair()
        ask, asking = _pair()
        process = multiprocessing.get_context("spawn").Process(
            target=run_worker,
            args=(self._config, self._host, theirs, asking, log.getEffectiveLevel()),
            daemon=True,
        )
        try:
            _start(process)
        except OSError as error:
            control.close()
            ask.close()
            raise TapError(f"a tap process cannot be started: {error}") from error
        finally:
            theirs.close()
            asking.close()
        worker = _WorkerHandle(process, control, ask)
        self._running.append(worker)
        if self._closing:
            process.kill()
        loop = asyncio.get_running_loop()
        loop.add_reader(control, self._hear, worker)
        loop.add_reader(ask, self._answer, worker)
        try:
            async with asyncio.timeout(_START_SECONDS):
                await asyncio.shield(worker.ready)
        except TimeoutError:
            if not worker.gone.is_set():
                # Another process is tried, and this process must not be used again.
                process.kill()
                self._end(worker)
                worker.ready.exception()
            raise TapError(f"a tap process was not ready after {_START_SECONDS:g} s") from None

    def _say(
        self, worker: _WorkerHandle, message: dict[str, Any], client: socket.socket | None = None
    ) -> None:
        worker.waiting.append((json.dumps(message).encode(), client))
        self._send(worker)

    def _send(self, worker: _WorkerHandle) -> None:
        """Send waiting messages, as many as the process can receive at the moment."""
        loop = asyncio.get_running_loop()
        while worker.waiting and not worker.gone.is_set():
            data, client = worker.waiting[0]
            try:
                socket.send_fds(worker.control, [data], [] if client is None else [client.fileno()])
            except BlockingIOError:
                loop.add_writer(worker.control, self._send, worker)
                return
            except OSError:
                break  # The next read will report that the process has ended.
            worker.waiting.popleft()
            if client is not None:
                client.close()
        if not worker.gone.is_set():
            loop.remove_writer(worker.control)

    def _hear(self, worker: _WorkerHandle) -> None:
        try:
            data = worker.control.recv(MESSAGE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self._end(worker)
            return
        kind, content = json.loads(data)
        self._heard[kind](worker, content)

    def _hear_counts(self, worker: _WorkerHandle, counts: dict[str, int]) -> None:
        worker.counts = TapStatistics(**counts)

    def _hear_line(self, _: _WorkerHandle, line: tuple[int, str]) -> None:
        log.log(line[0], "%s", line[1])

    def _hear_ended(self, worker: _WorkerHandle, numbers: list[int]) -> None:
        for number in numbers:
            worker.clients.pop(number, None)

    def _hear_paths(self, worker: _WorkerHandle, paths: list[str]) -> None:
        self._paths += map(Path, paths)
        if self._config.keep != NO_LIMIT:
            worker.unfinished |= dict.fromkeys(map(Path, paths))

    def _hear_finished(
        self, worker: _WorkerHandle, files: list[tuple[str, list[int], int, int]]
    ) -> None:
        for path, (device, inode), size, frames in files:
            worker.unfinished.pop(Path(path), None)
            self._files.add(FinishedFile(Path(path), (device, inode), size, frames))
        self._make_room()

    def _take_over(self, worker: _WorkerHandle) -> None:
        """Take over the files that a process has left behind, and manage them like all others."""
        for path in worker.unfinished:
            with suppress(OSError):
                status = path.stat(follow_symlinks=False)
                inode = status.st_dev, status.st_ino
                # The number of frames in the file is unknown.
                self._files.add(FinishedFile(path, inode, status.st_size, 0))
        self._make_room()

    def _make_room(self) -> None:
        for gone in self._files.make_room(self._count * self._config.max_bytes):
            self._paths.remove(gone)

    def _hear_failed(self, worker: _WorkerHandle, failure: tuple[str, str]) -> None:
        kind = CaptureError if failure[0] == "capture" else TapError
        worker.ready.set_exception(kind(failure[1]))

    def _hear_refused(self, _: _WorkerHandle, said: tuple[tuple[str, str | None], str]) -> None:
        if self._rehearsal is not None:
            (host, client_id), request = said
            self._rehearsal.fail((host, client_id), request)
            if self._rehearsal.over is not None:
                self.end_rehearsal(self._rehearsal.over)

    def _hear_rehearsed(self, _: _WorkerHandle, reason: str) -> None:
        self.end_rehearsal(reason)

    def _hear_ready(self, worker: _WorkerHandle, _: None) -> None:
        worker.ready.set_result(None)

    def _hear_over(self, worker: _WorkerHandle, _: None) -> None:
        worker.is_over = True
        self._end(worker)

    def _answer(self, worker: _WorkerHandle) -> None:
        try:
            data = worker.ask.recv(MESSAGE_BYTES)
            if data:
                address = HostPort(*json.loads(data))
                worker.ask.send(json.dumps((address, self._port_for(address))).encode())
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            asyncio.get_running_loop().remove_reader(worker.ask)

    def _end(self, worker: _WorkerHandle) -> None:
        """Record that a process has reported everything and is ending."""
        loop = asyncio.get_running_loop()
        for channel in (worker.control, worker.ask):
            loop.remove_reader(channel)
            loop.remove_writer(channel)
            channel.close()
        for _, client in worker.waiting:
            if client is not None:
                client.close()
        self._running.remove(worker)
        if not worker.is_over:
            worker.counts.open_connections = 0
            self._own.unended += len(worker.clients)
            self._take_over(worker)
        self._own = self._own + worker.counts
        worker.gone.set()
        if not worker.ready.done():
            worker.ready.set_exception(TapError("a tap process ended before it was ready"))
        elif not worker.is_over and not self._closing:
            self._own.failures += 1
            log.error(
                "a tap process ended (closed connections: %d); a new process will be started",
                len(worker.clients),
            )
            task = asyncio.create_task(self._restart())
            self._restarting.add(task)
            task.add_done_callback(self._restarting.discard)

    async def _restart(self) -> None:
        while True:
            await asyncio.sleep(_RESTART_SECONDS)
            try:
                await self._start_one()
            except (TapError, CaptureError) as error:
                log.error("cannot replace a tap process: %s", error)  # noqa: TRY400  # the message is enough
            else:
                return


def _start(process: BaseProcess) -> None:
    """Start a process that receives no signals until it ignores them, as `run_worker` does."""
    # Starting the resource tracker unblocks signals, so the tracker starts before signals are
    # blocked.
    resource_tracker.ensure_running()
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, IGNORED_SIGNALS)
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _pair() -> tuple[socket.socket, socket.socket]:
    """Return both ends of a channel for whole messages. The first end does not block."""
    try:
        own, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    except (OSError, AttributeError) as error:
        raise TapError(
            f"this system does not support the sockets that several processes need: {error}"
        ) from error
    own.setblocking(False)
    return own, theirs
