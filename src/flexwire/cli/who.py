"""`flexwire who`: the connections of a cluster and what they do, from captures that grow."""

from __future__ import annotations

import io
import json
import sys
import time
from itertools import islice
from typing import TYPE_CHECKING, Final

import click

from flexwire.cli.options import Format, format_option
from flexwire.cli.standard_input import capture_name, takes_standard_input
from flexwire.cli.terminal import note, styled

if TYPE_CHECKING:
    from typing import Literal

    from rich.table import Table

    from flexwire.activity.connections import ConnectionActivity
    from flexwire.activity.growing import GrowingCaptures
    from flexwire.activity.reading import ActivityReader

_COLUMNS: Final = (
    *("client", "broker", "client-id", "software", "topics", "requests", "bytes", "errors"),
    *("last-error", "waiting", "state"),
)


@click.command()
@click.argument("paths", nargs=-1, required=True)
@click.option(
    "--once",
    is_flag=True,
    help="Print one table and end. This is the default if standard output is not a terminal, and "
    "with --format json.",
)
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1, max=3600),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="How often to read what was added and draw the table again.",
)
@click.option(
    "--order-by",
    type=click.Choice(_COLUMNS, case_sensitive=False),
    default="bytes",
    show_default=True,
    help="The column that orders the rows: texts from A to Z, numbers from the largest.",
)
@click.option(
    "--filter",
    "filters",
    metavar="TEXT",
    multiple=True,
    help="Only connections whose client id, address and port, software, topic or API is this text. "
    "A * stands for any text. Can be given several times; a connection must fit each.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=None,
    show_default="all",
    help="Show at most so many connections.",
)
@format_option
@takes_standard_input(paths=capture_name)
def who(
    *,
    paths: tuple[str, ...],
    once: bool,
    interval: float,
    order_by: str,
    filters: tuple[str, ...],
    limit: int | None,
    output: Format,
) -> None:
    """List the connections in captures: their clients, topics, requests, errors and waiting.

    PATHS are captures (pcap or pcapng, also gzipped), directories of them, patterns, and - for
    standard input. On a terminal the table is drawn again as the captures grow and as new ones
    appear, until Ctrl-C. A closed connection is shown once. docs/who.md describes the columns.

    JSON has one line for each connection.
    """
    from flexwire.extras import needed_by

    with needed_by("flexwire who", "columnar"):
        from flexwire.activity.growing import GrowingCaptures
        from flexwire.activity.reading import ActivityReader

    captures, reader = GrowingCaptures(paths), ActivityReader()
    view = _View(order_by, filters, limit)
    if once or output is Format.JSON or not sys.stdout.isatty():
        reader.read(captures.poll(must_exist=True))
        reader.finish()
        for text in (*captures.notes, *captures.unfinished()):
            note(text)
        view.print(reader, output)
    else:
        _watch(captures, reader, view, interval)


class _View:
    """What a person wants to see of the list."""

    def __init__(self, order_by: str, filters: tuple[str, ...], limit: int | None) -> None:
        self._order_by = order_by
        self._filters = filters
        self._limit = limit

    def rows(self, reader: ActivityReader) -> tuple[list[ConnectionActivity], str]:
        """Return the rows to show, and a text that says how many others there are."""
        from flexwire.activity.listing import find_rows

        found = find_rows(reader, self._filters, self._order_by)
        shown = found[: self._limit]
        more = len(found) - len(shown) + reader.table.left_out
        return shown, f"{more:,} more connections are not shown" if more else ""

    def print(self, reader: ActivityReader, output: Format) -> None:
        """Print the list once."""
        from flexwire.activity.listing import to_form

        rows, more = self.rows(reader)
        if output is Format.JSON:
            for row in rows:
                print(json.dumps(to_form(row), ensure_ascii=False))
        else:
            _print_table(rows, reader.table.last_us)
        if more:
            note(more)


def _print_table(rows: list[ConnectionActivity], now_us: int) -> None:
    from rich.console import Console

    if sys.stdout.isatty():
        console = Console(file=styled(sys.stdout), highlight=False)
        console.print(_table(rows, now_us, console.width))
        return
    # A pipe has no width, so a row is one line.
    text = io.StringIO()
    Console(file=text, width=_PIPE_WIDTH, highlight=False).print(_table(rows, now_us, _PIPE_WIDTH))
    for line in text.getvalue().splitlines():
        print(line.rstrip())


# Terminals below these widths have no room for a column.
_LEAST_WIDTHS: Final = {"broker": 150, "errors": 150, "topics": 110, "software": 90}
_WHOLE: Final = ("client", "requests", "bytes", "errors", "state")
_AMOUNTS: Final = ("requests", "bytes", "errors")
_PIPE_WIDTH: Final = 400
# So many segments are read in a few seconds.
_DRAWN_AFTER: Final = 20_000


def _table(
    rows: list[ConnectionActivity], now_us: int, width: int, remarks: tuple[str, ...] = ()
) -> Table:
    """Return the list as a table, a line for each row, with remarks below it."""
    from rich.table import Table
    from rich.text import Text

    from flexwire.activity.listing import COLUMNS, to_cells

    below = ". ".join(filter(None, remarks))
    table = Table(
        box=None,
        padding=(0, 2, 0, 0),
        caption=Text(below) if below else None,
        caption_justify="left",
    )
    names = [name for name in COLUMNS if width >= _LEAST_WIDTHS.get(name, 0)]
    for name in names:
        justify: Literal["right", "left"] = "right" if name in _AMOUNTS else "left"
        table.add_column(name, justify=justify, no_wrap=name in _WHOLE)
    for row in rows:
        cells = to_cells(row, now_us)
        table.add_row(*(Text(cells[name], no_wrap=True, overflow="ellipsis") for name in names))
    return table


def _watch(captures: GrowingCaptures, reader: ActivityReader, view: _View, interval: float) -> None:
    """Draw the table again and again, until Ctrl-C."""
    from rich.console import Console
    from rich.live import Live

    from flexwire.printable import printable

    console = Console(file=styled(sys.stdout), highlight=False)
    live = Live(console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
    polls, is_growing, grown_at = 0, False, time.monotonic()
    try:
        with live:
            while True:
                segments, count = captures.poll(), _DRAWN_AFTER
                # A capture that takes minutes to be read is shown meanwhile.
                while count == _DRAWN_AFTER:
                    count = reader.read(islice(segments, _DRAWN_AFTER))
                    if count:
                        # What was there at the beginning may be years old.
                        is_growing, grown_at = polls > 0, time.monotonic()
                    silent_us = int((time.monotonic() - grown_at) * 1e6) if is_growing else 0
                    rows, more = view.rows(reader)
                    remarks = (more, *map(printable, captures.notes[-1:]))
                    now_us = reader.table.last_us + silent_us
                    live.update(_table(rows, now_us, console.width, remarks), refresh=True)
                    reader.table.forget_closed()
                polls += 1
                time.sleep(interval)
    except KeyboardInterrupt:
        for text in captures.notes:
            note(text)
