"""What Spark is set to while answers are asked, by how much there is to read."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from flexwire.spark.batches import BATCH_BYTES, BATCH_ROWS
from flexwire.spark.session import meanwhile

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow.dataset as ds
    from pyspark.sql import SparkSession

    from flexwire.tables.reading import Output

SMALL_BYTES: Final = 64 * 1024 * 1024
SMALL_VALUES: Final = 10_000_000
"""Of fewer values in fewer bytes of tables, to compile a query takes longer than to run it as it
is. Bytes alone do not say it: what repeats takes none."""

_ALWAYS: Final = {
    "spark.sql.session.timeZone": "UTC",
    # By columns, but not 4,096 payloads at once.
    "spark.sql.parquet.enableVectorizedReader": "true",
    "spark.sql.parquet.columnarReaderBatchSize": "512",
    # Rows alone do not bound a batch: a body may have many MB.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(BATCH_BYTES),
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(BATCH_ROWS),
}
_SMALL: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # To look at each stage before the next is planned is for what may be large.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
}
_LARGE: Final = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
}


@contextmanager
def answering(spark: SparkSession, *, is_small: bool) -> Iterator[None]:
    """Set what questions about tables run with, meanwhile; ``is_small`` as `are_small` has it."""
    with meanwhile(spark, _ALWAYS | (_SMALL if is_small else _LARGE)):
        yield


def are_small(found: Output) -> bool:
    """Whether to compile queries of these tables takes longer than to run them as they are."""
    files = [(name, file) for name in found.names for file in found.files(name)]
    if sum(file.size for _, file in files) >= SMALL_BYTES:
        return False
    return sum(map(_values, map(found.dataset, found.names))) < SMALL_VALUES


def _values(table: ds.Dataset) -> int:
    """Give how many values a table has, those in lists too."""
    footers = (part.metadata for part in table.get_fragments())
    return sum(
        footer.row_group(group).column(column).num_values
        for footer in footers
        for group in range(footer.num_row_groups)
        for column in range(footer.num_columns)
    )
