"""A progress bar on a terminal, and nothing elsewhere."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from flexwire.cli.loudness import is_quiet
from flexwire.cli.terminal import styled
from flexwire.printable import printable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.spark.progress import Progress as Listener


@contextmanager
def progress_bar() -> Iterator[Listener]:
    """Give a callable that takes a stage, what is done of it, and its total (0: unknown).

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
