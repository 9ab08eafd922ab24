"""How often each number occurs, in bounded memory: what percentiles are taken from.

What is counted does not depend on the order in which parts are merged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.measures.runs import Words

MOST_DIFFERENT: Final = 10_000
"""So many different numbers are counted exactly; with more, all have four significant digits."""
_DIGITS = 4


def occurring(numbers: Words) -> tuple[Words, Words]:
    """Give the different numbers in order, and how often there is each."""
    if len(numbers) and numbers.min() >= 0 and numbers.max() <= 4 * len(numbers):
        # Sooner than sorting them.
        counts = np.bincount(numbers)
        different = np.flatnonzero(counts)
        return different, counts[different]
    return np.unique(numbers, return_counts=True)


@dataclass(slots=True)
class Counted:
    """The different ``values`` in order, and how often there is each."""

    values: Words = field(default_factory=lambda: np.zeros(0, np.int64))
    counts: Words = field(default_factory=lambda: np.zeros(0, np.int64))
    is_rounded: bool = False

    def add(self, values: Words, counts: Words) -> None:
        """Take in numbers, as `occurring` gives them."""
        self._unite(
            np.concatenate([self.values, values.astype(np.int64)]),
            np.concatenate([self.counts, counts.astype(np.int64)]),
        )
        # Once rounded, all that follows is: so the order of merging means nothing.
        self.is_rounded |= len(self.values) > MOST_DIFFERENT
        if self.is_rounded:
            self._unite(_rounded(self.values), self.counts)

    def merge(self, other: Counted) -> None:
        """Take in what was counted elsewhere."""
        self.is_rounded |= other.is_rounded
        self.add(other.values, other.counts)

    def at_ranks(self, ranks: Sequence[int]) -> Words:
        """Give the numbers at ranks, counted from 1 for the least."""
        found: Words = self.values[np.searchsorted(np.cumsum(self.counts), ranks)]
        return found

    @property
    def total(self) -> int:
        """How many numbers were counted."""
        return int(self.counts.sum())

    def _unite(self, values: Words, counts: Words) -> None:
        self.values, places = np.unique(values, return_inverse=True)
        self.counts = np.zeros(len(self.values), np.int64)
        np.add.at(self.counts, places, counts)


def _rounded(values: Words) -> Words:
    """Give numbers with four significant digits; those that have no more stay as they are."""
    sizes = np.abs(values)
    unit = np.ones(len(values), np.int64)
    while (is_longer := sizes // unit >= 10**_DIGITS).any():
        unit[is_longer] *= 10
    rounded: Words = np.sign(values) * ((sizes + unit // 2) // unit * unit)
    return rounded
