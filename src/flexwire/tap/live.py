"""The live capture, which programs on this machine read from a Unix socket.

```
PcapngWriter ─▶ its files
             └▶ LiveReaders ─▶ a reader: a section header, then each block that is written
```

A reader gets the pcapng blocks that are written after it connects. Packets mark where frames begin,
as in each file of the capture. The reader gets the same content as the files, so credentials are
withheld here too. A slow reader never makes the tap wait. If more than `MOST_WAITING` bytes wait
for a reader, the reader is disconnected and counted.
"""

from __future__ import annotations

import asyncio
import logging
import select
import socket
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from flexwire.errors import TapError
from flexwire.tap.log_limit import LogLimiter

if TYPE_CHECKING:
    from flexwire.capture.files.pcapng import PcapngWriter
    from flexwire.tap.metrics import TapStatistics

log = logging.getLogger("flexwire.tap")

MOST_READERS: Final = 16
"""The largest number of readers. Further readers are disconnected as soon as they connect."""
MOST_WAITING: Final = 64 * 1024 * 1024
"""The largest number of bytes that wait for one reader."""
_PIECE: Final = 1 << 16


class _Reader:
    """A reader, and the bytes that wait for it."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.waiting = bytearray()

    def send(self, data: bytes) -> bool:
        """Send bytes, or keep them. Return whether some bytes wait.

        Raises `OSError` if the connection fails.
        """
        if not self.waiting:
            with suppress(BlockingIOError):
                sent = self.connection.send(data)
                data = data[sent:] if sent < len(data) else b""
        self.waiting += data
        return bool(self.waiting)

    def flush(self) -> bool:
        """Send as many waiting bytes as the reader accepts. Return whether some still wait."""
        with suppress(BlockingIOError):
            while self.waiting:
                del self.waiting[: self.connection.send(self.waiting[:_PIECE])]
        return bool(self.waiting)


class LiveReaders:
    """The readers of a tap's capture, from `start` until `close`.

    ``most_waiting`` is the number of bytes that may wait for one reader.
    """

    def __init__(
        self,
        path: str | Path,
        writer: PcapngWriter,
        statistics: TapStatistics,
        *,
        most_waiting: int = MOST_WAITING,
    ) -> None:
        self.path = Path(path)
        self._writer = writer
        self._statistics = statistics
        self._most_waiting = most_waiting
        self._listening: socket.socket | None = None
        self._readers: dict[int, _Reader] = {}
        self._saying = LogLimiter(log)

    def __len__(self) -> int:
        return len(self._readers)

    def start(self) -> None:
        """Listen, so that only this user can connect. Raises `TapError` if listening fails.

        A socket that another process left behind is replaced, but a file of any other type is not.
        """
        try:
            self._listening = self._bind()
        except (OSError, AttributeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise TapError(f"cannot listen on {self.path}: {reason}") from error
        asyncio.get_running_loop().add_reader(self._listening, self._accept)

    def close(self) -> None:
        """Disconnect all readers. Waiting bytes are not sent."""
        if self._listening is not None:
            asyncio.get_running_loop().remove_reader(self._listening)
            self._listening.close()
            self._listening = None
            self.path.unlink(missing_ok=True)
        for number in list(self._readers):
            self._end(number)
        self._saying.close()

    def _bind(self) -> socket.socket:
        if self.path.is_socket() and not _is_served(self.path):
            self.path.unlink()
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listening.bind(str(self.path))
            # No client can connect before the socket listens.
            self.path.chmod(0o600)
            listening.listen(MOST_READERS)
            listening.setblocking(False)
        except BaseException:
            listening.close()
            raise
        return listening

    def _accept(self) -> None:
        assert self._listening is not None  # noqa: S101 - the socket is removed from the loop first
        try:
            connection, _ = self._listening.accept()
        except OSError:
            # The reader has already left, or this process has too many open files.
            return
        for number, reader in list(self._readers.items()):
            if _is_gone(reader.connection):
                self._end(number)
        if len(self._readers) >= MOST_READERS:
            connection.close()
            return
        connection.setblocking(False)
        number = connection.fileno()
        self._readers[number] = _Reader(connection)
        self._writer.copy_to = self._send
        # For the new reader, each stream marks again where a frame begins.
        self._writer.tell_again()
        asyncio.get_running_loop().add_reader(connection, self._hear, number)
        self._send_to(number, self._writer.header)

    def _hear(self, number: int) -> None:
        """Read and ignore the bytes of a reader. Drop a reader whose connection has ended."""
        connection = self._readers[number].connection
        with suppress(BlockingIOError):
            try:
                is_more = bool(connection.recv(_PIECE))
            except ConnectionError:
                is_more = False
            if is_more:
                return
            # The reader may have closed only this direction, and may still read.
            asyncio.get_running_loop().remove_reader(connection)
            if _is_gone(connection):
                self._end(number)

    def _send(self, data: bytes) -> None:
        for number in list(self._readers):
            self._send_to(number, data)

    def _send_to(self, number: int, data: bytes) -> None:
        reader = self._readers[number]
        try:
            waits = reader.send(data)
        except OSError:
            self._end(number)
            return
        if len(reader.waiting) > self._most_waiting:
            self._statistics.live_readers_dropped += 1
            line = "closed the connection to a --live reader that was too slow for the traffic"
            self._saying.say(logging.WARNING, line, line)
            self._end(number)
        elif waits:
            asyncio.get_running_loop().add_writer(reader.connection, self._flush, number)

    def _flush(self, number: int) -> None:
        reader = self._readers[number]
        try:
            waits = reader.flush()
        except OSError:
            self._end(number)
            return
        if not waits:
            asyncio.get_running_loop().remove_writer(reader.connection)

    def _end(self, number: int) -> None:
        reader = self._readers.pop(number)
        loop = asyncio.get_running_loop()
        loop.remove_reader(reader.connection)
        loop.remove_writer(reader.connection)
        reader.connection.close()
        if not self._readers:
            self._writer.copy_to = None


def _is_served(path: Path) -> bool:
    """Return whether a process listens on a socket."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return False
    return True


def _is_gone(connection: socket.socket) -> bool:
    """Return whether the other end has closed both directions."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return any(events & (select.POLLHUP | select.POLLERR) for _, events in poll.poll(0))
