"""The data source ``kafka-log``: the records of log segments, without a broker.

As in Spark's own Kafka source, the offset of a stream is the next offset of each partition.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, get_args

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    InputPartition,
)

from flexwire.arguments import refuse
from flexwire.columnar.records import Mode
from flexwire.errors import ArgumentError
from flexwire.logs.files import PIECE_BYTES, Isolation, LogQuery, Partition, Replicas
from flexwire.logs.follower import LogFollower
from flexwire.logs.pieces import check_topics, plan
from flexwire.logs.records import (
    CORRUPT,
    FACT_COLUMNS,
    FILE,
    GROUPS,
    HEADERS,
    KAFKA_COLUMNS,
    LOG_COLUMNS,
    REPLICA,
    SUM_COLUMNS,
    LogPiece,
)
from flexwire.logs.rows import RowOptions, read_rows
from flexwire.records.inflation import INFLATION, Inflation
from flexwire.spark.functions.messages import OF_INFLATION
from flexwire.spark.sources.options import LATEST, SourceOptions
from flexwire.spark.sources.requests import (
    ReadAllAvailable,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
    narrow_query,
    user_schema,
)
from flexwire.tasks import begin_task, carries_conditions, spark_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

    Offset = dict[str, dict[str, int]]


NAME: Final = "kafka-log"
ACCEPTED: Final = {
    "topic": "topic names, separated by commas; default: all topics",
    "partitions": "partition numbers, such as `0,4-7`; default: all partitions",
    "startingOffsets": '`earliest`, or JSON such as `{"orders": {"0": 23, "1": -2}}`; '
    "for a stream also `latest`",
    "endingOffsets": '`latest`, or JSON such as `{"orders": {"0": 50, "1": -1}}`; records at these '
    "offsets are not read",
    "startingTimestamp": "a time in ms: each partition is read from its first record at or "
    "after this time",
    "endingTimestamp": "a time in ms: each partition is read up to, but not including, its "
    "first record at or after this time",
    "startingOffsetsByTimestamp": 'JSON such as `{"orders": {"0": 1700000000000}}`: '
    "the `startingTimestamp` of each partition",
    "endingOffsetsByTimestamp": 'JSON such as `{"orders": {"0": 1700000000000}}`: '
    "the `endingTimestamp` of each partition",
    "startingOffsetsByTimestampStrategy": "what to do if a partition contains no record at or "
    "after the timestamp: `error`, or `latest` to read no records",
    "includeHeaders": "`true` adds the column `headers`",
    "includeBatch": "`true` adds columns that describe each record's batch",
    "includeFile": "`true` adds the column `file`",
    "replicas": "`longest`, or `all`, which adds the column `replica`",
    "includeDeleted": "`true` also returns records before the log start offset, if the files still "
    "contain them",
    "isolation": "`read_uncommitted`, or `read_committed`",
    "mode": "`FAILFAST`, or `PERMISSIVE`, which adds the column `_corrupt_record`",
    "columnNameOfCorruptRecord": "another name for `_corrupt_record`",
    "maxPartitionBytes": "the number of bytes that one task reads; default `128m`, or `512m` for "
    "sums",
    "minPartitions": "the approximate minimum number of tasks; if necessary, each task reads less",
    **OF_INFLATION,
    "countBy": "column names, separated by commas; the rows are sums by these columns, not records",
    "maxOffsetsPerTrigger": "for a stream: the largest number of offsets in a batch",
    "failOnDataLoss": "for a stream: `true` to fail if offsets are lost, or `false` to continue",
}
"""Every option, with its possible values."""
ALIASES: Final = {"subscribe": "topic", "kafka.isolation.level": "isolation"}
"""Options of Spark's own Kafka source that are named differently here."""
_FILES: Final = "kafka-log reads files and has no consumer; leave the option out"
REFUSED: Final = {
    "assign": "list topics in the option topic, and partition numbers in the option partitions",
    "subscribePattern": "list topics in the option topic; the default is all topics",
    "kafka.bootstrap.servers": "kafka-log reads files; pass the path of the files to load",
    "maxRecordsPerPartition": "to limit the bytes that a task reads, use maxPartitionBytes",
    "minOffsetsPerTrigger": "a batch has no minimum size; to set a maximum, use "
    "maxOffsetsPerTrigger",
    "maxTriggerDelay": "a batch never waits for more records; leave the option out",
    "groupIdPrefix": _FILES,
    "kafka.group.id": _FILES,
    "kafkaConsumer.pollTimeoutMs": _FILES,
    "fetchOffset.numRetries": _FILES,
    "fetchOffset.retryIntervalMs": _FILES,
}
"""Options of Spark's own Kafka source that have no meaning for files, with advice."""

