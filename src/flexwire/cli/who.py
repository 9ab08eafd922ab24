"""`flexwire who`: list the activity of a cluster's connections as captures or logs grow."""

from __future__ import annotations

import io
import json
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import click

from flexwire.cli.metrics_options import METRICS_OPTIONS, metrics_port
from flexwire.cli.options import Format, InputError, format_option, timezone_option
from flexwire.cli.standard_input import input_name, takes_standard_input
from flexwire.cli.terminal import note, styled

if TYPE_CHECKING:
    import asyncio
    from typing import Literal

    from rich.live import Live
    from rich.table import Table

    from flexwire.activity.connections import ActivityTable, ConnectionActivity
    from flexwire.activity.sources import ActivitySource
    from flexwire.tap.metrics import MetricsPort

_COLUMNS: Final = (
    *(
        "client",
        "broker",
        "client-id",
        "software",
        "principal",
        "instance-id",
        "topics",
        "requests",
    ),
    *("bytes", "errors", "last-error", "waiting", "state"),
)


@click.command()
@click.argument("paths", nargs=-1, required=True)
@click.option(
    "--once",
    is_flag=True,
    help=(
        "Print one table and exit. This option is the default if standard output is not a "
        "terminal, and with --format json. For a tap's socket, the table then covers one "
        "interval (see --interval)."
    ),
)
@click.option(
    "--interval",
    type=click.FloatRange(min=0.1, max=3600),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="How often to read new traffic and redraw the table.",
)
@click.option(
    "--order-by",
    type=click.Choice(_COLUMNS, case_sensitive=False),
    default="bytes",
    show_default=True,
    help="The column to sort by. Text is sorted from A to Z, and numbers from largest to smallest.",
)
@click.option(
    "--filter",
    "filters",
    metavar="TEXT",
    multiple=True,
    help=(
        "Show only connections whose client id, principal, instance id, address with port, "
        "software, topic or API is this text. A * stands for any text. Can be given multiple "
        "times; a connection must then match every TEXT."
    ),
)
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=None,
    show_default="all",
    help="Show at most this many connections.",
)
@timezone_option
@METRICS_OPTIONS[0]
@METRICS_OPTIONS[1]
@click.option(
    "--metrics-series",
    type=click.IntRange(min=1, max=100_000),
    default=1000,
    show_default=True,
    metavar="CLIENTS",
    help="The maximum number of clients that get their own series; all other clients share one "
    "series.",
)
@format_option
@takes_standard_input(paths=input_name)
def who(
    *,
    paths: tuple[str, ...],
    once: bool,
    interval: float,
    order_by: str,
    filters: tuple[str, ...],
    limit: int | None,
    timezone: str,
    metrics: str | None,
    metrics_beyond_loopback: bool,
    metrics_series: int,
    output: Format,
) -> None:
    """List client connections with their topics, requests, errors and waiting times.

    PATHS can be captures (pcap or pcapng) or broker request logs; either kind may be gzipped. A
    path can also be a directory of these files, a pattern, - for standard input, or the socket of a
    running tap (flexwire tap --live), which sends only new traffic. On a terminal, the command
    redraws the table as files grow and new files appear, until you press Ctrl-C. After a connection
    is closed, the table shows it once more. docs/who.md describes the columns.

    JSON output contains one line for each connection.
    """
    from flexwire.extras import needed_by

    with needed_by("flexwire who", "columnar"):
        from flexwire.activity.sources import open_activity

    port = metrics_port(metrics, beyond_loopback=metrics_beyond_loopback)
    if port is not None and (once or output is Format.JSON):
        raise InputError("--metrics cannot be used with --once or --format json")
    source = open_activity(paths, timezone)
    view = _View(order_by, filters, limit)
    if port is None and (once or output is Format.JSON or not sys.stdout.isatty()):
        _read_once(source, interval)
        for text in source.notes:
            note(text)
        view.print(source.table, output)
    else:
        import asyncio

        asyncio.run(_watch(source, view, interval, port, metrics_series))


def _read_once(source: ActivitySource, interval: float) -> None:
    """Read everything that exists. Tap sockets are read for ``interval`` seconds."""
    from flexwire.activity.sources import LiveActivity

    until = time.monotonic() + (interval if isinstance(source, LiveActivity) else 0)
    while True:
        for _ in source.read(must_exist=True):
            pass
        left = until - time.monotonic()
        if left <= 0:
            break
        time.sleep(min(left, _LOOK_AGAIN))
    source.finish()


