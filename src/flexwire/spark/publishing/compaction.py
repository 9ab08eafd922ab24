"""Joins the small files that the ranges of a capture leave of a table into large ones.

```
a range's task ─▶ _parts/<table>/…     small, to be joined ─▶ tables/<table>/…
               ─▶ tables/<table>/…     large enough as it is
```
Parts are not in the tables before they are joined, so that nobody finds a row twice: neither where
the driver is ended in the middle, nor where an attempt that does not count writes its part again
after all is published. Which are joined follows from their sizes and ranges alone, and so do the
names and the bytes of what is made of them. Only parts of one directory become one file.

What is joined is decoded and written twice. So of the bytes of all tables a third is joined at
most, the smallest files first; what is beyond that, or is in a few files only, goes into its table
as it is. Ranges are so large that the tables with most of the bytes need none of this.
"""

from __future__ import annotations

import pickle
from itertools import chain
from typing import TYPE_CHECKING, Any, Final

from flexwire.spark.publishing.commit import run_tasks
from flexwire.spark.publishing.manifest import PARTS, TABLES, WrittenFile
from flexwire.spark.publishing.table_files import PartGroup, write_group

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from flexwire.spark.publishing.manifest import CommittedTask
    from flexwire.spark.publishing.task_output import TaskOutput
    from flexwire.storage.output_directory import OutputDirectory

TASK_BYTES: Final = 1 << 30
"""A task joins parts of about so many bytes."""

LEAST_PARTS: Final = 8
"""Fewer files of a table stay as they are: to join them takes half of what making them took."""

# Of the bytes of all tables one in so many is written again at most.
_REWRITTEN: Final = 3
_PLAN: Final = "_plan"


def compact(
    spark: SparkSession, committed: Iterable[CommittedTask[Any]], task_output: TaskOutput
) -> Iterator[WrittenFile]:
    """Bring all parts that tasks committed into the tables; gives all files that belong there.

    Without parts that are to be joined no task is run. The parts stay until `remove_parts`.
    """
    tables: list[Iterable[WrittenFile]] = []
    runs = _runs(committed, tables)
    joined, moved = _chosen(runs, tables)
    if (root := task_output.directory.path) is not None:
        # To rename a file takes no task.
        tables.append([one for run in moved for one in _renamed(run, task_output.directory, root)])
        moved = []
    results = run_tasks(spark, _plan([*joined, *moved], task_output.directory), _work, task_output)
    return chain(*tables, *(one.files for one in results))


def remove_parts(place: OutputDirectory) -> None:
    """Remove all parts, once what was made of them is committed."""
    for folder in (_PLAN, PARTS):
        place.remove(entry.name for entry in place.entries(f"{folder}/"))


def _runs(
    committed: Iterable[CommittedTask[Any]], tables: list[Iterable[WrittenFile]]
) -> list[PartGroup]:
    """The runs of all parts; ``tables`` get the files that are there already."""
    runs: list[PartGroup] = []
    growing: dict[str, PartGroup] = {}
    for one in committed:
        tables.append([file for file in one.files if file.name.startswith(f"{TABLES}/")])
        for file in one.files:
            if not file.name.startswith(f"{PARTS}/"):
                continue
            folder, _, name = file.name.removeprefix(f"{PARTS}/").rpartition("/")
            prefix, number, place = name.removesuffix(".parquet").split("-")
            run = growing.get(folder)
            # Cut between two ranges only, as the names of its files say which they are of.
            if run is None or (run.size >= TASK_BYTES and run.span[1] != int(number)):
                run = growing[folder] = PartGroup(file.table, folder, prefix)
                runs.append(run)
            run.add(int(number), int(place), file)
    return runs


def _chosen(
    runs: list[PartGroup], tables: list[Iterable[WrittenFile]]
) -> tuple[list[PartGroup], list[PartGroup]]:
    """The runs to be joined, and those whose parts stay as they are."""
    total = sum(run.size for run in runs) + sum(one.size for some in tables for one in some)
    left = total // _REWRITTEN
    joined: list[PartGroup] = []
    moved: list[PartGroup] = []
    for run in sorted(runs, key=lambda one: (one.size / len(one), one.folder, one.span)):
        run.is_joined = len(run) >= LEAST_PARTS and run.size <= left
        if run.is_joined:
            left -= run.size
        (joined if run.is_joined else moved).append(run)
    return joined, moved


def _renamed(run: PartGroup, place: OutputDirectory, root: Path) -> Iterator[WrittenFile]:
    for part in run.parts():
        name = f"{TABLES}/{run.folder}/{run.name(part)}"
        place.put(root / run.source(part), name)
        yield WrittenFile(name, run.table, part.size, part.rows, part.crc32c)


def _plan(runs: list[PartGroup], place: OutputDirectory) -> int:
    """Write down what each task has to do; gives how many tasks there are."""
    tasks: list[list[PartGroup]] = []
    size = TASK_BYTES
    for run in runs:
        if size >= TASK_BYTES:
            tasks.append([])
            size = 0
        tasks[-1].append(run)
        size += run.size
    for number, task in enumerate(tasks):
        place.write(_plan_of(number), pickle.dumps(task, pickle.HIGHEST_PROTOCOL))
    return len(tasks)


def _plan_of(number: int) -> str:
    return f"{_PLAN}/{number:06d}"


def _work(number: int, task_output: TaskOutput) -> None:
    # Written by the driver of this analysis, in a directory of its own.
    runs: list[PartGroup] = pickle.loads(task_output.directory.read(_plan_of(number)))  # noqa: S301 - see above
    for run in runs:
        write_group(run, task_output)
