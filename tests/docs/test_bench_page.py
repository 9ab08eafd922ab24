"""The review of the example change on docs/bench.md produces the result that the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house.test_readme import check_page

PAGE = Path(__file__).parents[2] / "docs" / "bench.md"


@pytest.mark.slow
def test_every_block_does_what_it_shows(tmp_path: Path) -> None:
    check_page(PAGE.read_text(encoding="utf-8"), tmp_path)
    html = (tmp_path / "bench.html").read_text(encoding="utf-8")
    assert "Test vectors: 2 lines of JSON" in html
