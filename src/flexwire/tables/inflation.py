"""The memory that decompressed batches occupy, and how much a task may use.

The measure depends only on the rows in the table of records. It therefore does not matter which
code built these rows, in which order, or how the rows of a batch are divided.
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
    """The batches exceed the allowance and must be read again with a limit for each batch."""


class InflationMeter:
    """Add up the inflated bytes of batches. Limit each batch as soon as the sum is too large.

    ``captured`` is the number of bytes captured for the batches.
    """

    def __init__(self, inflation: Inflation, captured: int) -> None:
        self._inflation = inflation
        self._left = inflation.allowance(captured)

    @property
    def is_beyond(self) -> bool:
        """True if the batches exceed the allowance and must be read again with a limit for each."""
        return self._left < 0 and not self._inflation.is_held

    @property
    def inflation(self) -> Inflation:
        """The limits for the next batch that is read."""
        return self._inflation.held() if self.is_beyond else self._inflation

    def add(self, rows: Rows) -> None:
        """Count rows of the table of records."""
        self.take(inflated_bytes(rows, self._inflation.max_inflated))

    def take(self, size: int) -> None:
        """Count the given number of bytes."""
        self._left -= size

    def check(self) -> None:
        """Raise `BeyondAllowanceError` if the batches must be read again."""
        if self.is_beyond:
            raise BeyondAllowanceError


def within_allowance(inflation: Inflation, write: Callable[[Inflation], None]) -> None:
    """Write something. If the batches are too large, write it again with a limit for each batch.

    If the batches exceed the allowance, ``write`` raises `BeyondAllowanceError` and is called a
    second time, to start from the beginning.
    """
    try:
        write(inflation)
    except BeyondAllowanceError:
        write(inflation.held())


def inflated_bytes(rows: Rows, max_inflated: int) -> int:
    """Return how many bytes the records of compressed batches take.

    The sum consists of the bytes of keys, values and record headers, plus `RECORD_COST` for each
    record and record header. A batch that cannot be read counts as ``max_inflated`` bytes, because
    its inflated size is unknown.
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
    """Return how many bytes compressed batches took when inflated, from digests of `BatchDigests`.

    The sum consists of the uncompressed bytes of the batches, plus `RECORD_COST` for each record
    and record header.
    """
    size = digests["uncompressed_size"].copy()
    for name in ("records", "record_headers"):
        size += RECORD_COST * digests[name]
    return int(size[digests["attributes"] & COMPRESSION_MASK != 0].sum())


def beyond(rows: Rows) -> int:
    """Count the rows for batches whose ``error`` states that they inflate beyond a limit."""
    facts, _, counts = _runs(rows)
    if facts["error"].null_count == len(facts):
        return 0
    return int(counts[_flags(pc.match_substring(facts["error"], BEYOND))].sum())


def _runs(rows: Rows) -> tuple[pa.RecordBatch, pa.RecordBatch, Words]:
    if isinstance(rows, RunRows):
        return rows.facts, rows.own, rows.counts
    return rows, rows, np.ones(len(rows), np.int64)


def _flags(flags: pa.BooleanArray) -> Words:
    """Return flags as an array, with False for null."""
    values: Words = flags.fill_null(fill_value=False).to_numpy(zero_copy_only=False)
    return values


def _offsets(lists: pa.Array) -> Words:
    """Return where each list or bytes value begins, and where the last one ends."""
    if not len(lists):
        return np.zeros(1, np.int64)
    offsets = np.frombuffer(lists.buffers()[1], np.int32)[lists.offset :]
    return offsets[: len(lists) + 1].astype(np.int64)
