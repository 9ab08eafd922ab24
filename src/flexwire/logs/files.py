"""A file of a log wherever it is, for reading here and there: indexes and headers of batches."""

from __future__ import annotations

import io
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from flexwire.logs.log_segment import LogFile
from flexwire.storage.filesystems import local_path, scheme_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.storage.source import Source

# One request to a store costs as much as so many bytes.
_FETCHED: Final = 1 << 18
_READ_AHEAD: Final = 1 << 16


@contextmanager
def open_file(source: Source) -> Iterator[LogFile]:
    """Open a file for reading anywhere in it, as long as it was when it was listed.

    Raises `StorageError` where it is gone, or another one.
    """
    if scheme_of(source.url):
        store = io.BufferedReader(_Fetched(source), _FETCHED)
        yield LogFile(Path(source.name), store, source.size)
        return
    # It says whether this is the file that was listed.
    source.open().close()
    with local_path(source.url).open("rb", buffering=_READ_AHEAD) as file:
        yield LogFile(Path(source.url), file, source.size)


class _Fetched(io.RawIOBase):
    """A file of a store, a piece at a time."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        starts = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._source.size}
        self._at = starts[whence] + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # what BufferedReader gives
        stop = min(self._at + len(buffer), self._source.size)
        if stop <= self._at:
            return 0
        with self._source.open(self._at, stop) as piece:
            data = piece.read(stop - self._at)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)
