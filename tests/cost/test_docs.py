from __future__ import annotations

from pathlib import Path

import pytest

from tests.house.test_readme import blocks, check

PAGE = Path(__file__).parents[2] / "docs" / "cost.md"


@pytest.mark.slow
def test_every_block_of_the_page_does_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = blocks(PAGE.read_text(encoding="utf-8"))
    for block in found:
        check(block, tmp_path)
    assert [block.language for block in found if block.reason is None] == ["console", "python"]
