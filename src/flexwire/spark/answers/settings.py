"""What Spark is set to while answers are asked, by how much there is to read."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from flexwire.spark.session import meanwhile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from flexwire.tables.reading import Output

SMALL_BYTES: Final = 64 * 1024 * 1024
"""Of fewer bytes of tables, to compile a query takes longer than to run it as it is."""

_ALWAYS: Final = {
    "spark.sql.session.timeZone": "UTC",
    # By columns, but not 4,096 payloads at once.
    "spark.sql.parquet.enableVectorizedReader": "true",
    "spark.sql.parquet.columnarReaderBatchSize": "512",
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
def answering(spark: SparkSession, found: Output) -> Iterator[None]:
    """Set what questions about these tables run with, meanwhile."""
    size = sum(file.size for name in found.names for file in found.files(name))
    with meanwhile(spark, _ALWAYS | (_SMALL if size < SMALL_BYTES else _LARGE)):
        yield
