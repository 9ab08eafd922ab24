"""Merge capture files that overlap in time: return all segments in a single order, chunk by chunk.

The segments of a file keep their order. A file's clock is the latest time read from it so far, and
files are merged by these clocks. If two clocks are equal, the file whose name sorts first comes
first. Each file is therefore read one chunk ahead, and the segments that come before the end of
every chunk are returned. A file is opened when its first segment is needed. If a host begins a new
file from time to time, only one or two of its files are open at once.

At most `MOST_OPEN` files are open. If more files are needed, the file whose chunk reaches furthest
ahead is closed. Its chunk is kept, and the file is later reopened at the position where the chunk
ends. Reading cannot start within a gzip-compressed file. Such a file is therefore closed last, and
is later read again from its start.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flexwire.capture.files import merged_packets
from flexwire.capture.files.merged_packets import bytes_ahead, file_to_close
from flexwire.capture.reassembly.assembly import WHOLE
from flexwire.capture.reassembly.frames import gather_bytes
from flexwire.capture.reassembly.packet_scan import ConnectionKeys, PacketScan
from flexwire.capture.reassembly.segments import (
    CHUNK_BYTES,
    OF_EACH,
    ChunkTotals,
    FileNotes,
    FileOrigins,
    FilePosition,
    SegmentColumns,
    SegmentReader,
)
from flexwire.extras import needed_by

with needed_by("flexwire.capture.reassembly", "columnar"):
    import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from flexwire.capture.files.reading import Opener
    from flexwire.capture.reassembly.assembly import ConnectionShare
    from flexwire.columnar.arrays import NumpyArray


MOST_OPEN: Final = merged_packets.MOST_OPEN
"""The largest number of files that are open at once. Each open file takes about two megabytes."""

# The chunks of all files together contain at most this many bytes, however many files there are.
_CHUNKS_BYTES = merged_packets.MOST_AHEAD
_MORE_TO_COME = 3
# Segments are collected until they fill this fraction of a chunk.
_CHUNKS_HELD = 4


class QueuedFile(NamedTuple):
    """A file that has not begun, with its clock at its first segment."""

    first_us: int
    file: str


class FileProgress(NamedTuple):
    """The progress in a file's segments: a position, and how many segments after it were returned.

    ``clock_us`` is the clock of the file at the position.
    """

    position: FilePosition
    skip: int = 0
    clock_us: int = 0


class MergePosition(NamedTuple):
    """The progress in the segments of files that are merged.

    Some of the files are ``under_way``. Of the files that were waiting at the start, ``begun`` have
    begun.
    """

    under_way: tuple[FileProgress, ...]
    begun: int


class MergedReader:
    """Return the segments of files ordered by their clocks, chunk by chunk, and each file's notes.

    The ``waiting`` files are sorted by their clocks, and then by their names. With the files that
    are ``under_way``, this reader continues where another reader stopped. If ``rows`` is given,
    this reader stops after that many segments. ``most_skipped`` is the number of bytes in
    gzip-compressed files that may be read again to continue at a place. ``opener`` is called with
    the number of files that are read together, and returns a function that opens a file. See
    `SegmentReader` for the other arguments.

    With a ``share``, only the segments of its connections are returned, and ``rows`` must not be
    given. Chunks end at the same places for all shares.
    """

    def __init__(
        self,
        waiting: Sequence[QueuedFile],
        *,
        under_way: Sequence[FileProgress] = (),
        rows: int | None = None,
        chunk_bytes: int = CHUNK_BYTES,
        most_skipped: int = 0,
        opener: Callable[[int], Opener] | None = None,
        show_credentials: bool = False,
    ) -> None:
        self.share: ConnectionShare = WHOLE
        self._waiting = waiting
        self._under_way = under_way
        self._left = rows
        self._chunk_bytes = chunk_bytes
        self._most_skipped = most_skipped
        self._opener = opener
        self._show_credentials = show_credentials
        self._begun = 0
        # The files that have begun but have not reached their ends.
        self._files: list[_MergedFile] = []
        self._keys = ConnectionKeys()
        # For each key, whether it belongs to the share.
        self._shared: NumpyArray = np.zeros(0, np.bool_)
        # The scans of finished files, which remember the flows of these files.
        self._scans: list[PacketScan] = []

    @property
    def keys(self) -> list[str]:
        """The connection keys, in the order in which they first appeared."""
        return self._keys.keys

    @property
    def position(self) -> MergePosition | None:
        """The end of the returned segments, or None if gzip files exceed ``most_skipped``."""
        if sum(merged_file.skipped for merged_file in self._files) > self._most_skipped:
            return None
        return MergePosition(tuple(merged_file.place for merged_file in self._files), self._begun)

    def __iter__(self) -> Iterator[SegmentColumns | FileNotes]:
        """Continue reading."""
        held: list[_SegmentSlice] = []
        size = 0
        try:
            for item in self._items():
                if isinstance(item, FileNotes):
                    yield item
                    continue
                held.append(item)
                size += item.size
                if item.is_last and size >= self._chunk_bytes // _CHUNKS_HELD:
                    yield from self._chunk(held)
                    held, size = [], 0
                    if self._left == 0:
                        return
            if held:
                yield from self._chunk(held)
        finally:
            for merged_file in self._files:
                merged_file.close(self._scans)

    def _items(self) -> Iterator[_SegmentSlice | FileNotes]:
        """Yield slices of files, step by step, and the notes of files that are finished."""
        for place in self._under_way:
            yield from self._begin(place)
        while True:
            # Once all open files have chunks, any of them can be closed to make room for another
            # file.
            for merged_file in sorted(self._files, key=lambda merged_file: not merged_file.is_open):
                if not self._fill(merged_file):
                    self._files.remove(merged_file)
                    yield merged_file.notes
            limit = self._limit()
            while self._begun < len(self._waiting) and (
                limit is None or self._waiting[self._begun] < limit
            ):
                waiting = self._waiting[self._begun]
                self._begun += 1
                yield from self._begin(FileProgress(FilePosition(waiting.file)))
                limit = self._limit()
            if limit is None:
                return
            slices = [
                part for merged_file in self._files if (part := merged_file.take(limit)) is not None
            ]
            slices[-1] = slices[-1]._replace(is_last=True)
            yield from slices

    def _begin(self, place: FileProgress) -> Iterator[FileNotes]:
        merged_file = _MergedFile(place)
        if self._fill(merged_file):
            self._files.append(merged_file)
        else:
            yield merged_file.notes

    def _fill(self, merged_file: _MergedFile) -> bool:
        """Read a chunk of a file, and open the file first if necessary.

        Return False at the end of the file.
        """
        if merged_file.has_chunk:
            return True
        if not merged_file.is_open:
            self._open(merged_file)
        if merged_file.fill():
            return True
        merged_file.close(self._scans)
        return False

    def _open(self, merged_file: _MergedFile) -> None:
        last = file_to_close((other for other in self._files if other.is_open), MOST_OPEN)
        if last is not None:
            last.close(self._scans)
        among = len(self._files) + 1 + _MORE_TO_COME
        # The files share the size of a chunk, but each file gets at least this many bytes.
        least = min(bytes_ahead(among, _CHUNKS_BYTES), self._chunk_bytes)
        scan = self._scans.pop() if self._scans else PacketScan(self._keys)
        start = merged_file.open_at()
        reader = SegmentReader(
            [merged_file.name],
            chunk_bytes=max(self._chunk_bytes // among, least),
            start=start,
            opener=None if self._opener is None else self._opener(among),
            show_credentials=self._show_credentials,
            scan=scan,
        )
        merged_file.open(reader, scan)

    def _limit(self) -> QueuedFile | None:
        """Return the last segment up to which the segments of all files are known."""
        return min((merged_file.end for merged_file in self._files), default=None)

    def _chunk(self, held: list[_SegmentSlice]) -> Iterator[SegmentColumns]:
        """Yield all held segments, sorted."""
        if not self.share.is_whole:
            sizes = [int(part.column("payload_size").sum()) for part in held]
            of_all = ChunkTotals(sum(part.row_count for part in held), sum(sizes))
            merged = _merged([part.only(self._shared_keys()) for part in held])
            yield replace(merged, of_all=of_all)
            return
        merged = _merged(held)
        if self._left is not None:
            if len(merged) > self._left:
                merged = merged.take(np.arange(self._left))
            self._left -= len(merged)
        if len(merged):
            yield merged

    def _shared_keys(self) -> NumpyArray:
        """Return for each key whether it belongs to the share."""
        new = self.keys[len(self._shared) :]
        if new:
            has = [self.share.has(key) for key in new]
            self._shared = np.concatenate([self._shared, np.array(has, np.bool_)])
        return self._shared


class _SegmentSlice(NamedTuple):
    """Consecutive segments of a file (only ``rows``, if given), and the clock at each segment."""

    segments: SegmentColumns
    clocks: NumpyArray
    first: int
    stop: int
    size: int
    is_last: bool = False
    rows: NumpyArray | None = None

    @property
    def row_count(self) -> int:
        return self.stop - self.first if self.rows is None else len(self.rows)

    def column(self, name: str) -> NumpyArray:
        return self._of_rows(getattr(self.segments, name))

    def clock_us(self) -> NumpyArray:
        return self._of_rows(self.clocks)

    def only(self, keys: NumpyArray) -> _SegmentSlice:
        """Return the segments with some of the keys."""
        return self._replace(rows=np.flatnonzero(keys[self.column("key")]))

    def _of_rows(self, column: NumpyArray) -> NumpyArray:
        of_slice = column[self.first : self.stop]
        return of_slice if self.rows is None else of_slice[self.rows]

    def payloads(self) -> tuple[NumpyArray, NumpyArray]:
        """Return an array that contains the payloads, and each payload's index in the array."""
        at, size = self.column("payload_at"), self.column("payload_size")
        has_any = size > 0
        if not has_any.any():
            return np.zeros(0, np.uint8), np.zeros_like(at)
        if self.rows is not None:
            # Most of the bytes belong to other connections.
            places = np.zeros(len(size) + 1, np.int32)
            np.cumsum(size, out=places[1:])
            return gather_bytes(self.segments.data, at, places), places[:-1].astype(np.int64)
        first = int(at[has_any].min())
        stop = int((at + size)[has_any].max())
        return self.segments.data[first:stop], np.where(has_any, at - first, 0)


