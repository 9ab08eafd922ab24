"""The Spark session for flexwire's jobs: on this machine, on a cluster, or on Spark Connect.

flexwire finds Java, keeps the terminal quiet, and opens ports only on the loopback interface.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession
from pyspark.sql.functions import spark_partition_id

from flexwire.arguments import DEFAULT_MEMORY
from flexwire.errors import ArgumentError, JavaError
from flexwire.spark.failures import SPARK_ERRORS, stop_at_end
from flexwire.spark.java import find_java, without_vector
from flexwire.spark.settings import ALWAYS, at_start, on_this_machine, temporary_settings
from flexwire.tasks import KEEPS_MEMORY, activate, is_connect

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

# spark-submit sets the first variable to tell a program where its Java listens. The second variable
# tells a Connect client where its server is.
_GATEWAY, _REMOTE = "PYSPARK_GATEWAY_PORT", "SPARK_REMOTE"
# No cluster runs as many tasks at the same time as this number of rows.
_MANY = 1_000_000
_HERE = "local[*]"
_BOUND, _CORES = "spark.executor.pyspark.memory", "spark.executor.cores"
# In PySpark, all threads share one active session. This session can belong to the job of another
# thread.
_CALLERS: WeakKeyDictionary[SparkSession, SparkSession] = WeakKeyDictionary()
_LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:,\d+)?\])?")


@dataclass(frozen=True, slots=True)
class SessionStart:
    """The master and the memory for starting Spark, if no session is running."""

    master: str | None
    memory: str
    worker_memory: str | None

    def session(self, conf: Mapping[str, str] | None) -> SparkSession:
        """Return the running session, or start one with these settings."""
        return session(
            master=self.master, memory=self.memory, worker_memory=self.worker_memory, conf=conf
        )

    def memories(self) -> tuple[str | None, str | None]:
        """Return the memory settings for Java and Python workers, if no session is running."""
        if remote_of(self.master) is not None:
            return None, None
        # On a cluster, most of Java's memory belongs to the executors.
        is_local = not is_submitted() and local_threads(self.master or _HERE)
        return self.memory if is_local else None, self.worker_memory


def session(
    app_name: str = "flexwire",
    *,
    master: str | None = None,
    memory: str = DEFAULT_MEMORY,
    worker_memory: str | None = None,
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """Return the running Spark session, or start one on the Java that `find_java` finds.

    If a session is running, its changeable settings are updated, and the session is returned.
    ``master`` says where Spark runs: here ("local[4]"), on a cluster
    ("spark://host:7077", "yarn", "k8s://…") or on a server of Spark Connect ("sc://host:15002").
    The default is the setting of `spark-submit` or ``SPARK_REMOTE``, and without these settings,
    this machine with all its processors.

    ``memory`` is the heap size of the driver, which does all the work in local mode.
    ``worker_memory`` ("2g") limits the address space of each Python worker. A worker needs 0.7 GB
    before it holds any data. There is one worker for each task that runs at the same time, in
    addition to Java. ``conf`` overrides every other setting here, and the arguments of
    `spark-submit` override both. The owner of a Spark Connect server sets the server's memory.

    Raises `ArgumentError` if ``master`` is given but already set elsewhere, and `JavaError` if no
    Java is found.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        for key, value in {**ALWAYS, **(conf or {})}.items():
            running.conf.set(key, value)
        return running
    if master is not None and (is_submitted() or _REMOTE in os.environ):
        origin = "spark-submit" if is_submitted() else _REMOTE
        raise ArgumentError(f"{origin} already sets the master, so leave out {master!r}")
    remote = remote_of(master)
    if remote is not None:
        return _connected(app_name, remote, conf or {})
    bound = {} if worker_memory is None else {_BOUND: worker_memory}
    if is_submitted():
        return _started(app_name, conf or {}, bound)
    where = master or _HERE
    os.environ["JAVA_HOME"] = str(_quiet_java())
    settings = {**at_start(memory), "spark.master": where}
    threads = local_threads(where)
    if threads:
        # Without this setting, workers run the first `python3` on the path, which may lack pyarrow.
        os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        settings |= on_this_machine(threads)
    else:
        # If the machines of a cluster use another Python, the user has configured it.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return _started(app_name, {**settings, **(conf or {})}, bound)


