"""Format an answer as lines of text that fit into a terminal, in the units of the report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from flexwire.facts import units
from flexwire.printable import printable
from flexwire.report.answers import cell

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.facts.answers import ShownColumn

WIDTH: Final = 120
"""The maximum number of characters in a line."""

_GAP: Final = "  "
# The maximum length of a string. Longer texts are truncated, and truncated further if the line is
# still too long.
_LONGEST: Final = 48
_SHORTEST: Final = 12


def lines(
    columns: Sequence[ShownColumn], rows: Sequence[Sequence[Any]]
) -> tuple[list[str], list[str]]:
    """Return a line of headings, a line for each row, and the headings of omitted columns.

    Values have the form of `AnswerFacts.shown`. No line is longer than `WIDTH`: first, long values
    are truncated; then, columns are omitted, starting with the last one. Columns that identify a
    row are omitted last.
    """
    cells = [
        [printable(cell(row[place], column.kind).text) for row in rows]
        for place, column in enumerate(columns)
    ]
    cells = [[column.heading, *values] for column, values in zip(columns, cells, strict=True)]
    shown = [*range(len(columns))]
    while _least(cells, columns, shown) > WIDTH and len(shown) > 1:
        others = [place for place in shown if not columns[place].is_about]
        shown.remove((others or shown)[-1])
    widths = _widths(cells, columns, shown)
    printed = [
        _GAP.join(
            _set(cells[place][line], width, columns[place])
            for place, width in zip(shown, widths, strict=True)
        ).rstrip()
        for line in range(len(rows) + 1)
    ]
    return printed, [column.heading for place, column in enumerate(columns) if place not in shown]


def _is_text(column: ShownColumn) -> bool:
    return column.kind == "text"


def _widest(values: Sequence[str]) -> int:
    return min(_LONGEST, max(map(len, values)))


def _least(
    cells: Sequence[Sequence[str]], columns: Sequence[ShownColumn], shown: Sequence[int]
) -> int:
    """Return the minimum width of lines with these columns."""
    widths = [_narrowest(cells[place], columns[place]) for place in shown]
    return sum(widths) + len(_GAP) * (len(shown) - 1)


def _narrowest(values: Sequence[str], column: ShownColumn) -> int:
    """Return the minimum width of a column. Values may be truncated, but headings may not."""
    widest = _widest(values)
    return min(widest, max(_SHORTEST, len(column.heading))) if _is_text(column) else widest


def _widths(
    cells: Sequence[Sequence[str]], columns: Sequence[ShownColumn], shown: Sequence[int]
) -> list[int]:
    """Return the widths of columns. The widest columns are narrowed until the line fits."""
    widths = [_widest(cells[place]) for place in shown]
    least = [_narrowest(cells[place], columns[place]) for place in shown]
    room = WIDTH - len(_GAP) * (len(shown) - 1)
    while sum(widths) > room:
        wider = [at for at, width in enumerate(widths) if width > least[at]]
        widths[max(wider, key=lambda at: widths[at])] -= 1
    return widths


def _set(text: str, width: int, column: ShownColumn) -> str:
    fitted = text if len(text) <= width else f"{text[: width - 1]}{units.ELLIPSIS}"
    return fitted.ljust(width) if _is_text(column) else fitted.rjust(width)
