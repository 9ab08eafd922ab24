"""On docs/survey.md, ten segments of a connection are surveyed in order and in pieces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from flexwire.survey.piece_survey import has_kernels
from tests.house.test_readme import blocks, run_python
from tools.pages.files import DOCS

if TYPE_CHECKING:
    from pathlib import Path

PAGE = DOCS / "survey.md"


@pytest.mark.skipif(not has_kernels(), reason="without kernels nothing is surveyed in pieces")
def test_every_block_does_what_it_shows(tmp_path: Path) -> None:
    names: dict[str, object] = {"__name__": "page"}
    read = blocks(PAGE.read_text(encoding="utf-8"))
    for block in read:
        run_python(block, str(PAGE), names, tmp_path)
    assert sum(block.text.count("assert ") for block in read) == 10
