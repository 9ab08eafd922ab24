"""What sums keep of names that the network gives: so many, and not longer than so long.

Which names are kept does not depend on the order in which parts are merged: those that come first
in the alphabet. What is counted of the others becomes one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

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