# Starting a Spark task takes as long as counting the records in 50 MB.
_SUMMED_BYTES: Final = 4 * PIECE_BYTES
_STARTING: Final = "startingOffsets"
_BY_TIMESTAMP: Final = "startingOffsetsByTimestamp"
_NOT_FOR_STREAMS: Final = (
    "endingOffsets",
    "endingTimestamp",
    "endingOffsetsByTimestamp",
    "replicas",
)


@dataclass(frozen=True, slots=True)
class KafkaLogOptions:
    """The checked options of a read."""

    paths: list[str]
    query: LogQuery
    mode: Mode
    extra: tuple[str, ...]
    starts_late: bool | frozenset[Partition]
    per_trigger: int | None
    fails_on_loss: bool
    not_for_streams: tuple[str, ...]
    groups: tuple[str, ...]
    inflation: Inflation = INFLATION
    corrupt: str = CORRUPT

    @classmethod
    def parse(cls, texts: Mapping[str, str]) -> KafkaLogOptions:
        """Read the options; raise `ArgumentError` for an invalid value."""
        options = SourceOptions(texts, ACCEPTED, ALIASES, REFUSED)
        groups = options.names("countBy", GROUPS)
        range_query, starts_late = _range_of(options)
        query = replace(
            range_query,
            topics=options.topics("topic"),
            partitions=options.partitions("partitions"),
            isolation=options.choice("isolation", get_args(Isolation)),
            replicas=options.choice("replicas", get_args(Replicas)),
            includes_deleted=options.flag("includeDeleted"),
            piece_bytes=options.size("maxPartitionBytes", _SUMMED_BYTES if groups else PIECE_BYTES),
            least_tasks=options.positive("minPartitions") or 1,
        )
        mode = options.choice("mode", get_args(Mode))
        extra = (
            *((HEADERS,) if options.flag("includeHeaders") else ()),
            *(FACT_COLUMNS if options.flag("includeBatch") else ()),
            *((FILE,) if options.flag("includeFile") else ()),
            *((REPLICA,) if query.replicas == "all" else ()),
            *((CORRUPT,) if mode == "PERMISSIVE" else ()),
        )
        return cls(
            options.paths(),
            query,
            mode,
            extra,
            starts_late,
            options.number("maxOffsetsPerTrigger"),
            options.choice("failOnDataLoss", ("true", "false")) == "true",
            tuple(name for name in _NOT_FOR_STREAMS if options.text(name) is not None),
            groups,
            options.inflation(),
            _corrupt_name(options),
        )

    def schema(self) -> pa.Schema:
        """Return the columns of a read without a user's schema."""
        names = [name for name in KAFKA_COLUMNS if name != HEADERS] + list(self.extra)
        if self.groups:
            sums = [name for name in SUM_COLUMNS if name not in {*GROUPS, CORRUPT}]
            names = [*self.groups, *sums, *(name for name in self.extra if name == CORRUPT)]
        names = [self.corrupt if name == CORRUPT else name for name in names]
        return pa.schema([(name, self.columns[name]) for name in names])

    @property
    def columns(self) -> dict[str, pa.DataType]:
        """Return all columns that a read can return."""
        columns = SUM_COLUMNS if self.groups else LOG_COLUMNS
        return {self.corrupt if name == CORRUPT else name: columns[name] for name in columns}