@contextmanager
def session_for_job(running: SparkSession, *, is_ours: bool) -> Iterator[SparkSession]:
    """Yield a session whose settings apply only to the job.

    ``running`` is the caller's session, or the session that flexwire started. If the caller
    started it, a new session is yielded. The new session has the caller's settings, but not the
    caller's temporary views and functions. On Spark Connect, a new session would lack the files
    that the caller has sent to the server. The caller's session is then yielded, and its settings
    are restored at the end.
    """
    if is_ours:
        with stop_at_end(running):
            yield running
        return
    if is_connect(running):
        with temporary_settings(running, ALWAYS):
            yield running
        return
    caller = _CALLERS.get(running, running)
    beside = caller.newSession()
    _CALLERS[beside] = caller
    for key, value in {**caller.conf.getAll, **ALWAYS}.items():
        if beside.conf.get(key, None) != value and beside.conf.isModifiable(key):
            beside.conf.set(key, value)
    activate(beside)
    try:
        yield beside
    finally:
        # If Java has ended, no session is active.
        with suppress(*SPARK_ERRORS):
            activate(caller)


def is_submitted() -> bool:
    """Return whether `spark-submit` started this process, and Java before it."""
    return _GATEWAY in os.environ


def remote_of(master: str | None) -> str | None:
    """Return the address of Spark Connect's server, if a master or ``SPARK_REMOTE`` contains one.

    >>> remote_of("sc://127.0.0.1:15002"), remote_of("yarn")
    ('sc://127.0.0.1:15002', None)
    """
    if master is None:
        return os.environ.get(_REMOTE) or None
    return master if master.startswith("sc://") else None


def is_local(spark: SparkSession) -> bool:
    """Return whether the session is known to run its tasks in the driver."""
    return not is_connect(spark) and local_threads(str(spark.sparkContext.master)) > 0


def tasks_at_once(spark: SparkSession) -> int:
    """Return how many tasks Spark runs at the same time, or the number that its settings assume."""
    if is_connect(spark):
        # Spark Connect does not report this number, but by default it divides a range into this
        # many partitions.
        numbers = spark.range(_MANY).select(spark_partition_id())
        return max(1, numbers.distinct().count())
    context = spark.sparkContext
    if not is_local(spark):
        # Executors register while the first job waits for an executor.
        spark.range(1).count()
    return int(context.defaultParallelism)


def _connected(app_name: str, remote: str, conf: Mapping[str, str]) -> SparkSession:
    started = SparkSession.builder.appName(app_name).remote(remote).getOrCreate()
    for key, value in {**ALWAYS, **conf}.items():
        # Java options have no effect on the server, because its Java is already running.
        if started.conf.isModifiable(key):
            started.conf.set(key, value)
    return started


def _started(app_name: str, settings: Mapping[str, str], bound: Mapping[str, str]) -> SparkSession:
    all_settings = {**ALWAYS, **settings}
    ours = SparkConf(loadDefaults=False).setAll(list(all_settings.items()))
    # This call starts Java unless Java is running. Before that, a SparkConf contains no defaults.
    SparkContext._ensure_initialized(conf=ours)  # noqa: SLF001 - PySpark offers no other way to do this
    # These settings come from spark-submit or from Spark's own files.
    defaults = SparkConf()
    if is_submitted():
        # Java is already running, so its memory can no longer be set.
        all_settings = {
            key: value
            for key, value in all_settings.items()
            if key in ALWAYS or not (defaults.contains(key) or key.startswith("spark.driver."))
        }
    cores = int(all_settings.get(_CORES) or defaults.get(_CORES, "1"))
    for key, value in bound.items():
        all_settings[key] = times(value, cores)
    builder = SparkSession.builder.appName(app_name)
    for key, value in all_settings.items():
        builder = builder.config(key, value)
    started = builder.getOrCreate()
    # With this setting all jobs share Python workers.
    started.sparkContext.environment.update(KEEPS_MEMORY)
    # This class prints a traceback when Java ends, although the caller receives the same error
    # anyway.
    started.sparkContext._accumulatorServer.handle_error = _say_nothing  # type: ignore[method-assign]  # noqa: SLF001 - PySpark has no option for it
    return started


def times(memory: str, cores: int) -> str:
    """Return the memory of all workers of an executor. Spark divides this by the number of cores.

    >>> times("2g", 4)
    '8g'
    """
    return re.sub(r"\d+", lambda size: str(cores * int(size[0])), memory, count=1)


def _say_nothing(request: object, client_address: object) -> None:
    """Ignore a broken connection."""


def _quiet_java() -> Path:
    home = find_java()
    try:
        return without_vector(home)
    except JavaError:
        # There is no writable directory. Java still runs from its home, but prints a warning.
        return home


def local_threads(master: str) -> int:
    """Return how many threads a local master runs, or 0 if ``master`` is a cluster.

    >>> local_threads("local[4]"), local_threads("local"), local_threads("yarn")
    (4, 1, 0)
    """
    match = _LOCAL.fullmatch(master)
    if match is None:
        return 0
    if match[1] == "*":
        return os.cpu_count() or 1
    return int(match[1] or 1)
