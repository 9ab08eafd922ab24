"""The manual page, in roff: what each command says of itself, for ``man flexwire``.

Written into `docs/man`, from where the wheel installs it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator

_SHOWN_AS_IS = "\b"


def manual_page(app: click.Group, version: str) -> str:
    """Give the page of a command with all that are in it."""
    context = click.Context(app, info_name="flexwire", **app.context_settings)
    lines = [
        f'.TH FLEXWIRE 1 "" "flexwire {_escaped(version)}" "User commands"',
        ".nh",
        ".ad l",
        ".SH NAME",
        f"flexwire \\- {_escaped(_first(app))}",
        ".SH SYNOPSIS",
        *(
            f".B {_escaped(path)}\n{_escaped(' '.join(command.collect_usage_pieces(within)))}\n.br"
            for path, command, within in _leaves(app, context)
        ),
        ".SH DESCRIPTION",
        *_paragraphs(app.help or ""),
        *_options(app, context),
        ".SH COMMANDS",
    ]
    for path, command, within in _leaves(app, context):
        lines += [f".SS {_escaped(path)}", *_paragraphs(command.help or "")]
        lines += [*_options(command, within), *_paragraphs(command.epilog or "")]
    lines += [
        ".SH EXIT STATUS",
        *(
            f".TP\n.B {code}\n{meaning}"
            for code, meaning in (
                ("0", "clean"),
                ("1", "failed"),
                ("2", "usage"),
                ("100", "findings"),
            )
        ),
    ]
    return "\n".join(lines) + "\n"


def _leaves(
    group: click.Group, context: click.Context
) -> Iterator[tuple[str, click.Command, click.Context]]:
    for name, command in sorted(group.commands.items()):
        within = click.Context(command, context, name)
        if isinstance(command, click.Group):
            yield from _leaves(command, within)
        else:
            yield within.command_path, command, within


def _first(command: click.Command) -> str:
    return (command.help or "").partition("\n")[0].rstrip(".")


def _paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of a help text; those that click shows as they are stay so."""
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        if paragraph.lstrip().startswith(_SHOWN_AS_IS):
            lines = paragraph.lstrip().removeprefix(_SHOWN_AS_IS).strip("\n").splitlines()
            yield "\n".join([".PP", ".nf", *map(_escaped, lines), ".fi"])
        elif paragraph:
            yield f".PP\n{_escaped(' '.join(paragraph.split()))}"


def _options(command: click.Command, context: click.Context) -> Iterator[str]:
    for one in command.get_params(context):
        record = one.get_help_record(context) if isinstance(one, click.Option) else None
        if record is not None:
            yield f".TP\n.B {_escaped(record[0])}\n{_escaped(' '.join(record[1].split()))}"


def _escaped(text: str) -> str:
    r"""Text as roff prints it: a hyphen that can be copied, and no line that begins a request.

    >>> print(_escaped(".log --all 'a'"))
    \&.log \-\-all \(aqa\(aq
    """
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq")
    return f"\\&{text}" if text.startswith(".") else text
