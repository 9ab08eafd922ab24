"""The functions and data sources that `flexwire.spark.register` adds to a session."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from flexwire.arguments import to_flag
from flexwire.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import SparkSession

_PUSHDOWN: Final = "spark.sql.python.filterPushdown.enabled"


def register(
    spark: SparkSession, *, push_filters: bool = False, messages: Sequence[str] = ()
) -> None:
    """Register the formats of flexwire, "kafka-log" and "kafka-capture", and functions for SQL.

    The functions are there if ``messages`` names some, from PySpark 4.1 on: see
    `flexwire.spark.functions.register_functions`.

    Spark finds a format without this too, unless another module whose name begins with
    ``pyspark_`` cannot be imported there.

    With ``push_filters`` Spark hands the filters of a query on "kafka-log" over, from PySpark 4.1
    on, so that less is read; it sets ``spark.sql.python.filterPushdown.enabled``, and where that
    becomes false again every query fails. It is false by default because Spark loses rows with it:
    a DataFrame that was filtered once is read as filtered in later queries, and in both parts of a
    join or union with itself. Take it only where each DataFrame that was loaded is used in one
    query, once. Options narrow what is read without this. Raises `ArgumentError` before PySpark
    4.1.
    """
    from pyspark.errors import AnalysisException  # noqa: PLC0415 - it takes a second
    from pyspark.sql import SparkSession  # noqa: PLC0415 - see above
    from pyspark.sql.datasource import DataSourceReader  # noqa: PLC0415 - see above

    from flexwire.spark.sources.kafka_capture import (  # noqa: PLC0415 - it imports PySpark
        KafkaCapture,
    )
    from flexwire.spark.sources.kafka_log import (  # noqa: PLC0415 - see above
        FilteredKafkaLog,
        KafkaLog,
    )
    from flexwire.tasks import activate  # noqa: PLC0415 - see above

    if to_flag(push_filters, "push_filters"):
        if not hasattr(DataSourceReader, "pushFilters"):
            raise ArgumentError(
                "push_filters needs PySpark 4.1 or later; 4.0 hands no filters over"
            )
        spark.conf.set(_PUSHDOWN, "true")
    before = SparkSession.getActiveSession()
    # Spark refuses names that the active session has, and that are free in this one.
    activate(spark)
    for source in (FilteredKafkaLog if push_filters else KafkaLog, KafkaCapture):
        try:
            spark.dataSource.register(source)
        except AnalysisException as error:
            # PySpark 4.0 refuses the name of one that it found, which is the same.
            if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
                raise
    if before is not None:
        activate(before)
    if messages:
        from flexwire.spark.functions import (  # noqa: PLC0415 - it imports PySpark
            register_functions,
        )

        register_functions(spark, messages)
