"""Report the progress of a long analysis to the user."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.connect.shell.progress import ProgressHandler, StageInfo

POLL_SECONDS = 0.2
_DESCRIPTION = "spark.job.description"


class Progress(Protocol):
    """A function that receives the current stage of the analysis and its progress.

    ``total`` is 0 while it is unknown. The calls come from several threads, one at a time.
    """

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Report that ``done`` of the ``total`` steps of ``stage`` are done."""


def silent(stage: str, done: int, total: int) -> None:
    """Ignore a progress report."""


class StageClock:
    """Measure how many seconds each stage takes, and remember the latest stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.current = ""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure the time of a stage."""
        self.current = name
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start


class _Stages:
    """The number of finished tasks, and of all tasks, in all stages seen so far."""

    def __init__(self, progress: Progress, stage: str) -> None:
        self._progress = progress
        self._stage = stage
        self.seen: dict[int, tuple[int, int]] = {}

    def tell(self) -> None:
        done = sum(done for done, _ in self.seen.values())
        self._progress(self._stage, done, sum(total for _, total in self.seen.values()))


@contextmanager
def watch_tasks(spark: SparkSession, progress: Progress, stage: str) -> Iterator[None]:
    """Report the tasks of all jobs in the block as steps of ``stage``."""
    from flexwire.tasks import is_connect  # noqa: PLC0415 - PySpark is slow to import

    progress(stage, 0, 0)
    stages = _Stages(progress, stage)
    if is_connect(spark):
        with _handle_progress(spark, stages):
            yield
    else:
        with _poll_progress(spark, stages), _described_jobs(spark, stage):
            yield


@contextmanager
def _described_jobs(spark: SparkSession, stage: str) -> Iterator[None]:
    """Describe the jobs of this thread for Spark's user interface and its event log."""
    # The demo imports this module on machines without Spark.
    from flexwire.spark.failures import SPARK_ERRORS  # noqa: PLC0415 - Spark may be missing

    context = spark.sparkContext
    before = context.getLocalProperty(_DESCRIPTION)
    context.setJobDescription(f"flexwire: {stage}")
    try:
        yield
    finally:
        # If Java has ended, the failure of the job reports it.
        with suppress(*SPARK_ERRORS):
            context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]  # None removes it


@contextmanager
def _handle_progress(spark: SparkSession, stages_seen: _Stages) -> Iterator[None]:
    """Register a handler with Spark Connect that reports the progress of a session's queries."""
    lock = threading.Lock()

    def handle(
        stages: Iterable[StageInfo] | None,
        inflight_tasks: int,  # noqa: ARG001 - PySpark passes all four arguments by name
        operation_id: str | None,  # noqa: ARG001 - PySpark passes this argument by name
        done: bool,  # noqa: ARG001, FBT001 - PySpark passes this argument by name
    ) -> None:
        with lock:
            for stage in stages or ():
                stages_seen.seen[stage.stage_id] = (stage.num_completed_tasks, stage.num_tasks)
            stages_seen.tell()

    # PySpark declares the type as an abstract class. A function is not an instance of this class.
    handler = cast("ProgressHandler", handle)
    spark.registerProgressHandler(handler)
    try:
        yield
    finally:
        spark.removeProgressHandler(handler)


@contextmanager
def _poll_progress(spark: SparkSession, stages: _Stages) -> Iterator[None]:
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(spark, stages, over), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _watch(spark: SparkSession, stages: _Stages, over: threading.Event) -> None:
    # The demo imports this module on machines without Spark.
    from flexwire.spark.failures import SPARK_ERRORS  # noqa: PLC0415 - Spark may be missing

    # When Java ends, the thread that runs the job receives the error, and there is nothing left to
    # watch.
    with suppress(*SPARK_ERRORS):
        _tell_tasks(spark, stages, over)


def _tell_tasks(spark: SparkSession, stages: _Stages, over: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    while not over.wait(POLL_SECONDS):
        active = tracker.getActiveStageIds()
        for number in active:
            info = tracker.getStageInfo(number)
            if info is not None:
                stages.seen[number] = (info.numCompletedTasks, info.numTasks)
        # A stage that is no longer active has finished all its tasks.
        for number in stages.seen.keys() - set(active):
            total = stages.seen[number][1]
            stages.seen[number] = (total, total)
        stages.tell()
