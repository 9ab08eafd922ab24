"""Standard output and standard error. All commands print through these functions.

Names may contain control characters. The streams escape these characters, so that commands do not
have to. flexwire's own colors and its progress bar are written through `styled`, and callers escape
foreign text in them with `printable` first. Formats without JSON's escapes, such as CSV, are
written with `write_data`. A file or a pipe receives such formats unchanged.
"""

from __future__ import annotations

import codecs
import io
import logging
import os
import platform
import sys
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TextIO, cast

import click

from flexwire.errors import CodecError, FlexwireError, JavaError
from flexwire.printable import escaped, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from flexwire.spark.progress import Progress as Listener


# flexwire writes line breaks itself. A command must escape line breaks in the foreign text that it
# prints.
_KEPT = "\n"


# The text that replaces each private file name, because such a name means nothing to a reader.
_SHOWN_AS: dict[str, str] = {}

# On Windows, Python writes to a pipe or a file in the system's code page, unless this variable sets
# another encoding.
_HAS_CODE_PAGES = os.name == "nt"
_ENCODING = "PYTHONIOENCODING"

# Python's own escapes, such as \xe9, are not valid JSON.
_ESCAPES = "flexwire.escaped"


def _escapes(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(escaped, error.object[error.start : error.end])), error.end


codecs.register_error(_ESCAPES, _escapes)


def show_path_as(text: str, name: str) -> None:
    """Replace ``text`` with ``name`` in all later output."""
    _SHOWN_AS[text] = name


def _replace_private_names(text: str) -> str:
    for path, name in _SHOWN_AS.items():
        text = text.replace(path, name)
    return text


class EscapedStream(io.TextIOWrapper):
    """A text stream that escapes control characters."""

    def write(self, text: str, /) -> int:
        """Write the text with escapes, and return its length, as other streams do."""
        super().write(printable(_replace_private_names(text), _KEPT))
        return len(text)

    def close(self) -> None:
        """Only flush. The stream that this stream replaces has the same buffer, and closes it."""
        if not self.buffer.closed:
            self.flush()

    def write_data(self, text: str) -> None:
        """Write data for another program, in UTF-8.

        The data is unchanged unless the stream is a terminal.
        """
        if self.isatty():
            # For a terminal, the carriage return at the end of a line is a control character too.
            self.write(text.replace("\r\n", "\n"))
            return
        self.flush()
        self.buffer.write(_replace_private_names(text).encode("utf-8", _ESCAPES))
        self.buffer.flush()

    def write_styled(self, text: str) -> int:
        """Write text whose only control characters come from flexwire."""
        return super().write(_replace_private_names(text))


class _StyledStream:
    """A stream for colors and progress bars, whose text is not escaped again."""

    def __init__(self, stream: EscapedStream) -> None:
        self._stream = stream
        self.write = stream.write_styled

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def guard_streams() -> None:
    """Replace standard output and standard error with streams that escape control characters."""
    sys.stdout, sys.stderr = _guard(sys.stdout), _guard(sys.stderr)


def _guard(stream: TextIO) -> TextIO:
    if not isinstance(stream, io.TextIOWrapper) or isinstance(stream, EscapedStream):
        return stream
    # JSON is always UTF-8.
    is_foreign = _HAS_CODE_PAGES and not stream.isatty() and _ENCODING not in os.environ
    settings: dict[str, Any] = {
        "encoding": "utf-8" if is_foreign else stream.encoding,
        "line_buffering": stream.line_buffering,
        "write_through": stream.write_through,
    }
    stream.flush()
    # If a terminal cannot show a character, an escape is printed that has the same meaning in JSON.
    return EscapedStream(stream.buffer, errors=_ESCAPES, **settings)


def print_line(text: str) -> None:
    """Print one line. Line breaks in foreign text, such as the name of a file, are escaped."""
    print(printable(text))


