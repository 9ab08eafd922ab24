"""The code blocks on the page about files by URL run, and the page names every scheme."""

from __future__ import annotations

from pathlib import Path

from flexwire.storage.filesystems import STORES
from tests.house.test_readme import blocks, check_page

PAGE = (Path(__file__).parents[2] / "docs" / "storage.md").read_text(encoding="utf-8")


def test_its_blocks_do_what_they_show(tmp_path: Path) -> None:
    assert len([one for one in blocks(PAGE) if one.reason is None]) == 2
    check_page(PAGE, tmp_path)


def test_it_names_every_scheme_and_what_to_install() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("|")]
    for scheme, extra in STORES.items():
        (row,) = (row for row in rows if f"`{scheme}://" in row)
        assert f"`flexwire[{extra}]`" in row
