"""The page on breaking changes has every rule, with its category and its page's first sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from flexwire.specs.breaking.changes import breaking_rules
from tests.house.test_readme import blocks, check

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[2] / "docs" / "breaking.md"


def test_the_table_has_every_rule() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = {line for line in lines if line.startswith("| `")}
    assert rows == {
        f"| `{name}` | {rule.category.name} | {rule.summary} |"
        for name, rule in breaking_rules().items()
    }


def test_its_blocks_do_what_they_show(tmp_path: Path) -> None:
    found = blocks(PAGE.read_text(encoding="utf-8"))
    assert [block.reason for block in found] == [None, None]
    for block in found:
        check(block, tmp_path)
