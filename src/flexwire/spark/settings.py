"""What Spark is set to while an analysis runs, and answers are asked, by how much there is."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from flexwire.spark.archive import SMALL_JAVA, with_archive
from flexwire.spark.session import meanwhile
from flexwire.spark.tables import BATCH_BYTES, BATCH_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow.dataset as ds
    from pyspark.sql import SparkSession

    from flexwire.tables.output import Output

SMALL_BYTES: Final = 64 * 1024 * 1024
SMALL_VALUES: Final = 10_000_000
"""Of fewer values in fewer bytes of tables, to compile a query takes longer than to run it as it
is. Bytes alone do not say it: what repeats takes none."""
ONE_COMPILER_BYTES: Final = 1 << 30
"""Of fewer bytes of tables, Java's second compiler takes longer than what it compiles saves."""

_BOTH: Final = {
    "spark.sql.session.timeZone": "UTC",
    # Rows alone do not bound a batch: a frame may have 100 MiB, and a body many MB.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(BATCH_BYTES),
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH_ROWS),
}
SMALL_CONF: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Below so many bytes, compiling takes longer than running what was compiled."""

# What our tasks rely on, whatever the session's owner has set.
_TASKS: Final = _BOTH | {
    # Without it, and on PySpark 4.0, mapInArrow takes fields by position, whatever they are called.
    "spark.sql.execution.arrow.pyspark.validateSchema.enabled": "true",
    # The default is INT96, which readers take for nanoseconds without a time zone.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
}
_LARGE_TASKS: Final = {
    # The vectorized reader holds 4,096 payloads at once, whatever their size.
    "spark.sql.parquet.enableVectorizedReader": "false",
    # Spark takes a table for small by its compressed size, and broadcasts all that is in it.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "-1",
}
_ANSWERS: Final = _BOTH | {
    # By columns, but not 4,096 payloads at once.
    "spark.sql.parquet.enableVectorizedReader": "true",
    "spark.sql.parquet.columnarReaderBatchSize": "512",
}
_SMALL_ANSWERS: Final = SMALL_CONF | {
    # To look at each stage before the next is planned is for what may be large.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    # Tables are one partition each, so that an answer is one task. To send a table to all tasks is
    # a job of its own.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.optimizer.disableHints": "true",
}
_LARGE_ANSWERS: Final = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
}


@contextmanager
def configured(spark: SparkSession, *, is_small: bool) -> Iterator[None]:
    """Set what an analysis relies on, and what is set for a small or large capture, meanwhile."""
    with meanwhile(spark, _TASKS | (SMALL_CONF if is_small else _LARGE_TASKS)):
        yield


@contextmanager
def answering(spark: SparkSession, *, is_small: bool) -> Iterator[None]:
    """Set what questions about tables run with, meanwhile; ``is_small`` as `are_small` has it."""
    with meanwhile(spark, _ANSWERS | (_SMALL_ANSWERS if is_small else _LARGE_ANSWERS)):
        yield


def java_for(found: Output) -> dict[str, str]:
    """What to start Java with to ask answers of these tables."""
    return with_archive(SMALL_JAVA if _bytes(found) < ONE_COMPILER_BYTES else {})


def are_small(found: Output) -> bool:
    """Whether to compile queries of these tables takes longer than to run them as they are."""
    if _bytes(found) >= SMALL_BYTES:
        return False
    return sum(map(_values, map(found.dataset, found.names))) < SMALL_VALUES


def _bytes(found: Output) -> int:
    return sum(file.size for name in found.names for file in found.files(name))


def _values(table: ds.Dataset) -> int:
    """Give how many values a table has, those in lists too."""
    footers = (part.metadata for part in table.get_fragments())
    return sum(
        footer.row_group(group).column(column).num_values
        for footer in footers
        for group in range(footer.num_row_groups)
        for column in range(footer.num_columns)
    )
