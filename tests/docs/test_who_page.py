"""docs/who.md: its program and its commands do what it shows, and it names every column."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flexwire.activity.listing import COLUMNS
from tests.house.test_readme import blocks, check_page

PAGE = (Path(__file__).parents[2] / "docs" / "who.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_its_blocks_do_what_they_show(tmp_path: Path) -> None:
    assert [one.language for one in blocks(PAGE) if one.reason is None] == ["python", "console"]
    check_page(PAGE, tmp_path)


def test_it_names_every_column() -> None:
    rows = re.findall(r"^\| (`.*?) \| ", PAGE, re.MULTILINE)
    assert re.findall(r"`([\w-]+)`", " ".join(rows)) == list(COLUMNS)
