"""flexwire's tasks do not change the Python worker in which they run."""

from __future__ import annotations

import gc

import pyarrow as pa
import pytest
from pyspark import TaskContext

from flexwire import tasks
from flexwire.spark.functions.columns import arrow_function
from flexwire.tasks import begin_task, spare_modules


class Attempts:
    """A worker whose tasks a test defines. Each task knows the number of its attempt."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now: int | None = None
        self.frozen: list[int | None] = []
        monkeypatch.setattr(tasks, "_Worker", type("_Worker", (), {"tasks": 0, "attempt": None}))
        monkeypatch.setattr(TaskContext, "get", lambda: None if self.now is None else self)
        monkeypatch.setattr(gc, "freeze", lambda: self.frozen.append(self.now))

    def taskAttemptId(self) -> int | None:  # noqa: N802 - Spark's name
        return self.now


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> Attempts:
    return Attempts(monkeypatch)


def test_modules_are_spared_ever_more_rarely_and_once_a_task(attempts: Attempts) -> None:
    for attempts.now in range(100, 120):
        spare_modules()
        spare_modules()
    assert attempts.frozen == [100, 101, 103, 107, 115]


def test_nothing_is_spared_outside_of_tasks(attempts: Attempts) -> None:
    spare_modules()
    begin_task()
    assert attempts.frozen == []


def test_tasks_and_functions_of_columns_spare_modules(
    attempts: Attempts, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    monkeypatch.setattr("pyspark.sql.functions.arrow_udf", lambda run, _: made.append(run))
    arrow_function("same", lambda column: column, pa.binary())
    attempts.now = 1
    begin_task()
    attempts.now = 2
    assert made[0](pa.array([b"a"])).to_pylist() == [b"a"]
    assert attempts.frozen == [1, 2]
