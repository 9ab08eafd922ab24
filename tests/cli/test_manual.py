"""The manual page lists every option of every command, and roff can read it."""

from __future__ import annotations

import re
import tomllib

import click

from flexwire.cli.app import app, manual_page
from tools.pages.files import ROOT
from tools.pages.manual import PAGE

# The roff requests that the page uses; any other line with a leading dot is text.
REQUESTS = {"TH", "SH", "SS", "PP", "TP", "B", "nf", "fi", "br", "nh", "ad"}


def test_every_option_of_every_command_is_on_it() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name, command in _leaves(app, "flexwire"):
        section = page.split(f"\n.SS {name}\n".replace("-", "\\-"))[1].split("\n.SS ")[0]
        for option in command.params:
            if isinstance(option, click.Option):
                assert option.opts[-1].replace("-", "\\-") in section, f"{name} {option.name}"


def test_roff_reads_no_line_as_a_request_that_is_text() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    found = {one[1] for line in lines if (one := re.match(r"[.'](\S*)", line))}
    assert found == REQUESTS
    assert not [line for line in lines if re.search(r"\\(?![-e&(])", line)]


def test_a_text_that_looks_like_a_request_is_none() -> None:
    odd = click.Command("odd", help=".so secret\n\n\b\n'x \\\\ y\n.de z")
    page = manual_page(click.Group("app", {"odd": odd}), "1")
    assert {
        one[1] for line in page.splitlines() if (one := re.match(r"[.'](\S*)", line))
    } <= REQUESTS


def test_the_wheel_installs_it_where_man_looks() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["tool"]["setuptools"]["data-files"] == {
        "share/man/man1": ["docs/man/flexwire.1"]
    }


def _leaves(command: click.Command, name: str) -> list[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        return [(name, command)]
    return [
        leaf for inner, one in command.commands.items() for leaf in _leaves(one, f"{name} {inner}")
    ]
