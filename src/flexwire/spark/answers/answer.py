"""What an answer is: a function of tables in plain DataFrame code, and how the report shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import Column as SparkColumn

    from flexwire.report.answer_facts import Picture, ShownColumn
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
    ``of_logs`` has nothing to say without log segments.
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
        return rows.take(pc.sort_indices(rows, sort_keys=keys))


def _ordering(name: str) -> SparkColumn:
    if name.startswith("-"):
        return F.col(name.removeprefix("-")).desc_nulls_last()
    return F.col(name).asc_nulls_last()
