"""The request that a data source reads: columns, filters and limits.

A filter narrows the read, but Spark is never told that the filter was handled. Spark therefore
checks every row again, so that a filter means exactly what it means in Spark.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from flexwire.capture.reassembly.connections import BrokerEnds
from flexwire.errors import ArgumentError
from flexwire.facts.units import microseconds_of
from flexwire.logs.files import EVERY, PIECE_BYTES, Bounds
from flexwire.schema.catalog import Catalog, catalog, using_packed_catalog
from flexwire.spark.functions.messages import OF_INFLATION
from flexwire.spark.functions.variant import VARIANT
from flexwire.spark.sources.options import SourceOptions
from flexwire.survey.request import AnalysisRequest
from flexwire.tables import schema
from flexwire.tables.message_schema import table_schema
from flexwire.tables.row_filter import FRAMES, MESSAGES, RECORDS, RowFilter
from flexwire.tasks import spark_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from pyspark.sql.types import StructType

    from flexwire.logs.files import LogQuery
    from flexwire.schema.catalog import PackedCatalog


CONNECTIONS, PACKETS = "connections", "packets"
KINDS: Final = (FRAMES, MESSAGES, RECORDS, CONNECTIONS, PACKETS)
ACCEPTED: Final = {
    "rows": "`frames`, `messages` or `records`; in a batch also `connections` and `packets`",
    "message": "message names, separated by commas; default: all messages",
    "clientId": "client ids, separated by commas; default: all clients",
    "topic": "for records: topic names, separated by commas; default: all topics",
    "startingTimestamp": "a time in ms: frames that ended before this time are not read",
    "endingTimestamp": "a time in ms: frames that ended at or after this time are not read",
    "brokers": "the broker addresses, such as `10.0.0.1:9092`, separated by commas",
    "ports": "the broker ports, such as `9092,9094-9096`",
    "capturedRelease": "the release of the captured brokers, such as `3.9.2`",
    "includeRecordBytes": "`true` returns the bytes of records in messages, instead of their sizes",
    "showCredentials": "`true` shows possible credentials",
    "skipUnreadable": "`true` skips files that are not captures",
    "acceptSampled": "`true` also reads captures that contain only a part of the traffic",
    "catalog": "a directory with your own message specs, written by `flexwire schema import`",
    "maxPartitionBytes": "the number of bytes that one task reads; default `128m`",
    **OF_INFLATION,
    "maxBytesPerTrigger": "for a stream: the largest number of bytes to read from files per batch",
    "maxFilesPerTrigger": "for a stream: the largest number of files in a batch",
    "failOnDataLoss": "for a stream: `true` to fail if bytes are lost, or `false` to continue",
    "stateLocation": "for a stream: a separate directory for the state that a restart needs",
}
"""Every option, with its possible values."""
_NO_OFFSETS: Final = (
    "captures have no offsets; select a time with startingTimestamp and endingTimestamp"
)
REFUSED: Final = {
    "subscribe": "to select records by topic, use topic",
    "subscribePattern": "to select records by topic, use topic",
    "assign": "to select records by topic, use topic",
    "kafka.bootstrap.servers": "to specify the addresses of the captured brokers, use brokers",
    "kafka.isolation.level": "a capture contains all records that were sent, including those of "
    "aborted transactions",
    "startingOffsets": _NO_OFFSETS,
    "startingOffsetsByTimestamp": _NO_OFFSETS,
    "startingOffsetsByTimestampStrategy": _NO_OFFSETS,
    "endingOffsets": _NO_OFFSETS,
    "endingOffsetsByTimestamp": _NO_OFFSETS,
    "maxOffsetsPerTrigger": "to limit a batch, use maxBytesPerTrigger or maxFilesPerTrigger",
    "minOffsetsPerTrigger": "to limit a batch, use maxBytesPerTrigger or maxFilesPerTrigger",
    "minPartitions": "to limit the bytes that a task reads, use maxPartitionBytes",
    "includeHeaders": "rows of records always contain a column named headers",
    "mode": "frames with errors are always returned as rows; see the columns outcome and error",
    "columnNameOfCorruptRecord": "the column with the reason is always named error",
}
"""Options of Spark's own sources that have a different meaning or none for captures, with advice.
"""

_MICROSECONDS: Final = 1000


@dataclass(frozen=True)
class CaptureOptions:
    """The checked options of a read; ``asked`` is a request without files.

    Rows are decoded with the ``carried`` catalog, or with flexwire's own catalog if ``carried`` is
    None.
    """

    carried: PackedCatalog | None
    paths: list[str]
    kind: str
    request: AnalysisRequest
    row_filter: RowFilter
    bytes_per_trigger: int | None
    files_per_trigger: int | None
    fails_on_loss: bool
    state_location: str | None

    @classmethod
    def parse(cls, texts: Mapping[str, str]) -> CaptureOptions:
        """Read the options; raise `ArgumentError` for an invalid value."""
        options = SourceOptions(texts, ACCEPTED, refused=REFUSED)
        own = options.text("catalog")
        carried = catalog().packed if own is None else Catalog(Path(own)).packed
        with using_packed_catalog(carried):
            return cls._parse(options, carried)

    @classmethod
    def _parse(cls, options: SourceOptions, carried: PackedCatalog | None) -> CaptureOptions:
        kind = options.choice("rows", KINDS)
        release = options.text("capturedRelease")
        request = AnalysisRequest(
            (),
            BrokerEnds.parse(options.partitions("ports") or (), options.words("brokers") or ()),
            None if release is None else catalog().release(release),
            show_credentials=options.flag("showCredentials"),
            record_bytes=options.flag("includeRecordBytes"),
            range_bytes=options.size("maxPartitionBytes", PIECE_BYTES),
            skip_unreadable=options.flag("skipUnreadable"),
            takes_sampled=options.flag("acceptSampled"),
            inflation=options.inflation(),
        )
        return cls(
            carried,
            options.paths(),
            kind,
            request,
            _row_filter(options, kind),
            options.size("maxBytesPerTrigger", 0) or None,
            options.positive("maxFilesPerTrigger"),
            options.choice("failOnDataLoss", ("true", "false")) == "true",
            options.text("stateLocation"),
        )

    @property
    def message(self) -> str | None:
        """The only message, whose fields are the columns of ``body``; None for several messages."""
        names = self.row_filter.messages
        return next(iter(names)) if self.kind == MESSAGES and names and len(names) == 1 else None

    @cached_property
    def columns(self) -> dict[str, pa.DataType]:
        """All columns."""
        return {field.name: field.type for field in self.schema()}

    def schema(self) -> pa.Schema:
        """Return the columns of a read without a user's schema."""
        if self.message is not None:
            request = self.request
            with using_packed_catalog(self.carried):
                return table_schema(
                    self.message, request.release, record_bytes=request.record_bytes
                )
        return _SCHEMAS[self.kind]


