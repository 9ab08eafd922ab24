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
    """Register flexwire's formats, "kafka-log" and "kafka-capture", and its functions for SQL.

    On PySpark 4.1 and later, the functions are registered if ``messages`` lists message names: see
    `flexwire.spark.functions.register_functions`.

    Spark finds a format even without this call, unless another module whose name begins with
    ``pyspark_`` fails to import.

    With ``push_filters``, Spark passes the filters of a query to "kafka-log", on PySpark 4.1 and
    later, so that less is read. This sets ``spark.sql.python.filterPushdown.enabled``. If that
    setting becomes false again, every query fails. The default is false, because Spark loses rows
    with this setting: a DataFrame that was filtered once is read as filtered in later queries, and
    in both parts of a join or union with itself. Use this setting only if each loaded DataFrame is
    used only once, in one query. To limit what is read without this setting, use the format's
    options. Raises `ArgumentError` before PySpark 4.1.
    """
    from pyspark.errors import AnalysisException  # noqa: PLC0415 - this import takes a second
    from pyspark.sql import SparkSession  # noqa: PLC0415 - this import takes a second
    from pyspark.sql.datasource import DataSourceReader  # noqa: PLC0415 - this import takes a second

    from flexwire.spark.sources.kafka_capture import (  # noqa: PLC0415 - it imports PySpark
        KafkaCapture,
    )
    from flexwire.spark.sources.kafka_log import (  # noqa: PLC0415 - this import takes a second
        FilteredKafkaLog,
        KafkaLog,
    )
    from flexwire.tasks import activate  # noqa: PLC0415 - this import takes a second

    if to_flag(push_filters, "push_filters"):
        if not hasattr(DataSourceReader, "pushFilters"):
            raise ArgumentError(
                "push_filters needs PySpark 4.1 or later; 4.0 passes no filters to data sources"
            )
        spark.conf.set(_PUSHDOWN, "true")
    before = SparkSession.getActiveSession()
    # Spark refuses names that the active session uses, even if they are free in this session.
    activate(spark)
    for source in (FilteredKafkaLog if push_filters else KafkaLog, KafkaCapture):
        try:
            spark.dataSource.register(source)
        except AnalysisException as error:
            # PySpark 4.0 refuses the name of a format that it has already found by itself, but that
            # format is the same.
            if error.getCondition() != "DATA_SOURCE_ALREADY_EXISTS":
                raise
    if before is not None:
        activate(before)
    if messages:
        from flexwire.spark.functions import (  # noqa: PLC0415 - it imports PySpark
            register_functions,
        )

        register_functions(spark, messages)
