"""The sums of what each task wrote, from one file a task to those of the whole analysis.

Merging takes a task's sums some milliseconds, and up to some tens where there is much to tell
apart. Of many tasks they are merged by tasks, each those of a row of neighbours.
"""

from __future__ import annotations

import pickle
from functools import partial
from typing import TYPE_CHECKING, Final

from flexwire.spark.publishing.commit import run_tasks
from flexwire.spark.publishing.fetching import fetched
from flexwire.spark.publishing.places import check_listed, write_there
from flexwire.spark.sums.analysis import AnalysisSums
from flexwire.storage.local import squeezed, unsqueezed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

    from flexwire.spark.publishing.drop import Drop
    from flexwire.spark.publishing.places import Place

MOST_MERGED: Final = 256
"""The sums of so many tasks the driver merges by itself."""
MERGED_BY_TASK: Final = 128

# One directory for each time that all were merged; the first has what ranges wrote.
_SUMS: Final = "_sums"


def keep_sums(place: Place, number: int, sums: AnalysisSums) -> None:
    """Keep what a task has summed up; those of the following tasks have greater numbers."""
    _keep(place, 0, number, sums)


def merged_sums(spark: SparkSession, drop: Drop, span_us: int, count: int) -> AnalysisSums:
    """Merge all that ``count`` tasks have kept, in the order of its numbers, and remove it.

    Raises `StorageError` where fewer are listed: a sum that is left out is no sum.
    """
    place, level = drop.place, 0
    while len(files := _listed(place, level, count)) > MOST_MERGED:
        level += 1
        count = -(-len(files) // MERGED_BY_TASK)
        run_tasks(spark, count, partial(_merge, files, level, span_us), drop)
    sums = _merged(place, files, AnalysisSums(span_us, spills=True))
    place.remove(entry.name for entry in place.entries(f"{_SUMS}/"))
    return sums


def _listed(place: Place, level: int, count: int) -> list[tuple[str, int]]:
    found = sorted((entry.name, entry.size) for entry in place.entries(f"{_SUMS}/{level}/"))
    check_listed(place, f"{_SUMS}/{level}", len(found), count)
    return found


def _merge(
    files: Sequence[tuple[str, int]], level: int, span_us: int, number: int, drop: Drop
) -> None:
    mine = files[number * MERGED_BY_TASK : (number + 1) * MERGED_BY_TASK]
    _keep(drop.place, level, number, _merged(drop.place, mine, AnalysisSums(span_us)))


def _merged(place: Place, files: Sequence[tuple[str, int]], sums: AnalysisSums) -> AnalysisSums:
    for data in fetched(place, files):
        # Written by the tasks of this analysis, in a directory of its own.
        sums.merge(pickle.loads(unsqueezed(data)))  # noqa: S301 - see above
    return sums


def _keep(place: Place, level: int, number: int, sums: AnalysisSums) -> None:
    data = pickle.dumps(sums, pickle.HIGHEST_PROTOCOL)
    write_there(place, f"{_SUMS}/{level}/{number:06d}", squeezed(data))
