"""Many sizes as how often each of them occurred: exact medians without keeping the messages."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


class Sizes:
    """Numbers of bytes, negative ones too, of which only the different ones are kept.

    >>> sizes = Sizes([4, 8, 8])
    >>> sizes.count, sizes.total, sizes.least, sizes.median, sizes.most
    (3, 20, 4, 8, 8)
    """

    __slots__ = ("_times",)

    def __init__(self, sizes: Iterable[int] = ()) -> None:
        self._times = Counter(sizes)

    def add(self, size: int, times: int = 1) -> None:
        """Count a size."""
        self._times[size] += times

    def merge(self, other: Sizes) -> None:
        """Count all that the other has counted."""
        self._times.update(other._times)

    def padded(self, count: int) -> Sizes:
        """Give these sizes and as many zeros as make ``count`` of them."""
        made = Sizes()
        made.merge(self)
        if count > self.count:
            made.add(0, count - self.count)
        return made

    @property
    def count(self) -> int:
        """How many sizes there are."""
        return self._times.total()

    @property
    def total(self) -> int:
        """What they add up to."""
        return sum(size * times for size, times in self._times.items())

    @property
    def least(self) -> int:
        """The smallest; 0 without sizes."""
        return min(self._times, default=0)

    @property
    def most(self) -> int:
        """The largest; 0 without sizes."""
        return max(self._times, default=0)

    @property
    def median(self) -> float:
        """The middle one, or what lies half way between the middle two; 0 without sizes."""
        count = self.count
        both = self._at((count - 1) // 2) + self._at(count // 2)
        return both / 2 if both % 2 else both // 2

    def _at(self, place: int) -> int:
        seen = 0
        for size in sorted(self._times):
            seen += self._times[size]
            if seen > place:
                return size
        return 0
