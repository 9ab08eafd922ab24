"""Spark's settings: at its start, during an analysis, and while answers are computed."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from flexwire.spark.scratch import keep_in, scratch_directory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import pyarrow.dataset as ds
    from pyspark.sql import SparkSession

    from flexwire.tables.output import Output

SMALL_BYTES: Final = 64 * 1024 * 1024
SMALL_VALUES: Final = 10_000_000
"""The number of values below which interpreting a query is faster than compiling it.

The size alone would be misleading, because repeated values compress to almost nothing.
"""
ONE_COMPILER_BYTES: Final = 1 << 30
"""For tables below this size, Java's second compiler takes more time than its code saves."""

SMALL_CAPTURE_BYTES: Final = 4 << 30
"""For captures below this size, compiling takes longer than running the compiled code."""
BATCH_BYTES: Final = 16 * 1024 * 1024
"""The largest size of a batch in bytes. Spark can transfer a batch of a gigabyte, but several such
batches do not fit in its default heap.
"""
BATCH_ROWS: Final = 10_000

# Times in captures are in UTC, and so are flexwire's Arrow batches.
_UTC: Final = {"spark.sql.session.timeZone": "UTC"}
# Without this setting, and on PySpark 4.0, mapInArrow assigns fields by position and ignores their
# names.
_BY_NAME: Final = {"spark.sql.execution.arrow.pyspark.validateSchema.enabled": "true"}
ALWAYS: Final = _UTC | _BY_NAME | {"spark.sql.execution.arrow.pyspark.enabled": "true"}
"""Settings that can be changed while a session runs, and on which all of flexwire's jobs rely."""

JAVA_OPTIONS: Final = "spark.driver.defaultJavaOptions"
SMALL_JAVA: Final = {
    JAVA_OPTIONS: "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m"
}
"""Java options for a single compiler, and for a garbage collector without threads of its own. These
options halve the CPU time of a start.

With one compiler, Java reserves 48 MB for code by default. The queries of a few analyses fill this
space.
"""

_BOTH: Final = _UTC | {
    # A limit on rows does not limit the bytes of a batch: a frame can take 100 MiB, and a body can
    # take many MB.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(BATCH_BYTES),
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH_ROWS),
}
SMALL_CONF: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""Settings for small tables. Below these limits, compiling takes longer than running the compiled
code.
"""

# flexwire's tasks rely on these settings, whatever the session's owner has set.
_TASKS: Final = (
    _BOTH
    | _BY_NAME
    | {
        # The default is INT96, which readers interpret as nanoseconds without a time zone.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    }
)
_ANSWERS: Final = _BOTH | {
    # These columns are read as vectors, but without holding 4,096 payloads in memory.
    "spark.sql.parquet.enableVectorizedReader": "true",
    "spark.sql.parquet.columnarReaderBatchSize": "512",
}
_SMALL_ANSWERS: Final = SMALL_CONF | {
    # Examining each stage before planning the next one pays off only for large tables.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    # Each table is one partition, so an answer is one task. Broadcasting a table would require a
    # separate job.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.optimizer.disableHints": "true",
}
_LARGE_ANSWERS: Final = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
}


def at_start(memory: str) -> dict[str, str]:
    """Return Java's start settings, wherever tasks run, and create the scratch directory."""
    scratch = scratch_directory()
    log = Path(__file__).with_name("log4j2.properties").as_uri()
    options = [f"-Dlog4j2.configurationFile={log}", *keep_in(scratch)]
    return {
        "spark.driver.memory": memory,
        "spark.driver.extraJavaOptions": " ".join(map(_quoted, options)),
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        "spark.ui.showConsoleProgress": "false",
    }


def _quoted(option: str) -> str:
    """Return a Java option in quotes, because Spark splits options at spaces outside quotes."""
    return f'"{option}"' if " " in option else option


def on_this_machine(threads: int) -> dict[str, str]:
    """Return the additional start settings of a Java process that runs all tasks itself."""
    return {
        # The owner of a cluster decides about the cluster's web pages.
        "spark.ui.enabled": "false",
        # For its web pages, Spark keeps the plans of finished queries as text, by default 1,000 of
        # them.
        "spark.sql.ui.retainedExecutions": "1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        # Spark's default of 200 is meant for a cluster. Twice the number of threads balances
        # partitions of unequal size.
        "spark.sql.shuffle.partitions": str(2 * threads),
    }


@contextmanager
def temporary_settings(spark: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Change settings while a session runs, and restore them at the end."""
    old_values = {name: spark.conf.get(name, None) for name in conf}
    for name, value in conf.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, old in old_values.items():
            if old is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, old)


@contextmanager
def set_for_analysis(spark: SparkSession, *, is_small: bool) -> Iterator[None]:
    """Apply the settings for an analysis of a small or large capture during a block."""
    with temporary_settings(spark, _TASKS | (SMALL_CONF if is_small else {})):
        yield


@contextmanager
def set_for_answers(spark: SparkSession, *, is_small: bool) -> Iterator[None]:
    """Apply the settings for queries of tables during a block.

    `are_small` computes ``is_small``.
    """
    with temporary_settings(spark, _ANSWERS | (_SMALL_ANSWERS if is_small else _LARGE_ANSWERS)):
        yield


def java_for(output: Output) -> dict[str, str]:
    """Return Java's settings for computing answers from these tables."""
    return SMALL_JAVA if _bytes(output) < ONE_COMPILER_BYTES else {}


def are_small(output: Output) -> bool:
    """Return whether compiling queries of these tables takes longer than interpreting them."""
    if _bytes(output) >= SMALL_BYTES:
        return False
    return sum(map(_values, map(output.dataset, output.names))) < SMALL_VALUES


def _bytes(output: Output) -> int:
    return sum(file.size for name in output.names for file in output.files(name))


def _values(table: ds.Dataset) -> int:
    """Return how many values a table contains, including the values in lists."""
    footers = (part.metadata for part in table.get_fragments())
    return sum(
        footer.row_group(group).column(column).num_values
        for footer in footers
        for group in range(footer.num_row_groups)
        for column in range(footer.num_columns)
    )
