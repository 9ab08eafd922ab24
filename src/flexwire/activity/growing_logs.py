"""Growing request logs: read the lines that were added since the last time.

A log is read up to its last complete line, and the next reading continues from there. When a log is
full, the broker renames it and starts a new one. A log is therefore identified by its inode number
and not by its name. A renamed file remains open until it has been read to its end. A
gzip-compressed log that appears later has already been read under another name, so only those that
exist at the start are read.
"""

from __future__ import annotations

import io
import os
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from flexwire.activity.growing import changes_freely
from flexwire.errors import CaptureError, StorageError
from flexwire.logs.request_log import BadLine, RequestLogPiece, RequestLogReader, read_lines
from flexwire.logs.request_log.lines import LineUnwrapper, split
from flexwire.logs.request_log.recognition import BROKER_LOG_NAMES, is_broker_log, log_file
from flexwire.storage.file_search import list_files
from flexwire.storage.filesystems import reason_of, scheme_of
from flexwire.storage.input_file import LocalRange

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from flexwire.logs.request_log import LoggedRequest, RefusedRequest, Zone
    from flexwire.logs.request_log.lines import Line, RequestLogFile
    from flexwire.storage.input_file import InputFile

_MOST_NOTES: Final = 1000
_MOST_OPEN: Final = 100
"""The maximum number of logs that remain open. If more logs are renamed at the same time, lines may
be lost.
"""
_STEP: Final = 1 << 16

_Inode = tuple[int, int]


@dataclass(slots=True)
class _GrowingLog:
    """A log, read up to ``end``. No line ends between ``end`` and ``searched``."""

    path: Path
    reader: RequestLogReader
    unwrapper: LineUnwrapper | None
    file: io.FileIO | None = None
    end: int = 0
    searched: int = 0
    bad: Counter[str] = field(default_factory=Counter)


