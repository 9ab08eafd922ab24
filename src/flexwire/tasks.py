"""Run Spark tasks with the catalog of the process that planned them, and build their batches."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from functools import partial, wraps
from types import FunctionType, GeneratorType
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructField

from flexwire.errors import AnalysisError, FlexwireError
from flexwire.schema.catalog import catalog, use_packed_catalog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.datasource import DataSource
    from pyspark.sql.types import StructType

    from flexwire.schema.catalog import PackedCatalog

    Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

KEEPS_MEMORY: Final = {"MIMALLOC_PURGE_DELAY": "-1"}
"""The environment variable that makes Arrow's memory pool keep free memory in a Python worker.

Without this variable, free memory is returned to the system after a hundredth of a second, and
clearing the memory again takes a sixth of a task's total time.
"""


_Kind = TypeVar("_Kind", bound=type)
_REGISTERED: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()


def spark_schema(schema: pa.Schema) -> StructType:
    """Convert a schema from Arrow to Spark. Every column may be null."""
    return from_arrow_schema(schema)


def record_batch(schema: pa.Schema, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    """Return a batch of rows. Each row is a tuple in the order of the schema's columns."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def is_connect(spark: SparkSession) -> bool:
    """Return whether a session belongs to Spark Connect, and therefore has no ``sparkContext``."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def activate(spark: SparkSession) -> None:
    """Make a session the active session of this thread.

    Spark looks up the names of data sources in the active session.
    """
    # PySpark has no shorter public method for this.
    spark.createDataFrame([], "id bigint")


def register_source(spark: SparkSession, source: type[DataSource]) -> None:
    """Register one of flexwire's data sources in a session, and make the session active.

    Each session has its own data sources. However, Spark asks the active session whether a name is
    already used. A name that is free in this session could therefore be refused.
    """
    activate(spark)
    names = _REGISTERED.setdefault(spark, set())
    if source.name() not in names:
        # Spark writes a warning about a second source with the same name.
        spark.dataSource.register(source)
        names.add(source.name())


def map_in_arrow(rows: DataFrame, task: Task, schema: pa.Schema | StructType) -> DataFrame:
    """Return ``rows.mapInArrow(task)``, with workers that use the catalog of this process.

    A user's own catalog, of about 120 kB, is sent with the task. Workers therefore do not need the
    directory of the catalog, and never take a missing spec from the bundled catalog. If a task's
    columns differ from the schema in their names or their order, an `AnalysisError` is raised.
    """
    run = partial(_run, catalog().packed, task, schema.names)
    return rows.mapInArrow(run, spark_schema(schema) if isinstance(schema, pa.Schema) else schema)


def kept_columns(rows: DataFrame, names: Iterable[str]) -> list[StructField]:
    """Return columns that a task returns unchanged, for the schema of `map_in_arrow`.

    All these columns may be null in the result, because a batch does not declare that a column is
    never null.
    """
    fields = map(rows.schema.__getitem__, names)
    return [StructField(field.name, field.dataType) for field in fields]


class _Worker:
    """The state of this process as a Spark worker: the number of tasks, and the last task."""

    tasks = 0
    attempt: int | None = None


def spare_modules() -> None:
    """Exclude the objects that exist at the start of a task from Python's garbage collection.

    Spark runs a garbage collection after each task. With all modules that are imported by then, a
    collection takes 0.04 CPU seconds, long enough to count half a million records. Excluded objects
    are never collected again. The exclusion is therefore done in a worker's first, second, fourth,
    eighth task and so on, after modules were imported and garbage was collected. This schedule
    excludes only a few reference cycles of tasks. The function may be called for each batch of a
    task. Outside of tasks, the function does nothing.
    """
    task = TaskContext.get()
    if task is None or task.taskAttemptId() == _Worker.attempt:
        return
    _Worker.attempt = task.taskAttemptId()
    _Worker.tasks += 1
    if _Worker.tasks.bit_count() == 1:
        gc.freeze()


def begin_task() -> None:
    """Prepare this process as a worker for flexwire's tasks, at the beginning of a task.

    Arrow uses one thread, because Spark runs as many tasks as there are processors.
    """
    spare_modules()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)


def _run(
    carried: PackedCatalog | None, task: Task, names: list[str], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    spare_modules()
    use_packed_catalog(carried)
    for batch in _carried(task(batches)):
        if batch.schema.names != names:
            # Spark assigns columns by position, and Spark 4.0 has no setting that changes this.
            raise AnalysisError(f"expected the columns {names}, got {batch.schema.names}")
        yield batch


@contextmanager
def carrying_condition() -> Iterator[None]:
    """Add the condition of each flexwire error to the traceback of the error.

    Java receives a Python worker's error as a string. `flexwire.spark.condition_of` finds the
    condition in this text.
    """
    try:
        yield
    except FlexwireError as error:
        note = f"[{error.condition}]"
        if note not in getattr(error, "__notes__", ()):
            error.add_note(note)
        raise


def carries_conditions(kind: _Kind) -> _Kind:
    """Make the methods of a data source add the condition of each error to its traceback.

    If a method returns a generator, this includes the errors of the generator.
    """
    for name, method in list(vars(kind).items()):
        is_private = name.startswith("_") and name != "__init__"
        if isinstance(method, FunctionType) and not is_private:
            setattr(kind, name, _carrying(method))
    return kind


def _carrying(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(*positional: Any, **named: Any) -> Any:
        with carrying_condition():
            result = method(*positional, **named)
        return _carried(result) if isinstance(result, GeneratorType) else result

    return call


def _carried(items: Iterable[Any]) -> Iterator[Any]:
    with carrying_condition():
        yield from items
