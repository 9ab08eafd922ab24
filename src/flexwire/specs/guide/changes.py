"""What differs between two versions: steps from the old fields to the new ones."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from flexwire.specs.guide.rows import ASPECTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.specs.guide.rows import FieldRow

Kind = Literal["same", "changed", "added", "removed"]


@dataclass(frozen=True, slots=True)
class Step:
    """What becomes of one field: ``old`` and ``new`` are places in the fields, None in neither.

    ``aspects`` are those of `ASPECTS` that changed. A field that moved is removed and added.
    """

    old: int | None
    new: int | None
    aspects: tuple[str, ...] = ()

    @property
    def kind(self) -> Kind:
        """What to call it."""
        if self.old is None:
            return "added"
        if self.new is None:
            return "removed"
        return "changed" if self.aspects else "same"


def steps(old: Sequence[FieldRow], new: Sequence[FieldRow]) -> list[Step]:
    """Lead from the old fields to the new ones, in order: every field of both is in one step.

    Fields are the same by their paths; as many as can be keep their order.
    """
    made = []
    next_old = next_new = 0
    for at_old, at_new in [*_kept(old, new), (len(old), len(new))]:
        # What is gone stands before what came in its place.
        made += [Step(place, None) for place in range(next_old, at_old)]
        made += [Step(None, place) for place in range(next_new, at_new)]
        if at_old < len(old):
            made.append(Step(at_old, at_new, _changed(old[at_old], new[at_new])))
        next_old, next_new = at_old + 1, at_new + 1
    return made


def _changed(old: FieldRow, new: FieldRow) -> tuple[str, ...]:
    pairs = zip(ASPECTS, old.aspects, new.aspects, strict=True)
    return tuple(aspect for aspect, before, after in pairs if before != after)


def _kept(old: Sequence[FieldRow], new: Sequence[FieldRow]) -> list[tuple[int, int]]:
    """The longest list of fields that both have in the same order, as pairs of places."""
    places = {row.path: place for place, row in enumerate(new)}
    both = [(at, places[row.path]) for at, row in enumerate(old) if row.path in places]
    # The longest run of ascending places in the new fields, by patience sorting: each pile's top
    # is the lowest place that a run of that length can end with.
    tops: list[int] = []
    piles: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(both):
        pile = bisect_left(tops, place)
        before.append(piles[pile - 1] if pile else -1)
        if pile == len(tops):
            tops.append(place)
            piles.append(number)
        else:
            tops[pile], piles[pile] = place, number
    kept = []
    number = piles[-1] if piles else -1
    while number >= 0:
        kept.append(both[number])
        number = before[number]
    return kept[::-1]
