"""What a survey keeps for the ranges of a capture, in memory and within bounds.

It goes with the tasks. Where all of it is too much, each range is joined with the one after it, and
again, until it is not: the larger ranges are those that a survey of larger ranges would have found,
so that one survey is enough. What is kept at the start of a range is dropped while the survey goes
on; what only the whole capture says is joined in the end.
"""

from __future__ import annotations

import pickle
from itertools import pairwise
from typing import Final

from flexwire.storage.local import squeezed, unsqueezed
from flexwire.survey.request import NAMES, Known, known_name, start_name

MOST_OF_TASK: Final = 64 << 20
"""So many bytes go with a task at the most: Spark sends none that has 128 MiB."""
MOST_OF_PLAN: Final = 256 << 20
"""So many bytes go with all tasks of a query, which Java holds while it runs."""


class Kept:
    """Takes what a survey keeps, by its name, and gives it to tasks, compressed."""

    def __init__(self) -> None:
        self._stride = 1  # so many ranges that were surveyed are one that a task reads
        self._seen = 1
        self._size = 0
        self._starts: dict[int, bytes] = {}
        self._others: dict[str, bytes] = {}

    def keep(self, name: str, data: bytes) -> None:
        """Take in what is kept by that name."""
        if name == start_name(1):
            # A survey that finds that files overlap begins anew.
            self._seen, self._size, self._starts = 1, 0, {}
        if name != start_name(self._seen):
            self._others[name] = squeezed(data)
            return
        number, self._seen = self._seen, self._seen + 1
        if number % self._stride == 0:
            self._starts[number] = squeezed(data)
            self._size += len(self._starts[number])
        while self._size > MOST_OF_PLAN:
            self._join()

    def _join(self) -> None:
        self._stride *= 2
        self._starts = {
            number: data for number, data in self._starts.items() if number % self._stride == 0
        }
        self._size = sum(map(len, self._starts.values()))

    def ranges(self, surveyed: int) -> dict[int, dict[str, bytes]]:
        """Give what goes with each task, by the number of its range, where so many were surveyed.

        None where it is too much for one that has them all.
        """
        while True:
            found = self._joined(surveyed)
            sizes = [sum(map(len, one.values())) for one in found.values()]
            if max(sizes) <= MOST_OF_TASK and sum(sizes) <= MOST_OF_PLAN:
                return found
            if len(found) == 1:
                return {}
            self._join()

    def whole(self) -> dict[str, bytes]:
        """Give what goes with the only range of a capture."""
        return self._others

    def _joined(self, surveyed: int) -> dict[int, dict[str, bytes]]:
        found = {}
        for number, end in pairwise([0, *self._starts, surveyed]):
            its = {NAMES: self._others[NAMES], known_name(number): self._known(number, end)}
            if number:
                its[start_name(number)] = self._starts[number]
            found[number] = its
        return found

    def _known(self, number: int, end: int) -> bytes:
        some = [self._others[known_name(one)] for one in range(number, end)]
        if len(some) == 1:
            return some[0]
        # They were pickled by the survey of this very query.
        known: list[Known] = [pickle.loads(unsqueezed(one)) for one in some]  # noqa: S301 - see above
        return squeezed(pickle.dumps(Known.joined(known), pickle.HIGHEST_PROTOCOL))
