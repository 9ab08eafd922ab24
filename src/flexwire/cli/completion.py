"""`flexwire completion`: print shell scripts that complete commands, messages and more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable

    from click.shell_completion import CompletionItem

_VARIABLE = "_FLEXWIRE_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(*, shell: str) -> None:
    """Print a script that lets SHELL complete flexwire's commands, messages, releases and rules.

    \b
    eval "$(flexwire completion bash)"       in ~/.bashrc
    eval "$(flexwire completion zsh)"        in ~/.zshrc
    flexwire completion fish | source        in ~/.config/fish/config.fish
    """  # noqa: D301 - click needs a real backspace character
    from click.shell_completion import get_completion_class

    shell_class = get_completion_class(shell)
    if shell_class is None:
        raise click.UsageError(f"{shell} is not known")
    # Click's own command starts bash to ask for its version. This command starts no process.
    source = shell_class(click.get_current_context().find_root().command, {}, "flexwire", _VARIABLE)
    print(source.source_template % source.source_vars())


def message_names(
    _context: click.Context, _parameter: click.Parameter, prefix: str
) -> list[CompletionItem]:
    """Return the bundled messages whose names begin with the text, in upper or lower case."""
    from flexwire.schema.catalog import catalog

    return _completions(catalog().names(), prefix)


def request_names(
    _context: click.Context, _parameter: click.Parameter, prefix: str
) -> list[CompletionItem]:
    """Return the APIs whose names begin with the text, ignoring case."""
    from flexwire.protocol import api_name
    from flexwire.schema.catalog import catalog

    return _completions(map(api_name, catalog().api_keys()), prefix)


def release_names(
    _context: click.Context, _parameter: click.Parameter, prefix: str
) -> list[CompletionItem]:
    """Return the releases of the catalog whose names begin with the text."""
    from flexwire.schema.catalog import catalog

    return _completions(catalog().releases, prefix)


def rule_names(
    context: click.Context, _parameter: click.Parameter, prefix: str
) -> list[CompletionItem]:
    """Return the rules for lint, or the rules for breaking changes."""
    from flexwire.specs.lint.config import BREAKING, LINT

    of = LINT if context.info_name == LINT.table else BREAKING
    return _completions(of.rules(), prefix)


def _completions(names: Iterable[str], prefix: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    lowered = prefix.lower()
    return [CompletionItem(name) for name in sorted(names) if name.lower().startswith(lowered)]
