"""The part of a file that is read: a kernel sees it as memory, and objects as a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from flexwire.capture.files.reading import DAMAGE, READ_AHEAD
from flexwire.columnar.program import address, allocate

if TYPE_CHECKING:
    import io

    Bytes = np.ndarray[Any, Any]

# So much is read at a time: little enough to be in the processor's cache still when the kernel gets
# it, and more than `READ_AHEAD`, so that no buffer stands between.
PIECE = 2 * READ_AHEAD


class Window:
    """The bytes of a file, which stands at ``offset``, from there on: ``room`` of them at a time.

    They are in ``buffer``, which begins at ``address``, up to ``filled``; at ``position`` the next
    block begins. Nothing from ``stop`` on is read before it is asked for. Where reading ``piece``
    bytes at a time can fail within the file, they must not be more than what it buffers: it would
    read on after it gave what it has, and lose that.
    """

    def __init__(
        self,
        file: io.BufferedReader[Any],
        room: int,
        offset: int = 0,
        stop: int | None = None,
        piece: int = PIECE,
    ) -> None:
        self._file = file
        self._piece = piece
        self._most_room = room
        self._begin = offset  # where in the file the buffer would begin, by where its end stands
        self._stop = stop
        self._error: Exception | None = None
        self._is_read = False
        self.position = self.filled = 0
        try:
            ahead = len(file.peek(1))
        except DAMAGE as error:
            self._error = error
            self._is_read = True
            ahead = 0
        # Of a small file, all is there.
        self.room = room if ahead >= READ_AHEAD else min(room, ahead + 1)
        self.buffer, self.address = self._empty()
        # Payloads of packets that objects read stand after the room of the file's bytes.
        self.used = self.room

    def _empty(self) -> tuple[Bytes, int]:
        # Pages that nothing is put into take no memory.
        buffer = allocate(2 * self.room)
        return buffer, address(buffer)

    @property
    def offset(self) -> int:
        """Where in the file the next block begins."""
        return self._begin + self.position

    @property
    def is_full(self) -> bool:
        """Whether there is room for no more bytes of the file."""
        return self.filled == self.room

    @property
    def is_stopped(self) -> bool:
        """Whether the next block begins where the part of the file ends that is to be read."""
        return self._stop is not None and self.offset >= self._stop

    def fill(self) -> bool:
        """Read on; False if there is no room, or nothing more."""
        end = min(self.filled + self._piece, self.room)
        if self._stop is not None:
            end = min(end, self._stop - self._begin)
        if end <= self.filled or self._is_read:
            return False
        try:
            count = self._file.readinto1(self.buffer.data[self.filled : end])
        except DAMAGE as error:
            self._error = error
            count = 0
        self._is_read = not count
        self.filled += count
        return count > 0

    def read(self, size: int) -> bytes:
        """Give the next bytes to objects, what is not in the buffer directly from the file."""
        end = min(self.position + size, self.filled)
        data = self.buffer[self.position : end].tobytes()
        self.position = end
        if len(data) < size:
            if self._error is not None:
                raise self._error
            more = self._file.read(size - len(data))
            self._begin += len(more)
            data += more
        return data

    def put(self, payload: bytes) -> int | None:
        """Put a payload beside the file's bytes; gives where, or None if there is no room."""
        if not payload:
            return 0
        at = self.used
        if len(payload) > len(self.buffer) - at:
            return None
        self.used += len(payload)
        self.buffer[at : self.used] = np.frombuffer(payload, np.uint8)
        return at

    def data(self) -> Bytes:
        """Give what payloads are part of."""
        return self.buffer[: self.filled if self.used == self.room else self.used]

    def go_on(self, *, with_new_buffer: bool) -> None:
        """Begin the buffer with the next block."""
        left = self.buffer[self.position : self.filled]
        if with_new_buffer or self.room < self._most_room:
            self.room = self._most_room
            self.buffer, self.address = self._empty()
        self.buffer[: len(left)] = left
        self._begin += self.position
        self.position, self.filled, self.used = 0, len(left), self.room