class GrowingRequestLogs:
    """Read the request logs in the given paths repeatedly, while they grow and new logs appear.

    ``paths`` are files, directories and patterns. Times without a time zone are interpreted in
    ``zone``. ``notes`` contains at most 1,000 messages for the user.
    """

    def __init__(self, paths: Sequence[str | Path], zone: Zone) -> None:
        self._paths = list(paths)
        self._zone = zone
        self._logs: dict[_Inode, _GrowingLog] = {}
        self._others: set[_Inode] = set()
        self._is_first = True
        self.notes: list[str] = []

    def poll(self, *, must_exist: bool = False) -> Iterator[LoggedRequest | RefusedRequest]:
        """Yield the requests in the added lines, log by log, starting with the oldest log.

        With ``must_exist``, raises `CaptureError` for a path that does not exist. Raises
        `StorageError` for an object store.
        """
        found = self._list(must_exist=must_exist)
        for inode in [inode for inode in self._logs if inode not in found]:
            yield from self._leave(self._logs.pop(inode))
        for inode, source in found.items():
            if inode not in self._logs and inode not in self._others:
                yield from self._begin(inode, source)
            elif (log := self._logs.get(inode)) is not None:
                log.path = Path(source.url)
                yield from self._read(log)
        self._is_first = False

    def finish(self) -> Iterator[LoggedRequest | RefusedRequest]:
        """Yield the requests in the last lines, whether complete or not, and close the logs.

        Afterwards, ``notes`` contains the number of lines that were not read, and the reasons.
        """
        for log in self._logs.values():
            yield from self._leave(log)
            if log.unwrapper is not None:
                yield from _items(log, log.unwrapper.finish())
            self._count_bad(log)
        self._logs.clear()

    def close(self) -> None:
        """Close the open logs without reading any further."""
        for log in self._logs.values():
            if log.file is not None:
                log.file.close()
        self._logs.clear()

    def _list(self, *, must_exist: bool) -> dict[_Inode, InputFile]:
        found: dict[tuple[int, _Inode], InputFile] = {}
        for given in self._paths:
            try:
                sources = list_files([given], is_broker_log, BROKER_LOG_NAMES)
            except CaptureError:
                # The log may be renamed between these two calls.
                if must_exist:
                    raise
                continue
            for source in sources:
                if scheme_of(source.url):
                    raise StorageError("expected a file on this machine", url=source.name)
                with suppress(FileNotFoundError):
                    status = Path(source.url).stat()
                    found[status.st_mtime_ns, (status.st_dev, status.st_ino)] = source
        return {inode: found[at, inode] for at, inode in sorted(found)}

    def _begin(self, inode: _Inode, source: InputFile) -> Iterator[LoggedRequest | RefusedRequest]:
        try:
            file = log_file(source, 0)
        except (CaptureError, StorageError) as error:
            # A newly created log may not contain a complete line yet.
            if source.size:
                self._others.add(inode)
                self._note(str(error))
            return
        if file is None:
            self._others.add(inode)
            return
        if file.is_gzipped:
            self._others.add(inode)
            if self._is_first:
                yield from self._read_whole(file)
            return
        unwrapper = LineUnwrapper() if file.is_enveloped else None
        log = _GrowingLog(Path(source.url), RequestLogReader(self._zone), unwrapper)
        self._logs[inode] = log
        if len(self._logs) <= _MOST_OPEN:
            with suppress(OSError):
                log.file = io.FileIO(log.path)
        yield from self._read(log)

    def _leave(self, log: _GrowingLog) -> Iterator[LoggedRequest | RefusedRequest]:
        """Read the rest of a log that is no longer growing, and close the log."""
        yield from self._read(log, is_last=True)
        if log.file is not None:
            log.file.close()
            log.file = None

    def _read_whole(self, file: RequestLogFile) -> Iterator[LoggedRequest | RefusedRequest]:
        name = Path(file.source.url)
        log = _GrowingLog(name, RequestLogReader(self._zone), None)
        try:
            yield from _items(log, read_lines(RequestLogPiece(file)))
        except StorageError as error:
            self._note(str(error))
        self._count_bad(log)

    def _read(
        self, log: _GrowingLog, *, is_last: bool = False
    ) -> Iterator[LoggedRequest | RefusedRequest]:
        try:
            file = io.FileIO(log.path) if log.file is None else log.file
        except OSError as error:
            if log.path.exists():
                self._note(f"{log.path}: cannot read: {reason_of(error)}")
            return
        try:
            yield from self._read_on(log, file, is_last=is_last)
        except StorageError as error:
            self._note(str(error))
        except OSError as error:
            self._note(f"{log.path}: cannot read: {reason_of(error)}")
        finally:
            if log.file is None:
                file.close()

    def _read_on(
        self, log: _GrowingLog, file: io.FileIO, *, is_last: bool
    ) -> Iterator[LoggedRequest | RefusedRequest]:
        size = os.fstat(file.fileno()).st_size
        if size < log.end:
            self._note(f"{log.path}: the file became shorter, so it is read again from the start")
            log.end = log.searched = 0
        stop = size if is_last else _last_line_end(file, max(log.end, log.searched), size)
        log.searched = size
        if stop is None or stop == log.end:
            return
        start, log.end = log.end, stop
        with _open_part(log.path, file, start, stop) as part:
            yield from _items(log, _unwrapped(log, split(part, start, start, None)))

    def _count_bad(self, log: _GrowingLog) -> None:
        for reason, count in log.bad.items():
            self._note(f"{log.path}: {count} lines cannot be read: {reason}")

    def _note(self, text: str) -> None:
        if len(self.notes) < _MOST_NOTES and text not in self.notes:
            self.notes.append(text)


def _items(log: _GrowingLog, lines: Iterable[Line]) -> Iterator[LoggedRequest | RefusedRequest]:
    for item in log.reader.read(lines):
        if isinstance(item, BadLine):
            log.bad[item.reason] += 1
        elif item is not None:
            yield item


def _open_part(path: Path, file: io.FileIO, start: int, stop: int) -> io.BufferedReader:
    """Open part of a file that remains open and can grow during reading."""
    same = io.FileIO(os.dup(file.fileno()))
    same.seek(start)
    error = partial(StorageError, url=str(path), tried="read")
    return io.BufferedReader(LocalRange(same, stop - start, changes_freely, error))


def _unwrapped(log: _GrowingLog, lines: Iterable[Line]) -> Iterator[Line]:
    for line in lines:
        whole = line if log.unwrapper is None else log.unwrapper.unwrap(line)
        if whole is not None and (whole.text or whole.is_cut):
            yield whole


def _last_line_end(file: io.FileIO, start: int, stop: int) -> int | None:
    """Return the position of the last line end between two offsets, or None if there is none."""
    while stop > start:
        begin = max(start, stop - _STEP)
        file.seek(begin)
        at = (file.read(stop - begin) or b"").rfind(b"\n")
        if at >= 0:
            return begin + at + 1
        stop = begin
    return None
