"""Accept ``-`` as a file: keep standard input in a private file while a command reads it.

A reader of a file may use the file's name, read the file twice, or let other processes read it.
Standard input is therefore copied to a file with a suitable name. The file is removed at the end.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from flexwire.cli.options import InputError, standard_input
from flexwire.cli.terminal import show_path_as

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    # A function that is called with the first bytes, and returns the name for a file that begins
    # with them.
    Name = Callable[[bytes], str]

NAME: Final = "standard-input"
"""The name of the file for an input that has no name."""
_HEAD: Final = 1 << 12
_GZIP: Final = b"\x1f\x8b"
_SPEC_NAME: Final = re.compile(rb'"name"\s*:\s*"([A-Za-z]\w{0,100})"')
_OFFSET = 8


def spec_name(head: bytes) -> str:
    """Return the name for a message spec (from the name of its message) or for a jar of specs.

    >>> spec_name(b'{"type": "data", "name": "A"}'), spec_name(b"PK")
    ('A.json', 'standard-input.jar')
    """
    if head.startswith(b"PK"):
        return f"{NAME}.jar"
    match = _SPEC_NAME.search(head)
    return f"{match[1].decode() if match else NAME}.json"


def segment_name(head: bytes) -> str:
    """Return the path that a broker uses for a log segment.

    The name is the first offset, in the directory of the partition.
    """
    first = int.from_bytes(head[:_OFFSET], "big", signed=True)
    return f"{NAME}-0/{max(first, 0):020d}.log"


def input_name(head: bytes) -> str:
    """Return the name that an analysis needs for a capture, a log segment or a request log."""
    from flexwire.inputs import AnalysisFileKind, kind_by_bytes

    if not head:
        raise InputError("standard input is empty")
    kind = kind_by_bytes(head)
    if kind is AnalysisFileKind.CAPTURE:
        return capture_name(head)
    if kind is AnalysisFileKind.LOG:
        return segment_name(head)
    return "kafka-request.log.gz" if head.startswith(_GZIP) else "kafka-request.log"


def capture_name(head: bytes) -> str:
    """Return the name for a capture."""
    return f"{NAME}.pcapng{'.gz' if head.startswith(_GZIP) else ''}"


def plain_name(_: bytes) -> str:
    """Return the name for a file whose name does not matter."""
    return NAME


def takes_standard_input(
    *also: str, **names: Name
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command accept ``-`` as a file.

    ``names`` maps each parameter to a function that returns the name for the file.

    ``also`` contains parameters that read standard input themselves. Standard input can be read
    only once.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**parameters: Any) -> None:
            dash_names = [
                name for name in (*names, *also) for text in _texts(parameters[name]) if text == "-"
            ]
            if len(dash_names) > 1:
                raise click.UsageError(
                    "standard input can be read only once, so specify - only once"
                )
            if not dash_names or dash_names[0] not in names:
                command(**parameters)
                return
            name = dash_names[0]
            with save_input(names[name]) as path:
                command(**{**parameters, name: _with_path(parameters[name], path)})

        run.standard_input = frozenset((*names, *also))  # type: ignore[attr-defined]  # tests read it
        return run

    return decorate


def _texts(value: Any) -> Iterator[str]:
    values = value if isinstance(value, tuple) else (value,)
    return (str(item) for item in values if item is not None)


def _with_path(value: Any, path: Path) -> Any:
    if isinstance(value, tuple):
        return tuple(_with_path(item, path) for item in value)
    return type(value)(path) if str(value) == "-" else value


@contextmanager
def save_input(name: Name = plain_name) -> Iterator[Path]:
    """Yield a private file with all of standard input. Only the free disk space limits its size."""
    import shutil
    import tempfile

    file = standard_input()
    head = file.read(_HEAD)
    with tempfile.TemporaryDirectory(prefix="flexwire-") as directory:
        path = Path(directory).resolve() / name(head)
        path.parent.mkdir(exist_ok=True)
        with path.open("wb") as saved:
            saved.write(head)
            shutil.copyfileobj(file, saved)
        # The name is also replaced in an error that ends the block, because the error is printed
        # later.
        show_path_as(str(path), "standard input")
        yield path
