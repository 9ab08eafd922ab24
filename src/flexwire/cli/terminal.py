"""Standard output and standard error: every command prints through these functions.

No command has to remember that a name may hold what a terminal obeys: the streams escape it.
What flexwire itself means to be obeyed, colours and the progress bar, is written through `styled`,
and whatever puts foreign text into these makes it `printable` first. A format whose escapes are not
those of JSON, as CSV is, is written with `write_data`: a file or a pipe gets it as it is.
"""

from __future__ import annotations

import codecs
import io
import logging
import platform
import sys
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO, cast

import click

from flexwire.errors import CodecError, FlexwireError, JavaError
from flexwire.printable import escaped, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexwire.spark.progress import Progress as Listener


# Lines are ours; a line break in a foreign text is the business of the command that prints it.
_KEPT = "\n"


# The text that replaces the name of a private file, which means nothing to a reader.
_SHOWN_AS: dict[str, str] = {}

# Python's own escapes, as \xe9, are none of JSON.
_ESCAPES = "flexwire.escaped"


def _escapes(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(escaped, error.object[error.start : error.end])), error.end


codecs.register_error(_ESCAPES, _escapes)


def show_path_as(text: str, name: str) -> None:
    """Show ``name`` from now on wherever ``text`` stands in a piece that is written."""
    _SHOWN_AS[text] = name


def _replace_private_names(text: str) -> str:
    for path, name in _SHOWN_AS.items():
        text = text.replace(path, name)
    return text


class EscapedStream(io.TextIOWrapper):
    """A text stream that escapes what a terminal would obey."""

    def write(self, text: str, /) -> int:
        """Write the text, escaped; gives its length, as other streams do."""
        super().write(printable(_replace_private_names(text), _KEPT))
        return len(text)

    def close(self) -> None:
        """Flush; the stream whose place this takes has the same buffer, and closes it."""
        if not self.buffer.closed:
            self.flush()

    def write_data(self, text: str) -> None:
        """Write what another program reads: unchanged and in UTF-8, unless this is a terminal."""
        if self.isatty():
            # A terminal obeys the carriage return of a line end as any other.
            self.write(text.replace("\r\n", "\n"))
            return
        self.flush()
        self.buffer.write(_replace_private_names(text).encode("utf-8", _ESCAPES))
        self.buffer.flush()

    def write_styled(self, text: str) -> int:
        """Write text that is all flexwire's own, or `printable` but for flexwire's own."""
        return super().write(_replace_private_names(text))


class _StyledStream:
    """A stream for colours and bars: what is written to it is not escaped again."""

    def __init__(self, stream: EscapedStream) -> None:
        self._stream = stream
        self.write = stream.write_styled

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def guard_streams() -> None:
    """Put streams that escape in the place of standard output and standard error."""
    sys.stdout, sys.stderr = _guard(sys.stdout), _guard(sys.stderr)


def _guard(stream: TextIO) -> TextIO:
    if not isinstance(stream, io.TextIOWrapper) or isinstance(stream, EscapedStream):
        return stream
    settings: dict[str, Any] = {
        "encoding": stream.encoding,
        "line_buffering": stream.line_buffering,
        "write_through": stream.write_through,
    }
    stream.flush()
    # A terminal that cannot show a character gets its escape; in JSON it keeps its meaning.
    return EscapedStream(stream.buffer, errors=_ESCAPES, **settings)


def print_line(text: str) -> None:
    """Print one line: a line break in a foreign text, as in the name of a file, begins no other."""
    print(printable(text))


def write_data(text: str) -> None:
    """Write to standard output what another program reads, as CSV is."""
    stream: TextIO = sys.stdout
    if isinstance(stream, EscapedStream):
        stream.write_data(text)
    else:
        stream.write(text)


def styled(stream: TextIO) -> TextIO:
    """Return the stream as colours and bars are written to it."""
    return cast("TextIO", _StyledStream(stream)) if isinstance(stream, EscapedStream) else stream


