"""How far each request log has been read, so that a later analysis can continue there.

A broker appends to its log and renames a full log, and other software may compress the log later.
flexwire therefore identifies a log by its first bytes, not by its name. The lines of a log are read
up to the last line end, and each line is read once:

- If a file has the first bytes of a known log, and the same bytes before the position, its new
  lines are read.
- If a file has the first bytes of a known log, but has become shorter or has changed before the
  position, it is impossible to tell which of its lines are new. The file is left out, and a note
  reports this.
- Several files that contain the same log are copies. Only the longest copy is read.
- Any other file is a new log.

Short logs from different brokers may begin with the same bytes. A log with fewer than `HEAD` bytes
is therefore looked for in its own directory first.
"""

from __future__ import annotations

import hashlib
import zlib
from collections import defaultdict
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from flexwire.capture.reassembly.saved import Count, SavedRecord
from flexwire.errors import CaptureError, FlexwireError
from flexwire.logs.request_log.lines import GzipReader, RequestLogPiece, read_lines
from flexwire.logs.request_log.requests import APART, RequestLogReader, waiting_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from flexwire.logs.request_log.lines import RequestLogFile
    from flexwire.logs.request_log.times import Zone
    from flexwire.storage.input_file import InputFile

HEAD: Final = 16 << 10
"""A log is identified by its first bytes: this many or, if it has fewer, all of them."""
MOST_FILES: Final = 1_000_000
"""Growing tables remember at most this many request logs."""
FIRST_TIME: Final = 1 << 18
"""The first time in a file is searched for in this many bytes, and in `_FIRST_LINES` lines."""
_FIRST_LINES: Final = 10_000
# Logs that share fewer bytes than this may still be different logs.
_LEAST_HEAD: Final = 256
# Two files that share this many bytes belong to the same log, wherever they are.
_SURE_HEAD: Final = 4 << 10
_CHECKED: Final = 4 << 10
_STEP: Final = 1 << 16
_BLOCK: Final = 1 << 20
# A digest of this many first bytes is kept, so that a log is recognized even if it becomes shorter.
_SIZES: Final = (_LEAST_HEAD, 1 << 10, _SURE_HEAD, HEAD)

_Digest = Annotated[bytes, msgspec.Meta(min_length=16, max_length=16)]


class LogPosition(SavedRecord):
    """A log, and how far it has been read, in bytes of its decompressed content.

    ``heads`` contains digests of the log's first bytes, one for each size in `sizes_of`. ``before``
    is a digest of the last bytes before the position. ``waits_at`` is the start of a line that the
    next line may complete, or -1. ``directory`` is a digest of the log's last directory, and
    ``version`` identifies its last file.
    """

    number: Count
    heads: Annotated[list[_Digest], msgspec.Meta(min_length=1, max_length=len(_SIZES))]
    position: Annotated[int, msgspec.Meta(ge=1, lt=1 << 62)]
    before: _Digest
    waits_at: Annotated[int, msgspec.Meta(ge=-1)]
    directory: _Digest
    version: int


def sizes_of(position: int) -> tuple[int, ...]:
    """Return how many first bytes each digest covers for a log that was read up to ``position``.

    >>> sizes_of(5000), sizes_of(20)
    ((256, 1024, 4096), (20,))
    """
    return tuple(size for size in _SIZES if size <= position) or (position,)


@dataclass(slots=True)
class ResumedLogs:
    """The files with new lines, the position of each log after reading, and notes.

    ``known`` contains the names of files without new lines. ``notes`` contains messages for the
    user.
    """

    files: tuple[RequestLogFile, ...]
    positions: tuple[LogPosition, ...]
    known: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def resume_logs(
    files: Sequence[RequestLogFile],
    known: Iterable[LogPosition],
    zone: Zone,
    version_of: Callable[[InputFile], int],
) -> ResumedLogs:
    """Return the new lines of request logs; ``version_of`` returns a number for a file's version.

    Raises `CaptureError` for a log in a container's log format, `StorageError` if a file cannot be
    read, and `FlexwireError` if there are too many logs.
    """
    return _Resumption(list(known), version_of).run(files, zone)


def number_in_order(
    files: Iterable[RequestLogFile], zone: Zone, first: int = 0
) -> list[RequestLogFile]:
    """Return files in the order of the first time in each, numbered from ``first`` on.

    In this order, the lines of a connection have increasing numbers across all files of its broker.
    Files without a time come last.
    """
    begun = [(first_time(file, zone), file.source.name, file) for file in files]
    begun.sort(key=lambda one: (one[0] is None, one[0] or 0, one[1]))
    return [file._replace(number=number) for number, (*_, file) in enumerate(begun, first)]


def first_time(file: RequestLogFile, zone: Zone) -> int | None:
    """Return the first time in a file's lines, or None if the file's beginning has no time."""
    stop = file.start + FIRST_TIME
    if file.is_enveloped:
        piece = RequestLogPiece(file, file.start)
    elif file.is_gzipped:
        piece = RequestLogPiece(file, file.start, stop)
    else:
        end = file.source.size if file.end is None else file.end
        piece = RequestLogPiece(file, file.start, min(end, stop))
    return next(times_of(piece, zone, _FIRST_LINES), None)


