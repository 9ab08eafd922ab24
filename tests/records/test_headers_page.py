"""Every block of the page on typed headers produces the output shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house.test_readme import Block, blocks, check

PAGE = Path(__file__).parents[2] / "docs" / "headers.md"
BLOCKS = blocks(PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("block", BLOCKS, ids=[f"line {block.line}" for block in BLOCKS])
def test_a_block_does_what_it_shows(block: Block, tmp_path: Path) -> None:
    check(block, tmp_path)


def test_no_block_is_left_out() -> None:
    assert [block.reason for block in BLOCKS] == [None] * 7
