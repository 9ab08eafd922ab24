"""A task's part of a table, cut by the days of its rows, in UTC.

The file's own statistics say which days are in it. Nearly always it is one, and the file stays as
it is.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from flexwire.errors import AnalysisError
from flexwire.tables.log_schema import LOG_SCHEMAS
from flexwire.tables.parquet import TableWriter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DAY: Final = "day"
MOST_DAYS: Final = 400
"""Days in the part of one task; a directory and a file for each is what a table may bear."""

_EPOCH: Final = date(1970, 1, 1)
_DAY_US: Final = 24 * 60 * 60 * 1_000_000
_OPEN: Final = 8  # each holds a row group
_ROWS: Final = 10_000
# Tables whose rows are of no moment, or of a capture or a log as a whole: that may be of years.
_WITHOUT_DAYS: Final = frozenset({"packets", "audit", *LOG_SCHEMAS})
_TIMES: Final = {"connections": "first_time"}


def has_days(table: str) -> bool:
    """Whether a table is partitioned by day."""
    return table not in _WITHOUT_DAYS


def day_of(name: str) -> str | None:
    """The day in the name of a file that `by_day` gave.

    >>> day_of("tables/frames/day=2026-11-22/a.parquet")
    '2026-11-22'
    """
    return next((one[4:] for one in name.split("/") if one.startswith(f"{DAY}=")), None)


def by_day(local: Path, table: str, name: str, rows: int) -> Iterator[tuple[Path, str, int]]:
    """Give the files that a finished one becomes, with their names and rows: none without rows."""
    if not rows:
        return
    if not has_days(table) or day_of(name):
        # What was cut before keeps its day.
        yield local, name, rows
        return
    time = _TIMES.get(table, "time")
    with pq.ParquetFile(local) as file:
        first, last = _span(file, time)
        if first == last:
            yield local, f"{DAY}={_day(first, table)}/{name}", rows
            return
        days = _days(file, time)
        if len(days) > MOST_DAYS:
            raise AnalysisError(
                f"one task's part of {table} has rows of {len(days):,} days, and at most "
                f"{MOST_DAYS} can be partitions; where that is not a fault of the capture, write "
                "format parquet"
            )
        remaining = iter(days)
        while some := list(islice(remaining, _OPEN)):
            yield from _cut(file, local, time, some, name, table)


def _span(file: pq.ParquetFile, time: str) -> tuple[int, int]:
    """The first and last day, by the statistics of the row groups, or by the rows without them."""
    metadata = file.metadata
    at = file.schema_arrow.get_field_index(time)
    found = [metadata.row_group(one).column(at).statistics for one in range(file.num_row_groups)]
    if not all(one is not None and one.has_min_max and not one.null_count for one in found):
        days = _days(file, time)
        return days[0], days[-1]
    return min(_number(one.min) for one in found), max(_number(one.max) for one in found)


def _number(moment: datetime) -> int:
    return (moment.astimezone(UTC).date() - _EPOCH).days


def _days(file: pq.ParquetFile, time: str) -> list[int]:
    found: set[int] = set()
    for batch in file.iter_batches(_ROWS, columns=[time]):
        found.update(_numbers(batch.column(0)).unique().to_pylist())
    return sorted(found)


def _numbers(times: pa.Array) -> pa.Array:
    micros = times.cast(pa.int64())
    # Towards the past, also before 1970.
    whole = pc.divide(micros, _DAY_US)
    early = pc.less(micros, pc.multiply(whole, _DAY_US))
    return pc.subtract(whole, early.cast(pa.int64()))


def _day(number: int, table: str) -> str:
    try:
        return (_EPOCH + timedelta(days=number)).isoformat()
    except OverflowError:
        raise AnalysisError(
            f"{table} has rows that were captured in no year from 1 to 9999, which no day can say; "
            "write format parquet"
        ) from None


def _cut(
    file: pq.ParquetFile, local: Path, time: str, days: list[int], name: str, table: str
) -> Iterator[tuple[Path, str, int]]:
    writers = {
        day: TableWriter(local.with_name(f"{day}-{local.name}"), file.schema_arrow) for day in days
    }
    try:
        for batch in file.iter_batches(_ROWS):
            numbers = _numbers(batch.column(time))
            for day in set(numbers.unique().to_pylist()) & writers.keys():
                writers[day].write(batch.filter(pc.equal(numbers, day)))
        for writer in writers.values():
            writer.close()
    except BaseException:
        for writer in writers.values():
            writer.discard()
        raise
    for day, writer in writers.items():
        path = local.with_name(f"{day}-{local.name}")
        yield path, f"{DAY}={_day(day, table)}/{name}", writer.rows
