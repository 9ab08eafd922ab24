"""Shells complete names that users would otherwise look up; examples in --help are commands."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from typing import Any

import click
import pytest

from flexwire.cli.app import EXAMPLES, app
from flexwire.schema.catalog import catalog
from tests.cli.test_docs import all_commands
from tests.each import each

COMMANDS = dict(all_commands(app, "flexwire"))


def _completed(*words: str) -> list[str]:
    """Return bash's completions of these words; the last word is incomplete."""
    environment = os.environ | {
        "_FLEXWIRE_COMPLETE": "bash_complete",
        "COMP_WORDS": shlex.join(["flexwire", *words[:-1]]) + f" {words[-1]}",
        "COMP_CWORD": str(len(words)),
    }
    ran = subprocess.run(
        [sys.executable, "-m", "flexwire"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.stderr == ""
    return [line.partition(",")[2] for line in ran.stdout.splitlines()]


@pytest.mark.long
@pytest.mark.slow
def test_commands_messages_releases_and_rules_are_completed() -> None:
    assert _completed("dec") == ["decode"]
    assert _completed("decode", "fetchre") == [
        name for name in catalog().names() if name.startswith("FetchRe")
    ]
    assert _completed("call", "localhost:9092", "ListG") == ["ListGroups"]
    assert set(_completed("encode", "FetchRequest", "--release", "4.")) == {
        one for one in catalog().releases if one.startswith("4.")
    }
    assert "TAG_REUSED" in _completed("schema", "breaking", "--use", "TAG")
    assert _completed("schema", "breaking", "--specs-mode", "leg") == ["legacy"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_its_script(shell: str) -> None:
    command = [sys.executable, "-m", "flexwire", "completion", shell]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert f"_FLEXWIRE_COMPLETE={shell}_complete" in ran.stdout
    if shell == "bash":
        assert subprocess.run(["bash", "-n"], input=ran.stdout, text=True, check=True)


def _context(name: str, command: click.Command, **settings: Any) -> click.Context:
    # A command keeps the help option of the context that first requests it.
    return click.Context(command, info_name=name, **{**app.context_settings, **settings})


def _examples(name: str, command: click.Command) -> list[str]:
    context = _context(name, command, terminal_width=400, max_content_width=400)
    lines = [line.strip() for line in command.get_help(context).splitlines()]
    return [line for line in lines if line.startswith("flexwire ")]


@each("name", [name for name, one in COMMANDS.items() if not isinstance(one, click.Group)])
def test_every_command_has_an_example_that_its_options_take(name: str) -> None:
    command = COMMANDS[name]
    found = _examples(name, command)
    if name != "flexwire completion":
        assert found
    for example in found:
        words = shlex.split(example.partition("  ")[0].partition(" | ")[0])
        assert words[: len(name.split())] == name.split()
        context = _context(name, command, resilient_parsing=True)
        command.parse_args(context, words[len(name.split()) :])
        _, rest, _ = command.make_parser(context).parse_args(words[len(name.split()) :])
        assert rest == []


def test_no_example_is_of_a_command_that_is_not_there() -> None:
    assert {f"flexwire {name}" for name in EXAMPLES} <= set(COMMANDS)
