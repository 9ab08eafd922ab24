"""The files of an analysis as the survey found them: unreadable files, and partial captures."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from flexwire.errors import CaptureError
from flexwire.facts.answers import moment_notes
from flexwire.facts.captures import (
    NO_ADDED_TAGS,
    AddedTags,
    SampledCaptures,
    added_tags,
    sampled_files,
    sampled_notes,
)
from flexwire.facts.facts import UnreadableFile

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flexwire.facts.facts import Facts
    from flexwire.survey.request import AnalysisRequest, FileMarks
    from flexwire.survey.survey import Survey

    Marked = Iterable[tuple[str, FileMarks]]


SHOWN: Final = 200
"""The largest number of files for which the report gives the reasons."""
REMEDY: Final = "skip such files with --skip-unreadable (in Python: skip_unreadable=True)"


@dataclass(frozen=True, slots=True)
class UnreadableFiles:
    """The number of files that are unreadable or not captures, and the first reasons."""

    count: int = 0
    shown: tuple[UnreadableFile, ...] = ()

    @classmethod
    def of(cls, errors: Sequence[CaptureError]) -> UnreadableFiles:
        """Return an object that counts the files that raised these errors."""
        shown = (UnreadableFile(error.source, error.reason) for error in errors[:SHOWN])
        return cls(len(errors), tuple(shown))

    def check(self, files: int, *, skip: bool, remedy: str = REMEDY) -> None:
        """Raise `CaptureError` if any of ``files`` files is unreadable and must not be skipped."""
        if not self.count or (skip and self.count < files):
            return
        first = self.shown[0]
        reason = first.reason
        if self.count == files > 1:
            reason = f"{reason}; none of the {files:,} files can be read"
        elif self.count < files:
            more = self.count - 1
            others = f" and {more:,} other{'s' * (more > 1)}" if more else ""
            reason = (
                f"{reason}; cannot read this file{others}, out of {files:,} files. Leave out files "
                f"that are not captures, or {remedy}"
            )
        raise CaptureError(reason, source=first.source)

    def add_to(self, facts: Facts) -> Facts:
        """Return the facts with these files added."""
        return replace(facts, unreadable=self.shown, unreadable_files=self.count)


@dataclass(frozen=True, slots=True)
class CaptureMarks:
    """The marks of all captures of an analysis.

    Only the marks of rehearsals grow with the number of captures.

    ``rehearsed`` contains the name and the release of each capture whose tap rehearsed a release.
    """

    sampled: tuple[SampledCaptures, ...] = ()
    added_tags: AddedTags = NO_ADDED_TAGS
    rehearsed: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, marked: Marked) -> CaptureMarks:
        """Return the marks of these files."""
        marks_by_file = list(marked)
        return cls(
            sampled_files(marks.part for _, marks in marks_by_file if marks.part is not None),
            added_tags((name, marks.added_tags) for name, marks in marks_by_file),
            tuple((name, marks.rehearsed) for name, marks in marks_by_file if marks.rehearsed),
        )

    def add_to(self, facts: Facts) -> Facts:
        """Return the facts with these marks added."""
        return replace(facts, sampled=self.sampled, added_tags=self.added_tags)

    def notes(self) -> tuple[str, ...]:
        """Return notes for the user."""
        return mark_notes(self.sampled, self.added_tags)


NO_MARKS: Final = CaptureMarks()
"""The marks of captures without marks."""


def check_files(survey: Survey, request: AnalysisRequest, *, remedy: str, to_accept: str) -> None:
    """Raise `CaptureError` for unreadable files, and for partial captures that are not accepted.

    ``remedy`` explains how to read the other files, and ``to_accept`` how to accept partial
    captures.
    """
    unreadable = UnreadableFiles.of(survey.unreadable)
    unreadable.check(len(request.files), skip=request.skip_unreadable, remedy=remedy)
    sampled = CaptureMarks.of(survey.marks).sampled
    if sampled and not request.takes_sampled:
        (note, *_) = sampled_notes(sampled)
        raise CaptureError(f"{note} To read these captures anyway, {to_accept}.")


def analysis_notes(facts: Facts) -> tuple[str, ...]:
    """Return the notes to read before the answers of an analysis."""
    return (*mark_notes(facts.sampled, facts.added_tags), *moment_notes(facts.answers))


def mark_notes(sampled: Iterable[SampledCaptures], added: AddedTags) -> tuple[str, ...]:
    """Return notes on captures that contain only part of the traffic or whose taps added tags."""
    return (*sampled_notes(sampled), *((" ".join(added.sentences),) if added.files else ()))
