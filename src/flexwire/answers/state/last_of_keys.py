"""The last record of each key, of batch after batch: what of a log is left for Spark to fold.

A coordinator writes the same keys again and again, and Spark, which sorts what it groups by text,
takes four times as long for a row as reading and decoding it. So a task leaves out what a later
record replaces before it decodes any, as compaction would. It looks at many batches together, as
those of one often have a key each, and it holds `MOST_BYTES` at most beside one batch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FIRST_ROWS: Final = 1 << 15
"""So many rows are looked at together at least, but at the end."""

MOST_BYTES: Final = 64 << 20

_GIVEN_ROWS: Final = 1 << 14
# Where there are few to leave out, looking for them takes its time for nothing.
_MOST_LEFT: Final = 0.75


def last_of_keys(
    batches: Iterable[pa.RecordBatch], key: str, value: str
) -> Iterator[pa.RecordBatch]:
    """Leave out rows that a later one with the same ``key`` replaces.

    No key loses its last row, nor its last tombstone, whose ``value`` is null: a tombstone also
    removes what transactions wrote before it, which no later row does. More rows of a key may be
    left. The rows stay in their order.
    """
    rest = iter(batches)
    held = _Held(key, value)
    for batch in rest:
        if batch.nbytes >= MOST_BYTES:
            yield from held.given()
            yield batch
            continue
        held.take(batch)
        if held.is_full:
            is_worth_it = held.rows < _MOST_LEFT * held.seen
            yield from held.given()
            if not is_worth_it:
                break
    yield from held.given()
    yield from rest


class _Held:
    """Rows that nothing replaces yet, and those that came since this was looked at.

    Attributes:
        rows: how many there are.
        seen: of how many they are left.
    """

    def __init__(self, key: str, value: str) -> None:
        self.rows = self.seen = 0
        self._key, self._value = key, value
        self._batches: list[pa.RecordBatch] = []
        self._bytes = 0
        self._is_compact = True
        # Twice as many as were left, so that each row is looked at twice in the mean.
        self._enough = FIRST_ROWS

    def take(self, batch: pa.RecordBatch) -> None:
        self._batches.append(batch)
        self.rows += batch.num_rows
        self.seen += batch.num_rows
        self._bytes += batch.nbytes
        self._is_compact = False
        if self.rows >= self._enough or self._bytes >= MOST_BYTES:
            self._compact()

    @property
    def is_full(self) -> bool:
        """Whether what is left is so much that little more could be held."""
        return self._is_compact and self._bytes >= MOST_BYTES // 2

    def given(self) -> Iterator[pa.RecordBatch]:
        """Give what is left, and hold no more of it."""
        if self._batches:
            self._compact()
            [left] = self._batches
            self.__init__(self._key, self._value)  # type: ignore[misc] # as if nothing had come
            for first in range(0, left.num_rows, _GIVEN_ROWS):
                yield left.slice(first, _GIVEN_ROWS)

    def _compact(self) -> None:
        rows = pa.concat_batches(self._batches)
        coded = rows.column(self._key).dictionary_encode("encode")
        codes, values = np.asarray(coded.indices), rows.column(self._value)
        last = np.zeros(len(coded.dictionary), np.int64)
        # Of several values for one place numpy keeps the last.
        last[codes] = np.arange(len(coded))
        if values.null_count:
            deleted = np.flatnonzero(values.is_null().to_numpy(zero_copy_only=False))
            gone = last.copy()
            gone[codes[deleted]] = deleted
            last = np.union1d(last, gone)
        left = rows if len(last) == len(coded) else rows.take(pa.array(np.sort(last)))
        self._batches, self.rows, self._bytes = [left], left.num_rows, left.nbytes
        self._enough = max(FIRST_ROWS, 2 * left.num_rows)
        self._is_compact = True
