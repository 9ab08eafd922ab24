"""The data source ``kafka-capture``, which reads captures of Kafka traffic as rows.

The offset of a stream is the number of bytes that were read from each file. Spark does not tell a
Python data source where the checkpoint of its query is, so a separate option sets the location of
the state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from flexwire.errors import ArgumentError, EncodeError
from flexwire.schema.catalog import using_packed_catalog
from flexwire.spark.functions.variant import VARIANT, struct_variants
from flexwire.spark.settings import BATCH_BYTES, BATCH_ROWS
from flexwire.spark.sources.kafka_capture_plan import plan, rows_of
from flexwire.spark.sources.requests import (
    CONNECTIONS,
    PACKETS,
    CaptureOptions,
    ReadAllAvailable,
    ReadMaxBytes,
    ReadMaxFiles,
    SupportsTriggerAvailableNow,
    user_schema,
)
from flexwire.storage.output_directory import OutputDirectory
from flexwire.survey.follower import CaptureFollower, Stretch, decode_stretch
from flexwire.survey.saved_stream import StreamStates
from flexwire.tables.records import cut_rows, with_columns
from flexwire.tasks import begin_task, carries_conditions, spark_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

    from flexwire.tables.records import Rows

    Offset = dict[str, int]


_BODY, _ERROR = "body", "error"


class CaptureRows:
    """Converts rows to batches of a schema, which can list a table's columns in any order."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema: Final = schema
        self._is_variant = _BODY in schema.names and schema.field(_BODY).type == VARIANT

    def batches(self, row_batches: Iterable[Rows]) -> Iterator[pa.RecordBatch]:
        """Yield rows of the table in batches."""
        for rows in cut_rows(row_batches, BATCH_ROWS, BATCH_BYTES):
            is_whole = self._is_variant and isinstance(rows, pa.RecordBatch)
            yield with_columns(_bodies_as_variants(rows) if is_whole else rows, self.schema)


def _bodies_as_variants(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows of a message with the body as a Variant, or with an error if it is too long."""
    bodies, reasons = rows[_BODY], rows[_ERROR]
    try:
        variants = struct_variants(bodies)
    except EncodeError:
        variants, reasons = _variants_row_by_row(bodies, reasons)
    at, error = rows.schema.get_field_index(_BODY), rows.schema.get_field_index(_ERROR)
    rows = rows.set_column(error, rows.schema.field(error), reasons)
    return rows.set_column(at, pa.field(_BODY, VARIANT), variants)


def _variants_row_by_row(bodies: pa.Array, reasons: pa.Array) -> tuple[pa.Array, pa.Array]:
    variants: list[pa.Array] = []
    errors: list[str | None] = reasons.to_pylist()
    for row in range(len(bodies)):
        variants.append(pa.nulls(1, VARIANT))
        try:
            variants[-1] = struct_variants(bodies.slice(row, 1))
        except EncodeError as error:
            errors[row] = errors[row] or str(error)
    return pa.concat_arrays(variants), pa.array(errors, pa.string())


NAME: Final = "kafka-capture"


@carries_conditions
class KafkaCapture(DataSource):
    """Captures of Kafka traffic: their frames, messages or records, as in `flexwire analyze`.

    This source is most similar to Spark's file sources, which read a directory and return rows.
    """

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return NAME

    def schema(self) -> StructType:
        """Return the columns for a user who specifies none."""
        return spark_schema(CaptureOptions.parse(self.options).schema())

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the columns of a schema."""
        return CaptureReader(CaptureOptions.parse(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return a reader of the columns while files grow and new files appear."""
        return CaptureStreamReader(CaptureOptions.parse(self.options), schema)


@carries_conditions
class CaptureReader(DataSourceReader):
    """Surveys a capture in the process that plans the query, and decodes it in tasks."""

    def __init__(self, options: CaptureOptions, schema: StructType) -> None:
        self._options = options
        self._schema = user_schema(schema, options.columns)

    def partitions(self) -> list[InputPartition]:
        """Return one partition for each task."""
        with using_packed_catalog(self._options.carried):
            return plan(self._options)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task."""
        # An earlier query in the same worker may have used another catalog.
        with using_packed_catalog(self._options.carried):
            yield from CaptureRows(self._schema).batches(rows_of(partition, self._options))


@dataclass(frozen=True, slots=True)
class StretchTask(InputPartition):
    """The part that one task of a batch reads."""

    stretch: Stretch


@carries_conditions
class CaptureStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Examines the files for each batch on the driver, and decodes them in tasks."""

    def __init__(self, options: CaptureOptions, schema: StructType) -> None:
        self._schema = user_schema(schema, options.columns)
        self._options = options
        if options.kind in {CONNECTIONS, PACKETS}:
            raise ArgumentError(
                f"read rows of {options.kind} with spark.read: they are complete only at the end "
                "of the input, and a stream has no end"
            )
        place = options.state_location
        self._follower = CaptureFollower(
            options.paths,
            options.request,
            options.row_filter,
            fails_on_loss=options.fails_on_loss,
            states=None if place is None else StreamStates(OutputDirectory(place)),
        )
        # If the query ends by itself, these are the files that existed when it started.
        self._last: Offset | None = None
        for name, limit in (
            ("maxBytesPerTrigger", options.bytes_per_trigger),
            ("maxFilesPerTrigger", options.files_per_trigger),
        ):
            if limit is not None and ReadMaxBytes is None:
                raise ArgumentError(f"{name} needs PySpark 4.2 or later")

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Return the start of a new query: the first byte of every file."""
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the default limit on the size of a batch."""
        options = self._options
        if options.bytes_per_trigger is not None:
            return ReadMaxBytes(options.bytes_per_trigger)
        if options.files_per_trigger is not None:
            return ReadMaxFiles(options.files_per_trigger)
        return ReadAllAvailable()

    def latestOffset(  # noqa: N802 - Spark's name
        self, start: Offset | None = None, limit: ReadLimit | None = None
    ) -> Offset:
        """Return the end of the next batch.

        Versions of PySpark before 4.2 do not pass the start of the batch.
        """
        most: tuple[int | None, int | None] = (None, None)
        if limit is not None and not isinstance(limit, ReadAllAvailable):
            # Spark passes one limit, but the options can set both limits.
            most = self._options.bytes_per_trigger, self._options.files_per_trigger
        return self._follower.latest(start, *most, until=self._last)

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802 - Spark's name
        """Return the sizes of all files that existed when the last batch was planned.

        PySpark 4.2 and later show these sizes as ``latestOffset`` of the stream's progress.
        """
        return self._follower.sizes

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Remember which files exist now."""
        self._last = self._follower.latest(None)

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """Return one partition for each task of a batch."""
        with using_packed_catalog(self._options.carried):
            return [StretchTask(stretch) for stretch in self._follower.stretches(start, end)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of one task."""
        begin_task()
        # If there is nothing to read, Spark runs one task without a partition from flexwire.
        if isinstance(partition, StretchTask):
            request, row_filter = self._options.request, self._options.row_filter
            with using_packed_catalog(self._options.carried):
                row_batches = (
                    rows for _, rows in decode_stretch(request, row_filter, partition.stretch)
                )
                yield from CaptureRows(self._schema).batches(row_batches)