_SCHEMAS: Final = {
    FRAMES: schema.FRAMES_TABLE,
    MESSAGES: schema.OUTCOMES.append(pa.field("body", VARIANT)),
    RECORDS: schema.RECORDS,
    CONNECTIONS: schema.CONNECTIONS_TABLE,
    PACKETS: schema.PACKETS_TABLE,
}
_FILTER_OPTIONS: Final = {
    "message": (FRAMES, MESSAGES),
    "clientId": (FRAMES, MESSAGES, RECORDS),
    "topic": (RECORDS,),
    "startingTimestamp": (FRAMES, MESSAGES, RECORDS),
    "endingTimestamp": (FRAMES, MESSAGES, RECORDS),
}
"""The kinds of rows that an option can select."""


def _row_filter(options: SourceOptions, kind: str) -> RowFilter:
    for name, kinds in _FILTER_OPTIONS.items():
        if kind not in kinds and options.text(name) is not None:
            raise ArgumentError(f"{name} filters only {', '.join(kinds)}, not {kind}")
    messages = options.words("message")
    for message in messages or ():
        catalog().entry(message)
    starting, ending = (options.number(f"{bound}Timestamp") for bound in ("starting", "ending"))
    return RowFilter(
        kind,
        messages,
        options.words("clientId"),
        options.words("topic"),
        None if starting is None else starting * _MICROSECONDS,
        None if ending is None else ending * _MICROSECONDS,
    )


