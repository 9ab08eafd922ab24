"""The algebra of message versions, as the message specs write them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterator

# "2+" means "from 2 to whatever comes", and versions are int16 on the wire.
HIGHEST = 32767
_NUMBER = r"\+?(\d+)"
_GRAMMAR = re.compile(rf"{_NUMBER}(?:(\+)|-{_NUMBER})?")


@dataclass(frozen=True, slots=True)
class Versions:
    """A range of message versions, written "3", "0-4", "2+" or "none".

    >>> Versions.parse("0-4") & Versions.parse("2+")
    Versions('2-4')
    >>> 3 in Versions.parse("2+"), Versions.parse("0-1") & Versions.parse("2+")
    (True, Versions('none'))
    """

    lowest: int
    highest: int

    NONE: ClassVar[Versions]
    ALL: ClassVar[Versions]

    def __post_init__(self) -> None:
        # One spelling of empty, so that == means "the same set of versions".
        if self.lowest > self.highest and (self.lowest, self.highest) != (0, -1):
            object.__setattr__(self, "lowest", 0)
            object.__setattr__(self, "highest", -1)

    @classmethod
    def parse(cls, text: str, default: Versions | None = None) -> Versions:
        """Read the spec's notation; "" gives ``default``.

        Raises `ValueError` for anything else, for numbers above 32767 included.
        A range written backwards ("3-1") is empty, as it is to Kafka's generator.
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
            raise ValueError(f"{text!r} has a version above {HIGHEST}")
        return cls(lowest, highest)

    def __and__(self, other: Versions) -> Versions:
        return Versions(max(self.lowest, other.lowest), min(self.highest, other.highest))

    def __or__(self, other: Versions) -> Versions:
        """The range that holds both; it also holds what lies between them."""
        if not self or not other:
            return self or other
        return Versions(min(self.lowest, other.lowest), max(self.highest, other.highest))

    def __contains__(self, version: int) -> bool:
        return self.lowest <= version <= self.highest

    def __bool__(self) -> bool:
        return self.lowest <= self.highest

    def __le__(self, other: Versions) -> bool:
        """Whether every version here is in ``other``; "none" is in everything."""
        return not self or (other.lowest <= self.lowest and self.highest <= other.highest)

    def __iter__(self) -> Iterator[int]:
        if self.open_ended:
            raise ValueError(f"{self} is open-ended; intersect it with the valid versions first")
        return iter(range(self.lowest, self.highest + 1))

    def __len__(self) -> int:
        return self.highest - self.lowest + 1

    @property
    def open_ended(self) -> bool:
        """Whether the range is of the form "2+"."""
        return self.highest == HIGHEST

    def __str__(self) -> str:
        if not self:
            return "none"
        if self.open_ended:
            return f"{self.lowest}+"
        return str(self.lowest) if self.lowest == self.highest else f"{self.lowest}-{self.highest}"

    def __repr__(self) -> str:
        return f"Versions({str(self)!r})"


Versions.NONE = Versions(0, -1)
Versions.ALL = Versions(0, HIGHEST)
