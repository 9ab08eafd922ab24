"""Read the records in log segments, without a broker and without Spark."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, get_args

import pyarrow as pa

from flexwire.arguments import refuse, to_flag, to_int, to_list, to_text
from flexwire.columnar.records import Mode
from flexwire.facts.units import microseconds_of
from flexwire.logs.files import Isolation, LogQuery, Replicas
from flexwire.logs.pieces import check_topics, plan
from flexwire.logs.records import CORRUPT, FACT_COLUMNS, FILE, KAFKA_COLUMNS, LOG_COLUMNS, REPLICA
from flexwire.logs.rows import RowOptions, read_rows
from flexwire.scan.captures import to_paths
from flexwire.scan.columns import choose_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime
    from pathlib import Path

_MICROSECONDS: Final = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class LogScan:
    """The options for reading logs.

    Attributes:
        topics: names of topics. Default: all topics, including internal ones.
        partitions: numbers of partitions. Default: all.
        since, until: each partition is read from its first record at or after ``since``, and up
            to, but not including, its first record at or after ``until``. Times without a zone are
            in UTC. Times are compared in whole milliseconds.
        isolation: "read_uncommitted", or "read_committed", which leaves out the records of aborted
            and open transactions.
        replicas: "longest", or "all", which adds the column ``replica``.
        include_batch: whether columns with facts about each record's batch are added.
        include_file: whether the column ``file`` is added.
        include_deleted: whether records before the log start offset are read, if files contain
            them.
        mode: "FAILFAST" raises an error for damage. "PERMISSIVE" returns a row for the damage, with
            the reason in ``_corrupt_record``.
    """

    topics: Iterable[str] | None = None
    partitions: Iterable[int] | None = None
    since: datetime | None = None
    until: datetime | None = None
    isolation: Isolation = "read_uncommitted"
    replicas: Replicas = "longest"
    include_batch: bool = False
    include_file: bool = False
    include_deleted: bool = False
    mode: Mode = "FAILFAST"

    def __post_init__(self) -> None:
        for name, kinds in (("isolation", Isolation), ("replicas", Replicas), ("mode", Mode)):
            if getattr(self, name) not in get_args(kinds):
                raise refuse(name, f"one of {', '.join(get_args(kinds))}", getattr(self, name))
        for flag in ("include_batch", "include_file", "include_deleted"):
            to_flag(getattr(self, flag), flag)

    @property
    def schema(self) -> pa.Schema:
        """The columns of all rows."""
        names = [
            *KAFKA_COLUMNS,
            *(FACT_COLUMNS if self.include_batch else ()),
            *((FILE,) if self.include_file else ()),
            *((REPLICA,) if self.replicas == "all" else ()),
            *((CORRUPT,) if self.mode == "PERMISSIVE" else ()),
        ]
        return pa.schema([(name, LOG_COLUMNS[name]) for name in names])

    def query(self) -> LogQuery:
        """Return the query for the reader of logs."""
        topics, partitions = self.topics, self.partitions
        if topics is not None:
            topics = [to_text(one, "topics") for one in to_list(topics, "topics", "topics' names")]
        if partitions is not None:
            numbers = to_list(partitions, "partitions", "numbers of partitions")
            partitions = [to_int(one, "partitions", least=0) for one in numbers]
        return LogQuery(
            topics=topics,
            partitions=partitions,
            starting_timestamp=_milliseconds(self.since),
            ending_timestamp=_milliseconds(self.until),
            isolation=self.isolation,
            replicas=self.replicas,
            includes_deleted=self.include_deleted,
        )


def _milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else microseconds_of(moment) // _MICROSECONDS


def read_kafka_log(
    paths: str | Path | Iterable[str | Path],
    *,
    columns: Iterable[str] | None = None,
    **options: Any,
) -> pa.RecordBatchReader:
    """Return the records of log segments, batch by batch, with the given ``columns`` or with all.

    ``paths`` are brokers' log directories, partition directories, segments, patterns and URLs.
    ``options`` are the attributes of `LogScan`. Columns that were not requested are not built.

    Raises `CaptureError` for a path without a log, and `ArgumentError` for a missing topic or
    for a value that an option does not accept. While records are being read, raises `CaptureError`
    for damage, and `StorageError`.
    """
    scan = LogScan(**options)
    schema = choose_columns(scan.schema, columns)
    return pa.RecordBatchReader.from_batches(schema, log_batches(scan, to_paths(paths), schema))


def log_batches(
    scan: LogScan, paths: list[str | Path], schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a scan, with the columns of a schema.

    Raises the same errors as `read_kafka_log`.
    """
    query = scan.query()
    pieces = [*chain.from_iterable(plan(paths, query))]
    topics = {piece.partition.topic for piece in pieces}
    if not topics.issuperset(query.topics or ()):
        check_topics(paths, query.topics or ())
    return read_rows(pieces, schema, RowOptions(scan.mode))
