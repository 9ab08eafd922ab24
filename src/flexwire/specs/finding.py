"""A finding: what a rule has against one place of a spec."""

from __future__ import annotations

from dataclasses import dataclass, field

from flexwire.printable import printable

# How much of a line is kept, and of a message printed.
_LONGEST_EXCERPT = 1000
_LONGEST_MESSAGE = 500


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """What a rule has against one place; findings sort by file and place.

    ``line`` and ``column`` count from 1, in characters. ``excerpt`` is that line of the file, or
    the part of it around the column, and ``excerpt_column`` the place in it, from 1.
    """

    source: str
    line: int
    column: int
    rule: str
    message: str
    excerpt: str = field(default="", compare=False)
    excerpt_column: int = field(default=1, compare=False)

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}: {self.rule} {self.message}"


def found(source: str, line: int, column: int, rule: str, message: str, text: str) -> Finding:
    """Make a finding, given the whole line of the text; all of it can be shown on a terminal."""
    excerpt, at = window(text, column, _LONGEST_EXCERPT)
    message = printable(message)
    if len(message) > _LONGEST_MESSAGE:
        message = f"{message[:_LONGEST_MESSAGE]}…"
    return Finding(printable(source), line, column, rule, message, _one_column_each(excerpt), at)


def window(line: str, column: int, width: int) -> tuple[str, int]:
    """Cut a line to a width, so that the column is inside, and give the column's new place.

    >>> window("abcdefghijklmnopqrstuvwxyz", 14, 9)
    ('…klmnopq…', 5)
    """
    if len(line) <= width:
        return line, column
    start = max(0, min(column - 1 - width // 2, len(line) - width))
    text = line[start : start + width]
    if start:
        text = f"…{text[1:]}"
    if start + width < len(line):
        text = f"{text[:-1]}…"
    return text, column - start


def _one_column_each(text: str) -> str:
    """Give a line in which every character takes one column, so that marks stand under it."""
    return "".join(one if one.isprintable() else " " for one in text)
