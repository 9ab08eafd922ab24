"""Spark's files on this machine are private to their owner, and are removed even after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from flexwire.spark.scratch import PREFIX, local_directory, scratch_directory, sweep

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

MAKE = """
import sys
from flexwire.spark.scratch import scratch_directory
print(scratch_directory(), flush=True)
sys.stdin.read()
"""


def made_by_a_process(base: Path) -> tuple[subprocess.Popen[str], str]:
    environment = {**os.environ, "TMPDIR": str(base)}
    environment.pop("SPARK_LOCAL_DIRS", None)
    process = subprocess.Popen(
        [sys.executable, "-c", MAKE],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


@pytest.mark.slow
def test_a_directory_goes_with_its_process_or_with_the_next_one(tmp_path: Path) -> None:
    killed, left = made_by_a_process(tmp_path)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert [str(one) for one in tmp_path.iterdir()] == [left]
    running, own = made_by_a_process(tmp_path)
    other, others = made_by_a_process(tmp_path)
    # Files of dead processes are gone, and those of running processes are not.
    assert {str(one) for one in tmp_path.iterdir()} == {own, others}
    assert all(one.stat().st_mode & 0o777 == 0o700 for one in tmp_path.iterdir())
    for process in (running, other):
        process.communicate("")
        assert process.returncode == 0
    assert list(tmp_path.iterdir()) == []


def test_only_what_was_left_is_removed(tmp_path: Path) -> None:
    left = tmp_path / f"{PREFIX}left"
    (left / "blocks").mkdir(parents=True)
    (left / "in-use").touch()
    being_made = tmp_path / f"{PREFIX}being-made"
    elsewhere = tmp_path / "elsewhere"
    for other in (being_made, elsewhere):
        other.mkdir()
    (elsewhere / "in-use").touch()
    link = tmp_path / f"{PREFIX}link"
    link.symlink_to(elsewhere)
    sweep(tmp_path)
    assert set(tmp_path.iterdir()) == {being_made, elsewhere, link}
    assert (elsewhere / "in-use").exists()


def test_the_first_of_several_directories_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "/first,/second")
    assert str(local_directory()) == "/first"


@pytest.mark.spark
def test_all_that_java_and_workers_write_is_below_a_directory_of_their_own(
    spark: SparkSession,
) -> None:
    scratch = scratch_directory()
    assert scratch.stat().st_mode & 0o777 == 0o700
    assert spark.range(1000).repartition(3).groupBy("id").count().count() == 1000
    java = spark.sparkContext._jvm
    assert java is not None
    assert java.java.lang.System.getProperty("java.io.tmpdir") == str(scratch / "java")
    blocks = [path.name for path in (scratch / "blocks").iterdir()]
    assert any(name.startswith("blockmgr-") for name in blocks)

    def where(_: object) -> list[str]:
        return [str(local_directory())]

    (of_a_worker,) = spark.sparkContext.parallelize([0], 1).map(where).first() or []
    assert of_a_worker.startswith(str(scratch / "blocks"))
