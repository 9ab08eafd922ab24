"""Write small files of tables as ranges do, and merge them without Spark."""

from __future__ import annotations

import os
import random
import signal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from flexwire.spark.publishing import compaction
from flexwire.spark.publishing.commit import run_tasks
from flexwire.spark.publishing.compaction import compact, remove_parts
from flexwire.spark.publishing.manifest import (
    PARTS,
    TABLES,
    CommittedTask,
    WrittenFiles,
    part_name,
    settle,
)
from flexwire.spark.publishing.task_output import TaskOutput
from flexwire.storage.output_directory import OutputDirectory
from flexwire.tables.parquet import TableWriter
from tests.spark import faulty

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from tests.spark.faulty import Store


WORK = compaction._work
WHOLE = 50_000
SCHEMA = pa.schema(
    {
        "time": pa.timestamp("us", "UTC"),
        "range": pa.int16(),
        "names": pa.list_(pa.struct({"name": pa.string(), "offset": pa.int64()})),
        "value": pa.binary(),
    }
)
# The number of rows in each range: a few, a third of the minimum, or enough.
ROWS = {"messages/Heartbeat": 3, "frames": 40, "day/2026": 35, "records": 150}
VALUE = 400


def rows_of(table: str, number: int) -> pa.RecordBatch:
    chance = random.Random(f"{table} {number}")
    rows = [
        {
            "time": 1_790_000_000_000_000 + 1000 * number + row,
            "range": number,
            "names": [{"name": f"{table} {row}", "offset": None}] * (row % 3),
            "value": chance.randbytes(VALUE) if row % 5 else None,
        }
        for row in range(ROWS[table])
    ]
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


def write_parts(number: int, task_output: TaskOutput) -> None:
    """Write a range's part of each table; put the part next to the tables if it is small."""
    for table in ROWS:
        local = task_output.scratch / table.replace("/", "-")
        with TableWriter(local, SCHEMA) as writer:
            writer.write(rows_of(table, number))
        folder = PARTS if writer.size < WHOLE else TABLES
        task_output.put(
            local, table, part_name(faulty.DIGEST, number, 0), writer.rows, folder=folder
        )


def here(
    _spark: object, count: int, work: Callable[[int, TaskOutput], Any], task_output: TaskOutput
) -> list[Any]:
    """Run tasks in this process."""
    committed = []
    for number in range(count):
        with task_output.open_attempt(number) as own:
            value = work(number, own)
            committed.append(CommittedTask(number, WrittenFiles(own.files), value))
    return committed


def joined(
    place: OutputDirectory | Store, count: int, run: Any = run_tasks, spark: Any = None
) -> list[str]:
    """Write the parts of this many ranges, merge them, and return the names that remain."""
    task_output = TaskOutput(place)
    written = list(compact(spark, run(spark, count, write_parts, task_output), task_output))
    remove_parts(place)
    settle(place, written)
    return sorted(one.name for one in written)


def run_joining(spark: SparkSession, out: str, flags: str, count: int) -> list[str]:
    """Do the same in a separate driver, where the first merging task and another one are killed."""
    patch = pytest.MonkeyPatch()
    patch.setattr(compaction, "TASK_BYTES", 20_000)
    patch.setattr(compaction, "LEAST_PARTS", 2)
    # Workers receive the task's work in pickled form.
    patch.setattr(compaction, "_work", partial(work_killed, Path(flags)))
    return joined(OutputDirectory(out), count, spark=spark)


def work_killed(flags: Path, number: int, task_output: TaskOutput) -> None:
    """Kill two tasks' first workers: one within a file, the other after all files are stored."""
    is_first = faulty.begin(flags, number)
    if is_first and number == 0:
        (task_output.scratch / "joined").write_bytes(b"PAR1 and no more")
        os.kill(os.getpid(), signal.SIGKILL)
    WORK(number, task_output)
    if is_first and number == 1:
        os.kill(os.getpid(), signal.SIGKILL)
