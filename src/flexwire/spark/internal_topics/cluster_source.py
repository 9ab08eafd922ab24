"""What Spark reads of the metadata's log besides its records: its extent, and its snapshots.

A Python data source, so that paths are those of the machine that reads, by Spark Connect too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition

from flexwire.capture.logs.columns import HEADERS, KAFKA_COLUMNS, LogRows
from flexwire.capture.logs.reading import Damaged, LogPiece, read_piece
from flexwire.capture.metadata_coverage import Covered, Run, Snapshot, SnapshotName
from flexwire.capture.metadata_log import (
    METADATA_PARTITION,
    find_metadata,
    parse_snapshot,
    survey,
)
from flexwire.errors import CaptureError
from flexwire.spark.batches import record_batch, spark_schema
from flexwire.spark.tasks import use_one_thread
from flexwire.storage.urls import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from flexwire.storage.source import Source

_PATH, _TIME, _SNAPSHOTS = "path", "time", "snapshots"
_REGISTERED: WeakSet[SparkSession] = WeakSet()
_LOG_COLUMNS: Final = {
    **{name: kind for name, kind in KAFKA_COLUMNS.items() if name != HEADERS},
    "partition_leader_epoch": pa.int32(),
}
RECORDS: Final = pa.schema(
    [*_LOG_COLUMNS.items(), ("snapshot_offset", pa.int64()), ("snapshot_epoch", pa.int32())]
)
"""A record of the log, or of a snapshot, whose offset and epoch are then not null."""
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
class Extent:
    """What a directory of the metadata's log holds."""

    directory: str
    has_log: bool
    covered: Covered


def extent(spark: SparkSession, path: str | Path, time: int | None = None) -> Extent:
    """Say what is there, in one small job; with ``time``, in ms, where its later records begin.

    Raises `CaptureError` and `StorageError` through Spark, as any source does.
    """
    options = {_PATH: str(path), **({} if time is None else {_TIME: str(time)})}
    rows = _reader(spark, _EXTENT, options).collect()
    runs, snapshots = [], []
    for row in rows:
        name = None if row.snapshot is None else parse_snapshot(row.snapshot)
        if name is not None:
            snapshots.append(Snapshot(name, row.timestamp, row.problem))
        elif row.start is not None:
            runs.append(Run(row.start, row.end, row.voters, row.later))
    return Extent(rows[0].directory, rows[0].has_log, Covered(tuple(runs), tuple(snapshots)))


def log_records(
    spark: SparkSession, directory: str, start: int | None = None, end: int | None = None
) -> DataFrame:
    """The records of the log from ``start`` to before ``end``, as `RECORDS`."""
    columns = spark_schema(pa.schema(_LOG_COLUMNS.items()))
    reader = spark.read.format("kafka-log").schema(columns)
    for name, offset in (("startingOffsets", start), ("endingOffsets", end)):
        if offset is not None:
            asked = f'{{"{METADATA_PARTITION.topic}": {{"0": {offset}}}}}'
            reader = reader.option(name, asked)
    found = reader.option("topic", METADATA_PARTITION.topic).load(directory)
    return found.selectExpr(
        "*", "cast(null as bigint) as snapshot_offset", "cast(null as int) as snapshot_epoch"
    )


def snapshot_records(
    spark: SparkSession, directory: str, names: Sequence[SnapshotName]
) -> DataFrame:
    """The records of some snapshots, as `RECORDS`."""
    wanted = ",".join(one.file for one in names)
    return _reader(spark, RECORDS, {_PATH: directory, _SNAPSHOTS: wanted})


def _reader(spark: SparkSession, schema: pa.Schema, options: dict[str, str]) -> DataFrame:
    if spark not in _REGISTERED:
        # Spark warns of a second one of that name.
        spark.dataSource.register(MetadataSource)
        _REGISTERED.add(spark)
    reader = spark.read.format(MetadataSource.name()).schema(spark_schema(schema))
    return reader.options(**options).load()


class MetadataSource(DataSource):
    """What Spark takes for a source of rows: the extent, or with an option some snapshots."""

    @classmethod
    def name(cls) -> str:
        """What `_reader` calls it."""
        return "flexwire_cluster_metadata"

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - it is ours
        """Give the reader of what the options name."""
        if _SNAPSHOTS in self.options:
            names = [one for one in self.options[_SNAPSHOTS].split(",") if one]
            return _SnapshotReader(self.options[_PATH], names)
        return _ExtentReader(self.options[_PATH], self.options.get(_TIME))


@dataclass(frozen=True, slots=True)
class _Part(InputPartition):
    """A snapshot; none for the extent."""

    directory: str
    snapshot: tuple[SnapshotName, Source] | None = None


class _ExtentReader(DataSourceReader):
    def __init__(self, path: str, time: str | None) -> None:
        self._path = path
        self._time = None if time is None else int(time)

    def partitions(self) -> Sequence[InputPartition]:
        return [_Part(self._path)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Walk all headers, in one task: what a batch is worth depends on those before it."""
        assert isinstance(partition, _Part)  # noqa: S101 - ours alone, and mypy is to know it
        files = find_metadata(partition.directory)
        runs, snapshots = survey(files, self._time)
        place = (files.directory, bool(files.segments))
        nothing = (None,) * 7
        yield record_batch(
            _EXTENT,
            [
                (*place, *nothing),
                *((*place, None, *run_row(one), None, None) for one in runs),
                *(
                    (*place, one.name.file, None, None, None, None, one.timestamp, one.problem)
                    for one in snapshots
                ),
            ],
        )


def run_row(run: Run) -> tuple[int, int, int | None, int | None]:
    """Give the columns of a run."""
    return run.start, run.end, run.voters, run.later


class _SnapshotReader(DataSourceReader):
    def __init__(self, directory: str, names: list[str]) -> None:
        self._directory = directory
        self._names = names

    def partitions(self) -> Sequence[InputPartition]:
        files = find_metadata(self._directory)
        wanted = [one for one in files.snapshots if one[0].file in self._names]
        if len(wanted) < len(self._names):
            there = ", ".join(name.file for name, _ in files.snapshots) or "none"
            reason = f"expected the snapshots {', '.join(self._names)}, got {there}"
            raise CaptureError(reason, source=shown(self._directory))
        return [_Part(files.directory, one) for one in wanted]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        use_one_thread()
        # Spark has a part of its own where there is nothing to read.
        if not isinstance(partition, _Part) or partition.snapshot is None:
            return
        name, source = partition.snapshot
        rows = LogRows(pa.schema(_LOG_COLUMNS.items()))
        piece = LogPiece(
            METADATA_PARTITION, partition.directory, source, 0, source.size, is_end=False
        )
        for batch in read_piece(piece, rows.read):
            if isinstance(batch, Damaged):
                raise CaptureError(batch.reason, source=source.name, offset=batch.position)
            made = rows.records(piece, batch)
            columns = [
                *made.columns,
                pa.repeat(pa.scalar(name.offset, pa.int64()), made.num_rows),
                pa.repeat(pa.scalar(name.epoch, pa.int32()), made.num_rows),
            ]
            yield pa.RecordBatch.from_arrays(columns, schema=RECORDS)
