"""Explain Spark failures in one or two sentences.

The stack traces of Java and of Spark's Python workers are hundreds of lines long. The innermost
error says what happened. If memory runs out, Java ends without a stack trace. Only the exit code of
its process remains.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import subprocess
import warnings
from contextlib import contextmanager, suppress
from functools import partial
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger

from flexwire.errors import DISK_FULL, FAILED, OUT_OF_MEMORY, WORKER_KILLED, AnalysisError
from flexwire.spark.conditions import condition_in, java_causes, without_notes
from flexwire.spark.scratch import LOCAL_DIRS, local_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

    Filter = Callable[[logging.LogRecord], bool]

# Once Java has ended, nothing listens for further calls to it.
SPARK_ERRORS = (PySparkException, Py4JError, ConnectionError)

_OUT_OF_MEMORY = "java.lang.OutOfMemoryError"
# A line of a Python traceback. The names of numpy's and pyarrow's error classes contain dots.
_PYTHON_OUT_OF_MEMORY = re.compile(r"^(?!\S*OutOfMemory)[\w.]*MemoryError\b", re.MULTILINE)
# The message of such an error is already written for users.
_OURS = re.compile(r"flexwire\.errors\.(?:Flexwire|Storage|Capture)Error: ")
# The operating system's message for a full disk, which Java, Python and Arrow quote.
_DISK_FULL = os.strerror(errno.ENOSPC)
_CRASHED = "Python worker exited unexpectedly"
_EXIT_OUT_OF_MEMORY = 52  # The exit code of Spark's own handler of uncaught errors.
# Java stops Spark first, which takes time on a busy machine.
_EXIT_SECONDS = 60
_LONGEST = 600
_PYSPARK_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")
_PY4J_MODULES = ("java_gateway", "clientserver")


@contextmanager
def explain_failures(
    stage: Callable[[], str], memory: str | None, worker_memory: str | None = None
) -> Iterator[None]:
    """Raise Spark's errors as `AnalysisError`, in words that users understand.

    ``stage`` returns the current stage. ``memory`` is the heap size of the Java process that this
    analysis started, or None if another process started Java. ``worker_memory`` is the memory limit
    of each Python worker, if there is a limit.
    """
    with _logged_once():
        try:
            yield
        except SPARK_ERRORS as error:
            raise analysis_error(stage(), error, memory, worker_memory) from error


@contextmanager
def stop_at_end(spark: SparkSession) -> Iterator[None]:
    """Stop ``spark`` at the end; if Java has ended and everything is stopped, show no messages.

    In that case, flexwire raises its own error. Py4J would log its errors with the whole traceback
    of flexwire's error, and PySpark would warn about it. A thread of Py4J keeps telling Java which
    objects to release, so its log messages are hidden afterwards too.
    """
    log_filter = _log_once()
    try:
        yield
    finally:
        # After Java has ended, Py4J logs only this message.
        with suppress(*SPARK_ERRORS):
            with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
                spark.stop()
            _log_all(log_filter)


@contextmanager
def _logged_once() -> Iterator[None]:
    log_filter = _log_once()
    try:
        yield
    finally:
        _log_all(log_filter)


def _log_once() -> Filter:
    # Py4J logs to the root logger. Each call uses its own filter, because calls may be nested.
    log_filter = partial(_is_not_raised_too)
    for logger in _loggers():
        logger.addFilter(log_filter)
    return log_filter


def _log_all(log_filter: Filter) -> None:
    for logger in _loggers():
        logger.removeFilter(log_filter)


def _loggers() -> list[logging.Logger]:
    return [logging.getLogger(), *map(PySparkLogger.getLogger, _PYSPARK_LOGGERS)]


def _is_not_raised_too(record: logging.LogRecord) -> bool:
    # Py4J and PySpark also log the errors that they raise, with Java's stack trace.
    return record.name not in _PYSPARK_LOGGERS and record.module not in _PY4J_MODULES


def analysis_error(
    stage: str, error: Exception, memory: str | None, worker_memory: str | None = None
) -> AnalysisError:
    """Return the error that `explain_failures` raises for an error."""
    causes = java_causes(error)
    if _is_out_of_memory(error, causes):
        reason = f"{stage}: Java ran out of memory; {_remedy(memory)}"
        return AnalysisError(reason).under(OUT_OF_MEMORY)
    messages = "\n".join([str(error), *(message for _, message in causes)])
    if _PYTHON_OUT_OF_MEMORY.search(messages):
        remedy = _worker_remedy(memory, worker_memory)
        reason = f"{stage}: a Python worker ran out of memory; {remedy}"
        return AnalysisError(reason).under(OUT_OF_MEMORY)
    if _CRASHED in messages:
        return AnalysisError(
            f"{stage}: a Python worker was killed, which the operating system does when memory "
            f"runs out; {_worker_remedy(memory, None)}"
        ).under(WORKER_KILLED)
    if causes:
        name, message = causes[-1]
    else:
        name, message = type(error).__name__, str(error)
    text = _describe(name, without_notes(message))
    condition = condition_in(messages) or FAILED
    ours = _OURS.match(text)
    if ours:
        return AnalysisError(f"{stage}: {text[ours.end() :]}").under(condition)
    if _DISK_FULL in text:
        return AnalysisError(
            f"{stage}: a disk is full: the output's disk, or the disk of {local_directory()}, "
            f"where Spark keeps its working data (to use another directory, set {LOCAL_DIRS} or "
            f"TMPDIR): {text}"
        ).under(DISK_FULL)
    return AnalysisError(f"{stage}: Spark failed with {text}").under(condition)


def _is_out_of_memory(error: Exception, causes: list[tuple[str, str]]) -> bool:
    if any(name == _OUT_OF_MEMORY or _OUT_OF_MEMORY in message for name, message in causes):
        return True
    return _OUT_OF_MEMORY in str(error) or _java_exit_code() == _EXIT_OUT_OF_MEMORY


def _java_exit_code() -> int | None:
    """Return Java's exit code, or None if Java is running or another process started it."""
    context = SparkContext._active_spark_context  # noqa: SLF001 - PySpark has no public name for this
    gateway = SparkContext._gateway  # noqa: SLF001 - PySpark has no public name for this
    process = getattr(gateway, "proc", None)
    if process is None:
        return None
    try:
        is_ending = context is not None and context._jsc.sc().isStopped()  # noqa: SLF001 - PySpark has no public name for this
    except (Py4JError, ConnectionError):
        is_ending = True
    with suppress(subprocess.TimeoutExpired):
        process.wait(_EXIT_SECONDS if is_ending else 0)
    code: int | None = process.poll()
    return code


