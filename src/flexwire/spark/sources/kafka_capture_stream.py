"""``spark.readStream.format("kafka-capture")``: captures as a tap writes them.

The offset of a stream says how many bytes of each file were read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from flexwire.errors import ArgumentError
from flexwire.schema.catalog import using_carried
from flexwire.spark.sources.columns import chosen
from flexwire.spark.sources.kafka_capture_options import CONNECTIONS, PACKETS
from flexwire.spark.sources.kafka_capture_rows import CaptureRows
from flexwire.spark.sources.limits import (
    ReadAllAvailable,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
)
from flexwire.spark.tasks import begin_task
from flexwire.survey.following import CaptureFollower, Stretch, stretch_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

    from flexwire.spark.sources.kafka_capture_options import CaptureOptions

    Offset = dict[str, int]


@dataclass(frozen=True, slots=True)
class StretchTask(InputPartition):
    """What one task of a batch reads."""

    stretch: Stretch


class CaptureStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Looks at the files for each batch, on the driver, and decodes in tasks."""

    def __init__(self, options: CaptureOptions, schema: StructType) -> None:
        self._schema = chosen(schema, options.columns)
        self._options = options
        if options.kind in {CONNECTIONS, PACKETS}:
            raise ArgumentError(
                f"rows of {options.kind} are known in the end, and a stream has none: read them "
                "with spark.read"
            )
        self._follower = CaptureFollower(
            options.paths, options.asked, options.wanted, fails_on_loss=options.fails_on_loss
        )
        # What was there when a query that ends by itself began.
        self._last: Offset | None = None
        for name, given in (
            ("maxBytesPerTrigger", options.bytes_per_trigger),
            ("maxFilesPerTrigger", options.files_per_trigger),
        ):
            if given is not None and ReadMaxBytes is None:
                raise ArgumentError(f"{name} needs PySpark 4.2 or later")

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Where a new query begins: with the first byte of every file."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """How much a batch has at the most."""
        options = self._options
        if options.bytes_per_trigger is not None:
            return ReadMaxBytes(options.bytes_per_trigger)
        if options.files_per_trigger is not None:
            return ReadMaxFiles(options.files_per_trigger)
        return ReadAllAvailable()

    def latestOffset(  # noqa: N802 - Spark's name
        self, start: Offset | None = None, limit: ReadLimit | None = None
    ) -> Offset:
        """Where the next batch ends; before PySpark 4.2 nothing says where it begins."""
        most: tuple[int | None, int | None] = (None, None)
        if limit is not None and not isinstance(limit, ReadAllAvailable):
            # Spark hands one limit over, and both may be set.
            most = self._options.bytes_per_trigger, self._options.files_per_trigger
        return self._follower.latest(start, *most, until=self._last)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Remember what is there now."""
        self._last = self._follower.latest({})

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """One for each task of a batch."""
        with using_carried(self._options.carried):
            return [StretchTask(one) for one in self._follower.stretches(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of one task."""
        begin_task()
        # Spark has a task of its own where there is nothing to read.
        if isinstance(partition, StretchTask):
            asked, wanted = self._options.asked, self._options.wanted
            with using_carried(self._options.carried):
                found = (rows for _, rows in stretch_rows(asked, wanted, partition.stretch))
                yield from CaptureRows(self._schema).batches(found)
