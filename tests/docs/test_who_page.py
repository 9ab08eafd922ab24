"""docs/who.md: its program and commands produce the output shown; the page names every column."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flexwire.activity.listing import COLUMNS
from flexwire.activity.metrics import ActivityMetrics
from tests.activity.made import capture_files, listed
from tests.house.test_readme import blocks, check_page

PAGE = (Path(__file__).parents[2] / "docs" / "who.md").read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.slow
def test_its_blocks_do_what_they_show(tmp_path: Path) -> None:
    assert [one.language for one in blocks(PAGE) if one.reason is None] == ["python", "console"]
    check_page(PAGE, tmp_path)


def test_it_names_every_column() -> None:
    assert _named_below("| column | meaning |") == list(COLUMNS)


def test_it_names_every_family_of_metrics() -> None:
    text = ActivityMetrics(listed(capture_files("everything")).table).render().decode()
    families = re.findall(r"^# TYPE (\w+) ", text, re.MULTILINE)
    assert sorted(_named_below("| family | type | meaning |")) == sorted(families)


def _named_below(head: str) -> list[str]:
    """Return the names in the first cells of a table."""
    table = PAGE.partition(head)[2].partition("\n\n")[0]
    cells = re.findall(r"^\| (`.*?) \| ", table, re.MULTILINE)
    return re.findall(r"`([\w-]+)`", " ".join(cells))
