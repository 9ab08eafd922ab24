"""What the records of compressed batches take, and the allowance that a part of a capture has.

The count depends on nothing but rows of the table of records. So it is the same whoever made these
rows, in whatever order, and however a batch's rows are cut.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.records.inflation import BEYOND, RECORD_COST
from flexwire.records.record import Compression
from flexwire.tables.records import RunRows
from flexwire.wire.batch_layout import COMPRESSION_MASK

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from flexwire.records.inflation import Inflation
    from flexwire.tables.records import Rows

    Words = np.ndarray[Any, Any]

PLAIN: Final = str(Compression.NONE.value)


class BeyondAllowanceError(Exception):
    """The batches take more than they are allowed; they are to be read again, each held."""


class InflationMeter:
    """Counts what compressed batches take, and bounds them once they take more than allowed.

    ``captured`` bytes are what the batches were captured in.
    """

    def __init__(self, inflation: Inflation, captured: int) -> None:
        self._given = inflation
        self._left = inflation.allowance(captured)

    @property
    def is_beyond(self) -> bool:
        """Whether the batches took more than allowed, and are to be read again, each held."""
        return self._left < 0 and not self._given.is_held

    @property
    def inflation(self) -> Inflation:
        """What the next batch may inflate to."""
        return self._given.held() if self.is_beyond else self._given

    def add(self, rows: Rows) -> None:
        """Count rows of the table of records."""
        self.take(inflated_bytes(rows, self._given.max_inflated))

    def take(self, size: int) -> None:
        """Count so many bytes."""
        self._left -= size

    def check(self) -> None:
        """Raise `BeyondAllowanceError` where the batches are to be read again."""
        if self.is_beyond:
            raise BeyondAllowanceError


def within_allowance(inflation: Inflation, write: Callable[[Inflation], None]) -> None:
    """Have something written; where its batches take too much, written again with each held.

    ``write`` raises `BeyondAllowanceError` then, and starts anew when it is called again.
    """
    try:
        write(inflation)
    except BeyondAllowanceError:
        write(inflation.held())


def inflated_bytes(rows: Rows, max_inflated: int) -> int:
    """Return how many bytes the records take that stand compressed in rows of their table.

    These are the bytes of keys, values and record headers, and `RECORD_COST` more for each record
    and record header. A batch that does not read counts as ``max_inflated``: nobody knows how far
    it was inflated.
    """
    if not len(rows):
        return 0
    facts, own, counts = _runs(rows)
    is_packed = _flags(pc.not_equal(facts["compression"], pa.scalar(PLAIN)))
    if not is_packed.any():
        return 0
    is_wrong = _flags(facts["error"].is_valid())
    ends = np.cumsum(counts)
    bounds = np.stack([ends - counts, ends])
    size = RECORD_COST * counts
    for name in ("key", "value"):
        size += np.diff(_offsets(own[name])[bounds], axis=0)[0]
    of_headers = _offsets(own["headers"])[bounds]
    size += RECORD_COST * np.diff(of_headers, axis=0)[0]
    pairs = own["headers"].values
    for name in ("key", "value"):
        size += np.diff(_offsets(pairs.field(name))[of_headers], axis=0)[0]
    read = int(size[is_packed & ~is_wrong].sum())
    return read + max_inflated * int(counts[is_packed & is_wrong].sum())


def digested_bytes(digests: Mapping[str, Words]) -> int:
    """Return how many bytes compressed batches took of which these are digests of `BatchDigests`.

    These are the bytes of the batches without compression, and `RECORD_COST` more for each record
    and record header.
    """
    size = digests["uncompressed_size"].copy()
    for name in ("records", "record_headers"):
        size += RECORD_COST * digests[name]
    return int(size[digests["attributes"] & COMPRESSION_MASK != 0].sum())


def beyond(rows: Rows) -> int:
    """Return how many rows are batches that inflate beyond a bound, as their ``error`` says."""
    facts, _, counts = _runs(rows)
    if facts["error"].null_count == len(facts):
        return 0
    return int(counts[_flags(pc.match_substring(facts["error"], BEYOND))].sum())


def _runs(rows: Rows) -> tuple[pa.RecordBatch, pa.RecordBatch, Words]:
    if isinstance(rows, RunRows):
        return rows.facts, rows.own, rows.counts
    return rows, rows, np.ones(len(rows), np.int64)


def _flags(flags: pa.BooleanArray) -> Words:
    """Return flags as an array; a null is False."""
    values: Words = flags.fill_null(fill_value=False).to_numpy(zero_copy_only=False)
    return values


def _offsets(lists: pa.Array) -> Words:
    """Return where each list or value of bytes begins, and where the last one ends."""
    if not len(lists):
        return np.zeros(1, np.int64)
    offsets = np.frombuffer(lists.buffers()[1], np.int32)[lists.offset :]
    return offsets[: len(lists) + 1].astype(np.int64)
