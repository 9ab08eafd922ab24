"""How many frames there are of each reason, where reasons differ in their figures."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from flexwire.measures.groups import Groups, Key

DIFFERENT_REASONS = 200
"""So many reasons are in the report, the most frequent ones."""

_FIGURES = re.compile(r"[0-9]+")
_MOST_KEPT = 10_000


class ReasonCounts:
    """How many rows there are of each reason, and of whatever else they are told apart by.

    Reasons that are alike but for their figures are one, which has "…" for these unless they were
    the same each time. A capture can make up as many as it likes: when there are twice
    ``most``, the rarest are only counted, in ``uncounted``.
    """

    def __init__(self, most: int = _MOST_KEPT) -> None:
        self._most = most
        # By everything else and the reason without figures: how many, and the reason if it is one.
        self._counts: dict[Key, tuple[int, str | None]] = {}
        self.uncounted = 0

    def add(self, groups: Groups) -> None:
        """Add rows in groups, the last column of which is the reason."""
        for (*others, told), count in zip(groups.values(), groups.counts(), strict=True):
            reason: str = told or ""
            self._add((*others, _FIGURES.sub("…", reason)), count, reason)
        self._prune()

    def merge(self, other: ReasonCounts) -> None:
        """Add what another one has."""
        for key, (count, reason) in other._counts.items():
            self._add(key, count, reason)
        self.uncounted += other.uncounted
        self._prune()

    def most_frequent(self) -> tuple[list[tuple[Key, str, int]], int]:
        """Give everything else, the reason and how many, the most frequent first, and the rest."""
        ordered = sorted(map(_told, self._counts.items()), key=_order)
        rest = sum(count for _, _, count in ordered[DIFFERENT_REASONS:])
        return ordered[:DIFFERENT_REASONS], rest + self.uncounted

    def _add(self, key: Key, count: int, reason: str | None) -> None:
        before, known = self._counts.get(key, (0, reason))
        self._counts[key] = before + count, reason if reason == known else None

    def _prune(self) -> None:
        if len(self._counts) <= 2 * self._most:
            return
        ordered = sorted(self._counts.items(), key=lambda one: _order(_told(one)))
        self.uncounted += sum(count for _, (count, _) in ordered[self._most :])
        self._counts = dict(ordered[: self._most])


def _told(item: tuple[Key, tuple[int, str | None]]) -> tuple[Key, str, int]:
    (*others, alike), (count, reason) = item
    return tuple(others), alike if reason is None else reason, count


def _order(told: tuple[Key, str, int]) -> tuple[int, str, Key]:
    others, reason, count = told
    return -count, reason, tuple((one is not None, one) for one in others)
