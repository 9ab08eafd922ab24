"""axe finds no violations in the report or the guide, whether wide or narrow, light or dark.

`make browser` runs these tests; they need a browser and axe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from flexwire.cli.app import app
from flexwire.report import render
from tests.browser.browsing import SCREENS, Screen, looked_at
from tests.report.sample import SAMPLE

if TYPE_CHECKING:
    from pathlib import Path


pytestmark = pytest.mark.browser
EACH_SCREEN = pytest.mark.parametrize("screen", SCREENS, ids=lambda one: f"{one.width} {one.dark}")


def accepted(told: dict[str, Any], screen: Screen) -> None:
    assert told["violations"] == []
    assert told["passes"] > 0
    assert told["width"] <= screen.width, "the page is wider than the screen"


@EACH_SCREEN
def test_the_report_can_be_read_by_everybody(screen: Screen, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(render(SAMPLE), encoding="utf-8")
    accepted(looked_at(page, screen, tmp_path / "profile"), screen)


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("guide")
    answer = CliRunner().invoke(app, ["schema", "docs", "release:4.4.0", "--out", str(place)])
    assert answer.exit_code == 0, answer.output
    return place


@EACH_SCREEN
@pytest.mark.parametrize("name", ["index.html", "api/Fetch.html"])
def test_the_guide_can_be_read_by_everybody(
    name: str, screen: Screen, guide: Path, tmp_path: Path
) -> None:
    accepted(looked_at(guide / name, screen, tmp_path / "profile"), screen)


def test_axe_sees_what_is_wrong(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(render(SAMPLE).replace('<html lang="en">', "<html>"), encoding="utf-8")
    told = looked_at(page, SCREENS[0], tmp_path / "profile")
    assert [one["id"] for one in told["violations"]] == ["html-has-lang"]