def _remedy(memory: str | None) -> str:
    if memory is None:
        return "start the Spark session with a larger spark.driver.memory"
    return f"the limit was {memory}: use {_options('memory', memory)}"


def _worker_remedy(memory: str | None, worker_memory: str | None) -> str:
    if worker_memory is not None:
        return f"the limit was {worker_memory}: use {_options('worker_memory', worker_memory)}"
    if memory is not None:
        return "run fewer tasks at the same time, or use a machine with more memory"
    return (
        "run fewer tasks at the same time, use a machine with more memory, or raise "
        "spark.executor.pyspark.memory if the Spark session sets it"
    )


def _options(name: str, value: str) -> str:
    more = f"{2 * int(value[:-1])}{value[-1]}"
    return f'--{name.replace("_", "-")} {more}, or {name}="{more}" in Python'


def _describe(name: str, message: str) -> str:
    """Return the class and message of a cause in one line.

    For a traceback, return its last lines.
    """
    message = re.sub(r"\s*SQLSTATE: \w+\s*$", "", message)
    lines = [line for line in message.splitlines() if line.strip()]
    indented = [number for number, line in enumerate(lines) if line[0].isspace()]
    if (
        "Traceback (most recent call last)" in message
        and indented
        and indented[-1] + 1 < len(lines)
    ):
        text = "; ".join(lines[indented[-1] + 1 :])
    else:
        text = ": ".join([name, *lines[:1]])
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
