"""The tables of a capture, written by tasks that each decode a range of it.

```
capture files ─▶ survey ─▶ ranges ─▶ frames, messages/<Message>, records        one task a range
                   └─────────────────▶ connections, packets
small files of a table ─▶ joined                                                `compaction`
```
A task goes from the bytes of its range to columns, and writes its part of each table itself
(`flexwire.tables`). What passes through Spark are numbers of ranges, and the names of files.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from flexwire.spark.publishing.commit import MOST_TASKS, run_tasks
from flexwire.spark.publishing.compaction import compact, remove_parts
from flexwire.spark.publishing.manifest import part_name, settle
from flexwire.spark.publishing.table_files import TableFiles
from flexwire.spark.summing import keep_sums, merged_sums
from flexwire.spark.sums.analysis import CONNECTIONS, PACKETS, AnalysisSums
from flexwire.spark.surveying import KEPT, kept, surveyed
from flexwire.spark.tasks import begin_task
from flexwire.survey.ranges import FRAMES, RECORDS, decoded_rows
from flexwire.survey.survey import RANGE_BYTES
from flexwire.tables import schema
from flexwire.tables.frames import connection_rows, packet_rows
from flexwire.tables.inflated import Meter, within_allowance

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from flexwire.records.inflation import Inflation
    from flexwire.spark.publishing.drop import Drop
    from flexwire.spark.publishing.manifest import Committed
    from flexwire.spark.surveying import Surveyed
    from flexwire.survey.survey import Asked, Survey
    from flexwire.tables.records import Rows

LEAST_RANGE_BYTES: Final = 64 << 20
"""What has fewer bytes is decoded by one task: to begin another one takes longer."""
MOST_RANGE_BYTES: Final = 4 << 30
"""So many bytes take a task a minute, and longer is not to be done again where it fails."""

# The survey writes before all ranges.
_OF_SURVEY: Final = -1
# Tables that every analysis has, whatever it found.
ALWAYS = {FRAMES: schema.FRAMES_TABLE, RECORDS: schema.RECORDS}


def range_bytes(total: int, tasks_at_once: int) -> int:
    """How many bytes of a capture of ``total`` bytes a task is to decode.

    Two rounds of tasks where they are large enough for large files, and else one, as far as that
    does not make them too small.
    """
    processors = max(1, tasks_at_once)
    wanted = max(total // (2 * processors), min(RANGE_BYTES, total // processors))
    return max(LEAST_RANGE_BYTES, min(MOST_RANGE_BYTES, wanted), -(-total // MOST_TASKS))


def write_tables(
    spark: SparkSession, asked: Asked, drop: Drop, total: int
) -> tuple[Surveyed, AnalysisSums]:
    """Write the tables of a capture of ``total`` bytes to ``drop``, and sum up their rows.

    Where too many files overlap in time to be merged (`Surveyed.is_crowded`), there are none, and
    none where files are unreadable that are not to be skipped.
    """
    place = drop.place
    write_survey = partial(_write_survey, min(total, asked.range_bytes))
    survey = surveyed(spark, asked, drop, total, write_survey)
    found = survey.value
    committed: list[Committed[Any]] = [survey]
    if found.ranges and total > asked.range_bytes:
        how = replace(asked, files=())
        work = partial(_decode, how, asked.digest, found.span_us, found.ranges > 1)
        committed += run_tasks(spark, found.ranges, work, drop)
    written = compact(spark, committed, drop)
    # A survey that was given up has written nothing.
    kept_by = len(committed) if survey.files else len(committed) - 1
    sums = merged_sums(spark, drop, found.span_us, kept_by)
    place.remove(entry.name for entry in place.entries(f"{KEPT}/"))
    remove_parts(place)
    settle(place, drop.told(written))
    return found, sums


def _write_survey(
    captured: int, asked: Asked, survey: Survey, kept: dict[str, bytes], drop: Drop
) -> None:
    def write(inflation: Inflation) -> None:
        how, meter = replace(asked, inflation=inflation), Meter(inflation, captured)
        with SummedFiles(drop, asked.digest, _OF_SURVEY, survey.span_us) as writers:
            writers.write(CONNECTIONS, connection_rows(survey.connections))
            writers.write(PACKETS, packet_rows(survey.notes))
            if kept:
                for number in range(survey.ranges):
                    writers.write_range(how, number, kept.__getitem__, meter)

    within_allowance(asked.inflation, write)


def _decode(
    asked: Asked,
    digest: str,
    span_us: int,
    is_part: bool,  # noqa: FBT001 - bound by partial, the one way to configure a task
    number: int,
    drop: Drop,
) -> None:
    begin_task()

    def write(inflation: Inflation) -> None:
        how, meter = replace(asked, inflation=inflation), Meter(inflation, asked.range_bytes)
        with SummedFiles(drop, digest, number, span_us, is_part=is_part) as writers:
            writers.write_range(how, number, partial(kept, drop.place), meter)

    within_allowance(asked.inflation, write)


class SummedFiles(TableFiles):
    """The files that a task writes, and the sums of their rows."""

    def __init__(
        self, drop: Drop, digest: str, number: int, span_us: int, *, is_part: bool = False
    ) -> None:
        super().__init__(drop, part_name(digest, max(0, number), 0), is_part=is_part)
        self._place = drop.place
        self._number = number
        self.sums = AnalysisSums(span_us)

    def __exit__(self, *error: object) -> None:
        super().__exit__(*error)
        if error[0] is None:
            keep_sums(self._place, self._number + 1, self.sums)

    def write(self, table: str, rows: Rows) -> None:
        """Write rows of a table."""
        super().write(table, rows)
        self.sums.add(table, rows)

    def write_range(
        self, asked: Asked, number: int, kept: Callable[[str], bytes], meter: Meter
    ) -> None:
        """Write all rows of a range, and have the meter count what its record batches take."""
        if number == 0:
            for table, columns in ALWAYS.items():
                self.begin(table, columns)
        for table, rows in decoded_rows(asked, number, kept):
            self.write(table, rows)
            if table == RECORDS:
                meter.add(rows)
                meter.check()
