"""Every command is documented, as it tells of itself.

Write `docs/cli.md` anew with ``python -m tests.cli.test_docs``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flexwire.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
HEAD = """# The command line

What each command says of itself; a test holds this page to `--help`.
Exit codes: 0 clean, 1 failed, 2 usage, 100 findings.

Shells complete commands, options, messages, APIs, releases and rules. In bash and zsh put
`eval "$(flexwire completion bash)"`, or the same with `zsh`, into what they read at the start; in
fish it is `flexwire completion fish | source`.
"""


def commands(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """Give each command's full name and its help, depth first."""
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for name, inner in sorted(command.commands.items()):
            yield from commands(inner, click.Context(inner, context, name, **SETTINGS))


SETTINGS: dict[str, Any] = {"terminal_width": 100, "max_content_width": 100}


def page() -> str:
    """Write the page."""
    text = HEAD
    context = click.Context(app, info_name="flexwire", **{**app.context_settings, **SETTINGS})
    for name, told in commands(app, context):
        text += f"\n## {name}\n```\n{told}\n```\n"
    return text


def test_the_page_is_what_the_commands_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == page()


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


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
