"""Read the log of a cluster's metadata in Spark: its extent, its records, and its snapshots.

With Spark Connect, a Python data source reads the log, so paths refer to the machine on which that
source runs. Otherwise, this machine plans the reading, and Spark does not have to start processes
for a data source.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from flexwire.columnar.record_columns import MOMENT, moment
from flexwire.errors import CaptureError
from flexwire.logs.files import LogQuery
from flexwire.logs.metadata import (
    METADATA_PARTITION,
    MetadataCoverage,
    MetadataSnapshot,
    OffsetRun,
    find_metadata,
    parse_snapshot,
    quorum_records,
    survey,
)
from flexwire.logs.pieces import plan
from flexwire.logs.records import HEADERS, KAFKA_COLUMNS, BatchDamage, LogPiece, LogRows, read_piece
from flexwire.storage.filesystems import shown
from flexwire.tasks import (
    begin_task,
    is_connect,
    map_in_arrow,
    record_batch,
    register_source,
    spark_schema,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from flexwire.logs.metadata import QuorumRecord, SnapshotName, StateBase, Voter
    from flexwire.storage.input_file import InputFile


LOG_COLUMNS: Final = {
    **{name: kind for name, kind in KAFKA_COLUMNS.items() if name != HEADERS},
    "partition_leader_epoch": pa.int32(),
}
RECORDS: Final = pa.schema(
    [*LOG_COLUMNS.items(), ("snapshot_offset", pa.int64()), ("snapshot_epoch", pa.int32())]
)
"""A record from the log or from a snapshot. Only records from a snapshot have a snapshot offset and
epoch.
"""
_VOTER: Final = pa.struct(
    {
        "voter": pa.int32(),
        "directory_id": pa.string(),
        "endpoints": pa.list_(
            pa.struct({"name": pa.string(), "host": pa.string(), "port": pa.int32()})
        ),
        "least_kraft_version": pa.int16(),
        "most_kraft_version": pa.int16(),
    }
)
QUORUM: Final = pa.schema(
    {
        "snapshot_offset": pa.int64(),
        "offset": pa.int64(),
        "timestamp": MOMENT,
        "kind": pa.string(),
        "kraft_version": pa.int16(),
        "voters": pa.list_(_VOTER),
        "error": pa.string(),
    }
)
"""The content of control records, as in `QuorumRecord`."""


@dataclass(frozen=True, slots=True)
class LogPart:
    """The records in a piece of a segment of the log."""

    piece: LogPiece
    snapshot: SnapshotName | None = None

    @classmethod
    def of_snapshot(cls, directory: str, name: SnapshotName, source: InputFile) -> LogPart:
        """Return the records of a snapshot, whose file has the same layout as a segment."""
        return cls(
            LogPiece(METADATA_PARTITION, directory, source, 0, source.size, is_end=False), name
        )

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield the records as `RECORDS`, or raise `CaptureError` for damage except a torn end."""
        rows, name = LogRows(pa.schema(LOG_COLUMNS.items())), self.snapshot
        for batch in read_piece(self.piece, rows.read):
            if isinstance(batch, BatchDamage):
                if name is None and batch.is_torn:
                    continue
                raise CaptureError(batch.reason, source=self.piece.log.name, offset=batch.position)
            rows_read = rows.records(self.piece, batch)
            own = (None, None) if name is None else name
            added = [
                pa.repeat(pa.scalar(value, field.type), rows_read.num_rows)
                for value, field in zip(own, list(RECORDS)[-2:], strict=True)
            ]
            yield pa.RecordBatch.from_arrays([*rows_read.columns, *added], schema=RECORDS)


@dataclass(frozen=True, slots=True)
class QuorumPart:
    """The control records of a snapshot, and of the log from ``start`` to ``end``."""

    directory: str
    snapshot: SnapshotName | None
    start: int | None
    end: int

    def read(self) -> Iterator[pa.RecordBatch]:
        """Yield the few control records as `QUORUM`, and skip all other records."""
        files = find_metadata(self.directory)
        rows: list[tuple[int | None, QuorumRecord]] = [
            (name.offset, record)
            for name, source in files.snapshots
            if name == self.snapshot
            for record in quorum_records(source)
        ]
        if self.start is not None:
            for source in files.segments:
                rows += [(None, row) for row in quorum_records(source, self.start, self.end)]
        converted = [
            (at, record.offset, moment(record.timestamp), *_record_values(record))
            for at, record in rows
        ]
        yield record_batch(QUORUM, converted)


