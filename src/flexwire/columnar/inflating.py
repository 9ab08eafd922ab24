"""Inflates the batches of a table, a group at a time, into one room that is used again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from flexwire.columnar.buffers import allocate
from flexwire.columnar.program import address
from flexwire.errors import RecordError
from flexwire.kernels.engine import kernel
from flexwire.kernels.records import columns_layout as L  # noqa: N812 - a word in front of some ten
from flexwire.kernels.records import inflating_layout as F  # noqa: N812 - as L is one
from flexwire.records.batch import OBJECT_COST, object_budget
from flexwire.records.compression import inflate, inflate_into
from flexwire.records.record import COMPRESSIONS
from flexwire.wire.batch_layout import COMPRESSION_MASK, GZIP, HEADER_SIZE, LZ4, RECORD_BATCH, ZSTD
from flexwire.wire.limits import INT64_MAX

if TYPE_CHECKING:
    Words = np.ndarray[Any, Any]

_WORD = 8
MOST_ENOUGH = 1 << 24
"""The most bytes that a group can be asked to have."""
# Behind them there is room for a batch of so many bytes.
_SPARE = 4 << 20

_FACTS = (L.B_POSITION // _WORD, L.B_SIZE // _WORD, L.B_SKIP // _WORD)
_COUNT, _BUDGET = L.B_COUNT // _WORD, L.B_BUDGET // _WORD
_START, _END = L.B_START // _WORD, L.B_END // _WORD


@dataclass(slots=True)
class _Todo:
    """What is known of each batch of a group, and what became of those that codecs were asked for.

    Lists, because single items of an array are slow to take and to set.
    """

    compressions: list[int]
    positions: list[int]
    sizes: list[int]
    skipped: list[int]
    bounds: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)

    def put(self, table: Words, budget: int) -> None:
        """Tell the table."""
        table[self.rows, _START] = self.starts
        table[self.rows, _END] = self.ends
        table[self.rows, _BUDGET] = budget
        table[self.refused, _COUNT] = L.COUNT_REFUSED


class Inflater:
    """Inflates batches of magic 2, none of them beyond ``max_inflated`` bytes.

    ``data`` is what their positions count from. With ``ratio`` no batch inflates beyond so many
    times its own bytes. The inflated bytes stay where they are until the next group.
    """

    def __init__(self, data: Words, max_inflated: int, ratio: int | None = None) -> None:
        self._data = data.data
        self._limit = max_inflated
        self._ratio = ratio
        self._budget = object_budget(max_inflated)
        self._room: memoryview = memoryview(b"")
        self._begin = self._used = 0
        # What the kernel inflates, as far as is known.
        self._for_kernel = {LZ4, GZIP}
        # What there was no room for.
        self._beside: list[Words] = []

    def inflate_group(self, table: Words, enough: int) -> int:
        """Inflate batches from the table's first on, until they have ``enough`` bytes.

        Gives the row after them. Sets where their records stand, B_START and B_END, and B_BUDGET;
        a batch that does not inflate gets a B_COUNT that is refused.
        """
        sizes = table[:, L.B_SIZE // _WORD]
        table[:, _BUDGET] = sizes
        table = table[: 1 + int(np.searchsorted(np.cumsum(sizes)[:-1], enough))]
        compressions = table[:, L.B_ATTRIBUTES // _WORD] & COMPRESSION_MASK
        if not compressions.any():
            return len(table)
        self._prepare()
        todo = _Todo(compressions.tolist(), *(table[:, word].tolist() for word in _FACTS))
        if ZSTD in todo.compressions:
            todo.bounds = _zstd_bounds(table)
        row = total = 0
        while row < len(table) and total < enough:
            if todo.compressions[row] in self._for_kernel:
                row, total = self._run_kernel(table, row, total, enough)
            if row < len(table) and total < enough:
                total += self._ask_codec(todo, row)
                row += 1
        todo.put(table, self._budget)
        if self._ratio is not None:
            _hold(table[:row], compressions[:row], self._ratio)
        return row

    def _prepare(self) -> None:
        self._beside.clear()
        self._used = 0
        if not self._room:
            room = allocate(MOST_ENOUGH + _SPARE)
            self._begin, self._room = address(room), room.data

    def _run_kernel(self, table: Words, row: int, total: int, enough: int) -> tuple[int, int]:
        """Inflate batches up to one for a codec; gives its row, and the bytes until then."""
        run = kernel("inflate_batches")
        if run is None:
            return row, total
        words = np.zeros(F.INFLATE // _WORD, np.int64)
        for word, value in (
            (F.I_TABLE, address(table)),
            (F.I_FIRST, row),
            (F.I_ROWS, len(table)),
            (F.I_TOTAL, total),
            (F.I_ENOUGH, enough),
            (F.I_TARGET, self._begin + self._used),
            (F.I_STOP, self._begin + len(self._room)),
            (F.I_LIMIT, min(self._limit, INT64_MAX)),
            (F.I_BUDGET, self._budget),
        ):
            words[word // _WORD] = value
        run(address(words), 0, 0)
        if not words[F.I_GZIP // _WORD]:
            self._for_kernel.discard(GZIP)
        self._used = int(words[F.I_TARGET // _WORD]) - self._begin
        return int(words[F.I_FIRST // _WORD]), int(words[F.I_TOTAL // _WORD])

    def _ask_codec(self, todo: _Todo, row: int) -> int:
        """Inflate one batch; gives how many bytes it has then, 0 where it is refused."""
        begin, size = todo.positions[row] + HEADER_SIZE, todo.sizes[row] - HEADER_SIZE
        if todo.skipped[row] or not size:
            return 0
        number = todo.compressions[row]
        if not number:
            return size
        compression, data = COMPRESSIONS[number], self._data[begin : begin + size]
        bound = todo.bounds[row] if number == ZSTD and todo.bounds else None
        limit = self._limit
        if self._ratio is not None:
            limit = min(limit, self._ratio * todo.sizes[row])
        room = self._room[self._used : self._used + limit]
        size = inflate_into(compression, data, room, bound=bound)
        start = self._begin + self._used
        if size >= 0:
            self._used += size
        else:
            try:
                inflated = inflate(compression, bytes(data), magic=RECORD_BATCH, limit=limit)
            except RecordError:
                todo.refused.append(row)
                return 0
            self._beside.append(np.frombuffer(inflated, np.uint8))
            start, size = address(self._beside[-1]), len(inflated)
        todo.rows.append(row)
        todo.starts.append(start)
        todo.ends.append(start + size)
        return size


def _hold(table: Words, compressions: Words, ratio: int) -> None:
    """Refuse compressed batches beyond ``ratio`` times their bytes, and bound their records."""
    rows = np.flatnonzero(compressions)
    most = table[rows, L.B_SIZE // _WORD] * ratio
    is_beyond = table[rows, _END] - table[rows, _START] > most
    table[rows[is_beyond], _COUNT] = L.COUNT_REFUSED
    table[rows, _BUDGET] = np.minimum(table[rows, _BUDGET], most // OBJECT_COST)


def _zstd_bounds(table: Words) -> list[int]:
    """Give the bound of each zstd batch, at its row; none where there is no kernel."""
    run = kernel("bound_zstd")
    if run is None:
        return []
    bounds = np.zeros(len(table), np.int64)
    words = np.array([address(table), len(table), address(bounds)], np.int64)
    assert words.nbytes == F.BOUND  # noqa: S101 - of the layout, not of the input
    run(address(words), 0, 0)
    found: list[int] = bounds.tolist()
    return found
