"""Find an offset or a time in a segment, using its indexes and its batches' headers.

An index only suggests a position. An entry is trusted only if the header at that position agrees.
If it does not agree, or if there is no index, headers are read from the start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from flexwire.errors import RecordError
from flexwire.logs.files import open_file
from flexwire.logs.segments import BatchPlace, Damage, place_at, read_batch, walk
from flexwire.storage.filesystems import scheme_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.logs.files import LogSegment
    from flexwire.logs.segments import LogFile
    from flexwire.storage.input_file import InputFile

    Words = np.ndarray[Any, Any]

_OFFSET_ENTRY: Final = np.dtype([("offset", ">i4"), ("position", ">i4")])
_TIME_ENTRY: Final = np.dtype([("timestamp", ">i8"), ("offset", ">i4")])
# An index is allocated at full size and filled from its start, so the zeros at its end can be
# skipped.
_INDEX_PIECE: Final = 1 << 16


class OffsetIndex(NamedTuple):
    """The entries of an offset index: a batch's last offset, and the batch's position."""

    offsets: Words
    positions: Words


def offset_index(segment: LogSegment) -> OffsetIndex:
    """Read the offset index of a segment. Return no entries if it is missing or not in order."""
    entries = _entries(segment.index, _OFFSET_ENTRY)
    offsets = entries["offset"].astype(np.int64) + segment.base_offset
    positions = entries["position"].astype(np.int64)
    is_sound = bool((np.diff(offsets) > 0).all() and (np.diff(positions) > 0).all())
    if is_sound and len(positions):
        is_sound = bool(positions[0] >= 0 and positions[-1] < segment.log.size)
    return OffsetIndex(offsets, positions) if is_sound else OffsetIndex(offsets[:0], positions[:0])


def time_index(segment: LogSegment) -> tuple[Words, Words] | None:
    """Return the timestamps and offsets in a segment's time index, or None if there is no index."""
    entries = _entries(segment.time_index, _TIME_ENTRY)
    timestamps = entries["timestamp"].astype(np.int64)
    if not len(timestamps) or not bool((np.diff(timestamps) > 0).all()):
        return None
    return timestamps, entries["offset"].astype(np.int64) + segment.base_offset


def _entries(index: InputFile | None, layout: np.dtype[Any]) -> Words:
    """Return the entries of an index that precede its zeros, without a partial entry at the end."""
    if index is None:
        return np.empty(0, layout)
    pieces = []
    piece_size = _INDEX_PIECE - _INDEX_PIECE % layout.itemsize
    with open_file(index) as file:
        for at in range(0, index.size, piece_size):
            data = file.read(at, piece_size)
            piece = np.frombuffer(data[: len(data) - len(data) % layout.itemsize], layout)
            words = piece.view(np.uint8).reshape(len(piece), layout.itemsize)
            empty = np.flatnonzero(~words.any(axis=1))
            # The first record of a log may have timestamp 0, and its entry may then consist of
            # zeros only.
            end = next((int(entry) for entry in empty if at or entry), len(piece))
            pieces.append(piece[:end])
            if end < len(piece):
                break
    return np.concatenate(pieces) if pieces else np.empty(0, layout)


def is_batch(log: LogFile, position: int, last_offset: int) -> bool:
    """Return whether a batch that ends with ``last_offset`` begins at ``position``."""
    try:
        return place_at(log, position).last_offset == last_offset
    except RecordError:
        return False


def start_of(segment: LogSegment, index: OffsetIndex, log: LogFile, offset: int) -> int:
    """Return a position before which the segment has no record with ``offset`` or later."""
    row = int(np.searchsorted(index.offsets, offset, side="right")) - 1
    if row < 0 or offset <= segment.base_offset:
        return 0
    position = int(index.positions[row])
    return position if is_batch(log, position, int(index.offsets[row])) else 0


def stop_of(segment: LogSegment, index: OffsetIndex, log: LogFile, offset: int) -> int:
    """Return a position after which the segment has no record up to ``offset``."""
    # The batch of the first later entry may begin before the offset, but the batch after it cannot.
    row = int(np.searchsorted(index.offsets, offset, side="right")) + 1
    if row >= len(index.offsets):
        return segment.log.size
    position = int(index.positions[row])
    return position if is_batch(log, position, int(index.offsets[row])) else segment.log.size


