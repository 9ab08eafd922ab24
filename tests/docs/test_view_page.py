"""docs/view.md names every option and states the same limits as the command."""

from __future__ import annotations

import re
from pathlib import Path

import click

from flexwire.cli.app import app
from flexwire.cli.view.frames import HELD_BYTES, MOST_FRAMES, MOST_LINES
from flexwire.cli.view.screen import _COLUMNS, PAGE_ROWS

PAGE = (Path(__file__).parents[2] / "docs" / "view.md").read_text(encoding="utf-8")
SHARED = {"--catalog", "--quiet", "--verbose"}


def test_it_names_every_option() -> None:
    options = {
        parameter.opts[-1]
        for parameter in app.commands["view"].params
        if isinstance(parameter, click.Option)
    }
    assert set(re.findall(r"^\| `(--[\w-]+) ", PAGE, re.MULTILINE)) == options - SHARED


def test_its_limits_are_those_of_the_command() -> None:
    assert f"keeps {MOST_FRAMES:,} frames" in PAGE
    assert f"previous {PAGE_ROWS:,} frames" in PAGE
    assert f"keeps {HELD_BYTES >> 20} MiB" in PAGE
    assert f"shows at most {MOST_LINES:,} lines" in PAGE
    help_text = " ".join((app.commands["view"].help or "").split())
    assert f"keeps at most {MOST_FRAMES:,} frames" in help_text
    assert f" {PAGE_ROWS:,} frames" in help_text


def test_its_picture_has_the_columns_of_the_screen() -> None:
    [head] = [line for line in PAGE.splitlines() if line.startswith(" frames")]
    assert head.split() == ["frames", "connection", *" ".join(_COLUMNS).split()]
