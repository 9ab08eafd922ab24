"""Run a whole analysis in a driver process on a cluster, while tasks are killed."""

from __future__ import annotations

import os
import resource
import signal
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import pyarrow as pa

from flexwire.inputs import Inputs
from flexwire.inputs import input_sources as listed
from flexwire.spark.analyze import analyze
from flexwire.spark.publishing import commit
from flexwire.survey.survey import AnalysisRequest
from tests.spark.faulty import begin, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

_TaskJob = commit._TaskJob
WAITING, HIDDEN = "waiting", "hidden"


def analyzed(
    spark: SparkSession, captures: list[str], out: str, fault: str = "", flags: str = ""
) -> dict[str, int]:
    """Analyze in many small ranges. Return the number of reported steps of each stage."""
    heard: dict[str, int] = {}

    def hear(stage: str, done: int, total: int) -> None:
        heard[stage] = max(heard.get(stage, 0), done, total)

    with changed(fault, flags):
        analyze(captures, out, spark=spark, progress=hear)
    return heard


@contextmanager
def changed(fault: str, flags: str) -> Iterator[None]:
    """Make an analysis use many small ranges, and inject a fault if one is named."""
    with (
        patch("flexwire.spark.analyze.range_bytes_for", lambda *_: 20_000),
        patch("flexwire.spark.capture_job.LEAST_BYTES", 0),
        patch(
            "flexwire.spark.options.AnalysisRequest", partial(AnalysisRequest, chunk_bytes=4_096)
        ),
        patch.object(commit, "_TaskJob", partial(_Faulty, fault=fault, flags=flags)),
        patch("flexwire.spark.analyze.input_sources", _hidden if fault == HIDDEN else listed),
    ):
        yield


def _hidden(paths: Iterable[str | Path]) -> Inputs:
    """List files. The last one exists only on the driver's own disk."""
    inputs = listed(paths)
    Path(inputs.captures[-1].url).unlink()
    return inputs


@dataclass(frozen=True, slots=True)
class _Faulty(_TaskJob):
    """The object that is sent to tasks. Task 1 of each action ends once in the given way."""

    fault: str = ""
    flags: str = ""

    def run(self, number: int) -> bytes:
        """Run a task, and end it if this is the planned fault."""
        flags = Path(self.flags, self.tag)
        if not self.fault or number != 1:
            return _TaskJob.run(self, number)
        flags.mkdir(exist_ok=True)
        is_first = begin(flags, number)
        # The task has written all its files, but has not reported them.
        done = _TaskJob.run(self, number)
        if is_first and self.fault == "task_killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if is_first and self.fault == "worker_killed":
            (Path(self.flags) / WAITING).write_text(os.environ["SPARK_LOCAL_DIRS"])
            wait_for((Path(self.flags) / "go").exists)
        return done


def address_space(spark: SparkSession) -> int:
    """Return how many bytes of address space a Python worker may use."""
    return int(spark.range(1).mapInArrow(_limits, "bytes bigint").collect()[0].bytes)


def _limits(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        yield pa.record_batch({"bytes": [resource.getrlimit(resource.RLIMIT_AS)[0]]})
