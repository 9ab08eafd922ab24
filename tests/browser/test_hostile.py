"""In a real browser, no hostile name runs a script in the report or the guide."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest

from flexwire.report import render
from tests.browser.browsing import SCREENS, opened
from tests.guide.test_site import given
from tests.report.filled import HOSTILE, filled

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.browser

# A script that runs puts this attribute on the page's root element.
_MARK: Final = "data-ran"
EVIL: Final = re.sub(r"alert\(\d\)", "document.documentElement.dataset.ran=1", HOSTILE)


def runs(page: Path, directory: Path) -> bool:
    """Return whether a hostile script in a page runs."""
    found = opened(page, directory / "profile", SCREENS[0])
    return _MARK in found[: found.index("<head")]


def test_no_name_in_a_report_runs(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(render(filled(EVIL)), encoding="utf-8")
    assert not runs(page, tmp_path)


def test_no_text_in_a_guide_runs(tmp_path: Path) -> None:
    for path, text in given(EVIL).items():
        place = tmp_path / path
        place.parent.mkdir(exist_ok=True)
        place.write_text(text, encoding="utf-8")
    for path in ("index.html", "api/Evil.html"):
        assert not runs(tmp_path / path, tmp_path)


def test_a_script_that_runs_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    escaped = render(filled("y"))
    page.write_text(escaped.replace("</h1>", f"{EVIL}</h1>"), encoding="utf-8")
    assert runs(page, tmp_path)
