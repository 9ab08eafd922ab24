"""Offsets that a log has no record of: proof that records were removed from it.

A leader gives each record the next offset, so a log without a gap has all records that it was ever
given. Compaction leaves gaps between batches and within them, and deletion a gap at the start.
`cleaner-offset-checkpoint` proves less: it says how far this broker compacted, and the log may be
the copy of one that another broker compacted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from flexwire.logs.records import read_headers

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexwire.columnar.batch_table import BatchHeaders
    from flexwire.logs.records import LogPiece
    from flexwire.logs.replicas import Replica

    Words = np.ndarray[Any, Any]


class PieceOffsets(NamedTuple):
    """What a piece of a log holds: its offsets from ``first`` to before ``end``, and its holes.

    The holes lie between ``first_hole``, the lowest offset that may be missing, and ``holes_end``,
    the offset after the last one. Both are None where nothing is missing.
    """

    first: int
    end: int
    first_hole: int | None = None
    holes_end: int | None = None


class Holes(NamedTuple):
    """Where a log has holes: below ``first`` it has all records, and from ``end`` on.

    ``log_end`` is the offset after the log's last record. A log without a hole has 0 as ``end``.
    """

    first: int
    end: int
    log_end: int


def offsets_of(piece: LogPiece) -> PieceOffsets | None:
    """Return what a piece of a log holds, by the headers of its batches; None without a batch."""
    heard = _OffsetListener(piece.offsets.low)
    read_headers(piece, heard)
    return heard.held


def holes_of(log: Replica, pieces: Iterable[PieceOffsets]) -> Holes:
    """Return the holes of a log from what its pieces hold, in any order."""
    firsts, ends, expected = [], [0], 0
    last = PieceOffsets(log.segments[-1].base_offset, log.segments[-1].base_offset)
    for one in [*sorted(pieces, key=lambda piece: piece.first), last]:
        if one.first > expected:
            firsts.append(expected)
            ends.append(one.first)
        if one.first_hole is not None and one.holes_end is not None:
            firsts.append(one.first_hole)
            ends.append(one.holes_end)
        expected = max(expected, one.end)
    return Holes(min(firsts, default=expected), max(ends), expected)


class _OffsetListener:
    """Hears of headers in order.

    Attributes:
        held: what the batches hold that were heard of.
    """

    def __init__(self, low: int) -> None:
        self.held: PieceOffsets | None = None
        self._low = low

    def __call__(self, at: int, headers: BatchHeaders) -> None:
        del at
        rows = headers.last_offsets >= self._low
        if not rows.any():
            return
        # What lies before the start of the log was deleted.
        bases = np.maximum(headers.base_offsets[rows], self._low)
        ends, counts = headers.last_offsets[rows] + 1, headers.counts[rows]
        expected = bases[0] if self.held is None else self.held.end
        before = np.maximum.accumulate(np.concatenate([[expected], ends]))[:-1]
        # A message that wraps others does not say how many, so that some may be missing.
        is_holed = counts < headers.last_offsets[rows] + 1 - headers.base_offsets[rows]
        is_after_hole = bases > before
        firsts = np.concatenate([before[is_after_hole], bases[is_holed]]).tolist()
        lasts = np.concatenate([bases[is_after_hole], ends[is_holed]]).tolist()
        held = self.held or PieceOffsets(int(bases[0]), int(bases[0]))
        if held.first_hole is not None and held.holes_end is not None:
            firsts.append(held.first_hole)
            lasts.append(held.holes_end)
        self.held = PieceOffsets(
            held.first,
            int(max(held.end, ends.max())),
            min(firsts, default=None),
            max(lasts, default=None),
        )
