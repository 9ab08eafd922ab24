"""The program on the page about the tap runs, and everything that the page names exists."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from flexwire.cli.app import app
from flexwire.tap import Tap, TapStatistics
from tests.house.test_readme import blocks, check_page

PAGE = (Path(__file__).parents[2] / "docs" / "tap.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_its_blocks_do_what_they_show(tmp_path: Path) -> None:
    assert [one.language for one in blocks(PAGE) if one.reason is None] == ["python"] * 2
    check_page(PAGE, tmp_path)


def test_every_option_that_it_names_is_one_and_all_of_tls_are_named() -> None:
    (command,) = (one for name, one in app.commands.items() if name == "tap")
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    named = set(re.findall(r"--[a-z][a-z-]+", PAGE))
    assert named <= known
    assert {name for name in known if name.startswith("--")} - named <= {
        "--rotate",
        "--catalog",
        "--quiet",
        "--verbose",
        "--upstream-key",
        "--upstream-key-password-file",
    }


def test_every_count_that_it_names_is_one() -> None:
    counts = {one.name for one in fields(TapStatistics)}
    named = set(re.findall(r"^\| `(?!flexwire_tap_)(\w+)` \|", PAGE, re.MULTILINE))
    assert len(named) == 7
    assert named <= counts


def test_every_series_that_it_names_is_given(tmp_path: Path) -> None:
    given = Tap(("127.0.0.1", 0), ("127.0.0.1", 1), tmp_path).openmetrics().decode()
    # A second name in a table row leaves out the beginning that it shares with the first.
    rows = [row for row in PAGE.splitlines() if row.startswith("| `flexwire_tap_")]
    series = {
        f"flexwire_tap_{name}"
        for row in rows
        for name in re.findall(r"`(?:flexwire_tap|…)_(\w+)`", row)
    }
    assert len(series) == 14
    assert series <= set(re.findall(r"^(\w+)[ {]", given, re.MULTILINE))
