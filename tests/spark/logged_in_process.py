"""Add request logs to Delta tables in this process, without Spark, one task after another."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.inputs import input_sources
from flexwire.logs.request_log import Zone
from flexwire.spark import request_log_job
from flexwire.spark.delta.output import DeltaTables
from flexwire.spark.delta.request_logs import GivenRequestLogs
from flexwire.spark.delta.staging import grown_staging
from flexwire.spark.iceberg.output import IcebergTables
from flexwire.spark.publishing import compaction
from flexwire.spark.publishing.catalogs import IcebergCatalog
from flexwire.spark.publishing.manifest import CommittedTask
from flexwire.spark.request_log_job import plan_request_logs, write_request_log_tables
from flexwire.storage.output_directory import OutputDirectory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from flexwire.spark.delta.grown import GrownTables
    from flexwire.spark.publishing.task_output import TaskOutput

UTC = Zone()


def run_here(
    _spark: object, count: int, work: Callable[[int, TaskOutput], Any], task_output: TaskOutput
) -> list[CommittedTask[Any]]:
    """Run tasks as `run_tasks` does, one after the other."""
    committed = []
    for number in range(count):
        with task_output.open_attempt(number) as attempt:
            value = work(number, attempt)
            committed.append(CommittedTask(number, [*attempt.files], value))
    return committed


@contextmanager
def without_spark(task_bytes: int = 30_000) -> Iterator[None]:
    """Make tasks run in this process. Each task reads about ``task_bytes`` bytes of lines."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(request_log_job, "run_tasks", run_here)
        patch.setattr(compaction, "run_tasks", run_here)
        patch.setattr(request_log_job, "begin_task", lambda: None)
        patch.setattr(request_log_job, "LEAST_TASK", task_bytes)
        yield


def tables_of(out: Path, form: str) -> GrownTables:
    """Return the tables of an output in one format."""
    place = OutputDirectory(str(out))
    return DeltaTables(place) if form == "delta" else IcebergTables(place, IcebergCatalog())


def add_logs(root: Path, out: Path, form: str = "delta") -> tuple[str, tuple[str, ...]]:
    """Add the new lines of the logs below ``root``. Return the analysis and its notes.

    If no line is new, the analysis is the one that read the last lines.
    """
    files = input_sources([root]).request_logs
    given = GivenRequestLogs(files, UTC)
    tables = tables_of(out, form)
    with grown_staging(tables, [], lambda _: "", append=True, request_logs=given) as staging:
        if staging.known_run:
            return staging.known_run, staging.log_notes
        plan = plan_request_logs(staging.of_logs(files, UTC), 2, UTC)
        spark: Any = None
        written = staging.task_output
        _, _, notes = write_request_log_tables(spark, plan, written, UTC, growth=staging.growth)
        staging.files.write("facts.json", b"{}")
        staging.publish()
        return staging.run, (*notes, *staging.log_notes)
