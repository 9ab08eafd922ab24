"""One process of a tap. The process handles the clients that it receives, and reports its counts.

The process does not listen. The sockets of clients arrive over one channel, which also carries all
other messages between the tap and the process. Over another channel the process requests the port
for a new broker, and waits for the answer.
"""

from __future__ import annotations

import asyncio
import ctypes
import dataclasses
import json
import logging
import signal
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from flexwire.capture.files.retention import NO_LIMIT, KeptFiles
from flexwire.client.notation import HostPort
from flexwire.errors import CaptureError, FlexwireError
from flexwire.tap.connections import LocalRunner
from flexwire.tap.log_limit import LogLimiter

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from flexwire.capture.files.retention import FinishedFile
    from flexwire.tap.config import TapConfig


# The numbers of mallopt's options, from glibc's malloc.h.
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
KEPT_BYTES: Final = 64 * 1024 * 1024
_MAPPED_FROM: Final = 16 * 1024 * 1024


def keep_freed_memory() -> None:
    """Make the C library keep up to `KEPT_BYTES` of freed memory for later allocations.

    By default, the C library returns large blocks to the system at once, and the system provides
    new blocks page by page. With frames of 1 MB this takes a third of the tap's time. The setting
    affects the whole process, so only a program should call this, not a library. C libraries other
    than glibc have no such settings.
    """
    with suppress(OSError, AttributeError, TypeError):
        library = ctypes.CDLL(None)
        library.mallopt(_TRIM_THRESHOLD, KEPT_BYTES)
        library.mallopt(_MMAP_THRESHOLD, _MAPPED_FROM)


log = logging.getLogger("flexwire.tap")

MESSAGE_BYTES: Final = 64 * 1024
"""The largest size of a message between a tap and one of its processes, in bytes."""
IGNORED_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
"""The signals that a process ignores. Ctrl-C goes to all processes of a terminal, but only the tap
decides when to end.
"""
_TELL_SECONDS: Final = 0.25
# The longest time to wait for the tap's answer. The tap answers immediately, unless it has ended or
# hangs. All connections of this process wait in the meantime.
_ASK_SECONDS: Final = 2.0
# After such a wait, the tap gets no requests for this time, and clients get the brokers' own
# addresses.
_SILENT_SECONDS: Final = 10.0
# A message with this many paths and numbers is well below the limit.
_TOLD_TOGETHER: Final = 100
_MOST_LINES: Final = 1000
# Each number may take 12 bytes in JSON.
_MOST_CHARACTERS: Final = 5000


class FileReporter(KeptFiles):
    """Remember for the tap which files are finished, because all its processes share one limit.

    ``begun`` is called with each new file.
    """

    def __init__(self, begun: Callable[[], None], *, with_limit: bool) -> None:
        super().__init__(NO_LIMIT)
        self.finished: list[FinishedFile] = []
        self._begun = begun
        self._with_limit = with_limit

    def begin(self, path: Path) -> None:  # noqa: ARG002 - the process reports the paths itself
        """Report a new file immediately, because a process that is killed reports nothing later."""
        self._begun()

    def add(self, file: FinishedFile) -> None:
        """Add a finished file."""
        if self._with_limit:
            self.finished.append(file)


class _LineBuffer(logging.Handler):
    """Keep log lines for the tap, which writes the log. Above a limit, only count the lines."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[tuple[int, str]] = []
        self._lost = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line."""
        if len(self.lines) < _MOST_LINES:
            self.lines.append((record.levelno, self.format(record)[:_MOST_CHARACTERS]))
        else:
            self._lost += 1

    def taken(self) -> list[tuple[int, str]]:
        """Return the lines since the last call."""
        lines, self.lines = self.lines, []
        if self._lost:
            lines.append((logging.WARNING, f"{self._lost} more lines were not logged"))
            self._lost = 0
        return lines