_EQUAL = {"EqualTo", "EqualNullSafe"}


def narrow_query(query: LogQuery, filters: Iterable[Any]) -> LogQuery:
    """Return a query that reads all rows that pass the filters, and possibly other rows.

    The filters are `pyspark.sql.datasource.Filter` objects, recognized by their names because
    PySpark 4.0 lacks the class.
    """
    for spark_filter in filters:
        attribute: tuple[str, ...] = getattr(spark_filter, "attribute", ())
        value = getattr(spark_filter, "value", None)
        if len(attribute) == 1 and value is not None:
            query = _narrow(query, attribute[0], type(spark_filter).__name__, value)
    return query


def _narrow(query: LogQuery, column: str, kind: str, value: Any) -> LogQuery:
    values = value if kind == "In" else (value,)
    if column == "topic" and kind in {*_EQUAL, "In"}:
        return replace(query, topics=_within(query.topics, values))
    if column == "partition" and kind in {*_EQUAL, "In"}:
        return replace(query, partitions=_within(query.partitions, values))
    if column == "offset":
        return replace(query, offsets=query.offsets & _bounds(kind, value))
    if column == "timestamp":
        moments = tuple(map(_milliseconds, values)) if kind == "In" else _milliseconds(value)
        return replace(query, timestamps=query.timestamps & _bounds(kind, moments, is_whole=False))
    return query


def _within(allowed: Any, values: Iterable[Any]) -> frozenset[Any]:
    chosen_values = frozenset(values)
    return chosen_values if allowed is None else chosen_values & frozenset(allowed)


def _bounds(kind: str, value: Any, *, is_whole: bool = True) -> Bounds:
    """Return the range of numbers that pass a filter.

    Times are truncated to milliseconds, so both ends are included.
    """
    if kind in _EQUAL:
        return Bounds(value, value)
    if kind == "In":
        return Bounds(min(value), max(value)) if value else EVERY
    if kind in {"GreaterThan", "GreaterThanOrEqual"}:
        return Bounds(low=value + (is_whole and kind == "GreaterThan"))
    if kind in {"LessThan", "LessThanOrEqual"}:
        return Bounds(high=value - (is_whole and kind == "LessThan"))
    return EVERY


def _milliseconds(moment: datetime) -> int:
    """Return a time in milliseconds, rounded down as in a log."""
    return microseconds_of(moment) // _MICROSECONDS


__all__ = [
    "ReadAllAvailable",
    "ReadMaxBytes",
    "ReadMaxFiles",
    "ReadMaxRows",
    "SupportsTriggerAvailableNow",
]

try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadMaxBytes,
        ReadMaxFiles,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )
except ImportError:
    ReadAllAvailable = ReadMaxBytes = None  # type: ignore[assignment, misc]
    ReadMaxFiles = ReadMaxRows = None  # type: ignore[assignment, misc]

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        """A substitute, which does nothing, for a class that this PySpark lacks."""


def user_schema(schema: StructType, columns: Mapping[str, pa.DataType]) -> pa.Schema:
    """Return a user's schema in Arrow's types; raise `ArgumentError` for an unknown column."""
    spark_types = spark_schema(pa.schema(columns.items()))
    fields = []
    for field in schema:
        if field.name not in columns:
            names = ", ".join(columns)
            raise ArgumentError(f"there is no column {field.name}; choose one of: {names}")
        expected = spark_types[field.name].dataType
        if field.dataType != expected:
            got = field.dataType.simpleString()
            reason = (
                f"expected the type {expected.simpleString()}, with all parts nullable, got {got}"
            )
            raise ArgumentError(f"column {field.name}: {reason}")
        fields.append(pa.field(field.name, columns[field.name], nullable=field.nullable))
    return pa.schema(fields)
