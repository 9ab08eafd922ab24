from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.house.test_readme import blocks, run_python

PAGE = Path(__file__).parents[2] / "docs" / "columnar.md"


def test_every_block_of_the_page_does_what_it_shows() -> None:
    found = blocks(PAGE.read_text(encoding="utf-8"))
    # The blocks run in order, as a reader would follow the page.
    names: dict[str, Any] = {}
    for block in found:
        assert block.language == "python"
        assert "assert " in block.text
        run_python(block, str(PAGE), names, Path.cwd())
    assert len(found) == 5
