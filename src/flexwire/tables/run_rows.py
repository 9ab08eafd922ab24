"""Rows of which many, one after the other, share facts: those are kept once for each run of rows.

All records of a record batch have two dozen columns in common. To put these into every row takes
longer than decoding the records, and whoever reads the rows would look for the runs again.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    Words = np.ndarray[Any, Any]


@dataclass(frozen=True)
class RunRows:
    """Rows of a table with the columns of ``schema``.

    ``own`` has the columns that each row has for itself. ``facts`` has the others, once for each
    run, and ``counts`` how many rows are in each run, one at least.
    """

    schema: pa.Schema
    own: pa.RecordBatch
    facts: pa.RecordBatch
    counts: Words

    def __len__(self) -> int:
        return len(self.own)

    @cached_property
    def nbytes(self) -> int:
        """About how many bytes of memory the rows take."""
        return int(self.own.nbytes) + int(self.facts.nbytes)

    def batch(self) -> pa.RecordBatch:
        """Give the rows with their facts in each of them."""
        runs = pa.array(np.repeat(np.arange(len(self.counts)), self.counts))
        facts = self.facts.take(runs)
        columns = [
            self.own[name] if name in self.own.schema.names else facts[name]
            for name in self.schema.names
        ]
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def to_pylist(self) -> list[dict[str, Any]]:
        """Give the rows as objects."""
        rows: list[dict[str, Any]] = self.batch().to_pylist()
        return rows

    def slice(self, start: int, length: int | None = None) -> RunRows:
        """Give some of the rows, copying none."""
        stop = len(self) if length is None else min(len(self), start + length)
        ends = np.cumsum(self.counts)
        first, last = np.searchsorted(ends, [start, stop - 1], side="right")
        part = slice(int(first), int(last) + 1)
        counts = np.minimum(ends[part], stop) - np.maximum(ends[part] - self.counts[part], start)
        facts = self.facts.slice(part.start, part.stop - part.start)
        return RunRows(self.schema, self.own.slice(start, stop - start), facts, counts)

    @classmethod
    def joined(cls, rows: Sequence[RunRows]) -> RunRows:
        """Give the rows of some, which have the same columns."""
        return cls(
            rows[0].schema,
            pa.concat_batches([one.own for one in rows]),
            pa.concat_batches([one.facts for one in rows]),
            np.concatenate([one.counts for one in rows]),
        )


Rows: TypeAlias = pa.RecordBatch | RunRows
"""Rows of a table."""
