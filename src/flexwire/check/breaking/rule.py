"""What a breaking-change rule is: an id, a category, a page, and how it finds what breaks it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from flexwire.check.page import Page

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexwire.check.breaking.pairs import Member, StructurePair
    from flexwire.check.report import Level
    from flexwire.schema.parse import Mode
    from flexwire.schema.spec import MessageSpec, Position

    Differences = Iterator[tuple[Position, str]]


class Breaks(Enum):
    """What a change breaks."""

    WIRE = "bytes of an existing version are read otherwise than they were written"
    JSON = "the JSON form, and code that names fields, is read otherwise than it was written"
    SUPPORT = "who speaks an old version finds nobody any more who understands it"


@dataclass(frozen=True, slots=True)
class BreakingRule(Page):
    """One rule.

    ``structure`` looks at a structure that old and new have in a version; ``message`` at the specs
    of a message, whose new one is None where it is gone. Both give the place in the new spec, and
    what has changed there. ``compatible_in`` are the modes whose document calls such a change
    compatible; the rule is not asked for there.
    """

    category: Breaks
    structure: Callable[[StructurePair], Differences] | None = None
    message: Callable[[MessageSpec, MessageSpec | None], Differences] | None = None
    compatible_in: frozenset[Mode] = frozenset()

    @property
    def level(self) -> Level:
        """How grave a finding is: bytes that are misread are an error, all else is a warning."""
        return "error" if self.category is Breaks.WIRE else "warning"


def has_other_default(old: Member, new: Member) -> bool:
    """Whether the defaults differ as values; of other types, nobody can say."""
    # As text, so that NaN equals itself and 0 is not false.
    return old.kind == new.kind and repr(old.field.default) != repr(new.field.default)


def default_text(member: Member) -> str:
    """A default for a sentence."""
    default = member.field.default
    if isinstance(default, bool):
        return str(default).lower()
    named = {(): "empty", "": "empty", b"": "empty", None: "null"}
    if isinstance(default, dict):
        return "all defaults"
    return named.get(default) or repr(default)
