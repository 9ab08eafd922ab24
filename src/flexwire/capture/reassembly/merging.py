"""From capture files that overlap in time to their segments in one order, a chunk at a time.

A file's segments stay in its order. Files are merged by their clocks: the latest time in a file
until then, and of equal clocks the file of the first name comes first. So each is read a chunk
ahead, and what comes before the end of every chunk is given out. A file is opened when its first
segment is due: of a host that begins a new file now and then, one is open at a time, or two.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flexwire.capture.reassembly.packet_scan import Keys, Scan
from flexwire.capture.reassembly.segments import (
    CHUNK_BYTES,
    OF_EACH,
    FileNotes,
    Origins,
    Position,
    SegmentColumns,
    SegmentReader,
)
from flexwire.extras import needed_by

with needed_by("flexwire.capture.reassembly", "columnar"):
    import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from flexwire.capture.files.reading import Opener

    Numbers = np.ndarray[Any, Any]

MOST_OPEN: Final = 256
"""So many files are read at once; each takes about two megabytes."""

# A chunk of a file that is read with others is a part of the whole's, but not below this.
_LEAST_CHUNK = 256 * 1024
_MORE_TO_COME = 3
# Segments are held until they have so much of the bytes of a chunk.
_CHUNKS_HELD = 4


class CrowdedError(Exception):
    """More than `MOST_OPEN` files overlap in time."""


class Waiting(NamedTuple):
    """A file that is not begun, and its clock at its first segment."""

    first_us: int
    file: str


class UnderWay(NamedTuple):
    """How far a file was given out: a position, and so many segments after it.

    ``clock_us`` is the clock of the file at the position.
    """

    position: Position
    skip: int = 0
    clock_us: int = 0


class Front(NamedTuple):
    """How far files were given out that are read at once.

    Some are ``under_way``; of those that were waiting in the beginning, so many are ``begun``.
    """

    under_way: tuple[UnderWay, ...]
    begun: int


class MergedReader:
    """Gives the segments of files by their clocks, a chunk at a time, and the notes of each file.

    The files that are ``waiting`` are in the order of their clocks, and then of their names. With
    those that are ``under_way`` it goes on where another reader was. It ends after ``rows``
    segments, if it is given how many. ``most_skipped`` is how many bytes of gzip'd files may have
    to be read again to go on somewhere. ``opener`` gives one for a file that is to be read with so
    many others. Raises `CrowdedError`. See `SegmentReader` for the rest.
    """

    def __init__(
        self,
        waiting: Sequence[Waiting],
        *,
        under_way: Sequence[UnderWay] = (),
        rows: int | None = None,
        chunk_bytes: int = CHUNK_BYTES,
        most_skipped: int = 0,
        opener: Callable[[int], Opener] | None = None,
        show_credentials: bool = False,
    ) -> None:
        self._waiting = waiting
        self._under_way = under_way
        self._left = rows
        self._chunk_bytes = chunk_bytes
        self._most_skipped = most_skipped
        self._opener = opener
        self._show_credentials = show_credentials
        self._begun = 0
        self._open: list[_File] = []
        self._keys = Keys()
        # Those of files that were read know their flows.
        self._scans: list[Scan] = []

    @property
    def keys(self) -> list[str]:
        """The connection keys, in the order in which they appeared."""
        return self._keys.keys

    @property
    def position(self) -> Front | None:
        """Where what was given out ends; None where gzip'd files have gone on for too long."""
        if sum(one.skipped for one in self._open) > self._most_skipped:
            return None
        return Front(tuple(one.place for one in self._open), self._begun)

    def __iter__(self) -> Iterator[SegmentColumns | FileNotes]:
        """Read on."""
        held: list[_Slice] = []
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
            for one in self._open:
                one.items.close()

    def _items(self) -> Iterator[_Slice | FileNotes]:
        """Slices of files, a step after the other, and the notes of those that have ended."""
        for place in self._under_way:
            yield from self._begin(place)
        while True:
            for one in list(self._open):
                if not one.fill():
                    self._open.remove(one)
                    self._scans.append(one.scan)
                    yield from one.notes
            limit = self._limit()
            while self._begun < len(self._waiting) and (
                limit is None or self._waiting[self._begun] < limit
            ):
                waiting = self._waiting[self._begun]
                self._begun += 1
                yield from self._begin(UnderWay(Position(waiting.file)))
                limit = self._limit()
            if limit is None:
                return
            slices = [part for one in self._open if (part := one.take(limit)) is not None]
            slices[-1] = slices[-1]._replace(is_last=True)
            yield from slices

    def _begin(self, place: UnderWay) -> Iterator[FileNotes]:
        if len(self._open) == MOST_OPEN:
            raise CrowdedError
        scan = self._scans.pop() if self._scans else Scan(self._keys)
        among = len(self._open) + 1 + _MORE_TO_COME
        least = min(_LEAST_CHUNK, self._chunk_bytes)
        reader = SegmentReader(
            [place.position.file],
            chunk_bytes=max(self._chunk_bytes // among, least),
            start=place.position,
            opener=None if self._opener is None else self._opener(among),
            show_credentials=self._show_credentials,
            scan=scan,
        )
        one = _File(place, reader, scan)
        if one.fill():
            self._open.append(one)
        else:
            self._scans.append(scan)
            yield from one.notes

    def _limit(self) -> Waiting | None:
        """The segment up to which all is known that comes before."""
        return min((one.end for one in self._open), default=None)

    def _chunk(self, held: list[_Slice]) -> Iterator[SegmentColumns]:
        """All that is held, in one order."""
        merged = _merged(held)
        if self._left is not None:
            if len(merged) > self._left:
                merged = merged.take(np.arange(self._left))
            self._left -= len(merged)
        if len(merged):
            yield merged


class _Slice(NamedTuple):
    """Segments of a file that follow one another, and its clock at each."""

    segments: SegmentColumns
    clocks: Numbers
    first: int
    stop: int
    size: int
    is_last: bool = False

    def column(self, name: str) -> Numbers:
        found: Numbers = getattr(self.segments, name)[self.first : self.stop]
        return found


class _File:
    """A file that is read, a chunk ahead of what is given out."""

    def __init__(self, place: UnderWay, reader: SegmentReader, scan: Scan) -> None:
        self.name = place.position.file
        self.scan = scan
        self.notes: list[FileNotes] = []
        self.items: Generator[SegmentColumns | FileNotes] = reader.chunks()
        self.skipped = 0  # bytes to be read again to go on here
        self._reader = reader
        self._start = place
        self._skip = place.skip
        self._rows = 0  # since the start
        self._at: Position | None = place.position  # where the chunk begins
        self._clock = self._clock_at = place.clock_us
        self._chunk: SegmentColumns | None = None
        self._clocks: Numbers = np.zeros(0, np.int64)
        self._row = 0

    @property
    def end(self) -> Waiting:
        """The last segment of the chunk, as it stands among those of others."""
        return Waiting(self._clock, self.name)

    @property
    def place(self) -> UnderWay:
        """Where what was given out ends."""
        at, skip, clock = self._at, self._row, self._clock_at
        if self._chunk is None:
            at, skip, clock = self._reader.position, 0, self._clock
        if at is None:
            # Within a gzip'd file nobody can begin.
            return self._start._replace(skip=self._rows + self._row)
        return UnderWay(at, skip, clock)

    def fill(self) -> bool:
        """Have a chunk with segments that were not given out; False where the file has ended."""
        while self._chunk is None:
            self._at, self._clock_at = self._reader.position, self._clock
            item = next(self.items, None)
            if item is None:
                return False
            if isinstance(item, FileNotes):
                self.notes.append(item)
                continue
            self._clocks = np.maximum(np.maximum.accumulate(item.timestamp_us), self._clock)
            self._clock = int(self._clocks[-1])
            self._chunk, self._row = item, min(self._skip, len(item))
            self._skip -= self._row
            self._pass()
        return True

    def take(self, limit: Waiting) -> _Slice | None:
        """Give what stands before a limit, or at it."""
        chunk, first = self._chunk, self._row
        side: Any = "right" if self.name <= limit.file else "left"
        stop = int(np.searchsorted(self._clocks, limit.first_us, side))
        if chunk is None or stop <= first:
            return None
        self._row = stop
        self._pass()
        # As long as it is held, so is all of the chunk.
        size = len(chunk.data) if stop == len(chunk) else 0
        return _Slice(chunk, self._clocks, first, stop, size)

    def _pass(self) -> None:
        """Let the chunk go if all of it was given out."""
        if self._chunk is not None and self._row == len(self._chunk):
            self._rows += self._row
            if self._reader.position is None:
                self.skipped += self._chunk.weight
            self._chunk, self._row = None, 0


def _merged(held: list[_Slice]) -> SegmentColumns:
    """Segments of some files in the order of their clocks, and then of the names of the files."""
    # What came before of a file stays before.
    held = sorted(held, key=lambda one: one.segments.file)
    names = list(dict.fromkeys(one.segments.file for one in held))
    numbers = {name: number for number, name in enumerate(names)}
    sizes = [one.stop - one.first for one in held]
    order = np.argsort(
        np.concatenate([one.clocks[one.first : one.stop] for one in held]), kind="stable"
    )
    of_row = np.repeat(np.array([numbers[one.segments.file] for one in held], np.int32), sizes)
    columns: dict[str, Any] = {
        name: np.concatenate([one.column(name) for one in held])[order]
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
        origins=Origins(names, of_row[order]),
        **columns,
    )


def _joined(held: list[_Slice]) -> tuple[Numbers, Numbers]:
    """The bytes of slices one after the other, and where each payload stands in them."""
    data, places, base = [], [], 0
    for one in held:
        at, size = one.column("payload_at"), one.column("payload_size")
        has_any = size > 0
        if not has_any.any():
            places.append(np.zeros_like(at))
            continue
        first = int(at[has_any].min())
        stop = int((at + size)[has_any].max())
        data.append(one.segments.data[first:stop])
        places.append(np.where(has_any, at - first + base, 0))
        base += stop - first
    return np.concatenate([np.zeros(0, np.uint8), *data]), np.concatenate(places)
