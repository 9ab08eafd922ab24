"""What an answer is: a function of tables in plain DataFrame code, and how the report shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Column as SparkColumn

    from flexwire.facts.answers import Picture, ShownColumn
    from flexwire.spark.answers.reading import AnalysisTables
    from flexwire.tables.schema import Column

Ask = Callable[["AnalysisTables"], DataFrame]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that `analyze` gives: its table and CSV, and its part of the report.

    ``name`` is that of the function, the table and the CSV. ``columns`` are those of the DataFrame
    that ``ask`` gives, in order; ``order`` are their names, the most important row first, "-bytes"
    where large values come first and nulls last. ``shown`` are some of them. An answer without a
    row is not shown. One that a file of labels changes has ``labelled``, which reads it and gives
    what is asked then instead of ``ask``. One that ``asks`` internal topics is asked where one of
    them is among the logs of an analysis, which alone can: their state is in no table. One
    ``of_logs`` has nothing to say without log segments. One ``of_grown`` has nothing to say of one
    analysis, so it is asked of tables that grow, or by name. ``of_state`` names the answer that
    says of internal topics what this one says of traffic; ``elsewhere`` what else says it of a
    broker's logs. ``most_rows`` is how many rows are kept of an answer that has more than
    others do.
    """

    name: str
    question: str
    meaning: str
    advice: str
    row: str
    columns: tuple[Column, ...]
    order: tuple[str, ...]
    shown: tuple[ShownColumn, ...]
    ask: Ask
    picture: Picture | None = None
    labelled: Callable[[str | Path], Ask] | None = None
    asks: tuple[str, ...] = ()
    of_logs: bool = False
    of_grown: bool = False
    of_state: str = ""
    elsewhere: str = ""
    most_rows: int = 0

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
