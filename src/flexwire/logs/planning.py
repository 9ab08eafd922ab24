"""From paths and a query to the pieces that are read, some together in one task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from flexwire.arguments import refuse
from flexwire.logs.files import open_file
from flexwire.logs.finding import find_logs
from flexwire.logs.positions import (
    cuts,
    first_as_late,
    latest_time,
    offset_index,
    start_of,
    stop_of,
)
from flexwire.logs.query import EVERY, Bounds, LogQuery
from flexwire.logs.reading import Aborted, LogPiece
from flexwire.logs.transactions import transactions_of
from flexwire.storage.filesystems import shown
from flexwire.wire.limits import INT64_MIN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path

    from flexwire.logs.replica import Replica
    from flexwire.logs.segment import Segment

# A file takes as long to open as so many bytes to read.
_OPENING: Final = 1 << 20


def plan(paths: Iterable[str | Path], query: LogQuery) -> list[list[LogPiece]]:
    """Give the pieces to read, those of one task together, in the order of the logs.

    Raises `CaptureError` and `StorageError` for files that are not what they should be, and
    `ArgumentError` for offsets of a partition that is not there.
    """
    logs = find_logs(paths, query)
    there = {one.partition for one in logs}
    for name, offsets in (("starting", query.starting), ("ending", query.ending)):
        for partition in offsets:
            if partition not in there:
                known = ", ".join(map(str, sorted(there)[:20])) or "none"
                raise refuse(f"{name} offsets", f"partitions that are there ({known})", partition)
    return tasks_of((piece for log in logs for piece in pieces_of(log, query)), query.piece_bytes)


def check_topics(paths: Iterable[str | Path], topics: Collection[str]) -> None:
    """Raise `ArgumentError` for a topic that no path has."""
    there = {one.partition.topic for one in find_logs(paths, LogQuery(replicas="all"))}
    for topic in sorted(topics):
        if topic not in there:
            known = ", ".join(sorted(there)[:20])
            raise refuse("topic", f"topics that are there ({known})", topic)


def tasks_of(pieces: Iterable[LogPiece], size: int) -> list[list[LogPiece]]:
    """Give pieces together that have no more than ``size`` bytes in all."""
    tasks: list[list[LogPiece]] = []
    weight = 0
    for one in pieces:
        cost = one.stop - one.start + _OPENING
        if not tasks or weight + cost > size + _OPENING:
            tasks.append([])
            weight = 0
        tasks[-1].append(one)
        weight += cost
    return tasks


def pieces_of(log: Replica, query: LogQuery) -> Iterator[LogPiece]:
    """Give the pieces of a log with what is asked of it."""
    aborted: tuple[Aborted, ...] = ()
    wanted = query.offsets & between(log, query) & Bounds(low=log.start)
    if query.isolation == "read_committed" and not wanted.is_empty:
        aborted, first_open = transactions_of(log)
        wanted &= Bounds(high=first_open - 1)
    for segment, following in zip(log.segments, [*log.segments[1:], None], strict=True):
        last = segment is log.segments[-1]
        bounds = wanted if segment.below is None else wanted & Bounds(high=segment.below - 1)
        is_before = following is not None and following.base_offset <= bounds.low
        if bounds.is_empty or is_before or bounds.high < segment.base_offset:
            continue
        if not segment.log.size or (not last and _is_earlier(segment, query.timestamps.low)):
            continue
        end = None if following is None else following.base_offset
        mine = tuple(
            one
            for one in aborted
            if one.last_offset >= segment.base_offset and (end is None or one.first_offset < end)
        )
        for start, stop in _ranges(segment, bounds, query.piece_bytes):
            yield LogPiece(
                log.partition,
                shown(log.directory),
                segment.log,
                start,
                stop,
                is_end=last and stop == segment.log.size,
                offsets=bounds,
                timestamps=query.timestamps,
                aborted=mine,
            )


def between(log: Replica, query: LogQuery) -> Bounds:
    """Give the offsets that a log is to be read between."""
    low = query.starting.get(log.partition, INT64_MIN)
    bounds = Bounds(low=low)
    if log.partition in query.ending:
        bounds &= Bounds(high=query.ending[log.partition] - 1)
    if query.starting_timestamp is not None:
        first = _first_as_late(log, query.starting_timestamp)
        bounds &= Bounds(0, -1) if first is None else Bounds(low=first)
    if query.ending_timestamp is not None:
        first = _first_as_late(log, query.ending_timestamp)
        bounds &= EVERY if first is None else Bounds(high=first - 1)
    return bounds


def _first_as_late(log: Replica, timestamp: int) -> int | None:
    for segment in log.segments:
        if segment is log.segments[-1] or not _is_earlier(segment, timestamp):
            found = first_as_late(segment, timestamp)
            if found is not None:
                return found
    return None


def _is_earlier(segment: Segment, timestamp: int) -> bool:
    """Whether all records of a segment, which is not the last, are known to be earlier."""
    if timestamp == INT64_MIN:
        return False
    latest = latest_time(segment)
    return latest is not None and latest < timestamp


def _ranges(segment: Segment, bounds: Bounds, size: int) -> Iterator[tuple[int, int]]:
    """Give the ranges of a segment's bytes to read, which begin and end with a batch."""
    start, stop = 0, segment.log.size
    is_bounded = bounds.low > segment.base_offset or bounds.ends[1] is not None
    if not is_bounded and stop <= size:
        yield start, stop
        return
    index = offset_index(segment)
    with open_file(segment.log) as log:
        if is_bounded:
            start = start_of(segment, index, log, bounds.low)
            stop = stop_of(segment, index, log, bounds.high)
        found = cuts(segment, index, log, range(start, stop), size)
    yield from zip([start, *found], [*found, stop], strict=True)
