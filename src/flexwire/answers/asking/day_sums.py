"""Daily sums: the part of an answer that neither later days nor later facts change.

An answer that can be computed from daily sums consists of two functions
(`flexwire.answers.asking.answer.DaySums`). ``part`` reads the rows of some days and returns sums,
each of which covers one day. ``total`` adds up the sums of all days and returns the answer's rows.
The answer itself is ``total(part(tables))``, so the result is always computed the same way. Only
`latency` reads all rows at once: if it read the rows day by day, it would have to keep so many rows
for other days that it would take longer. `latency` uses the same two functions.

A part depends only on the files of its day. However, a later analysis may learn the name of a
topic, or learn that a request was answered. A part therefore keeps ids whose name is unknown, and
the keys of requests without a response. ``total`` looks up such ids and keys. The sums of a day
therefore remain valid as long as the files of that day exist.
"""

from __future__ import annotations

from functools import partial, reduce
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.tables.keys import ANALYSIS
from flexwire.tasks import spark_schema

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from pyspark.sql import Column

    from flexwire.answers.asking.answer import Task

DAY: Final = "day"
"""The column that contains the day to which a sum applies."""
DAY_US: Final = 86_400_000_000
"""The number of microseconds in a day."""


def day_of_time(time: str = "time") -> Column:
    """Return the day of a time in UTC, regardless of the session's time zone."""
    return F.date_from_unix_date(F.floor(F.unix_micros(time) / DAY_US).cast("int"))


def all_of(parts: Collection[DataFrame]) -> DataFrame:
    """Return the rows of several sums, of which there must be at least one."""
    return reduce(DataFrame.unionByName, parts)


def filled(parts: Collection[DataFrame]) -> DataFrame:
    """Return the rows of several tables; columns that a table lacks are null in that table's rows.

    There must be at least one table.
    """
    return reduce(partial(DataFrame.unionByName, allowMissingColumns=True), parts)


def analysis_of(rows: DataFrame) -> Column:
    """Return the column `ANALYSIS` for a key; it is empty for the tables of a single analysis.

    Those tables lack the column, and a null in a join does not equal any other key.
    """
    return (F.col(ANALYSIS) if ANALYSIS in rows.columns else F.lit("")).alias(ANALYSIS)


def kept_columns(rows: DataFrame, schema: pa.Schema) -> Column:
    """Return a struct with the columns of a schema, for rows that a part keeps for other days.

    Columns that the rows lack are null.
    """
    columns = {name: F.col(name) for name in rows.columns}
    # A null in a join does not equal any other key.
    columns.setdefault(ANALYSIS, F.when(F.col("connection").isNotNull(), ""))
    return F.struct(
        *(
            columns.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name)
            for field in spark_schema(schema)
        )
    )


_TIME: Final = "time"


def day_task(
    task: Task, columns: Sequence[str], schema: pa.Schema
) -> tuple[list[str], Task, pa.Schema]:
    """Return a task that adds the day to its rows, along with its columns and its schema.

    ``task`` reads ``columns`` and returns ``schema``. ``task`` is called for one day at a time.
    """
    read = [*columns] if _TIME in columns else [*columns, _TIME]
    with_day = schema.append(pa.field(DAY, pa.date32()))
    return read, partial(_by_day, task, [*columns]), with_day


def _by_day(
    task: Task, columns: list[str], name: str, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    for day, of_day in groupby(_days(batches), itemgetter(0)):
        for rows in task(name, (batch.select(columns) for _, batch in of_day)):
            days = pa.repeat(pa.scalar(day, pa.date32()), len(rows))
            yield pa.RecordBatch.from_arrays(
                [*rows.columns, days], schema=rows.schema.append(pa.field(DAY, pa.date32()))
            )


def _days(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[object, pa.RecordBatch]]:
    """Yield the rows of each day in a batch. In a growing table, a file contains only one day."""
    for batch in batches:
        days = pc.cast(batch[_TIME], pa.date32(), safe=False)
        for day in days.unique().to_pylist():
            yield day, batch.filter(days.is_null() if day is None else pc.equal(days, day))
