"""Record batches that stand in many pieces of memory, in columns: those of all pieces at once.

A message carries the records of each partition for itself, often a few, and to begin anew for each
would take longer than they do. So one scan finds the batches of all pieces, and one reading gives
the records of as many as are wanted at once. No batch runs over from its piece into the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from flexwire.columnar.program import address
from flexwire.columnar.record_columns import Hints, schema_of
from flexwire.columnar.records import MOST_ENOUGH, Inflater, Wanted, check_crcs, room_for
from flexwire.kernels.engine import Kernel, kernel
from flexwire.kernels.records import columns_layout as L  # noqa: N812 - a word in front of some thirty

if TYPE_CHECKING:
    from collections.abc import Iterator

    Words = np.ndarray[Any, Any]

# As many batches are looked for at once.
_TABLE = 1 << 14
_WORD = 8


class Refused(NamedTuple):
    """Bytes that are not for the kernels: in which batch of the group they begin, and where."""

    batch: int
    piece: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class Group:
    """Batches one after the other, as `flexwire.kernels.records.columns_layout` has them.

    ``records`` are the rows of those that were read, B_ROWS of each. What has none is not a batch,
    is one without records, or was refused: `flexwire.records` says what it is, and is then done
    with B_SIZE bytes, as with those of a batch.
    """

    batches: Words
    records: pa.RecordBatch

    def word(self, word: int) -> Words:
        """Give a word of each batch."""
        return self.batches[:, word // _WORD]

    def refused(self) -> Iterator[Refused]:
        """Give what is not in ``records``; what is side by side in a piece is one of them."""
        rows = np.flatnonzero(self.word(L.B_ROWS) == 0)
        pieces, starts = self.word(L.B_PIECE)[rows], self.word(L.B_POSITION)[rows]
        stops = starts + self.word(L.B_SIZE)[rows]
        is_first = (np.diff(rows, prepend=-2) != 1) | (np.diff(pieces, prepend=-1) != 0)
        is_last = np.roll(is_first, -1)
        told = (rows[is_first], pieces[is_first], starts[is_first], stops[is_last])
        yield from map(Refused, *(one.tolist() for one in told))


class PieceReader:
    """Gives the batches in pieces of data in order, with their records, in groups.

    The pieces are ``data[starts[0]:ends[0]]`` and so on, and none is empty. A group has about as
    many bytes as a cache holds, or one batch. ``hints`` say what earlier pieces took, of a reader
    that had the same.
    """

    def __init__(
        self,
        data: Words,
        starts: Words,
        ends: Words,
        wanted: Wanted,
        hints: Hints | None = None,
    ) -> None:
        self.wanted = wanted
        self._data = data
        self._starts, self._ends = starts.astype(np.int64), ends.astype(np.int64)
        # All or none.
        self._scan_kernel, self._read_kernel = kernel("scan_pieces"), kernel("read_records")
        self._inflater = Inflater(data, wanted.max_inflated, wanted.max_ratio)
        self._hints = Hints() if hints is None else hints
        # Whether the kernel checks crcs, which is soonest.
        self._kernel_checks = False

    def __iter__(self) -> Iterator[Group]:
        if self._scan_kernel is None or self._read_kernel is None:
            yield Group(self._unread(), _no_records(self.wanted))
            return
        for table in self._tables(self._scan_kernel):
            found = table
            while len(found):
                last = self._inflater.inflate_group(found, MOST_ENOUGH)
                yield from self._read(self._read_kernel, found[:last])
                found = found[last:]

    def _unread(self) -> Words:
        """Give a table that says of each piece as a whole that it is not for the kernels."""
        table = np.zeros((len(self._starts), L.BATCH // _WORD), np.int64)
        table[:, L.B_POSITION // _WORD] = self._starts
        table[:, L.B_SIZE // _WORD] = self._ends - self._starts
        table[:, L.B_PIECE // _WORD] = np.arange(len(self._starts))
        return table

    def _tables(self, scan: Kernel) -> Iterator[Words]:
        """Find the batches, crcs checked where the kernel that reads them does not."""
        words = np.zeros(L.PIECES // _WORD, np.int64)
        for word, value in (
            (L.P_DATA, address(self._data)),
            (L.P_PIECES, len(self._starts)),
            (L.P_STARTS, address(self._starts)),
            (L.P_ENDS, address(self._ends)),
            (L.P_POSITION, self._starts[0] if len(self._starts) else 0),
            (L.P_CAPACITY, _TABLE),
        ):
            words[word // _WORD] = value
        status = L.FULL
        while status == L.FULL:
            table = np.zeros((_TABLE, L.BATCH // _WORD), np.int64)
            words[L.P_TABLE // _WORD] = address(table)
            words[L.P_COUNT // _WORD] = 0
            status = scan(address(words), 0, 0)
            table = table[: int(words[L.P_COUNT // _WORD])]
            self._kernel_checks = bool(words[L.P_CRC // _WORD])
            if self.wanted.check_crc and not self._kernel_checks:
                check_crcs(table, self._data)
            yield table

    def _read(self, read: Kernel, batches: Words) -> Iterator[Group]:
        done = 0
        while done < len(batches):
            columns = room_for(batches[done:], self.wanted, self._hints)
            checks = self.wanted.check_crc and self._kernel_checks
            columns.begin(batches, done, self._data, check=checks)
            while read(address(columns.words), 0, 0) == L.REFUSED:
                # It has no rows, by which it is known.
                columns.words[L.R_FIRST // _WORD] += 1
            stopped = columns.get(L.R_FIRST)
            group = batches[done:stopped]
            if columns.rows:
                (records,) = columns.to_arrow(self.wanted.columns, group)
            else:
                records = _no_records(self.wanted)
            yield Group(group, records)
            done = stopped


def _no_records(wanted: Wanted) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema_of(wanted.columns))
