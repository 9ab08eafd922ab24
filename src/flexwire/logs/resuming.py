"""What of a log has come since it was read up to an offset: whole batches, each of them once.

The offset is the next one, as a consumer's is, so that it does not matter what files hold it by
now: a segment that has grown, others that have come, or one that compaction has made of several.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from flexwire.logs.planning import pieces_of
from flexwire.logs.positions import end_before, whole_end
from flexwire.logs.query import LogQuery

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.logs.positions import LogEnd
    from flexwire.logs.reading import LogPiece
    from flexwire.logs.replica import Replica


@dataclass(frozen=True, slots=True)
class Resumed:
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


def resumed(log: Replica, first: int | None, piece_bytes: int) -> Resumed:
    """Give what a log has from an offset on, or all of it, up to its last whole batch."""
    last = log.segments[-1]
    end = whole_end(last)
    waiting = last.log.size - end.position
    if first is not None and first >= end.offset:
        return Resumed((), first, waiting, is_behind=first > end.offset)
    is_gone = first is not None and first < log.first
    pieces = tuple(_pieces(log, first, end, piece_bytes))
    return Resumed(pieces, max(end.offset, log.start), waiting, is_gone=is_gone)


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