def tell(error: FlexwireError) -> str:
    """Word an error for a terminal: its kind, where it happened, and beneath it the reason.

    A line break in a foreign text begins no line, which could be taken for flexwire's own.

    >>> print(tell(CodecError("2 bytes remain", path="topics", message="FetchRequest", version=3)))
    CodecError: FetchRequest v3 at topics:
      2 bytes remain
    """
    text, reason = str(error), ""
    if isinstance(error, CodecError):
        text = text.removesuffix(error.reason).rstrip()
        reason = f"\n  {printable(error.reason)}"
    # Where Java was looked for is a list of this machine's directories, a line each.
    keep = "\n" if isinstance(error, JavaError) else ""
    return f"{type(error).__name__}: {printable(text, keep)}{reason}"


def system_error_text(error: OSError) -> str:
    """Word what the system refused: the file first, and without the number of the error.

    >>> system_error_text(PermissionError(13, "Permission denied", "out/index.html"))
    'out/index.html: Permission denied'
    """
    if error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    text = error.strerror or str(error)
    # In Python's words, which say what was tried.
    return f"{text}; TMPDIR names another" if "temporary directory" in text else text


class LogFormatter(logging.Formatter):
    """Words a log's messages on one line each, whatever the addresses in them hold."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        """Return the line of one message, escaped."""
        return printable(super().formatMessage(record))


_QUIET = "flexwire.quiet"
_LOGGER = "flexwire"


def note(text: str) -> None:
    """Say something that is neither the result nor an error, on standard error."""
    if not is_quiet():
        # A line break in a foreign text begins no line.
        print(printable(text), file=sys.stderr)


def is_quiet() -> bool:
    """Return whether ``-q`` was given."""
    context = click.get_current_context(silent=True)
    return bool(context and context.meta.get(_QUIET))


def _be_quiet(context: click.Context, _option: click.Parameter, is_set: bool) -> None:  # noqa: FBT001 - as click calls it
    if is_set:
        context.meta[_QUIET] = True
        _log(context, logging.WARNING)


def _be_verbose(context: click.Context, _option: click.Parameter, is_set: bool) -> None:  # noqa: FBT001 - as click calls it
    if not is_set:
        return
    _log(context, logging.DEBUG)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormatter("%(asctime)s %(name)s: %(message)s"))
    # The root's, as commands that log by themselves have theirs there: a line comes once.
    root = logging.getLogger()
    root.addHandler(handler)
    context.find_root().call_on_close(partial(root.removeHandler, handler))
    # The text of a report of a fault.
    from flexwire import __version__, kernel_status

    program = f"flexwire {__version__}, Python {platform.python_version()}, {kernel_status()}"
    logging.getLogger(__name__).debug(program)


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
        help="Print no progress bar and no notes on standard error, only errors.",
    ),
    click.option(
        "-v",
        "--verbose",
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_be_verbose,
        help="Log each step on standard error, and the software that runs it.",
    ),
)


def verbosity_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command ``--quiet`` and ``--verbose``."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@contextmanager
def progress_bar() -> Iterator[Listener]:
    """Yield a callable that takes a stage, what is done of it, and its total (0: unknown).

    The bar goes to standard error, so that standard output can be piped.
    """
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    console = Console(file=styled(sys.stderr))
    if is_quiet() or not sys.stderr.isatty():
        yield lambda stage, done, total: None  # noqa: ARG005 - the names are the protocol's
        return
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description:<28}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        # What is printed meanwhile goes where it belongs, a pipe perhaps.
        redirect_stdout=False,
        redirect_stderr=False,
    )
    tasks = {}
    with bar:

        def hear(stage: str, done: int, total: int) -> None:
            if stage not in tasks:
                for task in bar.tasks:
                    bar.update(task.id, total=task.total or 1, completed=task.total or 1)
                tasks[stage] = bar.add_task(printable(stage), total=total or None)
            bar.update(tasks[stage], completed=done, total=total or None)

        yield hear
        for task in bar.tasks:
            bar.update(task.id, total=task.total or 1, completed=task.total or 1)
