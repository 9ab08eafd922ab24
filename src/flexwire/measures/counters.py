"""What is counted in bounded memory: names, how often a number occurs, how many values differ.

What is counted does not depend on the order in which parts are merged. Of names so many are kept,
no longer than so long: those that come first in the alphabet. The others are counted as one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypeVar

import numpy as np

from flexwire.columnar import value_hash as L  # noqa: N812 - a word in front of some ten
from flexwire.kernels import load_kernel
from flexwire.measures.groups import changes

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    import pyarrow as pa

    from flexwire.measures.groups import Numbers


MOST_DIFFERENT: Final = 10_000
"""So many different numbers are counted exactly; with more, all have four significant digits."""
_DIGITS = 4


def occurring(numbers: Numbers) -> tuple[Numbers, Numbers]:
    """Give the different numbers in order, and how often there is each."""
    if len(numbers) and numbers.min() >= 0 and numbers.max() <= 4 * len(numbers):
        # Sooner than sorting them.
        counts = np.bincount(numbers)
        different = np.flatnonzero(counts)
        return different, counts[different]
    return np.unique(numbers, return_counts=True)


@dataclass(slots=True)
class ValueCounts:
    """The different ``values`` in order, and how often there is each."""

    values: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    counts: Numbers = field(default_factory=lambda: np.zeros(0, np.int64))
    is_rounded: bool = False

    def add(self, values: Numbers, counts: Numbers) -> None:
        """Take in numbers, as `occurring` gives them."""
        self._unite(
            np.concatenate([self.values, values.astype(np.int64)]),
            np.concatenate([self.counts, counts.astype(np.int64)]),
        )
        # Once rounded, all that follows is: so the order of merging means nothing.
        self.is_rounded |= len(self.values) > MOST_DIFFERENT
        if self.is_rounded:
            self._unite(_rounded(self.values), self.counts)

    def merge(self, other: ValueCounts) -> None:
        """Take in what was counted elsewhere."""
        self.is_rounded |= other.is_rounded
        self.add(other.values, other.counts)

    def at_ranks(self, ranks: Sequence[int]) -> Numbers:
        """Give the numbers at ranks, counted from 1 for the least."""
        found: Numbers = self.values[np.searchsorted(np.cumsum(self.counts), ranks)]
        return found

    @property
    def total(self) -> int:
        """How many numbers were counted."""
        return int(self.counts.sum())

    def _unite(self, values: Numbers, counts: Numbers) -> None:
        self.values, places = np.unique(values, return_inverse=True)
        self.counts = np.zeros(len(self.values), np.int64)
        np.add.at(self.counts, places, counts)


def _rounded(values: Numbers) -> Numbers:
    """Give numbers with four significant digits; those that have no more stay as they are."""
    sizes = np.abs(values)
    unit = np.ones(len(values), np.int64)
    while (is_longer := sizes // unit >= 10**_DIGITS).any():
        unit[is_longer] *= 10
    rounded: Numbers = np.sign(values) * ((sizes + unit // 2) // unit * unit)
    return rounded


LONGEST_NAME = 1000
"""Of a longer name so many characters are kept."""


class Mergeable(Protocol):
    """What is counted of one name."""

    def merge(self, other: Self) -> None:
        """Take in what was counted elsewhere."""


_Name = TypeVar("_Name", bound="Hashable")
_Counted = TypeVar("_Counted", bound=Mergeable)


def shortened(name: str) -> str:
    """A name that is not too long to be kept; the same names are the same afterwards."""
    return name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"


def prune(
    held: dict[_Name, _Counted],
    most: int,
    rest: Callable[[_Name], _Counted],
    *,
    order: Callable[[_Name], Any],
) -> None:
    """Keep ``most`` of the names held, and merge what was counted of each other into its rest."""
    if len(held) > most:
        for name in sorted(held, key=order)[most:]:
            rest(name).merge(held.pop(name))


def merge_all(
    held: dict[_Name, _Counted], others: dict[_Name, _Counted], make: Callable[[], _Counted]
) -> None:
    """Take in what was counted elsewhere, name by name; what ``others`` hold stays as it is."""
    for name, one in others.items():
        if name not in held:
            held[name] = make()
        held[name].merge(one)


_WORD = (1 << 64) - 1


def hash_of(value: bytes) -> int:
    """A hash of 64 bits, all of them even: the same in every process.

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
    """Give the hash of each value, and whether it is UTF-8; of a null anything."""
    hashing = load_kernel("hashing")
    if hashing is None:
        return _by_objects(values)
    rows = len(values)
    hashes, texts = np.zeros(rows, np.uint64), np.zeros(rows, np.bool_)
    if rows:
        _, offsets, data = values.buffers()
        at = np.frombuffer(offsets, np.int32)[values.offset :]
        # Nothing may have been allocated for values that are all empty.
        bytes_of = np.frombuffer(data or bytes(1), np.uint8)
        hashing.hash_values(bytes_of, at[: rows + 1], hashes, texts.view(np.uint8))
    return hashes, texts