class _OpenReader(NamedTuple):
    """A reader of one file."""

    reader: SegmentReader
    items: Generator[SegmentColumns | FileNotes]
    scan: PacketScan


class _MergedFile:
    """A file that is read one chunk ahead of the segments that were returned.

    The file is open only while it is being read.
    """

    def __init__(self, place: FileProgress) -> None:
        self.name = place.position.file
        self.notes = FileNotes(self.name)
        self.skipped = 0  # The number of bytes to read again before the file can continue here.
        self._opened: _OpenReader | None = None
        self._start = place
        self._skip = place.skip
        self._rows = 0  # The number of rows since the start.
        self._at: FilePosition | None = place.position  # The position at which the chunk begins.
        self._after: FilePosition | None = place.position  # The position at which the chunk ends.
        self._clock = self._clock_at = place.clock_us
        self._chunk: SegmentColumns | None = None
        self._clocks: NumpyArray = np.zeros(0, np.int64)
        self._row = 0

    @property
    def is_open(self) -> bool:
        """True if a chunk can be read from the file."""
        return self._opened is not None

    @property
    def has_chunk(self) -> bool:
        """True if the file has segments that have not been returned yet."""
        return self._chunk is not None

    @property
    def can_go_on(self) -> bool:
        """True if the file can be opened at the place where its chunk ends."""
        return self._after is not None

    @property
    def end(self) -> QueuedFile:
        """The last segment of the chunk, in a form that can be compared with other files' ends."""
        return QueuedFile(self._clock, self.name)

    @property
    def place(self) -> FileProgress:
        """The place at which the returned segments end."""
        at, skip, clock = self._at, self._row, self._clock_at
        if self._chunk is None:
            at, skip, clock = self._after, 0, self._clock
        if at is None:
            # Reading cannot start within a gzip-compressed file.
            return self._start._replace(skip=self._rows + self._row)
        return FileProgress(at, skip, clock)

    def open_at(self) -> FilePosition:
        """Return the place at which to open the file.

        A gzip-compressed file is read again from its start up to this place.
        """
        if self._after is None:
            self._skip, self._rows, self.skipped = self._rows, 0, 0
            self._after, self._clock = self._start.position, self._start.clock_us
            self.notes = FileNotes(self.name)
        return self._after

    def open(self, reader: SegmentReader, scan: PacketScan) -> None:
        """Continue with a reader that starts at the place that `open_at` returned."""
        self._opened = _OpenReader(reader, reader.chunks(), scan)

    def close(self, scans: list[PacketScan]) -> None:
        """Stop reading for now.

        The file's scan is added to ``scans``, so that another file can use it.
        """
        opened, self._opened = self._opened, None
        if opened is None:
            return
        opened.reader.stop()
        for item in opened.items:
            # The notes contain the counts up to this point.
            if isinstance(item, FileNotes):
                self.notes.add(item)
        scans.append(opened.scan)

    def fill(self) -> bool:
        """Read a chunk that contains segments that have not been returned yet.

        Return False at the end of the file.
        """
        opened = self._opened
        while self._chunk is None:
            self._at, self._clock_at = self._after, self._clock
            item = None if opened is None else next(opened.items, None)
            if opened is None or item is None:
                return False
            self._after = opened.reader.position
            if isinstance(item, FileNotes):
                self.notes.add(item)
                continue
            self._clocks = np.maximum(np.maximum.accumulate(item.timestamp_us), self._clock)
            self._clock = int(self._clocks[-1])
            self._chunk, self._row = item, min(self._skip, len(item))
            self._skip -= self._row
            self._pass()
        return True

    def take(self, limit: QueuedFile) -> _SegmentSlice | None:
        """Return the segments up to a limit, and including it."""
        chunk, first = self._chunk, self._row
        side: Any = "right" if self.name <= limit.file else "left"
        stop = int(np.searchsorted(self._clocks, limit.first_us, side))
        if chunk is None or stop <= first:
            return None
        self._row = stop
        self._pass()
        # While a slice is in use, the whole chunk stays in memory.
        size = len(chunk.data) if stop == len(chunk) else 0
        return _SegmentSlice(chunk, self._clocks, first, stop, size)

    def _pass(self) -> None:
        """Release the chunk if all of its segments have been returned."""
        if self._chunk is not None and self._row == len(self._chunk):
            self._rows += self._row
            if self._after is None:
                self.skipped += self._chunk.weight
            self._chunk, self._row = None, 0


