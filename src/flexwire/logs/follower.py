"""Logs that grow: from which offset to which one to read, and what is gone meanwhile.

The offset of a log is the next one, as a consumer's is: what was read ends right before it.

The offset is the next one, as a consumer's is, so that it does not matter what files hold it by
now: a segment that has grown, others that have come, or one that compaction has made of several.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from flexwire.errors import CaptureError
from flexwire.logs.discovery import find_logs
from flexwire.logs.files import EVERY, Bounds, LogQuery
from flexwire.logs.pieces import between, pieces_of, tasks_of, transactions_of
from flexwire.logs.positions import end_before, end_offset, whole_end

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from flexwire.logs.files import Partition
    from flexwire.logs.positions import LogEnd
    from flexwire.logs.records import LogPiece
    from flexwire.logs.replicas import Replica

    Offsets = dict[Partition, int]


class LogExtent(NamedTuple):
    """The first offset of a log, and the one after the last that can be read now."""

    first: int
    end: int


class LogFollower:
    """Reads the logs in some paths again and again, as they grow and others come.

    ``query`` says where each begins; it has no ends, and takes one replica of each. With
    ``fails_on_loss`` it is a `CaptureError` where a log no longer has what is to be read next;
    otherwise what is left of it is read.
    """

    def __init__(
        self, paths: Iterable[str | Path], query: LogQuery, *, fails_on_loss: bool = True
    ) -> None:
        self._paths = list(paths)
        self._query = query
        self._fails_on_loss = fails_on_loss

    def first(self, *, latest: bool = False) -> Offsets:
        """Give the offsets to begin with: the query's, those of the logs, or ``latest`` their ends.

        Of a log that has no record as late as the query wants, only what comes is read.
        """
        found = {}
        for log in find_logs(self._paths, self._query):
            bounds = between(log, self._query)
            low = log.first if bounds == EVERY else bounds.low
            is_end = bounds.is_empty or (latest and bounds == EVERY)
            found[log.partition] = self._extent(log).end if is_end else low
        return found

    def latest(
        self,
        start: Mapping[Partition, int],
        most: int | None = None,
        *,
        until: Mapping[Partition, int] | None = None,
    ) -> Offsets:
        """Give the offsets to read until, those of ``most`` records after ``start`` at the most.

        A log that is not in ``start`` has come since, and is read from its first offset on. With
        ``until`` nothing after these is given, nor of other logs.
        """
        ends = dict(start)
        begin = dict(start)
        found = {log.partition: log for log in find_logs(self._paths, self._query)}
        for partition, low in start.items():
            if self._fails_on_loss:
                _refuse_loss(partition, found.get(partition), low, low)
        for partition, log in found.items():
            if until is not None and partition not in until:
                continue
            extent = self._extent(log)
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
        """Give the pieces with the offsets from ``start`` until before ``end``, by task."""
        query = replace(self._query, starting={}, starting_timestamp=None)
        found = {log.partition: log for log in find_logs(self._paths, query)}
        pieces: list[LogPiece] = []
        for partition, last in sorted(end.items()):
            log = found.get(partition)
            low = start.get(partition)
            if low is not None and low >= last:
                continue
            if self._fails_on_loss:
                _refuse_loss(partition, log, low, last)
            if log is not None:
                bounds = Bounds(EVERY.low if low is None else low, last - 1)
                pieces += pieces_of(log, replace(query, offsets=query.offsets & bounds))
        return tasks_of(pieces, query.piece_bytes)


def _refuse_loss(partition: Partition, log: Replica | None, low: int | None, end: int) -> None:
    """Refuse a log that does not have the offsets from ``low`` until before ``end``, or is gone."""
    if log is None:
        raise CaptureError(f"{partition} is gone, and was read up to offset {low or 0}")
    first, last = log.first, end_offset(log.segments[-1])
    if low is not None and low < first:
        raise CaptureError(f"{log} begins with offset {first}, and {low} is to be read next")
    if last < end:
        raise CaptureError(f"{log} ends before offset {last}, and had some up to {end}")


def limit_offsets(begin: Mapping[Partition, int], end: Offsets, most: int) -> Offsets:
    """Give offsets between two, ``most`` after the first in all, each log by its share."""
    sizes = {one: last - begin[one] for one, last in end.items()}
    total = sum(sizes.values())
    if total <= most:
        return end
    shares = {one: most * size // total for one, size in sizes.items()}
    left = most - sum(shares.values())
    for one, size in sizes.items():
        more = min(left, size - shares[one])
        shares[one] += more
        left -= more
    return {one: begin[one] + share for one, share in shares.items()}


@dataclass(frozen=True, slots=True)
class LogResumption:
    """What of a log is new, and how it went on from the offset that was to be read ``first``.

    Attributes:
        next_offset: the one to be read first after this.
        waiting: the bytes after its last whole batch, which may be a part of one.
        is_behind: whether the log ends before the offset, and has nothing from there on.
        is_gone: whether the log begins after it: what was between has been deleted.
    """

    pieces: tuple[LogPiece, ...]
    next_offset: int
    waiting: int
    is_behind: bool = False
    is_gone: bool = False


def resume_log(log: Replica, first: int | None, piece_bytes: int) -> LogResumption:
    """Give what a log has from an offset on, or all of it, up to its last whole batch."""
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
    if first is not None and all(one.base_offset != first for one in log.segments):
        # Headers say it exactly: an index may point to the first that is new, past damage before
        # it, and damage before the last that is not was told when that was read.
        starting = first - 1
        older = [one for one in log.segments if one.base_offset < first]
        starts = {one.log.url: end_before(one, first) for one in older[-1:]}
    query = LogQuery(
        starting={} if starting is None else {log.partition: starting}, piece_bytes=piece_bytes
    )
    ends = {log.segments[-1].log.url: end.position}
    for piece in pieces_of(log, query):
        start = max(piece.start, starts.get(piece.log.url, 0))
        stop = min(piece.stop, ends.get(piece.log.url, piece.stop))
        if start < stop:
            yield replace(piece, start=start, stop=stop, is_end=piece.is_end and stop == piece.stop)