def _record_values(record: QuorumRecord) -> tuple[Any, ...]:
    voters = None if record.voters is None else [_struct(voter) for voter in record.voters]
    return record.kind, record.kraft_version, voters, record.error


def _struct(voter: Voter) -> dict[str, Any]:
    ends = voter.endpoints
    endpoints = None if ends is None else [end._asdict() for end in ends]
    return voter._asdict() | {"endpoints": endpoints}


_PATH, _TIME, _SNAPSHOTS = "path", "time", "snapshots"
_CONTROLS, _START, _END = "controls", "start", "end"
_EXTENT: Final = pa.schema(
    [
        ("directory", pa.string()),
        ("has_log", pa.bool_()),
        ("snapshot", pa.string()),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("voters", pa.int32()),
        ("later", pa.int64()),
        ("timestamp", pa.int64()),
        ("problem", pa.string()),
    ]
)


@dataclass(frozen=True, slots=True)
class MetadataExtent:
    """The contents of a directory that contains the log of a cluster's metadata."""

    directory: str
    has_log: bool
    covered: MetadataCoverage


def extent(spark: SparkSession, path: str | Path, time: int | None = None) -> MetadataExtent:
    """Return the contents of a directory.

    If ``time`` (in ms) is given, also return where later records begin. Raises `CaptureError` and
    `StorageError`. With Spark Connect, the errors are Spark's own.
    """
    if is_connect(spark):
        options = {_PATH: str(path), **({} if time is None else {_TIME: str(time)})}
        extent_rows: Sequence[tuple[Any, ...]] = _reader(spark, _EXTENT, options).collect()
    else:
        extent_rows = _extent_rows(str(path), time)
    runs, snapshots = [], []
    for _, _, file, start, end, voters, later, timestamp, problem in extent_rows:
        name = None if file is None else parse_snapshot(file)
        if name is not None:
            snapshots.append(MetadataSnapshot(name, timestamp, problem))
        elif start is not None:
            runs.append(OffsetRun(start, end, voters, later))
    directory, has_log, *_ = extent_rows[0]
    return MetadataExtent(directory, has_log, MetadataCoverage(tuple(runs), tuple(snapshots)))


def log_records(
    spark: SparkSession, directory: str, start: int | None = None, end: int | None = None
) -> DataFrame:
    """Return the records of the log from ``start`` to ``end`` (excluded), as `RECORDS`."""
    topic = METADATA_PARTITION.topic
    if not is_connect(spark):
        offsets = [{} if at is None else {METADATA_PARTITION: at} for at in (start, end)]
        query = LogQuery(topics={topic}, starting=offsets[0], ending=offsets[1])
        tasks = [[LogPart(piece) for piece in pieces] for pieces in plan([directory], query)]
        return _in_tasks(spark, tasks, RECORDS)
    reader = spark.read.format("kafka-log").schema(spark_schema(pa.schema(LOG_COLUMNS.items())))
    for name, offset in (("startingOffsets", start), ("endingOffsets", end)):
        if offset is not None:
            reader = reader.option(name, f'{{"{topic}": {{"0": {offset}}}}}')
    records = reader.option("topic", topic).load(directory)
    return records.selectExpr(
        "*", "cast(null as bigint) as snapshot_offset", "cast(null as int) as snapshot_epoch"
    )


def snapshot_records(
    spark: SparkSession, directory: str, names: Sequence[SnapshotName]
) -> DataFrame:
    """Return the records of some snapshots, as `RECORDS`."""
    files = [name.file for name in names]
    if not is_connect(spark):
        return _in_tasks(spark, [[part] for part in _snapshots(directory, files)], RECORDS)
    return _reader(spark, RECORDS, {_PATH: directory, _SNAPSHOTS: ",".join(files)})


def quorum_rows(
    spark: SparkSession, directory: str, base: StateBase, start: int | None
) -> DataFrame:
    """Return facts about the quorum from control records, as `QUORUM`.

    The records are those of the snapshot, and those of the log from ``start`` to its end. If
    ``start`` is None, the log is not read.
    """
    part = QuorumPart(directory, base.snapshot, start, base.end)
    if not is_connect(spark):
        return _in_tasks(spark, [[part]], QUORUM)
    options = {_PATH: directory, _CONTROLS: "", _END: str(base.end)}
    if base.snapshot is not None:
        options[_SNAPSHOTS] = base.snapshot.file
    if start is not None:
        options[_START] = str(start)
    return _reader(spark, QUORUM, options)


