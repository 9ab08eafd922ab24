"""The code blocks of docs/releases.md produce the output shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house.test_readme import check_page

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parents[2] / "docs" / "releases.md").read_text(encoding="utf-8")


@pytest.mark.long
def test_every_block_does_what_it_shows(tmp_path: Path) -> None:
    check_page(PAGE, tmp_path)
