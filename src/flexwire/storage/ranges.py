"""Forward readers of one range of a file: here straight from it, of a store in pieces read ahead.

Both raise `StorageError` where the file ends early, or is no longer the one that was listed.
"""

from __future__ import annotations

import io
import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from flexwire.errors import StorageError

PIECE_BYTES: Final = 8 << 20
PIECES_AHEAD: Final = 2
"""Pieces that are on their way while one is being read: three of them in memory at most."""


class LocalRange(io.RawIOBase):
    """Bytes of a file on this machine, from where it stands and ``size`` of them."""

    def __init__(
        self,
        file: io.FileIO,
        size: int,
        compare: Callable[[os.stat_result], None],
        error: Callable[[str], StorageError],
    ) -> None:
        self._file = file
        self._left = size
        self._compare = compare
        self._error = error

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # what BufferedReader gives
        """Fill ``buffer``; 0 at the end of the range."""
        wanted = min(len(buffer), self._left)
        if not wanted:
            return 0
        try:
            size = self._file.readinto(memoryview(buffer)[:wanted]) or 0
        except OSError as error:
            raise self._error(error.strerror or str(error)) from error
        self._left -= size
        if not size or not self._left:
            self._compare(os.fstat(self._file.fileno()))
        if not size:
            raise self._error(f"it ended {self._left} bytes early")
        return size

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


class PieceRange(io.RawIOBase):
    """Bytes ``start`` to ``stop`` of a file, by a function that reads from one byte to another.

    It is asked for ``piece`` bytes at a time.
    """

    def __init__(
        self, read: Callable[[int, int], bytes], start: int, stop: int, piece: int = PIECE_BYTES
    ) -> None:
        self._read = read
        self._size = piece
        self._next = start
        self._stop = stop
        self._piece = memoryview(b"")
        self._coming: deque[Future[bytes]] = deque()
        self._pool = ThreadPoolExecutor(PIECES_AHEAD, thread_name_prefix="flexwire-read")

    def readable(self) -> bool:
        """Always."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # what BufferedReader gives
        """Fill ``buffer`` from one piece; 0 at the end of the range."""
        if not self._piece:
            self._ask()
            if not self._coming:
                return 0
            self._piece = memoryview(self._coming.popleft().result())
            self._ask()
        size = min(len(buffer), len(self._piece))
        memoryview(buffer)[:size] = self._piece[:size]
        self._piece = self._piece[size:]
        return size

    def _ask(self) -> None:
        while len(self._coming) < PIECES_AHEAD and self._next < self._stop:
            until = min(self._next + self._size, self._stop)
            self._coming.append(self._pool.submit(self._read, self._next, until))
            self._next = until

    def close(self) -> None:
        """Forget what is on its way."""
        if not self.closed:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._coming.clear()
            self._piece = memoryview(b"")
        super().close()


class AnyRange(io.RawIOBase):
    """A whole file of ``size`` bytes, by a function that reads from one byte to another."""

    def __init__(self, read: Callable[[int, int], bytes], size: int) -> None:
        self._read = read
        self._size = size
        self._at = 0

    def readable(self) -> bool:
        """Always."""
        return True

    def seekable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """Where the next byte is read."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Read on from there."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # what BufferedReader gives
        """Fill ``buffer``; fewer bytes at the end of the file only."""
        last = min(self._at + len(buffer), self._size)
        if last <= self._at:
            return 0
        data = self._read(self._at, last)
        memoryview(buffer)[: len(data)] = data
        self._at = last
        return len(data)
