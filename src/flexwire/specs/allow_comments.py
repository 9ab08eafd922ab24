"""Comments that allow findings of a rule on a line: ``// flexwire: allow RULE reason``."""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexwire.schema.spec import Position
    from flexwire.schema.text import SpecText
    from flexwire.specs.finding import Finding

_PREFIX = "flexwire:"
# A string may contain text that looks like a comment, and a comment may contain text that looks
# like a string.
_STRING_OR_COMMENT = re.compile(
    r'"(?:[^"\\\r\n]|\\[^\r\n])*"? | (?P<line>//[^\r\n]*) | (?P<block>/\*.*?(?:\*/|\Z))',
    re.VERBOSE | re.DOTALL,
)
_ALLOW = re.compile(rf"//[ \t]*{_PREFIX}[ \t]*(?P<verb>\S*)[ \t]*(?P<rule>\S*)(?P<reason>.*)")
_LINE_END = re.compile(r"\r\n|\r|\n")
_NOT_LINE_END = re.compile(r"[^\r\n]")


@dataclass(frozen=True, slots=True)
class AllowComment:
    """A comment that is addressed to flexwire, valid or not.

    ``verb`` is "allow" if the comment is valid. ``reason`` is empty if the comment contains no
    reason. ``line`` is the line to which the comment applies: its own line if other text precedes
    the comment on this line, otherwise the next line that contains more than comments. ``line`` is
    0 if there is no such line. ``at`` is the position of the rule's id, or of the text that stands
    in its place.
    """

    verb: str
    rule: str
    reason: str
    line: int
    at: Position

    @property
    def allows(self) -> bool:
        """True if the comment allows findings. A comment without a reason allows no findings."""
        return self.verb == "allow" and bool(self.reason)


def find_allow_comments(text: SpecText) -> tuple[AllowComment, ...]:
    """Find the comments in a spec that are addressed to flexwire.

    All other comments have no effect, including block comments.
    """
    if _PREFIX not in text.text:
        return ()
    comments = [match for match in _STRING_OR_COMMENT.finditer(text.text) if match["line"]]
    matches = [(match, _ALLOW.match(match["line"])) for match in comments]
    if not any(spoken for _, spoken in matches):
        return ()
    filled = _filled_lines(text.text)
    allow_comments = []
    for match, spoken in matches:
        if spoken is None:
            continue
        at = text.position(match.start() + spoken.start("rule" if spoken["rule"] else "verb"))
        # If the last line with content is the comment's own line, the comment applies to this line.
        # Otherwise the comment applies to the next such line.
        place = bisect_right(filled, at.line)
        own = place > 0 and filled[place - 1] == at.line
        line = at.line if own else filled[place] if place < len(filled) else 0
        # Many people write a colon after the id.
        rule = spoken["rule"].rstrip(":")
        reason = spoken["reason"].strip(" \t:;,.-")
        allow_comments.append(AllowComment(spoken["verb"], rule, reason, line, at))
    return tuple(allow_comments)


def _filled_lines(text: str) -> list[int]:
    """Return the line numbers, counted from 1, of the lines that contain more than comments."""
    without = _STRING_OR_COMMENT.sub(
        lambda match: match[0] if match[0][0] == '"' else _NOT_LINE_END.sub(" ", match[0]), text
    )
    return [number for number, line in enumerate(_LINE_END.split(without), 1) if line.strip()]


class AllowedFindings:
    """The findings that the comments of one spec allow, and the comments that were used."""

    def __init__(self, comments: Iterable[AllowComment]) -> None:
        self._waiting = [comment for comment in comments if comment.allows]
        self._by_place = {
            (allow_comment.line, allow_comment.rule): allow_comment
            for allow_comment in reversed(self._waiting)
        }
        self._used: set[tuple[int, str]] = set()

    def takes(self, finding: Finding) -> bool:
        """Return whether a comment allows the finding, and mark that comment as used."""
        place = finding.line, finding.rule
        if place not in self._by_place:
            return False
        self._used.add(place)
        return True

    def unused(self) -> list[AllowComment]:
        """Return the comments that allowed no finding.

        If two equal comments allow a finding, only the second is returned.
        """
        return [
            comment
            for comment in self._waiting
            if (place := (comment.line, comment.rule)) not in self._used
            or self._by_place[place] is not comment
        ]
