"""Records counted by a kernel, which makes no columns of them: how many they are, and their bytes.

A `RecordReader` that is given such sums counts what its kernel takes, and gives the records of what
that refuses, as it does without sums. Of the sums it gives those that had to make room for others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol

import numpy as np
import pyarrow as pa

from flexwire.columnar.program import address, allocate, bits
from flexwire.columnar.record_columns import batch_fact, take_batches
from flexwire.kernels.records import columns_layout as L  # noqa: N812 - a word in front of some ten
from flexwire.kernels.records import summing_layout as S  # noqa: N812 - as L is one

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flexwire.records import Record, RecordBatch

    Words = np.ndarray[Any, Any]

RECORDS: Final = "records"
KEY_SIZE, VALUE_SIZE = "key_size", "value_size"
KEY_BYTES, VALUE_BYTES = "key_bytes", "value_bytes"
_WORD: Final = 8
# Sums are taken when there are so many, a power of two: with their index they fit into a core's
# cache.
_MOST: Final = 1 << 14
# Facts of so many kinds of batches are held before the sums are taken.
_MOST_FACTS: Final = 4096
_FACT_WORDS: Final = {
    "compression": L.B_ATTRIBUTES,
    "is_transactional": L.B_ATTRIBUTES,
    "partition_leader_epoch": L.B_EPOCH,
    "producer_id": L.B_PRODUCER,
    "producer_epoch": L.B_PRODUCER_EPOCH,
}


class Counting(Protocol):
    """What a `RecordReader` counts records into by a ``kernel``, instead of giving them."""

    kernel: ClassVar[str]
    words: Words

    @property
    def has_room(self) -> bool:
        """Whether more can be counted before what was is taken."""

    def begin(self, batches: Words, first: int, data: Words, *, check: bool) -> None:
        """Have batches of a table counted, from the first on."""

    def get(self, word: int) -> int:
        """Give a word of the run."""

    def counted(self, batches: Words, first: int) -> None:
        """Hear which batches of the table were done with, and in which row they begin."""

    def add(self, batch: RecordBatch, records: Sequence[Record]) -> bool:
        """Take in a batch that the kernel refused; False where its records are to be given."""

    def take(self) -> pa.RecordBatch:
        """Give what was counted, and begin anew."""


class RecordSums:
    """Sums of records that the sizes of keys and values tell apart, and facts of their batches.

    ``groups`` names `KEY_SIZE`, `VALUE_SIZE` and facts of `BATCH_COLUMNS`.
    """

    kernel: ClassVar = "sum_records"

    def __init__(self, groups: Iterable[str]) -> None:
        self._groups = tuple(groups)
        self._facts = [one for one in self._groups if one not in {KEY_SIZE, VALUE_SIZE}]
        told = {_FACT_WORDS[one] // _WORD for one in self._facts if one in _FACT_WORDS}
        self._told = sorted(told)
        self._numbers: dict[bytes, int] = {}
        self._batches: list[Words] = []
        self._sums = allocate(_MOST * S.SUM).view(np.int64).reshape(_MOST, -1)
        self._index = allocate(2 * _MOST * _WORD).view(np.int64)
        self._index[:] = 0
        self.words = np.zeros(S.SUMMING // _WORD, np.int64)
        for word, value in (
            (S.T_SUMS, address(self._sums)),
            (S.T_CAPACITY, _MOST),
            (S.T_INDEX, address(self._index)),
            (S.T_MASK, len(self._index) - 1),
            (S.T_BY_KEY, -(KEY_SIZE in self._groups)),
            (S.T_BY_VALUE, -(VALUE_SIZE in self._groups)),
        ):
            self.words[word // _WORD] = value

    @property
    def has_room(self) -> bool:
        """Whether more kinds of batches can be told apart; else the sums are to be taken first."""
        return len(self._batches) < _MOST_FACTS

    def begin(self, batches: Words, first: int, data: Words, *, check: bool) -> None:
        """Have batches of a table counted, from the first on; ``check`` their crcs too."""
        take_batches(self.words, batches, first, data, check=check)
        self._tell(batches[first:])

    def _tell(self, batches: Words) -> None:
        """Number batches by the facts that tell them apart."""
        facts = batches[:, self._told]
        begins = np.flatnonzero((facts[1:] != facts[:-1]).any(axis=1)) + 1
        starts = np.concatenate([[0], begins])
        numbers = [self._number(batches[one], facts[one].tobytes()) for one in starts.tolist()]
        ends = np.append(begins, len(batches))
        batches[:, L.B_PIECE // _WORD] = np.repeat(numbers, ends - starts)

    def _number(self, batch: Words, facts: bytes) -> int:
        number = self._numbers.setdefault(facts, len(self._batches))
        if number == len(self._batches):
            self._batches.append(batch.copy())
        return number

    def get(self, word: int) -> int:
        """Give a word of the run."""
        return int(self.words[word // _WORD])

    def counted(self, batches: Words, first: int) -> None:
        """Do nothing: all is in the sums."""

    def add(self, batch: RecordBatch, records: Sequence[Record]) -> bool:  # noqa: ARG002 - see `Counting`
        """Take nothing in."""
        return False

    def take(self) -> pa.RecordBatch:
        """Give the sums so far, and begin anew: the groups, `RECORDS` and the sums of bytes."""
        used = self.get(S.T_USED)
        sums = self._sums[:used]
        sums = sums[sums[:, S.U_RECORDS // _WORD] != 0]
        columns = self._columns(sums)
        self._index[:] = 0
        self.words[S.T_USED // _WORD] = 0
        self._numbers.clear()
        self._batches.clear()
        return pa.RecordBatch.from_pydict(columns)

    def _columns(self, sums: Words) -> dict[str, pa.Array]:
        columns: dict[str, pa.Array] = {}
        for name, word in ((KEY_SIZE, S.U_KEY), (VALUE_SIZE, S.U_VALUE)):
            if name in self._groups:
                columns[name] = _sizes(sums[:, word // _WORD])
        if self._facts:
            kinds = np.array(self._batches, np.int64).reshape(-1, L.BATCH // _WORD)
            rows = pa.array(sums[:, S.U_FACT // _WORD])
            columns |= {name: batch_fact(name, kinds).take(rows) for name in self._facts}
        for name, word in (
            (RECORDS, S.U_RECORDS),
            (KEY_BYTES, S.U_KEY_BYTES),
            (VALUE_BYTES, S.U_VALUE_BYTES),
        ):
            columns[name] = pa.array(np.ascontiguousarray(sums[:, word // _WORD]))
        return columns


def is_sums(batch: pa.RecordBatch) -> bool:
    """Whether a reader gave sums, and not records."""
    return RECORDS in batch.schema.names


def _sizes(raw: Words) -> pa.Array:
    """Give sizes from what stands on the wire: twice the size, or 1 for null."""
    is_null = raw & 1 != 0
    sizes = np.where(is_null, 0, raw >> 1).astype(np.int32)
    valid = bits(~is_null) if is_null.any() else None
    return pa.Array.from_buffers(pa.int32(), len(sizes), [valid, pa.py_buffer(sizes)])
