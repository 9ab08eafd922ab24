"""docs/lint.md and docs/breaking.md: the tables of rules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flexwire.specs.breaking.changes import breaking_rules
from flexwire.specs.breaking.rule import Breaks
from flexwire.specs.lint.rule import Category
from flexwire.specs.lint.rules import rules
from tools.pages.files import DOCS, replace_between, write_files

if TYPE_CHECKING:
    from pathlib import Path

LINT = DOCS / "lint.md"
BREAKING = DOCS / "breaking.md"
BEGIN, END = "<!-- rules: begin -->\n", "<!-- rules: end -->\n"


def files() -> dict[Path, str]:
    """Return both pages with their tables rewritten."""
    return {
        path: replace_between(path.read_text(encoding="utf-8"), BEGIN, END, tables)
        for path, tables in ((LINT, lint_tables()), (BREAKING, breaking_table()))
    }


def lint_tables() -> str:
    """Return the rules of each category, with the first sentence of each rule's page."""
    text = ""
    for category in Category:
        title = category.value
        text += f"### {category.name}\n\n{title[0].upper()}{title[1:]}.\n\n"
        text += "| rule | flagged |\n|---|---|\n"
        for rule in rules().values():
            if rule.category is category:
                text += f"| `{rule.id}` | {_cell(rule.summary)} |\n"
        text += "\n"
    return text


def breaking_table() -> str:
    """Return the rules about breaking changes, with the first sentence of each rule's page."""
    rows = [
        f"| `{name}` | {category.name} | {_cell(rule.summary)} |\n"
        for category in Breaks
        for name, rule in breaking_rules().items()
        if rule.category is category
    ]
    return "| rule | breaks | what it flags |\n|---|---|---|\n" + "".join(rows)


def _cell(text: str) -> str:
    return text.replace("|", r"\|")


if __name__ == "__main__":
    write_files(files())
