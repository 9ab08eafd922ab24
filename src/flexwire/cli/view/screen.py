"""The screen: a table of connections, a table of frames, and the fields of the selected frame.

Names in a capture come from strangers. `flexwire.printable` escapes every text, and tables contain
it as plain text, never as markup.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from rich.text import Text
from textual.app import App
from textual.binding import Binding
from textual.containers import Horizontal
from textual.widgets import DataTable, Footer, Input, Log, Static

from flexwire.cli.captured_frames import time_text
from flexwire.cli.view.frames import ViewedCapture
from flexwire.cli.view.typed_filter import EXAMPLE, parse_filter, typed
from flexwire.errors import ArgumentError, FlexwireError
from flexwire.printable import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.widgets.data_table import ColumnKey

    from flexwire.cli.captured_frames import FrameRow

_ROWS_AT_ONCE: Final = 500
PAGE_ROWS: Final = 2_000
"""The maximum number of frames that are listed at once. Drawing a table of all frames would take
seconds.
"""
_ALL: Final = "all connections"
_COLUMNS: Final = ("time", "message", "v", "id", "bytes", "client id")


class CaptureScreen(App[None]):
    """The application that shows one capture."""

    CSS = """
    #connections { width: 52; max-width: 45%; border-right: solid $primary; }
    #upper { height: 1fr; }
    #fields { height: 1fr; border-top: solid $primary; }
    #filter { display: none; height: 3; }
    #filter.typing { display: block; }
    #summary { height: 1; background: $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        ("q", "quit", "Quit"),
        ("a", "show_all", "All connections"),
        ("f", "type_filter", "Filter"),
        ("n", "turn_page(1)", "Next frames"),
        ("p", "turn_page(-1)", "Previous frames"),
        Binding("tab", "app.focus_next", "Next pane", show=True),
        Binding("escape", "close_filter", "Close the filter", show=False),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, capture: ViewedCapture) -> None:
        super().__init__()
        self._capture = capture
        # The frames by their numbers, in the order in which they are listed.
        self._rows: dict[str, FrameRow] = {}
        self._counts: Counter[str] = Counter()
        self._count_column: ColumnKey | None = None
        # The connection whose frames are shown, or an empty string for all connections.
        self._connection = ""
        self._page = 0
        self._told = ""
        self._chosen: FrameRow | None = None

    def compose(self) -> ComposeResult:
        """Yield the panes."""
        with Horizontal(id="upper"):
            yield DataTable(id="connections", cursor_type="row", zebra_stripes=True)
            yield DataTable(id="frames", cursor_type="row", zebra_stripes=True)
        yield Log(id="fields")
        yield Input(id="filter", placeholder=EXAMPLE)
        yield Static(id="summary", markup=False)
        yield Footer()

    @property
    def connections(self) -> DataTable[Text]:
        """The table of connections."""
        return self.query_one("#connections", DataTable)

    @property
    def frames(self) -> DataTable[Text]:
        """The table of frames."""
        return self.query_one("#frames", DataTable)

    @property
    def fields(self) -> Log:
        """The fields of the selected frame."""
        return self.query_one("#fields", Log)

    @property
    def typing(self) -> Input:
        """The input line for a filter. The line is shown only while a filter is typed."""
        return self.query_one("#filter", Input)

    def on_mount(self) -> None:
        """Start reading the capture."""
        self._count_column, _ = self.connections.add_columns("frames", "connection")
        self.frames.add_columns(*_COLUMNS)
        self._begin()

    def _begin(self) -> None:
        """Start reading the capture, with all panes empty."""
        self._rows, self._counts = {}, Counter()
        self.connections.clear()
        self.connections.add_row(_cell("0"), _cell(_ALL), key="")
        self._told = "reading"
        self._show("")
        capture = self._capture
        self.run_worker(lambda: self._read(capture), thread=True, group="read")

    def _read(self, capture: ViewedCapture) -> None:
        """Read a capture in a thread, until another filter is selected."""

        def tell(act: Callable[..., None], *arguments: object) -> None:
            self.call_from_thread(self._do_for, capture, act, *arguments)

        try:
            rows = capture.read()
            while capture is self._capture and (part := [*islice(rows, _ROWS_AT_ONCE)]):
                tell(self._add, part)
        except (FlexwireError, OSError) as error:
            tell(self._say, f"{type(error).__name__}: {error}")
        else:
            tell(self._finish)

    def _do_for(self, capture: ViewedCapture, act: Callable[..., None], *arguments: object) -> None:
        # Another filter may have been selected in the meantime.
        if capture is self._capture:
            act(*arguments)

    def _finish(self) -> None:
        """List all frames by time.

        Before this call, they were listed in the order in which their connections became known.
        """
        by_time = sorted(self._rows.items(), key=lambda item: item[1].timestamp_us)
        if by_time != [*self._rows.items()]:
            # The first row is selected automatically.
            chosen = self._chosen if self.frames.cursor_row else None
            self._rows = dict(by_time)
            self._show(self._connection, chosen)
        self._say(self._capture.summary)

    def _say(self, text: str) -> None:
        self._told = text
        first, count = self._page * PAGE_ROWS, len(self._fitting())
        if count > PAGE_ROWS:
            last = min(first + PAGE_ROWS, count)
            text = f"{text}; showing {first + 1:,} to {last:,} of {count:,}"
        self._write_summary(text)

    def _write_summary(self, text: str) -> None:
        shown = printable(f"{self._capture.path.name}: {text}")
        self.query_one("#summary", Static).update(Text(shown))

    def _fitting(self) -> list[FrameRow]:
        """Return the frames of the connection that is currently shown."""
        return [row for row in self._rows.values() if self._connection in {"", row.connection}]

    def _add(self, rows: list[FrameRow]) -> None:
        self._rows |= {str(row.number): row for row in rows}
        self._list(rows)
        for name, count in Counter(row.connection for row in rows).items():
            is_new = name not in self._counts
            self._counts[name] += count
            if is_new:
                self.connections.add_row(_cell(""), _cell(name), key=name)
            self._update_count(name, self._counts[name])
        self._update_count("", len(self._rows))
        self._say(f"reading; {len(self._rows):,} frames")

    def _update_count(self, key: str, count: int) -> None:
        if self._count_column is not None:
            shown = _cell(f"{count:,}", justify="right")
            self.connections.update_cell(key, self._count_column, shown, update_width=True)

    def _list(self, rows: Iterable[FrameRow]) -> None:
        """Add frames of the connection that is shown to the table until the page is full."""
        for row in rows:
            if self.frames.row_count == PAGE_ROWS:
                return
            if self._connection in {"", row.connection}:
                self.frames.add_row(*_cells(row), key=str(row.number))

    def on_data_table_row_selected(self, event: DataTable.RowSelected) -> None:
        """Show the frames of the connection that was selected."""
        if event.data_table is self.connections:
            self._show(str(event.row_key.value or ""))

    def on_data_table_row_highlighted(self, event: DataTable.RowHighlighted) -> None:
        """Show the fields of the frame that was selected."""
        if event.data_table is not self.frames or event.row_key.value is None:
            return
        row = self._rows[event.row_key.value]
        if row == self._chosen:
            return
        self._chosen = row
        if self._capture.is_held(row):
            self._show_fields(row, [*self._capture.lines(row)])
            return
        self.fields.clear()
        self.fields.write_line("reading the capture again")
        self.run_worker(lambda: self._read_again(row), thread=True, group="fields", exclusive=True)

    def _read_again(self, row: FrameRow) -> None:
        try:
            lines = [*self._capture.lines(row)]
        except (FlexwireError, OSError) as error:
            lines = [f"{type(error).__name__}: {error}"]
        self.call_from_thread(self._show_fields, row, lines)

    def _show_fields(self, row: FrameRow, lines: list[str]) -> None:
        # The user may have selected another frame in the meantime.
        if row == self._chosen:
            self.fields.clear()
            # The widget leaves out lines without characters.
            self.fields.write_lines([printable(line) or " " for line in lines], scroll_end=False)
            self.fields.scroll_home(animate=False)

    def action_type_filter(self) -> None:
        """Show the line for typing a filter, with the current filter in it."""
        self.typing.value = typed(self._capture.only)
        self.typing.add_class("typing")
        self.typing.focus()

    def action_close_filter(self) -> None:
        """Continue with the current filter."""
        self.typing.remove_class("typing")
        self.frames.focus()
        self._say(self._told)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Read the capture again with the typed filter, or show the error in it."""
        try:
            only = parse_filter(event.value)
        except ArgumentError as error:
            self._write_summary(f"ArgumentError: {error}")
            return
        self._capture = ViewedCapture(self._capture.path, only)
        self.action_close_filter()
        self._begin()

    def action_show_all(self) -> None:
        """Show the frames of all connections."""
        self._show("")

    def action_turn_page(self, step: int) -> None:
        """Show the next or the previous frames, if there are any."""
        page = self._page + step
        if 0 <= page * PAGE_ROWS < len(self._fitting()):
            self._show(self._connection, page=page)

    def _show(self, connection: str, chosen: FrameRow | None = None, page: int = 0) -> None:
        """Show the frames of a connection, with the cursor on the first or on a given frame."""
        self._connection = connection
        self._chosen = chosen
        fitting = self._fitting()
        self._page = page if chosen is None else fitting.index(chosen) // PAGE_ROWS
        self.frames.clear()
        self._list(fitting[self._page * PAGE_ROWS :])
        self._say(self._told)
        if chosen is not None:
            self.frames.move_cursor(row=self.frames.get_row_index(str(chosen.number)))
        else:
            self.fields.clear()
            self.frames.focus()


def _cell(text: str, justify: Literal["left", "right"] = "left") -> Text:
    return Text(printable(text), no_wrap=True, justify=justify)


def _cells(row: FrameRow) -> list[Text]:
    arrow = ">" if row.direction == "request" else "<"
    return [
        _cell(time_text(row.timestamp_us, "%H:%M:%S.%f")),
        _cell(f"{arrow} {row.name}"),
        _cell("" if row.version is None else str(row.version), "right"),
        _cell("" if row.correlation_id is None else str(row.correlation_id), "right"),
        _cell(f"{row.size:,}", "right"),
        _cell(row.client_id or ""),
    ]