def _range_of(options: SourceOptions) -> tuple[LogQuery, bool | frozenset[Partition]]:
    """Return the range of each partition, and the partitions of a stream that begin at their ends.

    As in Spark's Kafka source, a timestamp for all partitions overrides timestamps by partition,
    and these override offsets.
    """
    starts_late: bool | frozenset[Partition]
    starts_late = (options.text(_STARTING) or "").strip().lower() == "latest"
    starting, starting_timestamps, starting_timestamp = (
        {} if starts_late else options.offsets(_STARTING, default="earliest", also=LATEST),
        options.timestamps(_BY_TIMESTAMP),
        options.number("startingTimestamp"),
    )
    if starting_timestamp is not None:
        starting_timestamps = {}
    if starting_timestamp is not None or starting_timestamps:
        starting, starts_late = {}, False
    late = frozenset(partition for partition, offset in starting.items() if offset == LATEST)
    ending, ending_timestamps, ending_timestamp = (
        options.offsets("endingOffsets", default="latest"),
        options.timestamps("endingOffsetsByTimestamp"),
        options.number("endingTimestamp"),
    )
    if ending_timestamp is not None:
        ending_timestamps = {}
    if ending_timestamp is not None or ending_timestamps:
        ending = {}
    # Spark's default is "error". startingTimestamp usually applies to many logs, and some logs may
    # contain no record that late.
    strategies = ("error", "latest") if starting_timestamps else ("latest", "error")
    query = LogQuery(
        starting={partition: starting[partition] for partition in starting.keys() - late},
        ending=ending,
        starting_timestamp=starting_timestamp,
        ending_timestamp=ending_timestamp,
        starting_timestamps=starting_timestamps,
        ending_timestamps=ending_timestamps,
        needs_start=options.choice(f"{_BY_TIMESTAMP}Strategy", strategies) == "error",
    )
    return query, late or starts_late


def _corrupt_name(options: SourceOptions) -> str:
    name = options.text("columnNameOfCorruptRecord")
    if name is None:
        return CORRUPT
    others = {other.lower() for other in (*LOG_COLUMNS, *SUM_COLUMNS)} - {CORRUPT}
    if not name or name.lower() in others:
        raise refuse("columnNameOfCorruptRecord", "a name that no other column has", name)
    return name


@carries_conditions
class KafkaLog(DataSource):
    """Log segments, read as records with the columns of Spark's Kafka source."""

    @classmethod
    def name(cls) -> str:
        """Return the name of the format."""
        return NAME

    def schema(self) -> StructType:
        """Return the columns for a user who specifies none."""
        return spark_schema(KafkaLogOptions.parse(self.options).schema())

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the columns of a schema."""
        return KafkaLogReader(KafkaLogOptions.parse(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Return a reader of the columns while logs grow."""
        return KafkaLogStreamReader(KafkaLogOptions.parse(self.options), schema)


@carries_conditions
class FilteredKafkaLog(KafkaLog):
    """The same source, for sessions in which Spark passes filters to data sources."""

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return a reader of the columns of a schema."""
        return FilteredKafkaLogReader(KafkaLogOptions.parse(self.options), schema)


@dataclass(frozen=True, slots=True)
class LogTask(InputPartition):
    """The part that one task reads."""

    pieces: tuple[LogPiece, ...]


@carries_conditions
class KafkaLogReader(DataSourceReader):
    """Plans the read on the driver, and reads the logs in tasks."""

    def __init__(self, options: KafkaLogOptions, schema: StructType) -> None:
        if options.starts_late:
            raise ArgumentError(
                f"{_STARTING} latest needs a stream; this query reads existing records"
            )
        self._paths, self._query, self._options = options.paths, options.query, options
        self._schema = arrow_schema(schema, options)

    def partitions(self) -> list[InputPartition]:
        """Return one partition for each task; raise `ArgumentError` if a topic is missing."""
        tasks = plan(self._paths, self._query)
        topics = {piece.partition.topic for pieces in tasks for piece in pieces}
        if not topics.issuperset(self._options.query.topics or ()):
            check_topics(self._paths, self._options.query.topics or ())
        return [LogTask(tuple(task)) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of one task."""
        return read_task(partition, self._schema, self._options)


