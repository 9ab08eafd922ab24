"""The internal topics among the logs that an analysis was given, for answers about their state."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.capture.logs.finding import logs_among
from flexwire.capture.logs.names import LOG, Partition, is_set_aside, parse_directory, parse_file
from flexwire.capture.logs.query import LogQuery
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.spark.internal_topics import open_log
from flexwire.spark.internal_topics.cluster import ClusterState, cluster_state

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from flexwire.spark.answers.reading import AnalysisTables
    from flexwire.spark.internal_topics import InternalLog
    from flexwire.storage.source import Source

TOPICS: Final = frozenset(one.topic for one in InternalTopic)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PLACE: Final = ("topic", "partition")


@dataclass(frozen=True)
class InternalLogs:
    """Opens internal topics where the logs of an analysis have them.

    A state needs all of a log, so whatever lies in the directory of one of the ``files`` is read.
    ``batches`` is the table of batches, which says what ordinary topics have.
    """

    spark: SparkSession
    files: Sequence[Source]
    batches: DataFrame

    @cached_property
    def directories(self) -> dict[str, dict[str, Partition]]:
        """The directories of partitions, by topic."""
        found: dict[str, dict[str, Partition]] = defaultdict(dict)
        for directory, partition, _ in _segments(self.files):
            found[partition.topic][directory] = partition
        return found

    def log(self, of: InternalTopic) -> InternalLog | None:
        """Open one, up to its end; None where it is not there."""
        if of.topic not in self.directories:
            return None
        return open_log(self.spark, [*self.directories[of.topic]], of.topic)

    def cluster(self) -> ClusterState | None:
        """The cluster's state at the end of its metadata's log; None where there is no log of it.

        Of several controllers' and brokers' logs it is the one that ends last.
        """
        return self._cluster

    @cached_property
    def _cluster(self) -> ClusterState | None:
        topic = InternalTopic.METADATA.topic
        if topic not in self.directories:
            return None
        [log] = logs_among(self.files, LogQuery(topics={topic}))
        return cluster_state(self.spark, log.directory)

    def newest(self) -> datetime | None:
        """When the last record of an internal topic was written, by a broker's clock."""
        ours = self.batches.where(F.col("topic").isin(*TOPICS))
        [row] = ours.agg(F.unix_micros(F.max("newest_time"))).collect()
        return None if row[0] is None else _EPOCH + timedelta(microseconds=row[0])

    def ends(self) -> DataFrame:
        """The end of each partition's log: ``topic``, ``partition``, ``end_offset``."""
        written = self.batches.groupBy(*_PLACE).agg((F.max("last_offset") + 1).alias("written"))
        # A log whose records have all been deleted still says where it goes on.
        begun: dict[Partition, int] = {}
        for _, partition, base in _segments(self.files):
            begun[partition] = max(base, begun.get(partition, 0))
        rows = [(*partition, base) for partition, base in begun.items()]
        bases = self.spark.createDataFrame(rows, "topic string, partition int, base bigint")
        end = F.greatest("written", "base").alias("end_offset")
        return bases.join(written, [*_PLACE], "left").select(*_PLACE, end)


def internal_topics(files: Sequence[Source]) -> frozenset[str]:
    """The internal topics that have a segment among the files of logs."""
    return TOPICS.intersection(partition.topic for _, partition, _ in _segments(files))


def with_internal(
    tables: AnalysisTables, spark: SparkSession, files: Sequence[Source]
) -> AnalysisTables:
    """The tables with the internal topics among these files of logs, if there are some."""
    if tables.logs is None or not internal_topics(files):
        return tables
    return replace(tables, internal=InternalLogs(spark, files, tables.logs.batches))


def listeners(endpoints: str) -> Column:
    """Endpoints as texts: "PLAINTEXT://host:9092"."""
    names = ("name", "host", "port")
    return F.transform(
        endpoints, lambda one: F.format_string("%s://%s:%d", *(one[name] for name in names))
    )


def _segments(files: Sequence[Source]) -> list[tuple[str, Partition, int]]:
    """The directory, partition and base offset of each segment of a broker's."""
    found = []
    for file in files:
        directory, _, name = file.url.rpartition("/")
        parsed, last = parse_file(name), directory.rpartition("/")[2]
        if parsed is None or parsed.kind != LOG or parsed.state or is_set_aside(last):
            continue
        partition = None if parsed.segment else parse_directory(last, is_tiered=False)
        if partition is not None:
            found.append((directory, partition, parsed.base_offset))
    return found
