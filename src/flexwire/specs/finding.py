"""What a rule has against one place of a spec, what a run found, and what all rules have."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, Literal, Protocol

from flexwire.printable import printable

if TYPE_CHECKING:
    from collections.abc import Mapping
    from enum import Enum
    from types import ModuleType


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


def make_finding(
    source: str, line: int, column: int, rule: str, message: str, text: str
) -> Finding:
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
    return "".join(character if character.isprintable() else " " for character in text)


Level = Literal["error", "warning", "note"]


class RuleInfo(Protocol):
    """What a format shows of a rule besides its id."""

    @property
    def category(self) -> Enum:
        """The category, which has a name."""

    @property
    def level(self) -> Level:
        """How grave a finding is."""

    @property
    def summary(self) -> str:
        """The first sentence of the page."""

    @property
    def page(self) -> str:
        """The whole page."""


@dataclass(frozen=True, slots=True)
class Report:
    """What ``command`` found, in order, the files that it read, and its rules by their ids.

    ``unstable`` counts the findings that are left out because the old version was unstable.
    """

    findings: tuple[Finding, ...]
    files: tuple[str, ...]
    rules: Mapping[str, RuleInfo]
    command: str
    unstable: int = 0


@dataclass(frozen=True, slots=True)
class RulePage:
    """A rule as it is read about. Its module's name is its id, its module's docstring its page."""

    module: str
    docstring: str | None

    @property
    def id(self) -> str:
        """The id: in capitals, and worded so that it reads well after "allow"."""
        return self.module.rpartition(".")[2].upper()

    @property
    def summary(self) -> str:
        """The first sentence of the page."""
        return self.page.partition("\n\n")[0].replace("\n", " ")

    @property
    def page(self) -> str:
        """What is flagged, why, what to write instead, and by whose rule."""
        return (self.docstring or "").strip()


def rules_of(package: ModuleType) -> dict[str, Any]:
    """Give the rules that stand in the modules of a package, by id, in alphabetical order."""
    names = sorted(module.name for module in iter_modules(package.__path__))
    rules = [import_module(f"{package.__name__}.{name}").RULE for name in names]
    return {rule.id: rule for rule in rules}