@carries_conditions
class FilteredKafkaLogReader(KafkaLogReader):
    """The same reader, with the filters of a query, on PySpark 4.1 and later."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802 - Spark's name
        """Narrow the read with these filters. Spark also applies every filter itself."""
        self._query = narrow_query(self._query, filters)
        return filters


def read_task(
    task: InputPartition, schema: pa.Schema, options: KafkaLogOptions, *, tells_torn: bool = True
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task.

    If there is nothing to read, Spark runs one task without a partition from flexwire.
    """
    begin_task()
    pieces = task.pieces if isinstance(task, LogTask) else ()
    how = RowOptions(options.mode, options.groups, options.inflation, tells_torn=tells_torn)
    if options.corrupt not in schema.names:
        yield from read_rows(pieces, schema, how)
        return
    at = schema.get_field_index(options.corrupt)
    read_schema = schema.set(at, schema.field(at).with_name(CORRUPT))
    for rows in read_rows(pieces, read_schema, how):
        yield pa.RecordBatch.from_arrays(rows.columns, schema=schema)


def arrow_schema(schema: StructType, options: KafkaLogOptions) -> pa.Schema:
    """Return a user's schema in Arrow's types; raise `ArgumentError` for an unknown column."""
    for field in schema:
        if field.name in GROUPS and options.groups and field.name not in options.groups:
            raise ArgumentError(f"column {field.name}: countBy does not list this column")
    return user_schema(schema, options.columns)


@carries_conditions
class KafkaLogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Examines the logs for each batch on the driver, and reads them in tasks."""

    def __init__(self, options: KafkaLogOptions, schema: StructType) -> None:
        self._schema = arrow_schema(schema, options)
        self._options = options
        self._follower = LogFollower(
            options.paths, options.query, fails_on_loss=options.fails_on_loss
        )
        # If the query ends by itself, these are the logs that existed when it started.
        self._last: dict[Partition, int] | None = None
        for name in options.not_for_streams:
            raise ArgumentError(
                f"a stream cannot use {name}: a stream has no end, and reads one replica of each "
                "partition"
            )
        if options.per_trigger is not None and ReadMaxRows is None:
            raise ArgumentError("maxOffsetsPerTrigger needs PySpark 4.2 or later")

    def initialOffset(self) -> Offset:  # noqa: N802 - Spark's name
        """Return the start of a new query."""
        return _to_spark(self._follower.first(latest=self._options.starts_late))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Return the default limit on the size of a batch."""
        most = self._options.per_trigger
        return ReadAllAvailable() if most is None else ReadMaxRows(most)

    def latestOffset(  # noqa: N802 - Spark's name
        self, start: Offset | None = None, limit: ReadLimit | None = None
    ) -> Offset:
        """Return the end of the next batch.

        Versions of PySpark before 4.2 do not pass the start of the batch.
        """
        begin = _from_spark(start or {})
        most = (
            limit.max_rows if ReadMaxRows is not None and isinstance(limit, ReadMaxRows) else None
        )
        if self._last is None:
            return _to_spark(self._follower.latest(begin, most))
        return _to_spark(self._follower.latest(begin, most, until=self._last))

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802 - Spark's name
        """Return the ends of all logs that existed when the last batch was planned.

        PySpark 4.2 and later show these ends as ``latestOffset`` of the stream's progress.
        """
        ends = self._follower.ends
        return None if ends is None else _to_spark(ends)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Remember which logs exist now."""
        self._last = self._follower.latest({})

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        """Return one partition for each task of a batch."""
        tasks = self._follower.tasks(_from_spark(start), _from_spark(end))
        return [LogTask(tuple(task)) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the records of one task."""
        # A growing log can end within a batch at any time.
        return read_task(partition, self._schema, self._options, tells_torn=False)


def _to_spark(offsets: dict[Partition, int]) -> Offset:
    offset_by_topic: Offset = {}
    for (topic, partition), offset in sorted(offsets.items()):
        offset_by_topic.setdefault(topic, {})[str(partition)] = offset
    return offset_by_topic


def _from_spark(offset: dict[str, Any]) -> dict[Partition, int]:
    return {
        Partition(topic, int(partition)): number
        for topic, partitions in offset.items()
        for partition, number in partitions.items()
    }
