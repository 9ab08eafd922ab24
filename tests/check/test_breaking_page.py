"""The code blocks of docs/breaking.md produce the output shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.house.test_readme import blocks, check
from tools.pages.lint import BREAKING

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


@pytest.mark.long
def test_its_blocks_do_what_they_show(tmp_path: Path) -> None:
    page = blocks(BREAKING.read_text(encoding="utf-8"))
    assert [block.reason for block in page] == [None, None]
    for block in page:
        check(block, tmp_path)