class _View:
    """The part of the list that a user wants to see, and the order of the list."""

    def __init__(self, order_by: str, filters: tuple[str, ...], limit: int | None) -> None:
        self._order_by = order_by
        self._filters = filters
        self._limit = limit

    def rows(self, table: ActivityTable) -> tuple[list[ConnectionActivity], str]:
        """Return the rows to show, and a sentence with the number of other rows."""
        from flexwire.activity.listing import find_rows

        found = find_rows(table, self._filters, self._order_by)
        shown = found[: self._limit]
        more = len(found) - len(shown) + table.left_out
        return shown, f"{more:,} more connections are not shown" if more else ""

    def print(self, table: ActivityTable, output: Format) -> None:
        """Print the list once."""
        from flexwire.activity.listing import to_form

        rows, more = self.rows(table)
        if output is Format.JSON:
            for row in rows:
                print(json.dumps(to_form(row), ensure_ascii=False))
        else:
            _print_table(rows, table.last_us)
        if more:
            note(more)


def _print_table(rows: list[ConnectionActivity], now_us: int) -> None:
    from rich.console import Console

    if sys.stdout.isatty():
        console = Console(file=styled(sys.stdout), highlight=False)
        console.print(_table(rows, now_us, console.width))
        return
    # A pipe has no width, so each row is one line.
    text = io.StringIO()
    Console(file=text, width=_PIPE_WIDTH, highlight=False).print(_table(rows, now_us, _PIPE_WIDTH))
    for line in text.getvalue().splitlines():
        print(line.rstrip())


# On terminals that are narrower than these widths, these columns are left out.
_LEAST_WIDTHS: Final = {
    "instance-id": 170,
    "principal": 110,
    "broker": 150,
    "errors": 150,
    "topics": 110,
    "software": 90,
}
_WHOLE: Final = ("client", "requests", "bytes", "errors", "state")
_AMOUNTS: Final = ("requests", "bytes", "errors")
_PIPE_WIDTH: Final = 400
_LOOK_AGAIN: Final = 0.1


def _table(
    rows: list[ConnectionActivity], now_us: int, width: int, remarks: tuple[str, ...] = ()
) -> Table:
    """Return the list as a table with one line per row, and remarks below it."""
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
    all_cells = [to_cells(row, now_us) for row in rows]
    names = [name for name in COLUMNS if width >= _LEAST_WIDTHS.get(name, 0)]
    if rows and width < _PIPE_WIDTH:
        # A terminal has no room for columns that are empty.
        names = [name for name in names if any(cells[name] for cells in all_cells)]
    for name in names:
        justify: Literal["right", "left"] = "right" if name in _AMOUNTS else "left"
        table.add_column(name, justify=justify, no_wrap=name in _WHOLE)
    for cells in all_cells:
        table.add_row(*(Text(cells[name], no_wrap=True, overflow="ellipsis") for name in names))
    return table


async def _watch(
    source: ActivitySource, view: _View, interval: float, port: MetricsPort | None, series: int
) -> None:
    """Draw the table repeatedly, and serve metrics, until Ctrl-C or SIGTERM."""
    import asyncio

    from rich.console import Console
    from rich.live import Live

    from flexwire.activity.metrics import ActivityMetrics

    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, stop.set)
    is_drawn = sys.stdout.isatty()
    console = Console(file=styled(sys.stdout), highlight=False)
    live = Live(console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
    try:
        if port is not None:
            await port.start(ActivityMetrics(source.table, series).render)
            note(f"metrics at http://{port.address}/metrics")
        if is_drawn:
            live.start()
        await _follow(source, _Drawing(view, live) if is_drawn else None, interval, stop)
    finally:
        live.stop()
        if port is not None:
            await port.close()
        source.close()
        for text in source.notes:
            note(text)


class _Drawing:
    """Draw the table on the terminal."""

    def __init__(self, view: _View, live: Live) -> None:
        self._view = view
        self._live = live
        self._grown_at: float | None = None

    def draw(self, source: ActivitySource, *, has_grown: bool) -> None:
        """Draw the table. Once the files have grown, "ago" is relative to the current time."""
        from flexwire.printable import printable

        if has_grown:
            self._grown_at = time.monotonic()
        silent = 0.0 if self._grown_at is None else time.monotonic() - self._grown_at
        rows, more = self._view.rows(source.table)
        remarks = (more, *map(printable, source.notes[-1:]))
        now_us = source.table.last_us + int(silent * 1e6)
        table = _table(rows, now_us, self._live.console.width, remarks)
        self._live.update(table, refresh=True)


async def _follow(
    source: ActivitySource, drawing: _Drawing | None, interval: float, stop: asyncio.Event
) -> None:
    """Read new data until it is time to stop."""
    import asyncio

    is_first = True
    while not stop.is_set():
        for count in source.read():
            # Reading a capture may take minutes, and the table is shown during that time.
            if drawing is not None:
                # Data that existed at the start may be several years old.
                drawing.draw(source, has_grown=bool(count) and not is_first)
            source.table.forget_closed()
            await asyncio.sleep(0)
            if stop.is_set():
                return
        is_first = False
        with suppress(TimeoutError):
            await asyncio.wait_for(stop.wait(), interval)
