"""Sets of message versions and their operations, in the notation of the message specs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

# "2+" means version 2 and all later versions up to this one, because versions are int16 on the
# wire.
HIGHEST = 32767
_NUMBER = r"\+?(\d+)"
_GRAMMAR = re.compile(rf"{_NUMBER}(?:(\+)|-{_NUMBER})?")


@dataclass(frozen=True, slots=True)
class Versions:
    """A set of message versions: a range in the notation of specs ("3", "0-4", "2+" or "none").

    Only a union can have holes. Such a set is written as "0-2,16", and represents the versions of a
    message in all releases. ``holes`` lists the missing ranges, as (first, last), in ascending
    order.

    >>> Versions.parse("0-4") & Versions.parse("2+")
    Versions('2-4')
    >>> 3 in Versions.parse("2+"), Versions.parse("0-1") & Versions.parse("2+")
    (True, Versions('none'))
    >>> Versions.parse("0") | Versions.parse("16")
    Versions('0,16')
    """

    lowest: int
    highest: int
    holes: tuple[tuple[int, int], ...] = ()

    NONE: ClassVar[Versions]
    ALL: ClassVar[Versions]

    def __post_init__(self) -> None:
        # The empty set has only one form, so == means "the same set of versions".
        if self.lowest > self.highest and (self.lowest, self.highest) != (0, -1):
            object.__setattr__(self, "lowest", 0)
            object.__setattr__(self, "highest", -1)

    @classmethod
    def parse(cls, text: str, default: Versions | None = None) -> Versions:
        """Return the range that a string in the notation of specs represents.

        For an empty string, return ``default``.

        Raises `ValueError` for any other text, including numbers above 32767. A range in the wrong
        order ("3-1") is empty, as in Kafka's generator.
        """
        text = text.strip()
        if not text and default is not None:
            return default
        if text == "none":
            return cls.NONE
        match = _GRAMMAR.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not a version range; write '3', '0-4', '2+' or 'none'")
        lowest = int(match[1])
        highest = HIGHEST if match[2] else int(match[3] or lowest)
        if max(lowest, highest) > HIGHEST:
            raise ValueError(f"{text!r} contains a version above {HIGHEST}")
        return cls(lowest, highest)

    @classmethod
    def parse_set(cls, text: str) -> Versions:
        """Return the set in a string from `str`, even if the set has holes. Raises `ValueError`.

        >>> Versions.parse_set("0-2,16")
        Versions('0-2,16')
        """
        return cls._joined(
            (versions.lowest, versions.highest) for versions in map(cls.parse, text.split(","))
        )

    @classmethod
    def of(cls, versions: Iterable[int]) -> Versions:
        """Return the set of these versions, each from 0 to 32767.

        >>> Versions.of([5, 0, 1])
        Versions('0-1,5')
        """
        return cls._joined((version, version) for version in versions)

    @classmethod
    def _joined(cls, ranges: Iterable[tuple[int, int]]) -> Versions:
        runs: list[tuple[int, int]] = []
        for lowest, highest in sorted(ranges):
            if lowest > highest:
                continue
            if runs and lowest <= runs[-1][1] + 1:
                runs[-1] = runs[-1][0], max(runs[-1][1], highest)
            else:
                runs.append((lowest, highest))
        if not runs:
            return cls.NONE
        holes = tuple((before[1] + 1, after[0] - 1) for before, after in pairwise(runs))
        return cls(runs[0][0], runs[-1][1], holes)

    @property
    def ranges(self) -> tuple[tuple[int, int], ...]:
        """The ranges without holes that form the set, as (lowest, highest), in ascending order."""
        if not self:
            return ()
        edges = [self.lowest]
        for first, last in self.holes:
            edges += [first - 1, last + 1]
        edges.append(self.highest)
        return tuple(zip(edges[::2], edges[1::2], strict=True))

    def __and__(self, other: Versions) -> Versions:
        if self.holes or other.holes:
            return self._joined(
                (max(mine[0], its[0]), min(mine[1], its[1]))
                for mine in self.ranges
                for its in other.ranges
            )
        return Versions(max(self.lowest, other.lowest), min(self.highest, other.highest))

    def __or__(self, other: Versions) -> Versions:
        """Return the versions that are in at least one of the two sets."""
        if not self or not other:
            return self or other
        return self._joined(self.ranges + other.ranges)

    def __contains__(self, version: int) -> bool:
        return self.lowest <= version <= self.highest and not (
            self.holes and any(first <= version <= last for first, last in self.holes)
        )

    def __bool__(self) -> bool:
        return self.lowest <= self.highest

    def __le__(self, other: Versions) -> bool:
        """Return whether ``other`` contains every version of this set.

        The result is true if this set is "none".
        """
        if self.holes or other.holes:
            return self & other == self
        return not self or (other.lowest <= self.lowest and self.highest <= other.highest)

    def __iter__(self) -> Iterator[int]:
        if self.open_ended:
            raise ValueError(f"{self} is open-ended; intersect it with the valid versions first")
        if not self.holes:
            return iter(range(self.lowest, self.highest + 1))
        return chain.from_iterable(range(lowest, highest + 1) for lowest, highest in self.ranges)

    def __len__(self) -> int:
        return sum(highest - lowest + 1 for lowest, highest in self.ranges)

    @property
    def open_ended(self) -> bool:
        """True if the set ends in a range of the form "2+"."""
        return self.highest == HIGHEST

    def __str__(self) -> str:
        return ",".join(map(_written, self.ranges)) or "none"

    def __repr__(self) -> str:
        return f"Versions({str(self)!r})"


def _written(run: tuple[int, int]) -> str:
    lowest, highest = run
    if highest == HIGHEST:
        return f"{lowest}+"
    return str(lowest) if lowest == highest else f"{lowest}-{highest}"


Versions.NONE = Versions(0, -1)
Versions.ALL = Versions(0, HIGHEST)
