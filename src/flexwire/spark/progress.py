"""What a long analysis shows to a person who waits for it."""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

POLL_SECONDS = 0.2


class Progress(Protocol):
    """Hears of the stage that the analysis is in, and how much of it is done.

    ``total`` is 0 while nobody knows it. Calls come from several threads, one at a time.
    """

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Take note of ``done`` of ``total`` steps of ``stage``."""


def silent(stage: str, done: int, total: int) -> None:
    """Hear of everything and say nothing."""


class Steps:
    """Counts the steps of one stage that several threads finish.

    >>> steps = Steps(lambda *heard: print(heard), "Decoding", 2)
    ('Decoding', 0, 2)
    >>> steps.finish()
    ('Decoding', 1, 2)
    """

    def __init__(self, progress: Progress, stage: str, total: int) -> None:
        self._progress = progress
        self._stage = stage
        self._total = total
        self._done = 0
        self._lock = threading.Lock()
        progress(stage, 0, total)

    def finish(self) -> None:
        """One step more is done."""
        with self._lock:
            self._done += 1
            self._progress(self._stage, self._done, self._total)


@contextmanager
def watched_tasks(spark: SparkSession, progress: Progress, stage: str) -> Iterator[None]:
    """Report the tasks of whatever Spark runs meanwhile as the steps of ``stage``."""
    progress(stage, 0, 0)
    over = threading.Event()
    watcher = threading.Thread(target=_watch, args=(spark, progress, stage, over), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _watch(spark: SparkSession, progress: Progress, stage: str, over: threading.Event) -> None:
    # The demo imports this module where there may be no Spark.
    from flexwire.spark.failures import SPARK_ERRORS  # noqa: PLC0415  see above

    # When Java ends, the thread that runs the job hears of it, and nothing is left to watch.
    with suppress(*SPARK_ERRORS):
        _tell_tasks(spark, progress, stage, over)


def _tell_tasks(spark: SparkSession, progress: Progress, stage: str, over: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    seen: dict[int, tuple[int, int]] = {}
    while not over.wait(POLL_SECONDS):
        for number in tracker.getActiveStageIds():
            info = tracker.getStageInfo(number)
            if info is not None:
                seen[number] = (info.numCompletedTasks, info.numTasks)
        # A stage that is no longer active has finished all its tasks.
        active = set(tracker.getActiveStageIds())
        done = sum(tasks[number not in active] for number, tasks in seen.items())
        progress(stage, done, sum(total for _, total in seen.values()))
