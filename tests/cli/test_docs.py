"""Every command and every option has help text, which docs/cli.md shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from flexwire.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_every_command_and_option_has_a_help_text() -> None:
    for name, command in all_commands(app, "flexwire"):
        assert command.help, name
        for option in command.params:
            if isinstance(option, click.Option):
                assert option.help, f"{name} {option.name}"


def all_commands(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    yield name, command
    if isinstance(command, click.Group):
        for inner_name, inner in command.commands.items():
            yield from all_commands(inner, f"{name} {inner_name}")