def cuts(
    segment: LogSegment, index: OffsetIndex, log: LogFile, between: range, size: int
) -> list[int]:
    """Return positions of batches that divide a range into pieces of about ``size`` bytes.

    If no index can be trusted, headers are read, but only in files on this machine. A file in a
    store is then not divided, because it would have to be downloaded completely.
    """
    count = len(between) // size
    targets = [
        between.start + len(between) * number // (count + 1) for number in range(1, count + 1)
    ]
    if not targets:
        return []
    rows = np.unique(np.searchsorted(index.positions, targets))
    positions: list[int] = []
    for row in rows[rows < len(index.positions)].tolist():
        position = int(index.positions[row])
        if not is_batch(log, position, int(index.offsets[row])):
            positions = []
            break
        positions.append(position)
    if not positions and not scheme_of(segment.log.url):
        positions = _walked_cuts(log, between, targets)
    return [position for position in positions if between.start < position < between.stop]


def _walked_cuts(log: LogFile, between: range, targets: list[int]) -> list[int]:
    positions: list[int] = []
    waiting = iter(targets)
    target = next(waiting, None)
    for place in walk(log, between.start):
        if target is None or isinstance(place, Damage):
            # Batches that follow damaged bytes were found by a search. No piece begins there,
            # because its reader would have to repeat the search.
            break
        if place.position >= target:
            positions.append(place.position)
            while target is not None and target <= place.position:
                target = next(waiting, None)
    return positions


def end_offset(segment: LogSegment) -> int:
    """Return the offset after the last complete batch, where a broker would continue."""
    end = segment.base_offset
    with open_file(segment.log) as log:
        for place in walk(log, last_indexed(segment, log)):
            if isinstance(place, Damage):
                break
            end = max(end, place.last_offset + 1)
    return end


def last_indexed(segment: LogSegment, log: LogFile) -> int:
    """Return the position of the last batch in the index."""
    index = offset_index(segment)
    position = int(index.positions[-1]) if len(index.positions) else 0
    return position if position and is_batch(log, position, int(index.offsets[-1])) else 0


class LogEnd(NamedTuple):
    """The offset after a batch, and the position after it."""

    offset: int
    position: int


def whole_end(segment: LogSegment) -> LogEnd:
    """Return the end of the last complete batch, even if damaged bytes precede it."""
    end = LogEnd(segment.base_offset, 0)
    with open_file(segment.log) as log:
        for place in walk(log, last_indexed(segment, log)):
            if isinstance(place, BatchPlace):
                offset = max(end.offset, place.last_offset + 1)
                end = LogEnd(offset, place.position + place.size)
    return end


def end_before(segment: LogSegment, offset: int) -> int:
    """Return the end of the last batch whose records are all before ``offset``."""
    with open_file(segment.log) as log:
        start = end = start_of(segment, offset_index(segment), log, offset - 1)
        for place in walk(log, start):
            if isinstance(place, BatchPlace):
                if place.last_offset >= offset:
                    break
                end = place.position + place.size
    return end


def latest_time(segment: LogSegment) -> int | None:
    """Return the highest timestamp of a segment, according to its time index.

    The segment must not be the last segment of its log.
    """
    index = time_index(segment)
    return None if index is None else int(index[0][-1])


def first_as_late(segment: LogSegment, timestamp: int) -> int | None:
    """Return the offset of the first record at or after ``timestamp``, or None."""
    with open_file(segment.log) as log:
        start, times = 0, time_index(segment)
        if times is not None:
            row = int(np.searchsorted(times[0], timestamp)) - 1
            if row >= 0:
                start = start_of(segment, offset_index(segment), log, int(times[1][row]))
        for place in _as_late(log, start, timestamp):
            for record in read_batch(log, place).records:
                if record.timestamp >= timestamp:
                    return record.offset
    return None


def _as_late(log: LogFile, start: int, timestamp: int) -> Iterator[BatchPlace]:
    for place in walk(log, start):
        if isinstance(place, BatchPlace) and place.max_timestamp >= timestamp:
            yield place
