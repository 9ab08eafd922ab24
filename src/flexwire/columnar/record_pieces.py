"""Read the record batches in many pieces of memory into columns, all pieces together.

A message contains separate records for each partition, and often only a few of them. Starting over
for each partition would take longer than reading its records. A single scan therefore finds the
batches in all pieces, and a single pass reads the records of the wanted batches. No batch extends
from one piece into the next.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from flexwire.columnar.batch_table import BATCH
from flexwire.columnar.record_columns import SizeHints, schema_of
from flexwire.columnar.records import MOST_ENOUGH, Inflater, RecordSelection, room_for
from flexwire.kernels import load_kernel

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.columnar.arrays import NumpyArray


# The largest number of batches that one search finds.
_TABLE = 1 << 14


class RefusedPiece(NamedTuple):
    """Bytes that the kernels do not read.

    The object contains the place of the bytes, and the position among the group's batches at which
    they begin.
    """

    batch: int
    piece: int
    start: int
    stop: int


@dataclass(frozen=True, slots=True)
class PieceGroup:
    """Several batches in order: a table of type `BATCH`, and the batches' records.

    ``records`` contains the rows of the batches that have been read. Each batch contains its own
    number of rows. An entry without rows is not a batch, is a batch without records, or is a
    refused batch. For such an entry, `flexwire.records` reads as many bytes as the entry's size
    specifies.
    """

    batches: NumpyArray
    records: pa.RecordBatch

    def refused(self) -> Iterator[RefusedPiece]:
        """Yield the bytes that are not in ``records``. Adjacent bytes of a piece are joined."""
        rows = np.flatnonzero(self.batches["rows"] == 0)
        pieces, starts = self.batches["piece"][rows], self.batches["position"][rows]
        stops = starts + self.batches["size"][rows]
        is_first = (np.diff(rows, prepend=-2) != 1) | (np.diff(pieces, prepend=-1) != 0)
        is_last = np.roll(is_first, -1)
        extents = (rows[is_first], pieces[is_first], starts[is_first], stops[is_last])
        yield from map(RefusedPiece, *(numbers.tolist() for numbers in extents))


class PieceReader:
    """Yield the batches in pieces of data with their records, in order and in groups.

    The pieces are ``data[starts[0]:ends[0]]`` and so on. No piece is empty. A group contains about
    as many bytes as a CPU cache, or a single batch. ``hints`` come from an earlier reader with the
    same selection.
    """

    def __init__(
        self,
        data: NumpyArray,
        starts: NumpyArray,
        ends: NumpyArray,
        wanted: RecordSelection,
        hints: SizeHints | None = None,
    ) -> None:
        self.wanted = wanted
        self._data = data
        self._starts, self._ends = starts.astype(np.int64), ends.astype(np.int64)
        self._scanner = load_kernel("batches")
        self._inflater = Inflater(data, wanted.max_inflated, wanted.max_ratio)
        self._hints = SizeHints() if hints is None else hints

    def __iter__(self) -> Iterator[PieceGroup]:
        if self._scanner is None:
            yield PieceGroup(self._unread(), _no_records(self.wanted))
            return
        for table in self._tables():
            batches = table
            while len(batches):
                last = self._inflater.inflate_group(batches, MOST_ENOUGH)
                yield from self._read(batches[:last])
                batches = batches[last:]

    def _unread(self) -> NumpyArray:
        """Return a table that leaves every piece entirely to `flexwire.records`."""
        table = np.zeros(len(self._starts), BATCH)
        table["position"] = self._starts
        table["size"] = self._ends - self._starts
        table["piece"] = np.arange(len(self._starts))
        return table

    def _tables(self) -> Iterator[NumpyArray]:
        """Yield tables of the batches that are found."""
        piece, position = 0, int(self._starts[0]) if len(self._starts) else 0
        while piece < len(self._starts):
            table = np.zeros(_TABLE, BATCH)
            count, piece, position = self._scanner.scan_pieces(
                self._data, self._starts, self._ends, piece, position, table
            )
            yield table[:count]

    def _read(self, batches: NumpyArray) -> Iterator[PieceGroup]:
        done = 0
        while done < len(batches):
            columns = room_for(batches[done:], self.wanted, self._hints)
            stopped, is_refused = columns.read(batches, done, self._data)
            while is_refused:
                # An entry of this kind is recognized by its lack of rows.
                stopped, is_refused = columns.read(batches, stopped + 1, self._data)
            group = batches[done:stopped]
            if columns.rows:
                (records,) = columns.to_arrow(group)
            else:
                records = _no_records(self.wanted)
            yield PieceGroup(group, records)
            done = stopped


def _no_records(wanted: RecordSelection) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema_of(wanted.columns))
