"""Findings, the report of a run, and the common parts of all rules."""

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


# The longest excerpt that is kept, and the longest message that is printed.
_LONGEST_EXCERPT = 1000
_LONGEST_MESSAGE = 500


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    """A violation of a rule in one place. Findings are sorted by file and place.

    ``line`` and ``column`` are counted from 1, in characters. ``excerpt`` is the line of the file,
    or a part of it around the column. ``excerpt_column`` is the position in the excerpt, counted
    from 1.
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
    """Return a finding for a line of text.

    The complete line is stored, so that a terminal can show it.
    """
    excerpt, at = window(text, column, _LONGEST_EXCERPT)
    message = printable(message)
    if len(message) > _LONGEST_MESSAGE:
        message = f"{message[:_LONGEST_MESSAGE]}…"
    return Finding(printable(source), line, column, rule, message, _one_column_each(excerpt), at)


def window(line: str, column: int, width: int) -> tuple[str, int]:
    """Cut a line to a width around a column. Return the line and the new column.

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
    """Return a line in which every character takes one column, so that marks can be aligned."""
    return "".join(character if character.isprintable() else " " for character in text)


Level = Literal["error", "warning", "note"]


class RuleInfo(Protocol):
    """The properties of a rule that a format shows in addition to the rule's id."""

    @property
    def category(self) -> Enum:
        """The rule's category: an enum member with a name."""

    @property
    def level(self) -> Level:
        """The severity of a finding."""

    @property
    def summary(self) -> str:
        """The first sentence of the page."""

    @property
    def page(self) -> str:
        """The complete page."""


@dataclass(frozen=True, slots=True)
class Report:
    """The findings of ``command`` in order, the files that it read, and its rules by id.

    ``unstable`` counts the findings that were left out because the old version was unstable.
    """

    findings: tuple[Finding, ...]
    files: tuple[str, ...]
    rules: Mapping[str, RuleInfo]
    command: str
    unstable: int = 0


@dataclass(frozen=True, slots=True)
class RulePage:
    """A rule and its page.

    The name of the rule's module is the rule's id, and the module's docstring is the rule's page.
    """

    module: str
    docstring: str | None

    @property
    def id(self) -> str:
        """The rule's id in capitals, as in "allow" comments."""
        return self.module.rpartition(".")[2].upper()

    @property
    def summary(self) -> str:
        """The first sentence of the page."""
        return self.page.partition("\n\n")[0].replace("\n", " ")

    @property
    def page(self) -> str:
        """The page: the violation, the reason, the remedy, and the source of the rule."""
        return (self.docstring or "").strip()


def rules_of(package: ModuleType) -> dict[str, Any]:
    """Return the rules in the modules of a package, by id, in alphabetical order."""
    names = sorted(module.name for module in iter_modules(package.__path__))
    rules = [import_module(f"{package.__name__}.{name}").RULE for name in names]
    return {rule.id: rule for rule in rules}
