"""The tables of a capture, written by tasks that each decode a range of it.

```
capture files ─▶ survey ─▶ ranges ─▶ frames, messages/<Message>, records        one task a range
                   └─────────────────▶ connections, packets
```
A task goes from the bytes of its range to columns, and writes its part of each table itself
(`flexwire.tables`). What passes through Spark are numbers of ranges, and the names of files.
"""

from __future__ import annotations

import pickle
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, Self

from flexwire.spark.commit import run_tasks
from flexwire.spark.drop import Drop
from flexwire.spark.manifest import part_name, settle
from flexwire.spark.sums.analysis import CONNECTIONS, PACKETS, AnalysisSums
from flexwire.spark.surveying import KEPT, kept, surveyed
from flexwire.spark.tasks import use_one_thread
from flexwire.tables import schema
from flexwire.tables.connections import connection_rows, packet_rows
from flexwire.tables.decoding import FRAMES, RECORDS, decoded
from flexwire.tables.parquet import TableWriter
from flexwire.tables.survey import RANGE_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from flexwire.spark.places import Place
    from flexwire.spark.surveying import Surveyed
    from flexwire.tables.survey import Asked, Survey

LEAST_RANGE_BYTES: Final = 64 << 20
"""What has fewer bytes is decoded by one task: to begin another one takes longer."""

# The sums of what each task wrote lie here, the survey's first.
_SUMS: Final = "_sums"
_OF_SURVEY: Final = -1
# Tables that every analysis has, whatever it found.
_ALWAYS = {FRAMES: schema.FRAMES_TABLE, RECORDS: schema.RECORDS}


def range_bytes(total: int, tasks_at_once: int) -> int:
    """How many bytes of a capture of ``total`` bytes a task is to decode.

    Two rounds of tasks, as far as that does not make them too small or too large.
    """
    return max(LEAST_RANGE_BYTES, min(RANGE_BYTES, total // (2 * max(1, tasks_at_once))))


def write_tables(
    spark: SparkSession, asked: Asked, place: Place, total: int
) -> tuple[Surveyed, AnalysisSums]:
    """Write the tables of a capture of ``total`` bytes below ``place``, and sum up their rows.

    Where the survey finds that files overlap in time (`Surveyed.is_ordered`), there are none, and
    none where files are unreadable that are not to be skipped.
    """
    drop = Drop(place)
    survey = surveyed(spark, asked, drop, total, _write_survey)
    found, written = survey.value, list(survey.files)
    if found.ranges and total > asked.range_bytes:
        work = partial(_decode, replace(asked, files=()), asked.digest, found.span_us)
        for one in run_tasks(spark, found.ranges, work, drop):
            written += one.files
    sums = AnalysisSums(found.span_us)
    for name in sorted(entry.name for entry in place.entries(f"{_SUMS}/")):
        # Written by the tasks of this analysis, in a directory of its own.
        sums.merge(pickle.loads(place.read(name)))  # noqa: S301 - see above
    for folder in (KEPT, _SUMS):
        place.remove([entry.name for entry in place.entries(f"{folder}/")])
    settle(place, written)
    return found, sums


def _write_survey(asked: Asked, survey: Survey, kept: dict[str, bytes], drop: Drop) -> None:
    with _Writers(drop, asked.digest, _OF_SURVEY, survey.span_us) as writers:
        writers.write(CONNECTIONS, connection_rows(survey.connections))
        writers.write(PACKETS, packet_rows(survey.notes))
        if kept:
            for number in range(survey.ranges):
                writers.write_range(asked, number, kept.__getitem__)


def _decode(asked: Asked, digest: str, span_us: int, number: int, drop: Drop) -> None:
    use_one_thread()
    with _Writers(drop, digest, number, span_us) as writers:
        writers.write_range(asked, number, partial(kept, drop.place))


class _Writers:
    """The files that a task writes, one a table, and their sums; handed over in the end."""

    def __init__(self, drop: Drop, digest: str, number: int, span_us: int) -> None:
        self._drop = drop
        self._number = number
        self._name = part_name(digest, max(0, number), 0)
        self._sums = AnalysisSums(span_us)
        self._open: dict[str, TableWriter] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.__exit__(*error)  # type: ignore[arg-type]  # the three that a context gets
        if error[0] is None:
            for table, writer in self._open.items():
                self._drop.put(self._local(table), table, self._name, writer.rows)
            data = pickle.dumps(self._sums, pickle.HIGHEST_PROTOCOL)
            self._drop.place.write(f"{_SUMS}/{self._number + 1:06d}", data)

    def write(self, table: str, rows: pa.RecordBatch) -> None:
        """Write rows of a table."""
        self._of(table, rows.schema).write(rows)
        self._sums.add(table, rows)

    def write_range(self, asked: Asked, number: int, kept: Callable[[str], bytes]) -> None:
        """Write all rows of a range."""
        if number == 0:
            for table, columns in _ALWAYS.items():
                self._of(table, columns)
        for table, rows in decoded(asked, number, kept):
            self.write(table, rows)

    def _of(self, table: str, columns: pa.Schema) -> TableWriter:
        writer = self._open.get(table)
        if writer is None:
            local = self._local(table)
            writer = self._stack.enter_context(TableWriter(local, columns))
            self._open[table] = writer
        return writer

    def _local(self, table: str) -> Path:
        return self._drop.scratch / f"{table.replace('/', '-')}.parquet"
