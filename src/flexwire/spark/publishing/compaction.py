"""Merges the small files that a capture's ranges write for a table into large files.

```
a range's task ─▶ _parts/<table>/…     small, to be merged ─▶ tables/<table>/…
               ─▶ tables/<table>/…     large enough as it is
```
Parts are not in the tables before they are merged, so no reader finds a row twice. This is true
even if the driver is killed in the middle, or if an uncommitted attempt writes its part again after
everything is published. The sizes and ranges of the parts alone decide which parts are merged. The
names and bytes of the results therefore also depend only on these sizes and ranges. Only parts of
the same directory are merged into one file.

The rows of merged files are decoded and written twice. Therefore at most a third of the bytes of
all tables is merged, starting with the smallest files. Other parts, and the parts of tables with
few files, become files of the table unchanged. Ranges are large enough that the tables with most of
the bytes need no merging.
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
"""The approximate number of bytes that a task merges."""

LEAST_PARTS: Final = 8
"""The smallest number of files that are merged. Merging takes half as long as writing the files.
"""

# At most this fraction of the bytes in all tables is written again.
_REWRITTEN: Final = 3
_PLAN: Final = "_plan"


def compact(
    spark: SparkSession, committed: Iterable[CommittedTask[Any]], task_output: TaskOutput
) -> Iterator[WrittenFile]:
    """Move all parts that tasks committed into the tables; return all files of the tables.

    If no parts have to be merged, no task runs. The parts remain until `remove_parts`.
    """
    tables: list[Iterable[WrittenFile]] = []
    groups = _part_groups(committed, tables)
    joined, moved = _choose(groups, tables)
    if (root := task_output.directory.path) is not None:
        # Renaming a file requires no task.
        tables.append(
            [file for group in moved for file in _rename_parts(group, task_output.directory, root)]
        )
        moved = []
    results = run_tasks(spark, _plan([*joined, *moved], task_output.directory), _work, task_output)
    return chain(*tables, *(task.files for task in results))


def remove_parts(directory: OutputDirectory) -> None:
    """Remove all parts, once the merged files are committed."""
    for folder in (_PLAN, PARTS):
        directory.remove(entry.name for entry in directory.entries(f"{folder}/"))


def _part_groups(
    committed: Iterable[CommittedTask[Any]], tables: list[Iterable[WrittenFile]]
) -> list[PartGroup]:
    """Return all parts as groups; add the files that are already in place to ``tables``."""
    groups: list[PartGroup] = []
    growing: dict[str, PartGroup] = {}
    for task in committed:
        tables.append([file for file in task.files if file.name.startswith(f"{TABLES}/")])
        for file in task.files:
            if not file.name.startswith(f"{PARTS}/"):
                continue
            folder, _, name = file.name.removeprefix(f"{PARTS}/").rpartition("/")
            prefix, number, sequence = name.removesuffix(".parquet").split("-")
            group = growing.get(folder)
            # A group can only end between two ranges, because the names of its files contain its
            # ranges.
            if group is None or (group.size >= TASK_BYTES and group.span[1] != int(number)):
                group = growing[folder] = PartGroup(file.table, folder, prefix)
                groups.append(group)
            group.add(int(number), int(sequence), file)
    return groups


def _choose(
    groups: list[PartGroup], tables: list[Iterable[WrittenFile]]
) -> tuple[list[PartGroup], list[PartGroup]]:
    """Return the groups to merge, and the groups whose parts remain unchanged."""
    total = sum(group.size for group in groups) + sum(
        file.size for files in tables for file in files
    )
    bytes_left = total // _REWRITTEN
    joined: list[PartGroup] = []
    moved: list[PartGroup] = []
    for group in sorted(
        groups, key=lambda group: (group.size / len(group), group.folder, group.span)
    ):
        group.is_joined = len(group) >= LEAST_PARTS and group.size <= bytes_left
        if group.is_joined:
            bytes_left -= group.size
        (joined if group.is_joined else moved).append(group)
    return joined, moved


def _rename_parts(
    group: PartGroup, directory: OutputDirectory, root: Path
) -> Iterator[WrittenFile]:
    for part in group.parts():
        name = f"{TABLES}/{group.folder}/{group.name(part)}"
        directory.put(root / group.source(part), name)
        yield WrittenFile(name, group.table, part.size, part.rows, part.crc32c)


def _plan(groups: list[PartGroup], directory: OutputDirectory) -> int:
    """Write the work of each task to a file; return the number of tasks."""
    tasks: list[list[PartGroup]] = []
    size = TASK_BYTES
    for group in groups:
        if size >= TASK_BYTES:
            tasks.append([])
            size = 0
        tasks[-1].append(group)
        size += group.size
    for number, task in enumerate(tasks):
        directory.write(_plan_of(number), pickle.dumps(task, pickle.HIGHEST_PROTOCOL))
    return len(tasks)


def _plan_of(number: int) -> str:
    return f"{_PLAN}/{number:06d}"


def _work(number: int, task_output: TaskOutput) -> None:
    # The driver of this analysis wrote these bytes, in the analysis's own directory.
    groups: list[PartGroup] = pickle.loads(task_output.directory.read(_plan_of(number)))  # noqa: S301 - we wrote these bytes ourselves
    for group in groups:
        write_group(group, task_output)
