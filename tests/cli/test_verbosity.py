"""``-q`` suppresses notes and ``-v`` adds log lines, each only for its own run."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner

from flexwire import __version__
from flexwire.cli.app import app
from flexwire.cli.terminal import is_quiet, note
from tests.each import each

if TYPE_CHECKING:
    from collections.abc import Iterator

WITH_LENGTH = ["MetadataRequest", "00000004ffffffff", "-V", "4"]


@pytest.fixture
def told() -> Iterator[None]:
    """Add a command that prints notes and log lines while a test runs."""

    def tell() -> None:
        note("a note")
        logging.getLogger("flexwire.test").debug("a detail\x1b[2J")
        logging.getLogger("flexwire.test").info("an event")
        click.echo("quiet" if is_quiet() else "not quiet")

    from flexwire.cli.terminal import verbosity_options  # noqa: PLC0415 - the command tree imports it here too

    app.add_command(click.command(verbosity_options(tell)))
    yield
    del app.commands["tell"]


@pytest.mark.usefixtures("told")
@each("before", [True, False])
def test_it_says_less_or_more_wherever_the_option_stands(before: bool) -> None:  # noqa: FBT001 - pytest passes each place
    def run(*options: str) -> tuple[str, str]:
        ran = CliRunner().invoke(app, [*options, "tell"] if before else ["tell", *options])
        assert ran.exit_code == 0
        return ran.stdout, ran.stderr

    handlers = list(logging.getLogger().handlers)
    assert run() == ("not quiet\n", "a note\n")
    assert run("-q") == ("quiet\n", "")
    out, err = run("--verbose")
    assert out == "not quiet\n"
    assert "flexwire.test: an event" in err
    assert f"flexwire.cli.terminal: flexwire {__version__}, Python 3" in err
    assert "a detail\\u001b[2J" in err
    # The next run behaves like the first one.
    assert run() == ("not quiet\n", "a note\n")
    assert logging.getLogger().handlers == handlers
    assert logging.getLogger("flexwire").level == logging.NOTSET


def test_a_hint_is_a_note_and_an_error_is_told() -> None:
    loud = CliRunner().invoke(app, ["decode", *WITH_LENGTH])
    quiet = CliRunner().invoke(app, ["-q", "decode", *WITH_LENGTH])
    assert "these bytes begin with a length" in loud.stderr
    assert quiet.stderr == ""
    assert str(quiet.exception) == str(loud.exception)


def test_every_command_has_both() -> None:
    def leaves(group: click.Group) -> Iterator[click.Command]:
        for one in group.commands.values():
            yield from leaves(one) if isinstance(one, click.Group) else [one]

    for command in leaves(app):
        options = [one for parameter in command.params for one in parameter.opts]
        for option in ("-q", "--quiet", "-v", "--verbose"):
            assert options.count(option) == 1, command.name
