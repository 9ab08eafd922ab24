"""Offsets without a record, which prove that records were removed from a log.

A leader assigns the next offset to each record. A log without gaps therefore contains every record
that was ever written to it. Compaction leaves gaps between and within batches, and deletion leaves
a gap at the start. `cleaner-offset-checkpoint` proves less: it shows how far this broker has
compacted, but the log may be a copy from another broker that compacted further.
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
    """The offsets in a piece of a log, from ``first`` up to ``end``, and the holes among them.

    The holes lie between ``first_hole``, the lowest offset that may be missing, and ``holes_end``,
    the offset after the last missing offset. If nothing is missing, both are None.
    """

    first: int
    end: int
    first_hole: int | None = None
    holes_end: int | None = None


class Holes(NamedTuple):
    """The holes in a log. The log is complete below ``first`` and at or above ``end``.

    ``log_end`` is the offset after the log's last record. For a log without holes, ``end`` is 0.
    """

    first: int
    end: int
    log_end: int


def offsets_of(piece: LogPiece) -> PieceOffsets | None:
    """Return the offsets in a piece, from the headers of its batches. None without batches."""
    heard = _OffsetListener(piece.offsets.low)
    read_headers(piece, heard)
    return heard.held


def holes_of(log: Replica, pieces: Iterable[PieceOffsets]) -> Holes:
    """Return the holes in a log, given the offsets of its pieces in any order."""
    firsts, ends, expected = [], [0], 0
    last = PieceOffsets(log.segments[-1].base_offset, log.segments[-1].base_offset)
    for offsets in [*sorted(pieces, key=lambda piece: piece.first), last]:
        if offsets.first > expected:
            firsts.append(expected)
            ends.append(offsets.first)
        if offsets.first_hole is not None and offsets.holes_end is not None:
            firsts.append(offsets.first_hole)
            ends.append(offsets.holes_end)
        expected = max(expected, offsets.end)
    return Holes(min(firsts, default=expected), max(ends), expected)


class _OffsetListener:
    """Collect the offsets of batches from their headers, which must arrive in order.

    Attributes:
        held: the offsets of the batches so far.
    """

    def __init__(self, low: int) -> None:
        self.held: PieceOffsets | None = None
        self._low = low

    def __call__(self, at: int, headers: BatchHeaders) -> None:
        del at
        rows = headers.last_offsets >= self._low
        if not rows.any():
            return
        # Offsets before the start of the log have been deleted.
        bases = np.maximum(headers.base_offsets[rows], self._low)
        ends, counts = headers.last_offsets[rows] + 1, headers.counts[rows]
        expected = bases[0] if self.held is None else self.held.end
        before = np.maximum.accumulate(np.concatenate([[expected], ends]))[:-1]
        # A wrapper message does not contain the number of its messages, so some of them may be
        # missing.
        is_holed = counts < headers.last_offsets[rows] + 1 - headers.base_offsets[rows]
        is_after_hole = bases > before
        firsts = np.concatenate([before[is_after_hole], bases[is_holed]]).tolist()
        lasts = np.concatenate([bases[is_after_hole], ends[is_holed]]).tolist()
        offsets = self.held or PieceOffsets(int(bases[0]), int(bases[0]))
        if offsets.first_hole is not None and offsets.holes_end is not None:
            firsts.append(offsets.first_hole)
            lasts.append(offsets.holes_end)
        self.held = PieceOffsets(
            offsets.first,
            int(max(offsets.end, ends.max())),
            min(firsts, default=None),
            max(lasts, default=None),
        )
