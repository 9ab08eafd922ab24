"""The module in which Spark finds the format "kafka-log" if nobody registered the format.

Spark imports every module with such a name whenever it looks for a data source. If one such module
fails to import, Spark does not find the others either. This module therefore imports only modules
that Spark itself needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader
    from pyspark.sql.types import StructType


class DefaultSource(DataSource):
    """Log segments; `flexwire.spark.sources.kafka_log` describes how they are read."""

    @classmethod
    def name(cls) -> str:
        """Say the format."""
        return "kafka-log"

    def schema(self) -> StructType | str:
        """Return the columns for a user who specifies none."""
        return self._source().schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a schema's columns."""
        return self._source().reader(schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return the reader of growing logs."""
        return self._source().streamReader(schema)

    def _source(self) -> DataSource:
        from flexwire.spark.sources.kafka_log import KafkaLog  # noqa: PLC0415 - see above

        return KafkaLog(self.options)
