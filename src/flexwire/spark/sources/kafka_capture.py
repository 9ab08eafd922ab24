"""``spark.read.format("kafka-capture")``: what captures of Kafka traffic hold, as rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql.datasource import DataSource, DataSourceReader

from flexwire.schema.catalog import using_carried
from flexwire.spark.batches import spark_schema
from flexwire.spark.sources.columns import chosen
from flexwire.spark.sources.kafka_capture_options import CaptureOptions
from flexwire.spark.sources.kafka_capture_plan import plan, rows_of
from flexwire.spark.sources.kafka_capture_rows import CaptureRows

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
    from pyspark.sql.types import StructType

NAME: Final = "kafka-capture"


class KafkaCapture(DataSource):
    """Captures of Kafka traffic: their frames, messages or records, as `flexwire analyze` has them.

    Its nearest relatives in Spark are the sources of files: a directory in, rows out.
    """

    @classmethod
    def name(cls) -> str:
        """The format."""
        return NAME

    def schema(self) -> StructType:
        """The columns, where the user gives none."""
        return spark_schema(CaptureOptions.parse(self.options).schema())

    def reader(self, schema: StructType) -> DataSourceReader:
        """What reads the columns of a schema."""
        return CaptureReader(CaptureOptions.parse(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """What reads them as files grow and others come."""
        # It imports this room's stream, which a batch does not need.
        from flexwire.spark.sources.kafka_capture_stream import (  # noqa: PLC0415 - see above
            CaptureStreamReader,
        )

        return CaptureStreamReader(CaptureOptions.parse(self.options), schema)


class CaptureReader(DataSourceReader):
    """Surveys where Spark plans, and decodes in tasks."""

    def __init__(self, options: CaptureOptions, schema: StructType) -> None:
        self._options = options
        self._schema = chosen(schema, options.columns)

    def partitions(self) -> list[InputPartition]:
        """One for each task."""
        with using_carried(self._options.carried):
            return plan(self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        # A worker may have had a query before that has another catalog.
        with using_carried(self._options.carried):
            yield from CaptureRows(self._schema).batches(rows_of(partition, self._options))
