"""A classic session and Spark Connect report Spark's progress in the same way."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pytest

from flexwire.spark.progress import watch_tasks
from flexwire.spark.publishing.commit import run_tasks
from flexwire.spark.publishing.task_output import TaskOutput
from flexwire.storage.output_directory import OutputDirectory
from flexwire.tasks import is_connect
from tests.spark import faulty

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

Heard = list[tuple[str, int, int]]


class Stage(NamedTuple):
    """A progress message about a stage, as Spark Connect sends it."""

    stage_id: int
    num_tasks: int
    num_completed_tasks: int


class Connect:
    """A session that has only what `registerProgressHandler` uses, and no ``sparkContext``."""

    __module__ = "pyspark.sql.connect.session"

    def __init__(self) -> None:
        self.handlers: list[Any] = []

    def registerProgressHandler(self, handler: Any) -> None:  # noqa: N802 - Spark's own name
        self.handlers.append(handler)

    def removeProgressHandler(self, handler: Any) -> None:  # noqa: N802 - Spark's own name
        self.handlers.remove(handler)

    def says(self, *stages: Stage, done: bool = False) -> None:
        for handler in self.handlers:
            handler(stages=stages or None, inflight_tasks=1, operation_id="1", done=done)


def test_spark_connect_says_so_itself() -> None:
    heard: Heard = []
    fake = Connect()
    spark = cast("SparkSession", fake)
    assert is_connect(spark)
    with watch_tasks(spark, lambda *told: heard.append(told), "Writing"):
        fake.says()
        fake.says(Stage(1, 4, 1))
        fake.says(Stage(1, 4, 4), Stage(2, 6, 1))
        fake.says(done=True)
    fake.says(Stage(3, 9, 9))
    assert heard == [
        ("Writing", 0, 0),
        ("Writing", 0, 0),
        ("Writing", 1, 4),
        ("Writing", 5, 10),
        ("Writing", 5, 10),
    ]
    assert not fake.handlers


def test_it_hears_no_more_when_the_work_fails() -> None:
    fake = Connect()
    with (
        pytest.raises(KeyboardInterrupt),
        watch_tasks(cast("SparkSession", fake), lambda *_: None, "Writing"),
    ):
        raise KeyboardInterrupt
    assert not fake.handlers


@pytest.mark.spark
def test_a_classic_session_is_asked(spark: SparkSession, tmp_path: Path) -> None:
    heard: Heard = []
    assert not is_connect(spark)
    (tmp_path / "flags").mkdir()

    def hear(stage: str, done: int, total: int) -> None:
        heard.append((stage, done, total))
        if total:
            (tmp_path / "flags" / "go").touch()

    work = partial(faulty.waits, tmp_path / "flags")
    with watch_tasks(spark, hear, "Writing"):
        run_tasks(spark, 2, work, TaskOutput(OutputDirectory(str(tmp_path))))
    assert heard[0] == ("Writing", 0, 0)
    # The tasks wait until their report has arrived.
    assert ("Writing", 0, 2) in heard
