"""An input file on this machine or in an object store, in the version that was listed.

Reading raises `StorageError` if the file ends early, or is no longer the file that was listed.
"""

from __future__ import annotations

import errno
import io
import os
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from flexwire.arguments import refuse
from flexwire.errors import StorageError
from flexwire.storage.filesystems import (
    local_path,
    open_store,
    reason_of,
    report_failures,
    scheme_of,
    shown,
)
from flexwire.storage.range_requests import request_range
from flexwire.storage.store_listing import file_description

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from flexwire.storage.filesystems import FileStore


PIECE_BYTES: Final = 8 << 20
PIECES_AHEAD: Final = 2
"""The number of pieces that are fetched while another piece is being read. At most three pieces are
then in memory.
"""

FEWEST_BYTES: Final = 256 << 10
"""The smallest number of bytes in a request for a part of a Parquet file.

One request then returns several small adjacent columns.
"""


class LocalRange(io.RawIOBase):
    """A range of ``size`` bytes of a file on this machine, from the file's current position."""

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
        """Return True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # what BufferedReader gives
        """Fill ``buffer``. Return 0 at the end of the range."""
        size_limit = min(len(buffer), self._left)
        if not size_limit:
            return 0
        try:
            size = self._file.readinto(memoryview(buffer)[:size_limit]) or 0
        except OSError as error:
            raise self._error(error.strerror or str(error)) from error
        self._left -= size
        if not size or not self._left:
            self._compare(os.fstat(self._file.fileno()))
        if not size:
            raise self._error(f"the file ended {self._left} bytes early")
        return size

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


class ForwardRange(io.RawIOBase):
    """The bytes from ``start`` to ``stop`` of a file, which a function reads piece by piece.

    The function is called for ``piece`` bytes at a time.
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
        """Return True."""
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # what BufferedReader gives
        """Fill ``buffer`` from one piece. Return 0 at the end of the range."""
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
        """Cancel the requests that are pending."""
        if not self.closed:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._coming.clear()
            self._piece = memoryview(b"")
        super().close()


class SeekableRange(io.RawIOBase):
    """A whole file of ``size`` bytes, of which a function reads any range.

    Each request asks for at least `FEWEST_BYTES`. If a read begins where the last request ended,
    the next request asks for twice as many bytes, up to `PIECE_BYTES`. Reading a whole table
    therefore takes few requests. If only a few columns of a table are wanted, few other bytes are
    read.
    """

    def __init__(self, read: Callable[[int, int], bytes], size: int) -> None:
        self._read = read
        self._size = size
        self._at = 0
        self._piece = memoryview(b"")
        self._start = 0
        self._ahead = 0

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position of the next byte."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        self._at = max(0, base + offset)
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        """Return the next ``size`` bytes, or all, and fewer bytes only at the end of the file."""
        wanted = self._size if size is None or size < 0 else self._at + size
        parts = []
        while part := self._next(wanted):
            parts.append(part)
        return b"".join(parts)

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # what RawIOBase gives
        """Fill ``buffer`` from one piece; return 0 at the end of the file."""
        part = self._next(self._at + len(buffer))
        buffer[: len(part)] = part
        return len(part)

    def _next(self, last: int) -> memoryview:
        """Return bytes from the position up to ``last``, or nothing at the end."""
        last = min(last, self._size)
        if last <= self._at:
            return memoryview(b"")
        if not self._start <= self._at < self._start + len(self._piece):
            self._fetch(last)
        part = self._piece[self._at - self._start : last - self._start]
        self._at += len(part)
        return part

    def _fetch(self, last: int) -> None:
        goes_on = self._at == self._start + len(self._piece)
        fewest = min(FEWEST_BYTES, PIECE_BYTES)
        self._ahead = min(max(2 * self._ahead, fewest), PIECE_BYTES) if goes_on else fewest
        stop = min(max(last, self._at + self._ahead), self._at + PIECE_BYTES, self._size)
        # The last bytes of a Parquet file contain the positions of its columns.
        start = self._at if stop < self._size else min(self._at, max(0, stop - fewest))
        self._piece, self._start = memoryview(self._read(start, stop)), start

    def close(self) -> None:
        """Free the piece."""
        self._piece = memoryview(b"")
        super().close()


