"""docs/cli.md: the help of every command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from flexwire.cli.app import app
from tools.pages.files import DOCS, write_files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = DOCS / "cli.md"
_HEAD = """# The command line

This page is the output of `--help` for each command; a test compares the two.
Exit codes: 0 success, 1 failure, 2 usage error, 100 findings.

Shells complete commands, options, messages, APIs, releases and rules. For bash, put
`eval "$(flexwire completion bash)"` into the file that the shell reads when it starts; for zsh, the
same with `zsh`. For fish, put `flexwire completion fish | source` there.
`python -m tools.pages.cli` writes this page.
"""
_SETTINGS: dict[str, Any] = {"terminal_width": 100, "max_content_width": 100}


def files() -> dict[Path, str]:
    """Return the page."""
    text = _HEAD
    context = click.Context(app, info_name="flexwire", **{**app.context_settings, **_SETTINGS})
    for name, help_text in _commands(app, context):
        text += f"\n## {name}\n```\n{help_text}\n```\n"
    return {PAGE: text}


def _commands(command: click.Command, context: click.Context) -> Iterator[tuple[str, str]]:
    """Yield each command's full name and its help, depth first."""
    yield context.command_path, command.get_help(context)
    if isinstance(command, click.Group):
        for name, inner in sorted(command.commands.items()):
            yield from _commands(inner, click.Context(inner, context, name, **_SETTINGS))


if __name__ == "__main__":
    write_files(files())