def _merged(held: list[_SegmentSlice]) -> SegmentColumns:
    """Return the segments of some files, sorted by their clocks and then by file names."""
    # Segments of the same file keep their order.
    held = sorted(held, key=lambda part: part.segments.file)
    names = list(dict.fromkeys(part.segments.file for part in held))
    numbers = {name: number for number, name in enumerate(names)}
    clocks = np.concatenate([part.clock_us() for part in held])
    order = np.argsort(clocks, kind="stable")
    of_part = np.array([numbers[part.segments.file] for part in held], np.int32)
    of_row = np.repeat(of_part, [part.row_count for part in held])
    columns: dict[str, Any] = {
        name: np.concatenate([part.column(name) for part in held])[order]
        for name in OF_EACH
        if name != "payload_at"
    }
    data, places = _joined(held)
    return replace(
        held[0].segments,
        first_ordinal=0,
        unreadable_before=(),
        data=data,
        payload_at=places[order],
        origins=FileOrigins(names, of_row[order]),
        clock_us=clocks[order],
        **columns,
    )


def _joined(held: list[_SegmentSlice]) -> tuple[NumpyArray, NumpyArray]:
    """Return the concatenated bytes of several slices, and each payload's index in these bytes."""
    data, places, base = [], [], 0
    for part in held:
        bytes_of_part, at = part.payloads()
        data.append(bytes_of_part)
        places.append(at + base)
        base += len(bytes_of_part)
    return np.concatenate(data), np.concatenate(places)