_BUFFER: Final = 1 << 20
_GONE: Final = "the file was removed after it was listed, or only the driver can see the file"
_GROWING: Final = {"", "hdfs"}  # In an object store, every change creates a new file.


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file given by URL or path, with the size and version from its listing.

    A task can open the file on any machine. Opening and reading fail if the file was replaced in
    the meantime. A file on this machine or in HDFS may have grown. In that case, it is read only up
    to the listed ``size``. ``version`` is an ETag or a generation in an object store. On this
    machine, ``version`` consists of the time of the last change and the file's inode number.
    """

    url: str
    size: int
    version: str

    @property
    def name(self) -> str:
        """The name of the file in tables and messages: the path, or the URL without keys."""
        return shown(self.url) if scheme_of(self.url) else self.url

    def open(
        self, start: int = 0, stop: int | None = None, *, piece: int = PIECE_BYTES
    ) -> io.BufferedReader:
        """Open the bytes from ``start`` to ``stop`` for reading forward, with pieces fetched ahead.

        Each request to a store asks for one ``piece``, and up to three pieces are in memory. Raises
        `StorageError`, immediately or during reading, if the bytes cannot be read.
        """
        stop = self.size if stop is None else stop
        if not 0 <= start <= stop <= self.size:
            raise refuse("start and stop", f"within 0 to {self.size}", (start, stop))
        if not scheme_of(self.url):
            return self._open_here(start, stop)
        with report_failures(self.url, "open"):
            store = open_store(self.url)
            self._compare(store, store.key(self.url))
        return io.BufferedReader(ForwardRange(self._read, start, stop, piece), _BUFFER)

    def open_at_will(self) -> SeekableRange:
        """Open all bytes of a file in a store for reading at any position, for readers of Parquet.

        Reading raises `StorageError` if the bytes cannot be read, or if the file was replaced.
        """
        return SeekableRange(self._read, self.size)

    def read(self) -> bytes:
        """Return all bytes of a file in a store, directly after it was listed."""
        if self.size <= PIECE_BYTES:
            return self._read(0, self.size, is_all=True) if self.size else b""
        with io.BufferedReader(ForwardRange(self._read, 0, self.size), _BUFFER) as file:
            return file.read()

    def _read(self, first: int, last: int, *, is_all: bool = False) -> bytes:
        """Return bytes of a file in a store. Raises `StorageError` if its version has changed."""
        store = open_store(self.url)
        key = store.key(self.url)
        with report_failures(self.url, "read"):
            data, version = request_range(store, key, self.size, self.version, first, last)
            if version != self.version and not (is_all and not version):
                # This check comes afterwards, so that all bytes read before it belong to the listed
                # version.
                self._compare(store, key)
        if version and version != self.version:
            raise self._error(f"expected version {self.version}, got {version}")
        return data

    def _open_here(self, start: int, stop: int) -> io.BufferedReader:
        path = local_path(self.url)
        try:
            file = io.FileIO(path)
        except FileNotFoundError:
            raise self._error(_GONE) from None
        except OSError as error:
            raise StorageError(reason_of(error), url=self.url, tried="open") from error
        try:
            self._compare_here(os.fstat(file.fileno()))
            file.seek(start)
        except BaseException:
            file.close()
            raise
        return io.BufferedReader(
            LocalRange(file, stop - start, self._compare_here, self._error), _BUFFER
        )

    def _compare(self, store: FileStore, key: str) -> None:
        try:
            info = store.files.info(key, **store.limit)
        except FileNotFoundError:
            raise self._error(_GONE) from None
        if info.get("type") != "file":
            raise self._error("the path is no longer a file")
        size, _, version = file_description(store, info)
        self._refuse_change(size, version, grows=store.kind in _GROWING)

    def _compare_here(self, status: os.stat_result) -> None:
        # A copy on another machine counts as the same file if it has the same size and time.
        changed, _, number = self.version.partition("/")
        if status.st_size == self.size and str(status.st_mtime_ns) == changed:
            return
        grows = str(status.st_ino) == number
        self._refuse_change(status.st_size, version_here(status), grows=grows)

    def _refuse_change(self, size: int, version: str, *, grows: bool) -> None:
        if size == self.size and version == self.version:
            return
        if not (grows and size > self.size):
            raise self._error(
                f"the file changed after it was listed: expected {self.size} bytes of version "
                f"{self.version}, got {size} bytes of version {version}"
            )

    def _error(self, reason: str) -> StorageError:
        return StorageError(reason, url=shown(self.url), tried="read")


def input_file_at(url: str) -> InputFile:
    """Return a file in a store in its current version. Raises `StorageError` if it is missing."""
    store = open_store(url)
    with report_failures(url, "read"):
        info = store.files.info(store.key(url), **store.limit)
        if info.get("type") != "file":
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        size, _, version = file_description(store, info)
    return InputFile(url, size, version)


def version_here(status: os.stat_result) -> str:
    """Return the version of a file on this machine."""
    return f"{status.st_mtime_ns}/{status.st_ino}"
