"""Count records and their bytes with a kernel, without creating columns.

With such sums, a `RecordReader` counts the records of the batches that its kernel reads. The reader
yields the records of batches that the kernel refuses, just as it does without sums. It also yields
the sums that were removed to make room for others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

import numpy as np
import pyarrow as pa

from flexwire.columnar.batch_table import BATCH
from flexwire.columnar.program import allocate, bits
from flexwire.columnar.record_columns import batch_fact
from flexwire.kernels import load_kernel

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flexwire.columnar.arrays import NumpyArray
    from flexwire.records import Record, RecordBatch


RECORDS: Final = "records"
KEY_SIZE, VALUE_SIZE = "key_size", "value_size"
KEY_BYTES, VALUE_BYTES = "key_bytes", "value_bytes"
# The number of sums (a power of two) at which the sums are taken out. This many sums and their
# index fit into the cache of a core.
_MOST: Final = 1 << 14
# The largest number of kinds of batches whose facts are held. Beyond this number, the sums are
# taken out.
_MOST_FACTS: Final = 4096
_FACTS: Final = {
    "compression": "attributes",
    "is_transactional": "attributes",
    "partition_leader_epoch": "partition_leader_epoch",
    "producer_id": "producer_id",
    "producer_epoch": "producer_epoch",
}


SUM: Final = np.dtype(
    [(name, np.int64) for name in ("fact", KEY_SIZE, VALUE_SIZE, RECORDS, KEY_BYTES, VALUE_BYTES)]
)
"""A sum: the number of the common facts of its batches, the sizes of key and value as a record
stores them (twice the size, or 1 for null; 0 if sums do not distinguish sizes), the number of
records, and the bytes of their keys and values.
"""


class RecordCounter(Protocol):
    """Anything into which a `RecordReader` can count records without yielding them."""

    @property
    def has_room(self) -> bool:
        """True if there is room for more sums. If there is none, `take` must be called first."""

    def want(self, limits: tuple[int, int, int, int], *, check_crc: bool) -> None:
        """Set which records are counted, by the lowest and highest offset and timestamp."""

    def read(self, batches: NumpyArray, first: int, data: NumpyArray) -> tuple[int, bool]:
        """Count a table's batches, starting at ``first``, as `RecordColumnBuilder.read` does."""

    def counted(self, batches: NumpyArray, first: int) -> None:
        """Add the table's finished batches, starting with row ``first``."""

    def add(self, batch: RecordBatch, records: Sequence[Record]) -> bool:
        """Add a batch that the kernel refused. Return False if the records must be yielded."""

    def take(self) -> pa.RecordBatch:
        """Return the counts, and start over from zero."""


class RecordSizeSums:
    """Sums of records, grouped by the sizes of keys and values and by facts about the batches.

    ``groups`` contains `KEY_SIZE`, `VALUE_SIZE` and names of facts in `BATCH_COLUMNS`.
    """

    def __init__(self, groups: Iterable[str]) -> None:
        self._groups = tuple(groups)
        self._facts = [name for name in self._groups if name not in {KEY_SIZE, VALUE_SIZE}]
        self._header_facts = sorted({_FACTS[name] for name in self._facts if name in _FACTS})
        self._numbers: dict[bytes, int] = {}
        self._batches: list[NumpyArray] = []
        self._sums: NumpyArray = allocate(_MOST * SUM.itemsize).view(SUM)
        index = allocate(2 * _MOST * 8)
        index[:] = 0
        by_key, by_value = (name in self._groups for name in (KEY_SIZE, VALUE_SIZE))
        room = load_kernel("record_sums")
        self._run = room and room.RecordSummer(self._sums, index, by_key, by_value)

    @property
    def has_room(self) -> bool:
        """True if there is room for more kinds of batches.

        If there is none, `take` must be called first.
        """
        return len(self._batches) < _MOST_FACTS

    def want(self, limits: tuple[int, int, int, int], *, check_crc: bool) -> None:
        """Set which records are counted, by the lowest and highest offset and timestamp."""
        if self._run is not None:
            self._run.want(limits, check_crc)

    def read(self, batches: NumpyArray, first: int, data: NumpyArray) -> tuple[int, bool]:
        """Count a table's batches, starting at ``first``, as `RecordColumnBuilder.read` does."""
        self._tell(batches[first:])
        stopped: tuple[int, bool] = self._run.read(batches, first, data)
        return stopped

    def _tell(self, batches: NumpyArray) -> None:
        """Number batches by the facts that distinguish them."""
        columns = [batches[name] for name in self._header_facts]
        facts = np.stack(columns, axis=1) if columns else None
        begins: NumpyArray = np.zeros(0, int)
        if facts is not None:
            begins = np.flatnonzero((facts[1:] != facts[:-1]).any(axis=1)) + 1
        starts = np.concatenate([[0], begins])
        numbers = [
            self._number(batches[row], b"" if facts is None else facts[row].tobytes())
            for row in starts.tolist()
        ]
        ends = np.append(begins, len(batches))
        batches["piece"] = np.repeat(numbers, ends - starts)

    def _number(self, batch: NumpyArray, facts: bytes) -> int:
        number = self._numbers.setdefault(facts, len(self._batches))
        if number == len(self._batches):
            self._batches.append(batch.copy())
        return number

    def counted(self, batches: NumpyArray, first: int) -> None:
        """Do nothing, because the sums already include these batches."""

    def add(self, batch: RecordBatch, records: Sequence[Record]) -> bool:  # noqa: ARG002 - `RecordCounter` requires these arguments
        """Return False, because batches that were read as objects are not counted here."""
        return False

    def take(self) -> pa.RecordBatch:
        """Return the sums so far, and start over: the groups, `RECORDS` and the sums of bytes."""
        sums = self._sums[: 0 if self._run is None else self._run.used]
        columns = self._columns(sums[sums[RECORDS] != 0])
        if self._run is not None:
            self._run.clear()
        self._numbers.clear()
        self._batches.clear()
        return pa.RecordBatch.from_pydict(columns)

    def _columns(self, sums: NumpyArray) -> dict[str, pa.Array]:
        columns: dict[str, pa.Array] = {}
        for name in (KEY_SIZE, VALUE_SIZE):
            if name in self._groups:
                columns[name] = _sizes(sums[name])
        if self._facts:
            kinds = np.array(self._batches, BATCH)
            rows = pa.array(sums["fact"])
            columns |= {name: batch_fact(name, kinds).take(rows) for name in self._facts}
        for name in (RECORDS, KEY_BYTES, VALUE_BYTES):
            columns[name] = pa.array(np.ascontiguousarray(sums[name]))
        return columns


def is_sums(batch: pa.RecordBatch) -> bool:
    """Return whether a batch from a reader contains sums rather than records."""
    return RECORDS in batch.schema.names


def _sizes(raw: NumpyArray) -> pa.Array:
    """Return sizes from their form in records, which is twice the size, or 1 for null."""
    is_null = raw & 1 != 0
    sizes = np.where(is_null, 0, raw >> 1).astype(np.int32)
    valid = bits(~is_null) if is_null.any() else None
    return pa.Array.from_buffers(pa.int32(), len(sizes), [valid, pa.py_buffer(sizes)])
