"""The capture files that give nothing: they fail an analysis, unless they are to be skipped."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from flexwire.errors import CaptureError
from flexwire.report.facts import UnreadableFile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.report.facts import Facts

SHOWN: Final = 200
"""Of so many files the report says why."""
REMEDY: Final = "analyze the rest with --skip-unreadable, skip_unreadable=True in Python"


@dataclass(frozen=True, slots=True)
class Unreadable:
    """How many files cannot be opened or are not captures; of the first of them, why."""

    count: int = 0
    shown: tuple[UnreadableFile, ...] = ()

    @classmethod
    def of(cls, errors: Sequence[CaptureError]) -> Unreadable:
        """Those that gave these errors."""
        shown = (UnreadableFile(one.source, one.reason) for one in errors[:SHOWN])
        return cls(len(errors), tuple(shown))

    def check(self, files: int, *, skip: bool, remedy: str = REMEDY) -> None:
        """Raise `CaptureError` if there are any, of this many files, and they are not skipped."""
        if not self.count or (skip and self.count < files):
            return
        first = self.shown[0]
        reason = first.reason
        if self.count == files > 1:
            reason = f"{reason}; none of the {files:,} files can be read"
        elif self.count < files:
            more = self.count - 1
            others = f", nor can {more:,} other{'s' * (more > 1)}" if more else ""
            reason = (
                f"{reason}; so it cannot be read{others}, of {files:,} files. Leave out what is "
                f"not a capture, or {remedy}"
            )
        raise CaptureError(reason, source=first.source)

    def told(self, facts: Facts) -> Facts:
        """The same facts with these files in them."""
        return replace(facts, unreadable=self.shown, unreadable_files=self.count)
