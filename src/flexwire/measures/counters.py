"""Counters for names, occurrences of numbers, and distinct values, all in limited memory.

The result does not depend on the order in which parts are merged. A limited number of names is kept
(the first in alphabetical order), each cut to a limited length. All other names share one counter.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeVar

import numpy as np

from flexwire.columnar import value_hash as L  # noqa: N812 - a prefix for about ten constants
from flexwire.kernels import load_kernel
from flexwire.measures.groups import changes

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    import pyarrow as pa

    from flexwire.measures.groups import Numbers


MOST_DIFFERENT: Final = 10_000
"""Up to this many different numbers are counted exactly. Above this limit, numbers are rounded to
four significant digits.
"""
_DIGITS = 4


def occurring(numbers: Numbers) -> tuple[Numbers, Numbers]:
    """Return the different numbers in order, and how often each occurs."""
    if len(numbers) and numbers.min() >= 0 and numbers.max() <= 4 * len(numbers):
        # This method is faster than sorting.
        counts = np.bincount(numbers)
        different = np.flatnonzero(counts)
        return different, counts[different]
    return np.unique(numbers, return_counts=True)


@dataclass(slots=True)
class ValueCounts:
    """The different ``values`` in order, and how often each occurs."""

    values: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    counts: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    is_rounded: bool = False

    def add(self, values: Numbers, counts: Numbers) -> None:
        """Add numbers, in the form that `occurring` returns."""
        self._unite(
            np.concatenate([self.values, values.astype(np.int64)]),
            np.concatenate([self.counts, counts.astype(np.int64)]),
        )
        # Once numbers have been rounded, all later numbers are also rounded, so the order of
        # merging does not matter.
        self.is_rounded |= len(self.values) > MOST_DIFFERENT
        if self.is_rounded:
            self._unite(_rounded(self.values), self.counts)

    def merge(self, other: ValueCounts) -> None:
        """Add the counts of another counter."""
        self.is_rounded |= other.is_rounded
        self.add(other.values, other.counts)

    def at_ranks(self, ranks: Sequence[int]) -> Numbers:
        """Return the numbers at these ranks. Rank 1 is the smallest number."""
        numbers: Numbers = self.values[np.searchsorted(np.cumsum(self.counts), ranks)]
        return numbers

    @property
    def total(self) -> int:
        """The total number of numbers that were counted."""
        return int(self.counts.sum())

    def _unite(self, values: Numbers, counts: Numbers) -> None:
        self.values, places = np.unique(values, return_inverse=True)
        self.counts = np.zeros(len(self.values), np.int64)
        np.add.at(self.counts, places, counts)


def _rounded(values: Numbers) -> Numbers:
    """Return numbers rounded to four significant digits. Shorter numbers do not change."""
    sizes = np.abs(values)
    unit = np.ones(len(values), np.int64)
    while (is_longer := sizes // unit >= 10**_DIGITS).any():
        unit[is_longer] *= 10
    rounded: Numbers = np.sign(values) * ((sizes + unit // 2) // unit * unit)
    return rounded


LONGEST_NAME = 1000
"""Longer names are cut to this many characters."""


class Mergeable(Protocol):
    """The counts for one name."""

    def merge(self, other: Self) -> None:
        """Add the counts of another counter."""


_Name = TypeVar("_Name", bound="Hashable")
_Counted = TypeVar("_Counted", bound=Mergeable)


def shortened(name: str) -> str:
    """Return a name that is short enough to keep. Equal names remain equal."""
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"


def prune(
    counted: dict[_Name, _Counted],
    most: int,
    rest: Callable[[_Name], _Counted],
    *,
    order: Callable[[_Name], Any],
) -> None:
    """Keep ``most`` names, and merge the counts of all other names into ``rest``."""
    if len(counted) > most:
        for name in sorted(counted, key=order)[most:]:
            rest(name).merge(counted.pop(name))


def merge_all(
    counted: dict[_Name, _Counted], others: dict[_Name, _Counted], make: Callable[[], _Counted]
) -> None:
    """Add the counts of ``others`` name by name, without changing ``others``."""
    for name, counts in others.items():
        if name not in counted:
            counted[name] = make()
        counted[name].merge(counts)


_WORD = (1 << 64) - 1


def hash_of(value: bytes) -> int:
    """Return an evenly distributed 64-bit hash. The hash is the same in every process.

    >>> hash_of(b"") == 0, 0 < hash_of(b"a") < 2**64
    (True, True)
    """
    code = len(value) * L.TAKE & _WORD
    for place in range(0, len(value), 8):
        word = int.from_bytes(value[place : place + 8], "little")
        code = (code ^ word) * L.TAKE & _WORD
        code ^= code >> L.TAKE_SHIFT
    for mix in (L.FIRST_MIX, L.SECOND_MIX):
        code = (code ^ code >> L.MIX_SHIFT) * mix & _WORD
    return code ^ code >> L.MIX_SHIFT


def hashes_and_texts(values: pa.BinaryArray) -> tuple[Numbers, Numbers]:
    """Return the hash of each value, and whether it is UTF-8. For null, the result is arbitrary."""
    hashing = load_kernel("hashing")
    if hashing is None:
        return _by_objects(values)
    rows = len(values)
    hashes, texts = np.zeros(rows, np.uint64), np.zeros(rows, np.bool_)
    if rows:
        _, offsets, data = values.buffers()
        at = np.frombuffer(offsets, np.int32)[values.offset :]
        # If all values are empty, there may be no buffer.
        bytes_of = np.frombuffer(data or bytes(1), np.uint8)
        hashing.hash_values(bytes_of, at[: rows + 1], hashes, texts.view(np.uint8))
    return hashes, texts


def _by_objects(values: pa.BinaryArray) -> tuple[Numbers, Numbers]:
    encoded = values.dictionary_encode()
    different = encoded.dictionary.to_pylist() or [b""]
    codes = np.asarray(encoded.indices.fill_null(0))
    hashes = np.array([hash_of(value) for value in different], np.uint64)
    texts = np.array([_is_text(value) for value in different], np.bool_)
    return hashes[codes], texts[codes]


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


@dataclass(slots=True)
class DistinctCounter:
    """A count of distinct values, computed from their hashes.

    Only the smallest hashes are kept. As long as all hashes are kept, the count is exact.
    Otherwise, it is estimated from how close the kept hashes are to 0. The relative error is about
    1 divided by the square root of the number of kept hashes.
    """

    hashes: Numbers = field(default_factory=lambda: np.zeros(0, np.uint64))
    is_cut: bool = False

    def add(self, hashes: Numbers, most: int) -> None:
        """Add the hashes of values. At most ``most`` hashes are kept."""
        if self.is_cut:
            hashes, most = hashes[hashes < self.hashes[-1]], min(most, len(self.hashes))
        if not len(hashes):
            return
        # Equal values are usually adjacent.
        self.hashes = _different(self.hashes, hashes[changes(hashes)])
        self.keep(most)

    def keep(self, most: int) -> None:
        """Keep at most ``most`` hashes, now and later, and never more than before."""
        if len(self.hashes) > most:
            self.hashes, self.is_cut = self.hashes[:most].copy(), True

    def merge(self, other: DistinctCounter, most: int) -> None:
        """Add the values of another counter."""
        for part in (self, other):
            if part.is_cut:
                # A part does not know all hashes beyond the last one that it kept.
                most = min(most, len(part.hashes))
        self.hashes = _different(self.hashes, other.hashes)
        self.is_cut |= other.is_cut
        self.keep(most)

    @property
    def count(self) -> int:
        """The count, which is an estimate if not all hashes were kept."""
        if not self.is_cut:
            return len(self.hashes)
        return round((len(self.hashes) - 1) * 2**64 / int(self.hashes[-1]))


def _different(some: Numbers, others: Numbers) -> Numbers:
    """Return the distinct numbers in either array, in order."""
    both = np.concatenate([some, others])
    # This method is faster than np.unique, which is better for numbers that repeat often.
    both.sort()
    return both[changes(both)]


class LengthCounts(ValueCounts):
    """A count for each length."""

    def add_all(self, lengths: Numbers) -> None:
        """Add lengths. A length that occurs several times counts several times."""
        if len(lengths):
            self.add(*occurring(lengths))

    @property
    def median(self) -> float | None:
        """The smallest length that at least half of all lengths do not exceed, as in Spark."""
        if not len(self.values):
            return None
        return float(self.at_ranks([-(-self.total // 2)])[0])
