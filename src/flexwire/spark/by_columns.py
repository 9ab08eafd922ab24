"""Tables as tasks read them by columns, where Java would make a row of each value in arrays.

A billion values of partitions in Metadata responses, or fifty million record headers, are columns
in a file, and pyarrow reads them as columns. What a task makes of them is few rows, which Spark
goes on with.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial, reduce
from itertools import chain
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import DataFrame

from flexwire.spark.reading import parts_of
from flexwire.spark.tasks import begin_task, map_in_arrow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from flexwire.spark.reading import FilePart
    from flexwire.tables.output import Output
    from flexwire.tables.parquet import Ranges

    # What is made of the batches of the table of that name.
    Task = Callable[[str, Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

_MOST_ROWS: Final = 65_536


@dataclass(frozen=True, slots=True)
class _Table:
    """What a task needs to read its part of a table: the columns, and the parts of all tasks."""

    name: str
    columns: pa.Schema
    parts: tuple[FilePart, ...]


def of_files(
    spark: SparkSession,
    found: Output,
    names: Sequence[str],
    columns: Sequence[str],
    task: Task,
    schema: pa.Schema,
    *,
    only: Ranges | None = None,
) -> DataFrame:
    """What ``task`` makes of these columns of these tables of an output: a DataFrame of ``schema``.

    Row groups in which no row is as ``only`` says are not read; whatever else is, comes to the
    task. A task has one part of each table at most, so that small tables are read by one task.
    """
    tables = []
    for name in names:
        whole = found.schema(name)
        parts = parts_of((one.name, one.size) for one in found.files(name))
        wanted = pa.schema([whole.field(one) for one in columns])
        tables.append(_Table(name.rpartition("/")[2], wanted, (*parts,)))
    count = max((len(one.parts) for one in tables), default=1)
    numbers = spark.range(0, count, 1, count)
    return map_in_arrow(numbers, partial(_read, found.root.url, tables, task, only), schema)


def of_rows(
    tables: Mapping[str, DataFrame], columns: Sequence[str], task: Task, schema: pa.Schema
) -> DataFrame:
    """The same of DataFrames, whose rows Spark gives."""
    made = [
        map_in_arrow(table.select(*columns), partial(task, name), schema)
        for name, table in tables.items()
    ]
    return reduce(DataFrame.unionByName, made)


def _read(
    place: str,
    tables: Sequence[_Table],
    task: Task,
    only: Ranges | None,
    numbers: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    begin_task()
    for number in chain.from_iterable(one["id"].to_pylist() for one in numbers):
        for table in tables:
            if number < len(table.parts):
                part = table.parts[number]
                batches = part.batches(place, table.columns, only, _MOST_ROWS)
                yield from task(table.name, batches)