def times_of(piece: RequestLogPiece, zone: Zone, most: int | None = None) -> Iterator[int]:
    """Yield the times in a piece's lines; ``most`` limits the number of lines."""
    for item in RequestLogReader(zone).read(islice(read_lines(piece), most)):
        time_us = getattr(item, "time_us", None)
        if time_us is not None:
            yield time_us


@dataclass(slots=True)
class _Look:
    """What was found in a file: its first bytes, and the lines up to its last line end.

    ``before`` contains a digest of the bytes before each requested position.
    """

    file: RequestLogFile
    version: int
    head: bytes
    directory: bytes
    before: dict[int, bytes] = field(default_factory=dict)
    size: int = 0
    end: int = 0
    tail: bytes = b""
    is_damaged: bool = False

    @property
    def name(self) -> str:
        return self.file.source.name

    @property
    def content(self) -> bytes:
        """The first bytes of the complete lines."""
        return self.head[: self.end]

    @property
    def rank(self) -> tuple[int, bool, str]:
        """The sort key of copies: by size, then divisible files above gzip files, then by name."""
        return self.end, not self.file.is_gzipped, self.name

    def position(self, number: int) -> LogPosition:
        """Return the position at the end of the last line."""
        waits = waiting_line(self.tail)
        return LogPosition(
            number,
            [_digest(self.head[:size]) for size in sizes_of(self.end)],
            self.end,
            _digest(self.tail[-_CHECKED:]),
            -1 if waits is None else self.end + waits,
            self.directory,
            self.version,
        )


class _Resumption:
    """Finds the known logs among files."""

    def __init__(self, known: list[LogPosition], version_of: Callable[[InputFile], int]) -> None:
        self._version_of = version_of
        self._positions = {one.number: one for one in known}
        self._by_version = {one.version: one for one in known}
        self._by_head: defaultdict[tuple[int, bytes], list[LogPosition]] = defaultdict(list)
        for one in known:
            for size, head in zip(sizes_of(one.position), one.heads, strict=False):
                self._by_head[size, head].append(one)
        self._sizes = sorted({size for size, _ in self._by_head})
        self._of_log: defaultdict[int, list[_Look]] = defaultdict(list)
        self._unchanged: set[int] = set()
        self._new: list[_Look] = []
        self._read: list[RequestLogFile] = []
        self._known: list[str] = []
        self._notes: list[str] = []
        self._unfinished: list[str] = []

    def run(self, files: Sequence[RequestLogFile], zone: Zone) -> ResumedLogs:
        for file in files:
            self._look_at(file)
        for number, looks in self._of_log.items():
            self._go_on(self._positions[number], looks)
        self._begin(self._originals(), zone)
        if len(self._positions) > MOST_FILES:
            raise FlexwireError(
                f"these tables would contain {len(self._positions):,} request logs, more than the "
                f"maximum of {MOST_FILES:,}; choose another --out"
            )
        positions = tuple(self._positions[number] for number in sorted(self._positions))
        notes = (*self._notes, *_unfinished_note(self._unfinished))
        return ResumedLogs(tuple(self._read), positions, tuple(self._known), notes)

    def _look_at(self, file: RequestLogFile) -> None:
        version = self._version_of(file.source)
        if version in self._by_version:
            self._unchanged.add(self._by_version[version].number)
            self._known.append(file.source.name)
            return
        if file.is_enveloped:
            raise CaptureError(
                "leave out this log, or choose the parquet format: the lines are in the envelopes "
                "of a container log, and growing tables accept only plain and gzipped logs",
                source=file.source.name,
            )
        look = _look(file, version, self._positions_to_check)
        if look.is_damaged:
            self._notes.append(f"{look.name}: the gzip file ends early or is damaged.")
        if look.end < look.size:
            self._unfinished.append(look.name)
        if look.end:
            self._sort_in(look)

    def _candidates(self, head: bytes) -> dict[int, int]:
        """Return the known logs with the same first bytes, and how many bytes were compared."""
        found: dict[int, int] = {}
        for size in self._sizes:
            if size <= len(head):
                for one in self._by_head.get((size, _digest(head[:size])), ()):
                    found[one.number] = size
        return found

    def _positions_to_check(self, head: bytes) -> set[int]:
        return {self._positions[number].position for number in self._candidates(head)}

    def _sort_in(self, look: _Look) -> None:
        same, is_sure = [], False
        for number, size in self._candidates(look.head).items():
            log = self._positions[number]
            is_here = log.directory == look.directory
            if size == sizes_of(log.position)[-1] and look.before.get(log.position) == log.before:
                same.append((log.position, is_here, number))
            is_sure |= size >= (_LEAST_HEAD if is_here else _SURE_HEAD)
        if same:
            self._of_log[max(same)[-1]].append(look)
        elif is_sure:
            self._notes.append(
                f"{look.name} was left out: it begins like a log that an earlier analysis read, "
                "but it is shorter than the part that was read, or differs within this part."
            )
        else:
            self._new.append(look)

    def _go_on(self, log: LogPosition, looks: list[_Look]) -> None:
        """Read the new lines of a known log from the longest of its files."""
        others = [look for look in looks if look.directory != log.directory]
        if log.position < HEAD and (len(others) < len(looks) or log.number in self._unchanged):
            self._new += others
            looks = [look for look in looks if look.directory == log.directory]
        if not looks:
            return
        longest = max(looks, key=lambda look: look.rank)
        self._known += [look.name for look in looks if look is not longest]
        if longest.end > log.position:
            waits_at = None if log.waits_at < 0 else log.waits_at
            self._read.append(
                longest.file._replace(
                    number=log.number, start=log.position, end=longest.end, waits_at=waits_at
                )
            )
            self._positions[log.number] = longest.position(log.number)
        else:
            self._known.append(longest.name)
            self._positions[log.number] = msgspec.structs.replace(
                log, directory=longest.directory, version=longest.version
            )

    def _originals(self) -> list[_Look]:
        """Return the new files without copies."""
        long: dict[bytes, _Look] = {}
        by_directory: defaultdict[bytes, list[_Look]] = defaultdict(list)
        for look in sorted(self._new, key=lambda look: look.rank, reverse=True):
            is_short = len(look.content) < HEAD
            if is_short or long.setdefault(_digest(look.content), look) is look:
                by_directory[look.directory].append(look)
            else:
                self._known.append(look.name)
        originals: list[_Look] = []
        for looks in by_directory.values():
            looks.sort(key=lambda look: (look.content, look.rank))
            for look, after in zip(looks, [*looks[1:], None], strict=True):
                is_copy = after is not None and after.content.startswith(look.content)
                if is_copy and _LEAST_HEAD <= len(look.content) < HEAD:
                    self._known.append(look.name)
                else:
                    originals.append(look)
        return originals

    def _begin(self, looks: list[_Look], zone: Zone) -> None:
        by_name = {look.name: look for look in looks}
        whole = [look.file._replace(end=look.end) for look in looks]
        for file in number_in_order(whole, zone, max(self._positions, default=-1) + 1):
            self._read.append(file)
            self._positions[file.number] = by_name[file.source.name].position(file.number)


