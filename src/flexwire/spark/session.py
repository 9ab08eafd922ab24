"""The local Spark session of flexwire's jobs: found Java, quiet terminal, loopback only."""

from __future__ import annotations

import atexit
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

from flexwire.errors import JavaError
from flexwire.spark.java import find_java, without_vector

if TYPE_CHECKING:
    from collections.abc import Mapping

# What may change while a session runs, and what every job of ours relies on.
_ALWAYS = {
    # Times in captures are UTC, and the Arrow batches we yield say so.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Without it mapInArrow takes columns by position, whatever they are called.
    "spark.sql.execution.arrow.pyspark.validateSchema.enabled": "true",
}
_LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:,\d+)?\])?")


def session(
    app_name: str = "flexwire",
    *,
    master: str = "local[*]",
    memory: str = "2g",
    worker_memory: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """The Spark session, started on the Java that `find_java` finds unless one runs already.

    ``memory`` is the heap of the driver, which in local mode does all the work. ``worker_memory``
    ("2g") is the address space that each Python worker may have, of which it needs 0.7 GB before it
    holds anything; in local mode there is one worker a thread, beside Java. ``conf`` wins over
    everything set here. A session that runs already is returned with the settings that can still
    change; `JavaError` when there is no Java to start one on.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        for key, value in {**_ALWAYS, **(conf or {})}.items():
            running.conf.set(key, value)
        return running
    os.environ["JAVA_HOME"] = str(_quiet_java())
    # Otherwise workers run the `python3` on the path, which need not have pyarrow.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    settings = {**_ALWAYS, **_start_settings(memory)}
    if worker_memory is not None:
        settings["spark.executor.pyspark.memory"] = worker_memory
    threads = _local_threads(master)
    if threads:
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        settings |= _local_settings(threads)
    builder = SparkSession.builder.appName(app_name).master(master)
    for key, value in {**settings, **(conf or {})}.items():
        builder = builder.config(key, value)
    started = builder.getOrCreate()
    # It prints a traceback when Java ends, of which the caller of Java hears anyway.
    started.sparkContext._accumulatorServer.handle_error = _say_nothing  # type: ignore[method-assign]  # noqa: SLF001 - PySpark has no option for it
    return started


def _say_nothing(request: object, client_address: object) -> None:
    """Hear of a broken connection, and leave it at that."""


def _quiet_java() -> Path:
    home = find_java()
    try:
        return without_vector(home)
    except JavaError:
        # Nowhere to write: the home runs Spark all the same, with a line of warning.
        return home


def _start_settings(memory: str) -> dict[str, str]:
    scratch = tempfile.mkdtemp(prefix="flexwire-spark-")
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    log = Path(__file__).with_name("log4j2.properties").as_uri()
    return {
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log}",
        "spark.sql.warehouse.dir": Path(scratch, "warehouse").as_uri(),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


def _local_settings(threads: int) -> dict[str, str]:
    return {
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        # Spark's 200 are for a cluster; twice the threads evens out partitions of unequal size.
        "spark.sql.shuffle.partitions": str(2 * threads),
    }


def _local_threads(master: str) -> int:
    """How many threads a local master runs; 0 when ``master`` is a cluster.

    >>> _local_threads("local[4]"), _local_threads("local"), _local_threads("yarn")
    (4, 1, 0)
    """
    match = _LOCAL.fullmatch(master)
    if match is None:
        return 0
    if match[1] == "*":
        return os.cpu_count() or 1
    return int(match[1] or 1)