def _by_objects(values: pa.BinaryArray) -> tuple[Numbers, Numbers]:
    encoded = values.dictionary_encode()
    different = encoded.dictionary.to_pylist() or [b""]
    codes = np.asarray(encoded.indices.fill_null(0))
    hashes = np.array([hash_of(one) for one in different], np.uint64)
    texts = np.array([_is_text(one) for one in different], np.bool_)
    return hashes[codes], texts[codes]


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


@dataclass(slots=True)
class DistinctCounter:
    """How many different values there are, from their hashes.

    The smallest hashes are kept. While all are, the number is exact; from then on it follows from
    how near to 0 they lie, and is off by about one part in the root of how many are kept.
    """

    hashes: Numbers = field(default_factory=lambda: np.zeros(0, np.uint64))
    is_cut: bool = False

    def add(self, hashes: Numbers, most: int) -> None:
        """Take in the hashes of values; ``most`` of all are kept."""
        if self.is_cut:
            hashes, most = hashes[hashes < self.hashes[-1]], min(most, len(self.hashes))
        if not len(hashes):
            return
        # Values that repeat mostly do so one after the other.
        self.hashes = _different(self.hashes, hashes[changes(hashes)])
        self.keep(most)

    def keep(self, most: int) -> None:
        """Keep at most so many from now on; never more than before."""
        if len(self.hashes) > most:
            self.hashes, self.is_cut = self.hashes[:most].copy(), True

    def merge(self, other: DistinctCounter, most: int) -> None:
        """Take in what was counted elsewhere."""
        for one in (self, other):
            if one.is_cut:
                # Beyond its last hash a part does not know them all.
                most = min(most, len(one.hashes))
        self.hashes = _different(self.hashes, other.hashes)
        self.is_cut |= other.is_cut
        self.keep(most)

    @property
    def count(self) -> int:
        """The number, an estimate where not all hashes were kept."""
        if not self.is_cut:
            return len(self.hashes)
        return round((len(self.hashes) - 1) * 2**64 / int(self.hashes[-1]))


def _different(some: Numbers, others: Numbers) -> Numbers:
    """Give the different numbers of both, in order."""
    both = np.concatenate([some, others])
    # Sooner than np.unique, which is made for numbers that repeat more.
    both.sort()
    return both[changes(both)]


class LengthCounts(ValueCounts):
    """How often each length occurs."""

    def add_all(self, lengths: Numbers) -> None:
        """Take in lengths, one for each time that it occurs."""
        if len(lengths):
            self.add(*occurring(lengths))

    @property
    def median(self) -> float | None:
        """The least length that half of all do not exceed, as Spark takes it."""
        if not len(self.values):
            return None
        return float(self.at_ranks([-(-self.total // 2)])[0])
