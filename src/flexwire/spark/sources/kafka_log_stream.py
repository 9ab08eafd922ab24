"""``spark.readStream.format("kafka-log")``: the records of logs as they grow.

The offset of a stream is that of Spark's own Kafka source: the next offset of each partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader

from flexwire.errors import ArgumentError
from flexwire.logs.files import Partition
from flexwire.logs.following import LogFollower
from flexwire.spark.sources.kafka_log import LogTask, arrow_schema, read_task
from flexwire.spark.sources.limits import (
    ReadAllAvailable,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

    from flexwire.spark.sources.kafka_log import LogOptions

    Offset = dict[str, dict[str, int]]


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Looks at the logs for each batch, on the driver, and reads in tasks."""

    def __init__(self, options: LogOptions, schema: StructType) -> None:
        self._schema = arrow_schema(schema, options)
        self._options = options
        self._follower = LogFollower(
            options.paths, options.query, fails_on_loss=options.fails_on_loss
        )
        # What was there when a query that ends by itself began.
        self._last: dict[Partition, int] | None = None
        for name in options.not_for_streams:
            raise ArgumentError(f"{name} is not for a stream, which has no end and one replica")
        if options.per_trigger is not None and ReadMaxRows is None:
            raise ArgumentError("maxOffsetsPerTrigger needs PySpark 4.2 or later")

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Where a new query begins."""
        return _to_spark(self._follower.first(latest=self._options.starts_late))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """How much a batch has at the most."""
        most = self._options.per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(  # noqa: N802 - Spark's name
        self, start: Offset | None = None, limit: ReadLimit | None = None
    ) -> Offset:
        """Where the next batch ends; before PySpark 4.2 nothing says where it begins."""
        begin = _from_spark(start or {})
        most = (
            limit.max_rows if ReadMaxRows is not None and isinstance(limit, ReadMaxRows) else None
        )
        if self._last is None:
            return _to_spark(self._follower.latest(begin, most))
        return _to_spark(self._follower.latest(begin, most, until=self._last))

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Remember what is there now."""
        self._last = self._follower.latest({})

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """One for each task of a batch."""
        tasks = self._follower.tasks(_from_spark(start), _from_spark(end))
        return [LogTask(tuple(one)) for one in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The records of one task."""
        # A log that grows may end within a batch at any time.
        return read_task(partition, self._schema, self._options, tells_torn=False)


def _to_spark(offsets: dict[Partition, int]) -> Offset:
    found: Offset = {}
    for (topic, partition), offset in sorted(offsets.items()):
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def _from_spark(offset: dict[str, Any]) -> dict[Partition, int]:
    return {
        Partition(topic, int(partition)): number
        for topic, partitions in offset.items()
        for partition, number in partitions.items()
    }
