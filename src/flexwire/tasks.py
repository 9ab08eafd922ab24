"""Tasks of Spark that run on the catalog of the process that planned them, and their batches."""

from __future__ import annotations

import gc
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructField

from flexwire.errors import AnalysisError
from flexwire.schema.catalog import catalog, use_packed_catalog

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.datasource import DataSource
    from pyspark.sql.types import StructType

    from flexwire.schema.catalog import PackedCatalog

    Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

KEEPS_MEMORY: Final = {"MIMALLOC_PURGE_DELAY": "-1"}
"""The environment variable with which Arrow's memory pool keeps free memory in a Python worker.

Otherwise it is returned to the system after a hundredth of a second, and clearing it again takes a
sixth of a task's total time.
"""


_REGISTERED: WeakKeyDictionary[SparkSession, set[str]] = WeakKeyDictionary()


def spark_schema(schema: pa.Schema) -> StructType:
    """Return the same schema as Spark has it; every column may be null."""
    return from_arrow_schema(schema)


def record_batch(schema: pa.Schema, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    """Return a batch of rows, which are tuples in the order of the schema's columns."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def is_connect(spark: SparkSession) -> bool:
    """Return whether a session is Spark Connect's, which has no ``sparkContext``."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def activate(spark: SparkSession) -> None:
    """Make a session the active one of this thread.

    Spark looks up the names of data sources there.
    """
    # PySpark has no shorter public way.
    spark.createDataFrame([], "id bigint")


def register_source(spark: SparkSession, source: type[DataSource]) -> None:
    """Register a data source of ours in a session, and make the session this thread's active one.

    Each session has its own data sources. But Spark asks the active session whether a name is
    taken, so another session can be refused a name that is free there.
    """
    activate(spark)
    names = _REGISTERED.setdefault(spark, set())
    if source.name() not in names:
        # Spark warns about a second source of the same name.
        spark.dataSource.register(source)
        names.add(source.name())


def map_in_arrow(rows: DataFrame, task: Task, schema: pa.Schema | StructType) -> DataFrame:
    """Return ``rows.mapInArrow(task)``, whose workers use this process's catalog.

    A user's own catalog is sent with the task, about 120 kB. No worker needs its directory, and no
    worker takes a missing spec from the bundled catalog. Columns of other names than the schema's,
    or in another order, are an `AnalysisError`.
    """
    run = partial(_run, catalog().packed, task, schema.names)
    return rows.mapInArrow(run, spark_schema(schema) if isinstance(schema, pa.Schema) else schema)


def kept_columns(rows: DataFrame, names: Iterable[str]) -> list[StructField]:
    """Return columns for the schema of `map_in_arrow` that a task passes through.

    Then any of them may be null: a batch made of columns does not declare that one never is.
    """
    fields = map(rows.schema.__getitem__, names)
    return [StructField(field.name, field.dataType) for field in fields]


class _Worker:
    """This process, if it is a Spark worker: how many tasks began in it, and the last one."""

    tasks = 0
    attempt: int | None = None


def spare_modules() -> None:
    """Exclude the objects that live in a worker at the start of a task from Python's collector.

    Spark collects garbage after each task. With all modules that are imported by then this takes
    0.04 CPU seconds, in which half a million records are counted. Excluded objects are never
    collected again. So this is done in a worker's first, second, fourth, eighth task and so on:
    after modules were imported and garbage was collected, and the reference cycles of tasks stay
    few. May be called for each batch of a task. Outside of tasks nothing is done.
    """
    task = TaskContext.get()
    if task is None or task.taskAttemptId() == _Worker.attempt:
        return
    _Worker.attempt = task.taskAttemptId()
    _Worker.tasks += 1
    if _Worker.tasks.bit_count() == 1:
        gc.freeze()


def begin_task() -> None:
    """Prepare this process as a worker for our tasks, when a task begins.

    Arrow uses one thread, as Spark runs as many tasks as there are processors.
    """
    spare_modules()
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)


def _run(
    carried: PackedCatalog | None, task: Task, names: list[str], batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    spare_modules()
    use_packed_catalog(carried)
    for batch in task(batches):
        if batch.schema.names != names:
            # Spark assigns columns by position; no setting of its 4.0 changes that.
            raise AnalysisError(f"expected the columns {names}, got {batch.schema.names}")
        yield batch