def _unfinished_note(names: Sequence[str]) -> tuple[str, ...]:
    if not names:
        return ()
    others = f" and of {len(names) - 1:,} more logs" if len(names) > 1 else ""
    text = f"The last line of {names[0]}{others} has no line ending yet"
    return (f"{text}, so the next analysis will read it.",)


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()[:16]


def _look(file: RequestLogFile, version: int, wanted: Callable[[bytes], set[int]]) -> _Look:
    """Examine a file. ``wanted`` returns the positions to check, given the first bytes."""
    directory = _digest(file.source.url.rpartition("/")[0].encode("utf-8", "surrogateescape"))
    look = _Look(file, version, _head(file), directory)
    positions = wanted(look.head)
    if file.is_gzipped:
        _look_through(look, positions)
        return look
    source = file.source
    look.size = source.size
    for position in positions:
        if position <= source.size:
            look.before[position] = _digest(_bytes(source, position - _CHECKED, position))
    look.end = _last_line_end(source)
    look.tail = _bytes(source, look.end - APART - 1, look.end)
    return look


def _head(file: RequestLogFile) -> bytes:
    if not file.is_gzipped:
        return _bytes(file.source, 0, min(HEAD, file.source.size))
    head = b""
    with closing(file.source.open()) as raw:
        reader = GzipReader(raw, HEAD)
        try:
            while data := reader.read(HEAD):
                head += data
        except (EOFError, zlib.error):
            pass  # `_look_through` reports this
    return head


def _bytes(source: InputFile, start: int, stop: int) -> bytes:
    start = max(0, start)
    if start >= stop:
        return b""
    with closing(source.open(start, stop)) as file:
        return file.read(stop - start)


def _last_line_end(source: InputFile) -> int:
    """Return the offset after the last line end in a file, or 0 if there is no line end."""
    stop = source.size
    while stop:
        start = max(0, stop - _STEP)
        at = _bytes(source, start, stop).rfind(b"\n")
        if at >= 0:
            return start + at + 1
        stop = start
    return 0


def _look_through(look: _Look, positions: set[int]) -> None:
    """Read a gzip file to its end, and keep what the `_Look` needs."""
    window = b""
    with closing(look.file.source.open()) as raw:
        reader = GzipReader(raw)
        try:
            while data := reader.read(_BLOCK):
                window = window[-APART - 1 :] + data
                first = look.size
                look.size += len(data)
                base = look.size - len(window)
                for position in positions:
                    if first < position <= look.size:
                        start = max(0, position - _CHECKED - base)
                        look.before[position] = _digest(window[start : position - base])
                at = window.rfind(b"\n") + 1
                if at and base + at > look.end:
                    look.end = base + at
                    look.tail = window[max(0, at - APART - 1) : at]
        except (EOFError, zlib.error):
            look.is_damaged = True
