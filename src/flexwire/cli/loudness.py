"""How much a command says besides what it was asked for: ``-q`` less, ``-v`` more."""

from __future__ import annotations

import logging
import platform
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from flexwire.cli.terminal import LogFormatter
from flexwire.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable

_QUIET = "flexwire.quiet"
_LOGGER = "flexwire"


def note(text: str) -> None:
    """Say something that is neither the result nor an error, on standard error."""
    if not is_quiet():
        # A line break in a foreign text begins no line.
        print(printable(text), file=sys.stderr)


def is_quiet() -> bool:
    """Whether ``-q`` was given."""
    context = click.get_current_context(silent=True)
    return bool(context and context.meta.get(_QUIET))


def _be_quiet(context: click.Context, _option: click.Parameter, given: bool) -> None:  # noqa: FBT001 - as click calls it
    if given:
        context.meta[_QUIET] = True
        _log(context, logging.WARNING)


def _be_verbose(context: click.Context, _option: click.Parameter, given: bool) -> None:  # noqa: FBT001 - as click calls it
    if not given:
        return
    _log(context, logging.DEBUG)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormatter("%(asctime)s %(name)s: %(message)s"))
    # The root's, as commands that log by themselves have theirs there: a line comes once.
    root = logging.getLogger()
    root.addHandler(handler)
    context.find_root().call_on_close(partial(root.removeHandler, handler))
    # What a report of a fault has to say.
    from flexwire import __version__, kernels

    which = f"flexwire {__version__}, Python {platform.python_version()}, {kernels()}"
    logging.getLogger(__name__).debug(which)


def _log(context: click.Context, level: int) -> None:
    logger = logging.getLogger(_LOGGER)
    context.find_root().call_on_close(partial(logger.setLevel, logger.level))
    logger.setLevel(level)


_OPTIONS = (
    click.option(
        "-q",
        "--quiet",
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_be_quiet,
        help="No progress bar and no notes on standard error; errors are told.",
    ),
    click.option(
        "-v",
        "--verbose",
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_be_verbose,
        help="Log on standard error what goes on, and what runs it.",
    ),
)


def loudness_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command ``--quiet`` and ``--verbose``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
