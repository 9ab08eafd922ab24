"""The indexes beside a log segment: offset to position, timestamp to offset, aborted transactions.

Offset and time indexes are allocated whole and filled from the start, so zeros end them.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

from flexwire.errors import RecordError
from flexwire.logs.log_segment import BatchPlace, Damage, LogFile, place_at, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")


class OffsetEntry(NamedTuple):
    """An entry of an offset index: where the batch that ends with ``offset`` begins."""

    offset: int
    position: int


class TimeEntry(NamedTuple):
    """An entry of a time index: the batch that ends with ``offset`` has the highest one so far."""

    timestamp: int
    offset: int


def read_offset_index(
    index: LogFile, base_offset: int, log: LogFile | None
) -> Iterator[OffsetEntry | Damage]:
    """Read the entries of an offset index; both numbers must ascend.

    Where the ``log`` is given, the batch at an entry's position must end with its offset.
    """
    last = OffsetEntry(base_offset - 1, -1)
    for read in _entries(index, _OFFSET_ENTRY):
        if isinstance(read, Damage):
            yield read
            continue
        at, (relative_offset, position) = read
        entry = OffsetEntry(base_offset + relative_offset, position)
        yield entry
        reasons = [
            *_descent("offset", last.offset, entry.offset, is_strict=True),
            *_descent("position", last.position, position, is_strict=True),
            *(_offset_mismatch(log, entry) if log is not None else ()),
        ]
        yield from (Damage(at, _OFFSET_ENTRY.size, reason) for reason in reasons)
        last = entry


def _offset_mismatch(log: LogFile, entry: OffsetEntry) -> Iterator[str]:
    if not 0 <= entry.position < log.size:
        yield f"position {entry.position} is beyond the {log.size} bytes of the log"
        return
    try:
        found = place_at(log, entry.position).last_offset
    except RecordError as error:
        yield f"no batch at position {entry.position} of the log: {error.reason}"
        return
    if found != entry.offset:
        yield f"offset {entry.offset}, but the batch at {entry.position} ends with {found}"


def read_time_index(
    index: LogFile, base_offset: int, log: LogFile | None
) -> Iterator[TimeEntry | Damage]:
    """Read the entries of a time index; timestamps must ascend, offsets must not descend.

    Where the ``log`` is given, the batch that ends with an entry's offset must have its timestamp
    as the highest. An entry whose offset descends is not compared: the log is walked once.
    """
    last = TimeEntry(-1, base_offset - 1)
    compare = _TimeComparison(log) if log is not None else None
    for read in _entries(index, _TIME_ENTRY):
        if isinstance(read, Damage):
            yield read
            continue
        at, (timestamp, relative_offset) = read
        entry = TimeEntry(timestamp, base_offset + relative_offset)
        yield entry
        reasons = [
            *_descent("timestamp", last.timestamp, timestamp, is_strict=True),
            *_descent("offset", last.offset, entry.offset, is_strict=False),
        ]
        if compare is not None and entry.offset >= last.offset:
            reasons += compare(entry)
        yield from (Damage(at, _TIME_ENTRY.size, reason) for reason in reasons)
        last = entry


class _TimeComparison:
    """Compares the entries of a time index with a log, in ascending order."""

    def __init__(self, log: LogFile) -> None:
        self._places = (place for place in walk(log) if isinstance(place, BatchPlace))
        self._place = next(self._places, None)

    def __call__(self, entry: TimeEntry) -> Iterator[str]:
        while self._place is not None and self._place.last_offset < entry.offset:
            self._place = next(self._places, None)
        place = self._place
        if place is None:
            yield f"offset {entry.offset} is beyond the end of the log"
        elif place.last_offset != entry.offset:
            yield f"no batch ends with offset {entry.offset}; the next one's is {place.last_offset}"
        elif place.max_timestamp != entry.timestamp:
            found = f"the batch that ends with {entry.offset} has {place.max_timestamp}"
            yield f"timestamp {entry.timestamp}, but {found}"


def _entries(
    index: LogFile, layout: struct.Struct
) -> Iterator[tuple[int, tuple[int, int]] | Damage]:
    whole = index.size - index.size % layout.size
    for at in range(0, whole, layout.size):
        data = index.read(at, layout.size)
        if len(data) < layout.size:
            yield Damage(at, index.size - at, "the file became shorter")
            return
        if not any(data):
            if index.is_zero(at):
                return
            # A record may be the first of its log and have the timestamp 0.
            if at:
                yield Damage(at, index.size - at, "zeros, but something follows them")
                return
        first, second = layout.unpack(data)
        yield at, (first, second)
    if whole < index.size:
        size = index.size - whole
        yield Damage(whole, size, f"{size} bytes at the end, too few for an entry")


def _descent(what: str, last: int, found: int, *, is_strict: bool) -> Iterator[str]:
    if found < last or (is_strict and found == last):
        yield f"{what} {found} after {last}"
