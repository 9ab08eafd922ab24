"""The commands in docs/guide.md produce the output shown, and the figures on the page are right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from flexwire.specs.guide.messages import MOST_VERSIONS
from flexwire.specs.guide.rows import LARGEST
from tests.guide.built import site, tables
from tests.house.test_readme import check_page

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parents[2] / "docs" / "guide.md").read_text(encoding="utf-8")


@pytest.mark.long
def test_every_block_does_what_it_shows(tmp_path: Path) -> None:
    check_page(PAGE, tmp_path)


@pytest.mark.long
def test_figures() -> None:
    pages, size = re.findall(r"(\d+) pages \((\d\.\d) MB\)", PAGE)[0]
    assert int(pages) == sum(path.endswith(".html") for path in site())
    whole = sum(len(text.encode()) for text in site().values())
    assert abs(float(size) - whole / 1e6) < 0.2
    text = " ".join(PAGE.split())
    assert f"more than {MOST_VERSIONS} versions" in text
    assert f"more than {LARGEST:,} characters" in text


def test_addresses_lead_somewhere() -> None:
    for path, place in re.findall(r"`(\w+/\w+\.html)#([\w-]+)`", PAGE):
        assert f'id="{place}"' in site()[path] or re.fullmatch(r"diff-v\d+-v\d+", place)
    assert "v12-request-ClusterId" in tables("api/Fetch.html")
