"""Run `faulty` work from staging to output, and return what a reader finds."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from flexwire.errors import FlexwireError
from flexwire.spark.failures import explain_failures
from flexwire.spark.publishing.commit import run_tasks
from flexwire.spark.publishing.local import local_staging
from flexwire.spark.publishing.manifest import settle
from flexwire.spark.publishing.task_output import TaskOutput
from flexwire.spark.tables import Tables, finished_tables, mark
from tests.spark import faulty

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession


def run(
    spark: SparkSession,
    out: Path,
    count: int,
    work: Callable[[int, TaskOutput], int],
    memory: str | None = None,
    worker_memory: str | None = None,
) -> list[int]:
    """Write, settle and publish the files. Return the tasks' values."""
    with local_staging(out) as place, explain_failures(lambda: "Writing", memory, worker_memory):
        committed = run_tasks(spark, count, work, TaskOutput(place.files))
        settle(place.files, [file for one in committed for file in one.files])
        mark(Tables(place.new / "tables"), [faulty.DIGEST])
        place.publish()
        return [one.value for one in committed]


def run_faulty(
    spark: SparkSession, out: str, flags: str, count: int, fault: str, *memory: str | None
) -> list[int]:
    """Do the same with a fault from `faulty`, in a separate process."""
    return run(spark, Path(out), count, partial(getattr(faulty, fault), Path(flags)), *memory)


def found(out: Path) -> set[str]:
    """Return the table files that a reader finds; none if they are incomplete."""
    try:
        tables = finished_tables(out / "tables")
    except FlexwireError:
        return set()
    return {file.relative_to(out).as_posix() for file in tables.root.rglob("*.parquet")}
