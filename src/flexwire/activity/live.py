"""The live capture of a running tap, read from its socket (`flexwire tap --live`)."""

from __future__ import annotations

import io
import socket
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from flexwire.activity.growing import segments_of
from flexwire.capture.files.blocks import WholeBlocks
from flexwire.capture.files.packets import UnreadableBytes
from flexwire.capture.files.reading import (
    DamagedError,
    ForwardReader,
    begin_blocks,
    resume_blocks,
)
from flexwire.errors import CaptureError
from flexwire.wire.packet_layout import MAX_BLOCK_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from flexwire.capture.files.packets import Segment
    from flexwire.capture.files.reading import Head

_PIECE: Final = 1 << 20


class LiveCapture:
    """The segments that a tap sends once flexwire has connected, and counts of unreadable bytes.

    Raises `CaptureError` if no process is listening on the socket.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        self.notes: list[str] = []
        self._whole = WholeBlocks(self.path)
        self._head: Head | None = None
        # The received bytes after the last complete block.
        self._data = bytearray()
        self._is_over = False
        self._unreadable = 0
        self._connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._connection.connect(self.path)
        except OSError as error:
            self._connection.close()
            reason = f"no tap is listening on this socket: {error.strerror or error}"
            raise CaptureError(reason, source=self.path) from error
        self._connection.setblocking(False)

    def poll(self) -> Iterator[Segment]:
        """Yield the segments that have arrived since the last call."""
        while not self._is_over:
            data = self._receive()
            if data is None:
                return
            self._data += data
            if not data:
                self._give_up("the tap closed the connection")
            try:
                yield from self._read()
            except DamagedError as damage:
                self._give_up(f"stopped reading: {damage.reason}")
            except CaptureError as error:
                self._give_up(f"stopped reading: {error.reason}")

    def close(self) -> None:
        """Disconnect from the tap. A second call has no effect."""
        self._connection.close()
        self._is_over = True

    def _receive(self) -> bytes | None:
        """Return the bytes that have arrived.

        The result is empty after the tap has closed the socket, and None if no bytes have arrived.
        """
        try:
            return self._connection.recv(_PIECE)
        except BlockingIOError:
            return None
        except OSError:
            return b""

    def _read(self) -> Iterator[Segment]:
        begin = self._whole.end
        self._whole.look(self._open, begin + len(self._data))
        size = self._whole.end - begin
        if self._whole.damage is not None:
            self._give_up(f"stopped reading: {self._whole.damage}")
        elif len(self._data) - size > MAX_BLOCK_BYTES:
            self._give_up(f"stopped reading: a block is larger than {MAX_BLOCK_BYTES:,} bytes")
        if not size:
            return
        with io.BytesIO(self._data[:size]) as content:
            del self._data[:size]
            reader = ForwardReader(self.path, content)
            blocks = (
                begin_blocks(reader) if self._head is None else resume_blocks(reader, self._head)
            )
            for item in segments_of(self.path, blocks):
                if isinstance(item, UnreadableBytes):
                    self._unreadable += 1
                    if self._unreadable == 1:
                        self.notes.append(f"{self.path}: cannot be read: {item.reason}")
                else:
                    yield item
            self._head = blocks.head

    @contextmanager
    def _open(self, start: int) -> Iterator[io.BytesIO]:
        with io.BytesIO(self._data) as content:
            content.seek(start - self._whole.end)
            yield content

    def _give_up(self, reason: str) -> None:
        if not self._is_over:
            self.notes.append(f"{self.path}: {reason}")
        self.close()


class LiveCaptures:
    """The segments from several taps, each of which has its own socket.

    Raises `CaptureError` if no process is listening on one of the sockets.
    """

    def __init__(self, paths: Sequence[str | Path]) -> None:
        self._captures: list[LiveCapture] = []
        try:
            for path in paths:
                self._captures.append(LiveCapture(path))
        except CaptureError:
            self.close()
            raise

    @property
    def notes(self) -> list[str]:
        """Return the messages for the user."""
        return [note for capture in self._captures for note in capture.notes]

    def poll(self) -> Iterator[Segment]:
        """Yield the segments that have arrived since the last call."""
        for capture in self._captures:
            yield from capture.poll()

    def close(self) -> None:
        """Disconnect from all taps."""
        for capture in self._captures:
            with suppress(OSError):
                capture.close()
