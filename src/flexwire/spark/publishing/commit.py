"""Runs one Spark action whose tasks write files, and returns the files of the committed attempts.

Spark may evaluate anything more than once: a task that fails, a slow task, a DataFrame that is used
twice. A task that writes files must produce the correct result in all these cases. All tasks that
write files therefore run in one job, which Spark never runs twice. The job returns one message for
each task, from the attempt that Spark committed.

With a SparkContext, this is an RDD job, which takes five CPU seconds less than a query, because it
needs no plan and starts Python only once. Spark Connect has no SparkContext. With Spark Connect,
the job is a write command to a Python data source. The writer's commit runs near Java, possibly on
a different machine than the caller, so it leaves the messages in a file next to the output.

Spark keeps the work of the tasks in its plan, in Java's memory and in every message that starts a
task. A survey has to know all captures, and a list of a million captures would take 100 MB in each
of these places.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
import pickle
import secrets
import struct
import traceback
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pyspark import cloudpickle
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

from flexwire.errors import AnalysisError
from flexwire.forks import lock_over_forks
from flexwire.kernels import lacks_kernels
from flexwire.schema.catalog import catalog, use_packed_catalog
from flexwire.spark.publishing.manifest import CommittedTask, WrittenFiles, check_owners
from flexwire.spark.publishing.task_output import TaskOutput, as_it_is
from flexwire.tasks import KEEPS_MEMORY, is_connect, register_source

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

    from flexwire.schema.catalog import PackedCatalog
    from flexwire.spark.publishing.task_output import Arrange
    from flexwire.storage.output_directory import OutputDirectory


LARGEST_WORK: Final = 1 << 18
"""The largest size, in bytes, of work that is sent with the tasks."""


@dataclass(frozen=True, slots=True)
class LeftWork:
    """Work that was written to a file, which each task reads."""

    directory: OutputDirectory
    name: str
    digest: str

    @classmethod
    def leave(cls, packed: bytes, directory: OutputDirectory, name: str) -> LeftWork:
        """Write pickled work to a file."""
        directory.write(name, packed)
        return cls(directory, name, hashlib.sha256(packed).hexdigest())

    def __call__(self, number: int, task_output: TaskOutput) -> Any:
        """Do the work."""
        packed = self.directory.read(self.name)
        if hashlib.sha256(packed).hexdigest() != self.digest:
            raise AnalysisError(f"{self.name} was changed after the driver wrote it")
        # The message to the task contained the digest of the file.
        work = pickle.loads(packed)  # noqa: S301 - we wrote these bytes ourselves
        del packed
        return work(number, task_output)


R = TypeVar("R")

_LOGGER: Final = logging.getLogger("flexwire")

# The result of a task passes through Java and stays in the driver's memory.
LARGEST_VALUE: Final = 1 << 20
MOST_TASKS: Final = 20_000
"""The number of tasks that an action should not exceed. The driver holds a list of files for each
task.
"""
_RESULTS: Final = "_results"
# In printed plans, Spark hides the values of options whose names contain this word.
_OPTION: Final = "secret"
# Jobs in several threads change and restore the environment of the same context.
_ENVIRONMENT: Final = lock_over_forks()
_ENTRY: Final = struct.Struct(">qq")  # the task's number, and the number of bytes that follow


def run_tasks(
    spark: SparkSession, count: int, work: Callable[[int, TaskOutput], R], task_output: TaskOutput
) -> list[CommittedTask[R]]:
    """Run ``work(number, output)`` as one Spark task for each number below ``count``.

    ``work`` must be picklable (a function of a module, or a `functools.partial` of one). ``work``
    writes files, hands them over with `TaskOutput.put`, and returns a picklable value of at most 1
    MiB. A task may run more than once, even twice at the same time. The result contains one entry
    for each number, in order: the files and the value of the committed attempt. `settle` removes
    all files that no entry lists. Tasks use the catalog of this process. The log reports how many
    tasks ran without kernels.

    Raises Spark's error if a task fails after all its attempts. Files that were written before the
    error remain, and the caller that created the directory removes them.
    """
    if count == 0:
        return []
    key = secrets.token_bytes(32)
    job = _TaskJob(
        catalog().packed, work, task_output.directory, key, task_output.arrange,
        task_output.constants,
    ).with_work_in_file()  # fmt: skip
    results = (
        _run_as_writer(spark, count, job) if is_connect(spark) else _run_as_rdd(spark, count, job)
    )
    task_output.directory.remove([job.work_file])
    committed = _check_tasks(results, count)
    _warn_of_missing_kernels(committed)
    return committed


def _run_as_rdd(spark: SparkSession, count: int, job: _TaskJob) -> list[tuple[int, bytes]]:
    """Run the tasks as one job of an RDD, with each number in its own partition."""
    context = spark.sparkContext
    tasks = context.parallelize(range(count), count).map(job.task)
    with _ENVIRONMENT:
        before = dict(context.environment)
        context.environment.update({**KEEPS_MEMORY, **before})
        try:
            # Setting the RDD's name creates it in Java, with the current environment.
            tasks.setName("flexwire")
        finally:
            context.environment.clear()
            context.environment.update(before)
    tags = context.addJobTag, context.cancelJobsWithTag, context.removeJobTag
    with _interruptible(job.tag, *tags):
        return tasks.collect()


def _run_as_writer(spark: SparkSession, count: int, job: _TaskJob) -> Iterator[tuple[int, bytes]]:
    """Run the tasks as a single write command of a data source."""
    packed = base64.b64encode(_pickled(job)).decode()
    # Spark also looks for the sink in the active session.
    register_source(spark, TasksDataSource)
    rows = spark.range(0, count, 1, count)
    writer = rows.write.format(TasksDataSource.name()).mode("append").option(_OPTION, packed)
    with _interruptible(job.tag, spark.addTag, spark.interruptTag, spark.removeTag):
        writer.save()
    data = job.directory.read(job.results)
    job.directory.remove([job.results])
    return job.read_results(data)


def _warn_of_missing_kernels(committed: list[CommittedTask[Any]]) -> None:
    without = sum(not task.has_kernels for task in committed)
    if without:
        _LOGGER.warning(
            "%d of %d tasks ran without kernels, and were therefore many times slower; to see why, "
            "run `flexwire warmup` with the tasks' Python on a machine of the cluster",
            without,
            len(committed),
        )


@contextmanager
def _interruptible(
    tag: str,
    add: Callable[[str], object],
    interrupt: Callable[[str], object],
    remove: Callable[[str], object],
) -> Iterator[None]:
    """Cancel the running tasks if the caller is interrupted, because their results are unused."""
    add(tag)
    try:
        yield
    except BaseException:
        # If Java has ended, its tasks have ended too.
        with suppress(Exception):
            interrupt(tag)
        raise
    finally:
        with suppress(Exception):
            remove(tag)


def _check_tasks(results: Iterable[tuple[int, bytes]], count: int) -> list[CommittedTask[Any]]:
    """Unpack the committed results, and check that each task occurs once and owns its files."""
    tasks = {}
    for number, packed in results:
        if number in tasks:
            raise AnalysisError(f"task {number} was committed twice")
        tasks[number] = packed
    if sorted(tasks) != list(range(count)):
        raise AnalysisError(
            f"expected one commit per task, but {len(tasks)} of {count} tasks were committed"
        )
    # The results are signed with a key that only the tasks and the commit of this action know.
    packed_tasks = map(tasks.pop, range(count))
    committed: list[CommittedTask[Any]] = [*map(pickle.loads, packed_tasks)]
    check_owners(committed)
    return committed


def _pickled(value: object) -> bytes:
    # Unlike Python's own pickle, cloudpickle can pickle functions from a notebook.
    packed: bytes = cloudpickle.dumps(value)  # type: ignore[no-untyped-call]  # it has no types
    return packed


@dataclass(frozen=True, slots=True)
class _TaskJob:
    """The work of one action, which is sent to its tasks and to its commit."""

    carried: PackedCatalog | None
    work: Callable[[int, TaskOutput], object]
    directory: OutputDirectory
    key: bytes
    arrange: Arrange = as_it_is
    constants: dict[str, str] = field(default_factory=dict)

    @property
    def tag(self) -> str:
        return "flexwire-" + hashlib.sha256(self.key).hexdigest()[:16]

    @property
    def results(self) -> str:
        return f"{_RESULTS}/{self.tag}"

    def task(self, number: int) -> tuple[int, bytes]:
        """Run a task, and return its message."""
        return number, self.run(number)

    @property
    def work_file(self) -> str:
        return f"{self.results}-work"

    def with_work_in_file(self) -> _TaskJob:
        """Return the same job with its work in a file, if the work is too large to be sent."""
        if len(packed := _pickled(self.work)) <= LARGEST_WORK:
            return self
        return replace(self, work=LeftWork.leave(packed, self.directory, self.work_file))

    def run(self, number: int) -> bytes:
        """Run a task, and return its files and its value, pickled."""
        use_packed_catalog(self.carried)
        output = TaskOutput(self.directory, arrange=self.arrange, constants=self.constants)
        with output.open_attempt(number) as task_output:
            try:
                value = self.work(number, task_output)
            except MemoryError as error:
                # As long as the stack frames hold their objects, PySpark has no memory left to
                # report the error, and the worker would end without a message.
                traceback.clear_frames(error.__traceback__)
                raise MemoryError(f"task {number}: {error}") from None
        size = len(_pickled(value))
        if size > LARGEST_VALUE:
            raise AnalysisError(
                f"task {number} returned a value of {size} bytes, but at most {LARGEST_VALUE} can "
                "be sent to the driver; write larger values to a file"
            )
        return _pickled(
            CommittedTask(number, WrittenFiles(task_output.files), value, not lacks_kernels())
        )

    def leave(self, tasks: Iterable[tuple[int, bytes]]) -> None:
        """Write the committed results, with a signature, for the caller."""
        data = b"".join(_ENTRY.pack(number, len(task)) + task for number, task in tasks)
        self.directory.write(self.results, self._signature(data) + data)

    def read_results(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the results that `leave` wrote."""
        size = hashlib.sha256().digest_size
        signature, rest = data[:size], memoryview(data)[size:]
        if not hmac.compare_digest(signature, self._signature(rest)):
            raise AnalysisError(f"{self.results} was not written by the tasks of this run")
        at = 0
        while at < len(rest):
            number, length = _ENTRY.unpack_from(rest, at)
            at += _ENTRY.size
            yield number, bytes(rest[at : at + length])
            at += length

    def _signature(self, data: bytes | memoryview) -> bytes:
        return hmac.digest(self.key, data, "sha256")


class TasksDataSource(DataSource):
    """A data sink for Spark, in which each row is the number of a task."""

    @classmethod
    def name(cls) -> str:
        """Return the name that `run_tasks` uses for this sink."""
        return "flexwire_tasks"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:  # noqa: ARG002, FBT001 - PySpark requires this signature
        """Return the writer for the job in the options."""
        # `run_tasks` made these bytes, in Spark's own way for pickled objects.
        return _TasksWriter(pickle.loads(base64.b64decode(self.options[_OPTION])))  # noqa: S301 - we wrote these bytes ourselves


@dataclass(frozen=True)
class _TasksMessage(WriterCommitMessage):
    """The pickled results of one partition's tasks; a commit need not know their types."""

    tasks: tuple[tuple[int, bytes], ...]


class _TasksWriter(DataSourceArrowWriter):
    def __init__(self, job: _TaskJob) -> None:
        self._job = job

    def write(self, iterator: Iterator[pa.RecordBatch]) -> _TasksMessage:
        numbers = [number for batch in iterator for number in batch.column(0).to_pylist()]
        return _TasksMessage(tuple(map(self._job.task, numbers)))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        self._job.leave(
            task
            for message in messages
            if isinstance(message, _TasksMessage)
            for task in message.tasks
        )
