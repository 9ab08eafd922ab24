"""What an answer is: a function of tables in plain DataFrame code, and how the report shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import TYPE_CHECKING, Any, Final
from warnings import warn

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.facts.answers import ShownColumn

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Column as SparkColumn

    from flexwire.answers.asking.reading import AnalysisTables
    from flexwire.facts.answers import Picture
    from flexwire.tables.schema import Column

Ask = Callable[["AnalysisTables"], DataFrame]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """An answer that `analyze` gives: its table and CSV, and its part of the report.

    Attributes:
        name: that of the function, the file, the table and the CSV.
        question: what is asked, with a question mark.
        meaning: what the rows say, in a sentence or two.
        advice: what to do about it.
        row: what a row is: "a topic".
        columns: those of the DataFrame that ``ask`` returns, in order.
        order: the names of columns that order the rows, the most important row first. "-bytes"
            puts large values first and nulls last.
        ask: the function of tables.
        shown: the names of the columns with a heading, if the report has them in another order.
        place: where the report has it: answers with a smaller place come first.
        picture: its picture in the report.
        labelled: for an answer that a file of labels changes: reads the file, and returns what is
            asked then instead of ``ask``.
        asks: internal topics that it is about. It is asked if one of them is among the logs of an
            analysis. No table has their state, so only the analysis itself can ask it.
        of_logs: whether it says nothing without log segments.
        of_grown: whether it says nothing about one analysis. It is asked of tables that grow, or
            by name.
        of_state: the answer that says of internal topics what this one says of traffic.
        elsewhere: what else says it of a broker's logs.
        most_rows: how many rows are kept, for an answer that has more than others.

    An answer without a row is not shown.
    """

    name: str
    question: str
    meaning: str
    advice: str
    row: str
    columns: tuple[Column, ...]
    order: tuple[str, ...]
    ask: Ask
    shown: tuple[str, ...] = ()
    place: int = 0
    picture: Picture | None = None
    labelled: Callable[[str | Path], Ask] | None = None
    asks: tuple[str, ...] = ()
    of_logs: bool = False
    of_grown: bool = False
    of_state: str = ""
    elsewhere: str = ""
    most_rows: int = 0

    def shown_columns(self) -> tuple[ShownColumn, ...]:
        """Return the columns that the report shows, in its order."""
        found = {one.name: one.shown() for one in self.columns if one.heading}
        return tuple(found[name] for name in self.shown or found)

    def ordered(self, rows: DataFrame) -> DataFrame:
        """The rows of this answer, the most important first, and the same order each time."""
        return rows.orderBy(*map(_ordering, self.order))

    def sorted(self, rows: pa.Table) -> pa.Table:
        """The same of rows that are here."""
        keys = [
            (name.removeprefix("-"), "descending" if name.startswith("-") else "ascending")
            for name in self.order
        ]
        # Nulls come last, as in Spark.
        by = pa.table({name: _comparable(rows[name]) for name, _ in keys})
        return rows.take(pc.sort_indices(by, sort_keys=keys))


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """A column that Arrow orders: lists, which it does not, by their places in Spark's order."""
    if not pa.types.is_list(column.type):
        return column
    lists = [None if one is None else _placed(one) for one in column.to_pylist()]
    known = sorted({one for one in lists if one is not None})
    places = {one: place for place, one in enumerate(known)}
    return pa.array([None if one is None else places[one] for one in lists], pa.int64())


def _placed(elements: list[Any]) -> tuple[Any, ...]:
    """A list as Python compares it as Spark does: null elements first."""
    return tuple((one is not None, one) for one in elements)


def _ordering(name: str) -> SparkColumn:
    if name.startswith("-"):
        return F.col(name.removeprefix("-")).desc_nulls_last()
    return F.col(name).asc_nulls_last()


# What an answer was made of by position, and still is until the next release.
_BY_POSITION: Final = (
    *("name", "question", "meaning", "advice", "row", "columns", "order", "shown", "ask"),
    *("picture", "labelled", "asks", "of_logs", "of_grown", "of_state", "elsewhere", "most_rows"),
)


def _with_positions(made: Callable[..., None]) -> Callable[..., None]:
    """Return the constructor of `Answer` that also takes what it took before this release.

    That is arguments by position, and two lists of columns: those of a table, and `ShownColumn`.
    """

    @wraps(made)
    def called(self: Answer, *given: Any, **named: Any) -> None:
        named = dict(zip(_BY_POSITION, given, strict=False)) | named
        shown = named.get("shown", ())
        if given or any(isinstance(one, ShownColumn) for one in shown):
            how = "Answer takes keywords, and columns with headings instead of ShownColumn"
            warn(f"{how}; the old way goes with the next release", DeprecationWarning, 2)
            columns = {one.name: one for one in named["columns"]}
            for one in shown:
                told = {"heading": one.heading, "kind": one.kind, "is_about": one.is_about}
                columns[one.name] = replace(columns[one.name], **told)
            named |= {"columns": (*columns.values(),), "shown": tuple(one.name for one in shown)}
        made(self, **named)

    return called


Answer.__init__ = _with_positions(Answer.__init__)  # type: ignore[method-assign]