def _in_tasks(
    spark: SparkSession, tasks: Sequence[Sequence[LogPart | QuorumPart]], schema: pa.Schema
) -> DataFrame:
    """Read parts in Spark tasks, each of which gets a list of parts."""
    rows = spark.createDataFrame([(pickle.dumps(parts),) for parts in tasks], "parts binary")
    # Usually, there is only one task, which requires no shuffle.
    spread = rows.coalesce(1) if len(tasks) <= 1 else rows.repartition(len(tasks))
    return map_in_arrow(spread, partial(_task, schema), schema)


def _task(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    begin_task()
    for batch in batches:
        for packed in batch.column(0):
            # The driver of this program wrote these bytes.
            for part in pickle.loads(packed.as_py()):  # noqa: S301 - we wrote these bytes ourselves
                for batch_read in part.read():
                    assert batch_read.schema == schema  # noqa: S101 - only our own code calls this
                    yield batch_read


def _reader(spark: SparkSession, schema: pa.Schema, options: dict[str, str]) -> DataFrame:
    register_source(spark, MetadataSource)
    reader = spark.read.format(MetadataSource.name()).schema(spark_schema(schema))
    return reader.options(**options).load()


def _extent_rows(path: str, time: int | None) -> list[tuple[Any, ...]]:
    """Read all headers in one pass, because the meaning of a batch depends on earlier batches."""
    files = find_metadata(path)
    runs, snapshots = survey(files, time)
    place = (files.directory, bool(files.segments))
    nothing = (None,) * 7
    return [
        (*place, *nothing),
        *((*place, None, *run_row(run), None, None) for run in runs),
        *(
            (
                *place,
                snapshot.name.file,
                None,
                None,
                None,
                None,
                snapshot.timestamp,
                snapshot.problem,
            )
            for snapshot in snapshots
        ),
    ]


def run_row(run: OffsetRun) -> tuple[int, int, int | None, int | None]:
    """Return the columns that describe a run of offsets."""
    return run.start, run.end, run.voters, run.later


def _snapshots(directory: str, file_names: Sequence[str]) -> list[LogPart]:
    files = find_metadata(directory)
    snapshots = [snapshot for snapshot in files.snapshots if snapshot[0].file in file_names]
    if len(snapshots) < len(file_names):
        there = ", ".join(name.file for name, _ in files.snapshots) or "none"
        reason = f"expected the snapshot files {', '.join(file_names)}, got {there}"
        raise CaptureError(reason, source=shown(directory))
    return [LogPart.of_snapshot(files.directory, *snapshot) for snapshot in snapshots]


class MetadataSource(DataSource):
    """A Spark data source that reads the extent, or another part that an option selects."""

    @classmethod
    def name(cls) -> str:
        """Return the name that `_reader` uses for this source."""
        return "flexwire_cluster_metadata"

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - the signature is Spark's
        """Return the reader for the part that the options select."""
        path, options = self.options[_PATH], self.options
        snapshots = [
            snapshot_name
            for snapshot_name in options.get(_SNAPSHOTS, "").split(",")
            if snapshot_name
        ]
        if _CONTROLS in options:
            name = parse_snapshot(snapshots[0]) if snapshots else None
            start = int(options[_START]) if _START in options else None
            return _PartsReader(path, [QuorumPart(path, name, start, int(options[_END]))])
        if snapshots:
            return _PartsReader(path, snapshots)
        return _ExtentReader(path, int(options[_TIME]) if _TIME in options else None)


@dataclass(frozen=True, slots=True)
class _MetadataPartition(InputPartition):
    part: LogPart | QuorumPart | None = None


class _ExtentReader(DataSourceReader):
    def __init__(self, path: str, time: int | None) -> None:
        self._path, self._time = path, time

    def partitions(self) -> Sequence[InputPartition]:
        return [_MetadataPartition()]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        del partition
        yield record_batch(_EXTENT, _extent_rows(self._path, self._time))


class _PartsReader(DataSourceReader):
    """Read the given snapshots, or the given parts of the log."""

    def __init__(self, path: str, parts_or_names: Sequence[str | QuorumPart]) -> None:
        self._path, self._wanted = path, parts_or_names

    def partitions(self) -> Sequence[InputPartition]:
        names = [part for part in self._wanted if isinstance(part, str)]
        parts = [part for part in self._wanted if isinstance(part, QuorumPart)]
        return [
            *map(_MetadataPartition, _snapshots(self._path, names)),
            *map(_MetadataPartition, parts),
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        begin_task()
        # If there is nothing to read, Spark adds a partition of its own kind.
        if isinstance(partition, _MetadataPartition) and partition.part is not None:
            yield from partition.part.read()
