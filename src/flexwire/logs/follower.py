"""Logs that grow: find the offsets to read next, and records deleted before they were read.

Progress is stored as the next offset, as it is for a consumer. It therefore does not matter which
file contains the offset: the segment may have grown, there may be new segments, or compaction may
have merged several segments.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from flexwire.errors import DATA_LOST, CaptureError
from flexwire.logs.discovery import find_logs
from flexwire.logs.files import EVERY, Bounds, LogQuery
from flexwire.logs.pieces import between, pieces_of, split_tasks, transactions_of
from flexwire.logs.positions import end_before, end_offset, whole_end

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from flexwire.logs.files import Partition
    from flexwire.logs.positions import LogEnd
    from flexwire.logs.records import LogPiece
    from flexwire.logs.replicas import Replica

    Offsets = dict[Partition, int]


class LogExtent(NamedTuple):
    """The first offset of a log, and the offset after the last record that can be read now."""

    first: int
    end: int


class LogFollower:
    """Read the logs in some paths repeatedly, while they grow and new logs appear.

    ``query`` determines where each log begins. It contains no ends, and selects one replica
    of each partition. With ``fails_on_loss``, a log that has lost the records to be read
    next raises `CaptureError`. Otherwise the rest of the log is read.
    """

    def __init__(
        self, paths: Iterable[str | Path], query: LogQuery, *, fails_on_loss: bool = True
    ) -> None:
        self._paths = list(paths)
        self._query = query
        self._fails_on_loss = fails_on_loss
        self.ends: Offsets | None = None
        """The ends of the logs at the last call to `latest`, or None before the first call."""

    def first(self, *, latest: bool | Collection[Partition] = False) -> Offsets:
        """Return the first offsets: the query's, each log's first, or each log's end (``latest``).

        ``latest`` can also be a set of partitions that begin at their ends. If a log has no record
        as late as the query requires, only future records are read.
        """
        offsets = {}
        for log in find_logs(self._paths, self._query):
            bounds = between(log, self._query)
            low = log.first if bounds == EVERY else bounds.low
            is_late = latest if isinstance(latest, bool) else log.partition in latest
            is_end = bounds.is_empty or (is_late and bounds == EVERY)
            offsets[log.partition] = self._extent(log).end if is_end else low
        return offsets

    def latest(
        self,
        start: Mapping[Partition, int],
        most: int | None = None,
        *,
        until: Mapping[Partition, int] | None = None,
    ) -> Offsets:
        """Return the offsets at which to stop, with at most ``most`` records after ``start``.

        A log that is not in ``start`` is new and is read from its first offset. With ``until``, the
        result does not exceed these offsets, and all other logs are left out.
        """
        ends = dict(start)
        begin = dict(start)
        logs = {log.partition: log for log in find_logs(self._paths, self._query)}
        for partition, low in start.items():
            if self._fails_on_loss:
                _refuse_loss(partition, logs.get(partition), low, low)
        self.ends = {}
        for partition, log in logs.items():
            extent = self._extent(log)
            self.ends[partition] = extent.end
            if until is not None and partition not in until:
                continue
            end = extent.end if until is None else min(extent.end, until[partition])
            begin.setdefault(partition, extent.first)
            ends[partition] = max(end, begin[partition])
        return ends if most is None else limit_offsets(begin, ends, most)

    def _extent(self, log: Replica) -> LogExtent:
        first, end = log.first, end_offset(log.segments[-1])
        if self._query.isolation == "read_committed":
            end = min(end, transactions_of(log)[1])
        return LogExtent(first, max(first, end))

    def tasks(
        self, start: Mapping[Partition, int], end: Mapping[Partition, int]
    ) -> list[list[LogPiece]]:
        """Return the pieces with the offsets from ``start`` up to ``end``, grouped by task."""
        query = replace(self._query, starting={}, starting_timestamp=None, starting_timestamps={})
        logs = {log.partition: log for log in find_logs(self._paths, query)}
        parts: list[tuple[Replica, LogQuery]] = []
        for partition, last in sorted(end.items()):
            log = logs.get(partition)
            low = start.get(partition)
            if low is not None and low >= last:
                continue
            if self._fails_on_loss:
                _refuse_loss(partition, log, low, last)
            if log is not None:
                bounds = Bounds(EVERY.low if low is None else low, last - 1)
                parts.append((log, replace(query, offsets=query.offsets & bounds)))
        return split_tasks(parts)


def _refuse_loss(partition: Partition, log: Replica | None, low: int | None, end: int) -> None:
    """Raise an error for a log that is missing, or that lacks offsets from ``low`` to ``end``."""
    if log is None:
        raise _loss(f"{partition} no longer exists; offsets up to {low or 0} had been read")
    first, last = log.first, end_offset(log.segments[-1])
    if low is not None and low < first:
        raise _loss(f"{log} begins with offset {first}, but the next offset to read is {low}")
    if last < end:
        raise _loss(f"{log} ends before offset {last}, but records up to {end} existed earlier")


def _loss(reason: str) -> CaptureError:
    return CaptureError(reason).under(DATA_LOST)


def limit_offsets(begin: Mapping[Partition, int], end: Offsets, most: int) -> Offsets:
    """Return offsets between two limits, with ``most`` records in all, divided in proportion."""
    sizes = {partition: last - begin[partition] for partition, last in end.items()}
    total = sum(sizes.values())
    if total <= most:
        return end
    shares = {partition: most * size // total for partition, size in sizes.items()}
    left = most - sum(shares.values())
    for partition, size in sizes.items():
        more = min(left, size - shares[partition])
        shares[partition] += more
        left -= more
    return {partition: begin[partition] + share for partition, share in shares.items()}


@dataclass(frozen=True, slots=True)
class LogResumption:
    """The new part of a log, and how the log continued at the offset where reading should start.

    Attributes:
        next_offset: the offset to read next.
        waiting: bytes after the last whole batch, which may be part of a batch.
        is_behind: true if the log ends before the offset where reading should start.
        is_gone: true if the log begins after this offset, because records in between were deleted.
    """

    pieces: tuple[LogPiece, ...]
    next_offset: int
    waiting: int
    is_behind: bool = False
    is_gone: bool = False


def resume_log(log: Replica, first: int | None, piece_bytes: int) -> LogResumption:
    """Return the part of a log from an offset up to the log's last complete batch."""
    last = log.segments[-1]
    end = whole_end(last)
    waiting = last.log.size - end.position
    if first is not None and first >= end.offset:
        return LogResumption((), first, waiting, is_behind=first > end.offset)
    is_gone = first is not None and first < log.first
    pieces = tuple(_pieces(log, first, end, piece_bytes))
    return LogResumption(pieces, max(end.offset, log.start), waiting, is_gone=is_gone)


def _pieces(log: Replica, first: int | None, end: LogEnd, piece_bytes: int) -> Iterator[LogPiece]:
    starting, starts = first, {}
    if first is not None and all(segment.base_offset != first for segment in log.segments):
        # The headers determine this exactly. An index may skip damaged bytes before the first new
        # batch, and damaged bytes before the last old batch have already been reported.
        starting = first - 1
        older = [segment for segment in log.segments if segment.base_offset < first]
        starts = {segment.log.url: end_before(segment, first) for segment in older[-1:]}
    query = LogQuery(
        starting={} if starting is None else {log.partition: starting}, piece_bytes=piece_bytes
    )
    ends = {log.segments[-1].log.url: end.position}
    for piece in pieces_of(log, query):
        start = max(piece.start, starts.get(piece.log.url, 0))
        stop = min(piece.stop, ends.get(piece.log.url, piece.stop))
        if start < stop:
            yield replace(piece, start=start, stop=stop, is_end=piece.is_end and stop == piece.stop)
