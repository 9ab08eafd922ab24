"""docs/test-data.md: its commands produce the output shown, and its property test runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house.test_readme import blocks, check

PAGE = Path(__file__).parents[2] / "docs" / "test-data.md"


@pytest.mark.slow
def test_every_block_does_what_it_shows(tmp_path: Path) -> None:
    shown = blocks(PAGE.read_text(encoding="utf-8"))
    for block in shown:
        check(block, tmp_path)
    assert [block.language for block in shown] == ["console"] * 4 + ["python"] * 2
    assert [block.reason is None for block in shown] == [True] * 4 + [False, True]
