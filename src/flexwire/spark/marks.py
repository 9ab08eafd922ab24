"""What captures say of themselves, for the driver: which part they hold, which tags were added."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from flexwire.report.sampled_facts import Sampled, sampled_files, sampled_notes
from flexwire.report.stamped_facts import NO_ADDED_TAGS, AddedTags, added_tags

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexwire.report.facts import Facts
    from flexwire.survey.request import Marks

    # Files that say something of themselves, by name.
    Marked = Iterable[tuple[str, Marks]]


@dataclass(frozen=True, slots=True)
class CaptureMarks:
    """What all captures of an analysis say of themselves, in bounded space."""

    sampled: tuple[Sampled, ...] = ()
    added_tags: AddedTags = NO_ADDED_TAGS

    @classmethod
    def of(cls, marked: Marked) -> CaptureMarks:
        """What these files say."""
        every = list(marked)
        return cls(
            sampled_files(one.part for _, one in every if one.part is not None),
            added_tags((name, one.added_tags) for name, one in every),
        )

    def told(self, facts: Facts) -> Facts:
        """The same facts with this in them."""
        return replace(facts, sampled=self.sampled, added_tags=self.added_tags)

    def notes(self) -> tuple[str, ...]:
        """What a user should hear of it."""
        return mark_notes(self.sampled, self.added_tags)


NO_MARKS: Final = CaptureMarks()
"""No capture says anything of itself."""


def mark_notes(sampled: Iterable[Sampled], added: AddedTags) -> tuple[str, ...]:
    """What a user should hear of captures that hold a part, or whose taps added tags."""
    return (*sampled_notes(sampled), *((" ".join(added.told),) if added.files else ()))
