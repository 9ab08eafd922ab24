"""Columns of a few texts that stand in many rows each, as a batch's compression in its records.

Spark takes no dictionaries, and bytes that are copied to every row cost as much as a key. Nearly
always all rows have the same text: then their column is a part of one that was made before.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from flexwire.columnar.buffers import MOST

if TYPE_CHECKING:
    from collections.abc import Iterable

    Words = np.ndarray[Any, Any]

# The rows of a column that is kept: more than a group of records of 64 bytes has.
_KEPT = 1 << 18


class Texts:
    """Texts that columns consist of, each told by its number."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._texts = [one.encode() for one in texts]
        self._longest = max(map(len, self._texts))
        self._columns: dict[int, tuple[int, pa.Buffer, pa.Buffer]] = {}

    def repeated(self, numbers: Words, counts: Words) -> pa.StringArray | pa.ChunkedArray:
        """Give a column with each text as often as its count says, chunked if one cannot hold it.

        >>> Texts(["none", "zstd"]).repeated(np.array([1, 0]), np.array([2, 1])).to_pylist()
        ['zstd', 'zstd', 'none']
        """
        rows, most = int(counts.sum()), MOST // self._longest
        if rows > most:
            each = np.repeat(numbers.astype(np.int8), counts)
            parts = (each[start : start + most] for start in range(0, rows, most))
            return pa.chunked_array([self.repeated(one, np.ones_like(one, int)) for one in parts])
        if not rows or (numbers == numbers[0]).all():
            return self._same(int(numbers[0]) if rows else 0, rows)
        return self._each.take(pa.array(np.repeat(numbers, counts)))

    @cached_property
    def _each(self) -> pa.StringArray:
        # `pyarrow.array` imports pandas where there is one, which takes longer than a first batch.
        ends = np.cumsum([0, *map(len, self._texts)], dtype=np.int32)
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(b"".join(self._texts))]
        return pa.Array.from_buffers(pa.string(), len(self._texts), buffers)

    def _same(self, number: int, rows: int) -> pa.StringArray:
        size = len(self._texts[number])
        made, ends, data = self._columns.get(number, (-1, None, None))
        if made < rows:
            # Twice what is asked for: the next batch may have a few rows more.
            made = max(rows, min(2 * rows, _KEPT))
            ends = pa.py_buffer(np.arange(made + 1, dtype=np.int32) * np.int32(size))
            data = pa.py_buffer(self._texts[number] * made)
            if made <= _KEPT:
                self._columns[number] = made, ends, data
        buffers = [None, ends.slice(0, 4 * rows + 4), data.slice(0, rows * size)]
        return pa.Array.from_buffers(pa.string(), rows, buffers)