def write_data(text: str) -> None:
    """Write data for another program, such as CSV, to standard output."""
    stream: TextIO = sys.stdout
    if isinstance(stream, EscapedStream):
        stream.write_data(text)
    else:
        stream.write(text)


def styled(stream: TextIO) -> TextIO:
    """Return the stream to which colors and progress bars are written."""
    return cast("TextIO", _StyledStream(stream)) if isinstance(stream, EscapedStream) else stream


def tell(error: FlexwireError) -> str:
    """Return the text of an error for a terminal: its kind and place, and then the reason.

    Line breaks in foreign text are escaped, because a line could be mistaken for one of flexwire's
    own.

    >>> print(tell(CodecError("2 bytes remain", path="topics", message="FetchRequest", version=3)))
    CodecError: FetchRequest v3 at topics:
      2 bytes remain
    """
    text, reason = str(error), ""
    if isinstance(error, CodecError):
        text = text.removesuffix(error.reason).rstrip()
        reason = f"\n  {printable(error.reason)}"
    # An error about Java lists the directories that were searched, one per line.
    keep = "\n" if isinstance(error, JavaError) else ""
    return f"{type(error).__name__}: {printable(text, keep)}{reason}"


def system_error_text(error: OSError) -> str:
    """Return a system error's text, which begins with the file and contains no error number.

    >>> system_error_text(PermissionError(13, "Permission denied", "out/index.html"))
    'out/index.html: Permission denied'
    """
    if error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    text = error.strerror or str(error)
    # Python's text lists the directories that were tried.
    return f"{text}; set TMPDIR to another directory" if "temporary directory" in text else text


class LogFormatter(logging.Formatter):
    """Format each log message as one line, even if the message contains line breaks."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging defines this name
        """Return the line for one message, with escapes."""
        return printable(super().formatMessage(record))


_QUIET = "flexwire.quiet"
_LOGGER = "flexwire"


def note(text: str) -> None:
    """Print a note, which is neither a result nor an error, to standard error."""
    if not is_quiet():
        # Line breaks in foreign text are escaped.
        print(printable(text), file=sys.stderr)


def is_quiet() -> bool:
    """Return whether the option ``-q`` was given."""
    context = click.get_current_context(silent=True)
    return bool(context and context.meta.get(_QUIET))


def _be_quiet(context: click.Context, _option: click.Parameter, is_set: bool) -> None:  # noqa: FBT001 - click passes the argument by position
    if is_set:
        context.meta[_QUIET] = True
        _log(context, logging.WARNING)


def _be_verbose(context: click.Context, _option: click.Parameter, is_set: bool) -> None:  # noqa: FBT001 - click passes the argument by position
    if not is_set:
        return
    _log(context, logging.DEBUG)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormatter("%(asctime)s %(name)s: %(message)s"))
    # The root logger is used, because commands with their own logging use it too. This prevents
    # repeated lines.
    root = logging.getLogger()
    root.addHandler(handler)
    context.find_root().call_on_close(partial(root.removeHandler, handler))
    # A bug report should begin with this line.
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
        help="On standard error, print only errors: no progress bar and no notes.",
    ),
    click.option(
        "-v",
        "--verbose",
        is_flag=True,
        expose_value=False,
        is_eager=True,
        callback=_be_verbose,
        help="Log each step, and the software that runs it, on standard error.",
    ),
)


def verbosity_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options ``--quiet`` and ``--verbose`` to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@contextmanager
def progress_bar() -> Iterator[Listener]:
    """Yield a callable for a stage's name, the finished part, and the total (0 if unknown).

    The bar goes to standard error, so that standard output can be piped. Without the package rich,
    which the extra columnar installs, there is no bar.
    """
    if is_quiet() or not sys.stderr.isatty() or find_spec("rich") is None:
        yield lambda stage, done, total: None  # noqa: ARG005 - the protocol defines these names
        return
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
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description:<28}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        # Other output must still go to its own stream, which may be a pipe.
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