class Worker:
    """Handle the clients that arrive over the channel ``control``, until it ends or breaks."""

    def __init__(
        self,
        config: TapConfig,
        control: socket.socket,
        ask: socket.socket,
        lines: _LineBuffer,
    ) -> None:
        self._control = control
        self._ask = ask
        self._lines = lines
        self._ports: dict[HostPort, int] = {}
        self._files = FileReporter(self._say_path, with_limit=config.keep != NO_LIMIT)
        self._carrier = LocalRunner(config, self._port_for, self._files, self._note_end)
        if config.rehearsal is not None:
            self._carrier.rehearse(config.rehearsal, quiet=True)
        self._told_failed = 0
        self._asks_again = 0.0
        self._ended: list[int] = []
        self._told_paths = 0
        self._is_over = asyncio.Event()
        self._saying = LogLimiter(log)

    async def run(self, host: str) -> None:
        """Handle clients until the end, and until everything is captured and reported."""
        try:
            await self._carrier.start(host)
        except FlexwireError as error:
            kind = "capture" if isinstance(error, CaptureError) else "tap"
            await self._say("failed", (kind, str(error)))
            await self._say("over")
            return
        loop = asyncio.get_running_loop()
        self._control.setblocking(False)
        self._say_path()
        loop.add_reader(self._control, self._hear)
        await self._say("ready")
        try:
            while not self._is_over.is_set():
                await self._tell()
                try:
                    async with asyncio.timeout(_TELL_SECONDS):
                        await self._is_over.wait()
                except TimeoutError:
                    pass
        finally:
            loop.remove_reader(self._control)
            await self._carrier.close()
            self._saying.close()
            await self._tell()
            await self._say("over")

    def _hear(self) -> None:
        try:
            data, files, _, _ = socket.recv_fds(self._control, MESSAGE_BYTES, 1)
        except BlockingIOError:
            return
        except OSError:
            data, files = b"", []
        if not data:
            # The tap has ended, and all listeners with it.
            self._is_over.set()
            return
        said = json.loads(data)
        if "client" in said:
            self._take(files, HostPort(*said["upstream"]), said["client"])
        elif "rotate" in said:
            self._carrier.rotate()
        elif "rehearsed" in said:
            self._carrier.end_rehearsal(said["rehearsed"])
        else:
            self._is_over.set()

    def _take(self, files: list[int], upstream: HostPort, number: int) -> None:
        if not files:
            # If this process cannot open more files, the system closes a socket.
            line = "closed a client's connection: a tap process has too many open files"
            self._saying.say(logging.ERROR, line, line)
            self._carrier.stats.failures += 1
            self._note_end(number)
            return
        client = socket.socket(fileno=files[0])
        client.setblocking(False)
        self._carrier.take(client, upstream, number)

    def _note_end(self, number: int) -> None:
        self._ended.append(number)

    def _port_for(self, address: HostPort) -> int | None:
        port = self._ports.get(address)
        if port is None:
            port = self._asked(address)
            if port is not None:
                self._ports[address] = port
        return port

    def _asked(self, address: HostPort) -> int | None:
        if time.monotonic() < self._asks_again:
            return None  # Do not wait for each address that a broker names.
        try:
            self._ask.send(json.dumps(address).encode())
            while answer := self._ask.recv(MESSAGE_BYTES):
                port: int | None
                asked, port = json.loads(answer)
                # A late answer about another broker may still arrive.
                if HostPort(*asked) == address:
                    return port
            reason = "the channel is closed"
        except OSError as error:
            reason = str(error)
        self._asks_again = time.monotonic() + _SILENT_SECONDS
        log.error("no listener for %s: the tap's main process did not answer: %s", address, reason)
        return None

    def _say_path(self) -> None:
        """Report the new file, unless this has to wait for the tap.

        In that case `_tell` reports the file later.
        """
        paths = self._carrier.capture_paths
        if self._told_paths == len(paths) - 1:
            with suppress(OSError):
                self._control.send(json.dumps(("paths", [str(paths[-1])])).encode())
                self._told_paths += 1

    async def _tell(self) -> None:
        """Report the counts, the new files, and the ended connections."""
        for level, line in self._lines.taken():
            await self._say("line", (level, line))
        # Ended connections are reported last. By then the tap has all counts, and keeps no client
        # that has left.
        counts = dataclasses.asdict(self._carrier.counts())
        # The finished files are read before the paths, so that the tap has the path of each
        # finished file.
        finished: list[FinishedFile]
        finished, self._files.finished = self._files.finished, []
        paths = self._carrier.capture_paths
        while self._told_paths < len(paths):
            some = paths[self._told_paths : self._told_paths + _TOLD_TOGETHER]
            self._told_paths += len(some)
            await self._say("paths", [str(path) for path in some])
        while finished:
            some_files, finished = finished[:_TOLD_TOGETHER], finished[_TOLD_TOGETHER:]
            await self._say("finished", [(str(path), *rest) for path, *rest in some_files])
        while self._ended:
            ended, self._ended = self._ended[:_TOLD_TOGETHER], self._ended[_TOLD_TOGETHER:]
            await self._say("ended", ended)
        await self._tell_rehearsal()
        await self._say("counts", counts)

    async def _tell_rehearsal(self) -> None:
        """Report the clients that were refused since the last call, and why the rehearsal ended."""
        rehearsal = self._carrier.rehearsal
        if rehearsal is None:
            return
        failed = list(rehearsal.failed.items())[self._told_failed :]
        for client in failed:
            await self._say("refused", client)
        self._told_failed += len(failed)
        if rehearsal.over is not None:
            await self._say("rehearsed", rehearsal.over)

    async def _say(self, kind: str, said: object = None) -> None:
        try:
            await asyncio.get_running_loop().sock_sendall(
                self._control, json.dumps((kind, said)).encode()
            )
        except OSError:
            self._is_over.set()


def run_worker(
    config: TapConfig, host: str, control: socket.socket, ask: socket.socket, level: int
) -> None:
    """Run one process of a tap."""
    for number in IGNORED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, IGNORED_SIGNALS)
    lines = _LineBuffer()
    lines.setFormatter(logging.Formatter("%(message)s"))
    logging.basicConfig(handlers=[lines], level=level)
    keep_freed_memory()
    ask.settimeout(_ASK_SECONDS)

    async def job() -> None:
        control.setblocking(False)
        await Worker(config, control, ask, lines).run(host)

    asyncio.run(job())
