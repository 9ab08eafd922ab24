"""The internal topics among the logs of an analysis, for answers about their state."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

from pyspark import StorageLevel
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.state import open_log
from flexwire.answers.state.cluster import ClusterState, cluster_state
from flexwire.answers.state.cluster_partitions import partitions
from flexwire.answers.state.commits import WATERMARK, readable_end
from flexwire.answers.state.log import END, AsOf, first_after
from flexwire.answers.state.partitions import ENDS, NO_WATERMARK, watermarks_of
from flexwire.arguments import refuse
from flexwire.errors import CaptureError
from flexwire.facts.units import microseconds_of, moment_at
from flexwire.logs.discovery import logs_among
from flexwire.logs.files import LOG, LogQuery, Partition, is_set_aside, parse_directory, parse_file
from flexwire.logs.pieces import between
from flexwire.logs.positions import end_offset
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.wire.limits import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql import Column as SparkColumn

    from flexwire.answers.state import InternalLog
    from flexwire.storage.input_file import InputFile


TOPICS: Final = frozenset(topic.topic for topic in InternalTopic)
_PLACE: Final = ("topic", "partition")
_UNKNOWN: Final = "the state as of offset {} is not known"


@dataclass(frozen=True)
class InternalLogs:
    """Opens the internal topics among the logs of an analysis, and returns their state.

    The state depends on the whole log, so everything in the directory of one of the ``files`` is
    read. ``batches`` is the table of batches, which describes ordinary topics. All state is from
    the same moment, ``as_of``. If this moment is before the end, some values may be unknown;
    `incomplete` lists the partitions with such values.

    Because several answers use the same views, Spark keeps the views in memory until `release` is
    called.
    """

    spark: SparkSession
    files: Sequence[InputFile]
    batches: DataFrame
    as_of: AsOf = END
    _views: dict[str, DataFrame] = field(default_factory=dict, repr=False, compare=False)
    _logs: dict[InternalTopic, InternalLog] = field(default_factory=dict, repr=False, compare=False)

    @cached_property
    def directories(self) -> dict[str, dict[str, Partition]]:
        """The partition directories of each topic."""
        directories: dict[str, dict[str, Partition]] = defaultdict(dict)
        for directory, partition, _ in _segments(self.files):
            directories[partition.topic][directory] = partition
        return directories

    def log(self, of: InternalTopic) -> InternalLog | None:
        """Open an internal topic, or return None if its log is missing.

        Raises `CaptureError` if a log ends before the requested offset.
        """
        if of.topic not in self.directories:
            return None
        if of not in self._logs:
            paths, offsets = [*self.directories[of.topic]], self.as_of.of(of)
            if offsets:
                self._check(of, offsets)
            self._logs[of] = open_log(
                self.spark, paths, of.topic, offsets=offsets, time=self.as_of.time
            )
        return self._logs[of]

    def _check(self, of: InternalTopic, offsets: Mapping[int, int]) -> None:
        logs = logs_among(self.files, LogQuery(topics={of.topic}))
        ends = {log.partition.partition: end_offset(log.segments[-1]) for log in logs}
        for number, offset in offsets.items():
            end = ends.get(number)
            if end is None or offset > end:
                known = "the paths do not include the log of the partition"
                if end is not None:
                    known = f"the log ends at {end}"
                reason = f"{_UNKNOWN.format(offset)}: {known}"
                raise CaptureError(reason, source=str(Partition(of.topic, number)))

    def cluster(self, *, oldest: bool = False) -> ClusterState | None:
        """Return the cluster's state, or None if no log contains its metadata.

        If there are logs from several controllers and brokers, the one whose last record has the
        highest epoch is used. If two logs have that epoch, the longer one is used. If ``oldest`` is
        true, the state begins at the oldest known offset, for use in a history.
        """
        return self._history if oldest else self._cluster

    @cached_property
    def _cluster(self) -> ClusterState | None:
        return self._state(oldest=False)

    @cached_property
    def _history(self) -> ClusterState | None:
        return self._state(oldest=True)

    def _state(self, *, oldest: bool) -> ClusterState | None:
        topic = InternalTopic.METADATA
        if topic.topic not in self.directories:
            return None
        [log] = logs_among(self.files, LogQuery(topics={topic.topic}))
        offset = self.as_of.of(topic).get(log.partition.partition)
        state = cluster_state(
            self.spark, log.directory, offset=offset, time=self.as_of.time, oldest=oldest
        )
        # The records contain salts and keys, which must not appear in any file that Spark writes.
        records = self._views[f"cluster-{oldest}"] = state.records.persist(StorageLevel.MEMORY_ONLY)
        return replace(state, records=records)

    def view(self, of: InternalTopic, make: Callable[[InternalLog], DataFrame]) -> DataFrame | None:
        """Return a view of a log, or None if the log is missing."""
        log = self.log(of)
        return None if log is None else self._cached(make.__name__, lambda: make(log))

    def partitions(self) -> DataFrame | None:
        """Return the cluster's partitions, or None if no log contains its metadata."""
        state = self.cluster()
        return None if state is None else self._cached("partitions", lambda: partitions(state))

    def topic_names(self) -> DataFrame:
        """Return topic names by ``topic_id`` if the log of the cluster's metadata was given."""
        try:
            placed = self.partitions()
        except CaptureError:
            placed = None
        if placed is None:
            return self.spark.createDataFrame([], "topic_id string, topic string")
        return placed.select("topic_id", "topic").distinct()

    def _cached(self, name: str, make: Callable[[], DataFrame]) -> DataFrame:
        if name not in self._views:
            self._views[name] = make().persist()
        return self._views[name]

    def release(self) -> None:
        """Release the views that Spark keeps in memory."""
        for view in self._views.values():
            view.unpersist()
        self._views.clear()

    def has_all(self, of: InternalTopic) -> bool:
        """Return whether the logs of all partitions of a topic exist and are complete.

        The number of partitions comes from the cluster's metadata.
        """
        log = self.log(of)
        try:
            placed = self.partitions()
        except CaptureError:
            # The cluster's metadata at this moment is unknown.
            return False
        if placed is None or log is None or log.incomplete:
            return False
        rows = placed.where(F.col("topic") == of.topic).select("partition").collect()
        there = {partition.partition for partition in self.directories[of.topic].values()}
        return bool(rows) and {row.partition for row in rows} <= there

    def newest(self, of: InternalTopic) -> datetime | None:
        """Return the current time by a broker's clock, for answers about a topic's log.

        At the end of the logs, this is the time of the last record in any internal topic. If
        ``as_of`` is a time, that time is returned. If ``as_of`` specifies offsets of the topic,
        each partition has its own time, and the latest one is returned.
        """
        offsets = self.as_of.of(of)
        there = {partition.partition for partition in self.directories[of.topic].values()}
        times = [self._newest_before.get((of.topic, partition)) for partition in offsets]
        if not offsets or there - offsets.keys():
            times.append(self._newest_of_all)
        return max((newest_time for newest_time in times if newest_time is not None), default=None)

    def now(self, of: InternalTopic, partition: Column) -> Column:
        """Return the current time of a topic's partition in µs since 1970, or null if unknown."""
        now = _micros(self._newest_of_all)
        for number in self.as_of.of(of):
            own = _micros(self._newest_before.get((of.topic, number)))
            now = F.when(partition == number, own).otherwise(now)
        return now

    @cached_property
    def _newest_of_all(self) -> datetime | None:
        ours = self.batches.where(F.col("topic").isin(*TOPICS))
        [row] = ours.agg(F.unix_micros(F.max("newest_time"))).collect()
        last = None if row[0] is None else moment_at(row[0])
        time = self.as_of.time
        return last if time is None or last is None else min(time, last)

    @cached_property
    def _newest_before(self) -> dict[tuple[str, int], datetime]:
        """The time of the last record before a given offset, for each partition."""
        is_before = F.lit(False)
        for (topic, number), offset in self.as_of.offsets.items():
            is_of = (F.col("topic") == topic) & (F.col("partition") == number)
            is_before |= is_of & (F.col("last_offset") < offset)
        newest = F.unix_micros(F.max("newest_time"))
        rows = self.batches.where(is_before).groupBy(*_PLACE).agg(newest.alias("at")).collect()
        return {
            (row.topic, row.partition): moment_at(row["at"])
            for row in rows
            if row["at"] is not None
        }

    def ends(self, of: InternalTopic) -> DataFrame:
        """Return the end of each partition's log, with the columns of `end_offsets`.

        For an earlier moment, the high watermark is null, because no file contains it. The ends are
        those at the moment up to which the log of ``of`` is read. A partition whose end at that
        moment is unknown is omitted. If offsets define the moment, all partitions are omitted,
        because the time of the moment is unknown.
        """
        if self.as_of.of(of):
            return self.spark.createDataFrame([], ENDS)
        if self.as_of.time is not None:
            return self.spark.createDataFrame(self._ends_at(self.as_of.time), ENDS)
        written = self.batches.groupBy(*_PLACE).agg((F.max("last_offset") + 1).alias("written"))
        # Even a log without records shows the offset at which it continues. If there are several
        # replicas, only the one that is read shows this offset.
        logs = [log for log in logs_among(self.files, LogQuery()) if not log.is_tiered]
        watermarks = watermarks_of(logs)
        rows = [
            (
                *each_log.partition,
                each_log.segments[-1].base_offset,
                *watermarks.get(each_log.partition, NO_WATERMARK),
            )
            for each_log in logs
        ]
        bases = self.spark.createDataFrame(rows, ENDS)
        both = bases.join(written, [*_PLACE], "left")
        ends = both.withColumn("end_offset", F.greatest("written", "end_offset"))
        watermark, is_exact = (F.col(column) for column in WATERMARK)
        readable = F.when(watermark.isNotNull(), F.least(watermark, "end_offset"))
        return ends.select(*_PLACE, "end_offset", readable.alias(WATERMARK[0]), is_exact)

    def written(self, of: InternalTopic) -> DataFrame | None:
        """Return the batches that begin before the moment up to which the log of ``of`` is read.

        Returns None if offsets define the moment, because the corresponding time is unknown for
        other logs.
        """
        if self.as_of.of(of):
            return None
        if self.as_of.time is None:
            return self.batches
        both = self.batches.join(self.ends(of).select(*_PLACE, "end_offset"), [*_PLACE])
        return both.where("base_offset < end_offset").drop("end_offset")

    def _ends_at(self, time: datetime) -> list[tuple[str, int, int, None, None]]:
        query, rows = LogQuery(ending_timestamp=first_after(time)), []
        for log in logs_among(self.files, query):
            high = between(log, query).high
            end = end_offset(log.segments[-1]) if high == INT64_MAX else high + 1
            # The records before the log's first record were deleted later.
            if end > log.first or not log.first:
                rows.append((*log.partition, end, *NO_WATERMARK))
        return rows


def internal_topics(files: Sequence[InputFile]) -> frozenset[str]:
    """Return the internal topics of which a segment is among the log files."""
    return TOPICS.intersection(partition.topic for _, partition, _ in _segments(files))


def check_moment(as_of: AsOf, files: Sequence[InputFile]) -> None:
    """Raise an error if a moment is given but no file belongs to an internal topic's log.

    Raises `CaptureError` if an offset is given for a partition whose log is missing.
    """
    if as_of == END:
        return
    there = {partition for _, partition, _ in _segments(files)}
    if TOPICS.isdisjoint(partition.topic for partition in there):
        raise refuse("as_of", "a log of an internal topic among the paths", as_of.text)
    for partition, offset in as_of.offsets.items():
        if partition not in there:
            reason = f"{_UNKNOWN.format(offset)}: the paths do not include the log of the partition"
            raise CaptureError(reason, source=str(partition))


def listeners(endpoints: str) -> Column:
    """Return endpoints as strings such as "PLAINTEXT://host:9092"."""
    names = ("name", "host", "port")
    return F.transform(
        endpoints,
        lambda endpoint: F.format_string("%s://%s:%d", *(endpoint[name] for name in names)),
    )


def _micros(time: datetime | None) -> Column:
    microseconds = None if time is None else microseconds_of(time)
    return F.lit(microseconds).cast("bigint")


def _segments(files: Sequence[InputFile]) -> list[tuple[str, Partition, int]]:
    """Return the directory, partition and base offset of each segment of an internal topic."""
    segments = []
    for file in files:
        directory, _, name = file.url.rpartition("/")
        parsed, last = parse_file(name), directory.rpartition("/")[2]
        if parsed is None or parsed.kind != LOG or parsed.state or is_set_aside(last):
            continue
        partition = None if parsed.segment else parse_directory(last, is_tiered=False)
        if partition is not None:
            segments.append((directory, partition, parsed.base_offset))
    return segments


_KEY: Final = (*_PLACE, "producer_id")


def open_transactions_of(logs: InternalLogs, of: InternalTopic) -> DataFrame | None:
    """Return the open transactions of partitions, from batch headers (`open_transactions`).

    The result describes the moment up to which the log of ``of`` is read. Returns None if it is
    unknown to which offsets in other logs that moment corresponds.
    """
    batches = logs.written(of)
    if batches is None:
        return None
    of_transactions = batches.where("is_transactional")
    is_end: SparkColumn = F.col("is_control")
    ends = of_transactions.where(is_end).groupBy(*_KEY).agg(F.max("base_offset").alias("last_end"))
    data = of_transactions.where(~is_end).join(ends, [*_KEY], "left")
    first = F.struct(
        "producer_epoch",
        F.col("base_offset").alias("first_offset"),
        F.col("max_timestamp").alias("first_time"),
    )
    is_open = F.col("last_end").isNull() | (F.col("base_offset") > F.col("last_end"))
    first_offsets = (
        data.where(is_open).groupBy(*_KEY).agg(F.min_by(first, "base_offset").alias("first"))
    )
    return first_offsets.select(*_KEY, "first.*")


def with_stable_lag(commits: DataFrame, logs: InternalLogs, of: InternalTopic) -> DataFrame:
    """Add ``stable_offset`` and ``stable_lag`` to commits, with null where they are unknown.

    ``commits`` contains ``topic``, ``partition``, ``offset`` and ``end_offset``, and may contain
    `WATERMARK`. Consumers with ``read_committed`` stop at the last stable offset. That is the first
    offset of an open transaction, or the offset at which all consumers stop if this is lower. The
    lag is 0 for a consumer that is already beyond the last stable offset, for example because it
    reads uncommitted records. The lag is null for a commit that is beyond the end.
    """
    open_transactions = open_transactions_of(logs, of)
    if open_transactions is None:
        unknown = F.lit(None).cast("bigint")
        return commits.withColumns({"stable_offset": unknown, "stable_lag": unknown})
    firsts = open_transactions.groupBy(*_PLACE).agg(F.min("first_offset").alias("first_open"))
    both = commits.join(firsts, [*_PLACE], "left")
    end = F.col("end_offset")
    until = readable_end(F.col("offset")) if WATERMARK[0] in commits.columns else end
    stable = F.when(end.isNotNull(), F.least(until, "first_open"))
    both = both.withColumn("stable_offset", stable)
    short = F.greatest(F.try_subtract("stable_offset", "offset"), F.lit(0).cast("bigint"))
    is_told = F.col("stable_offset").isNotNull() & (F.col("offset") <= end)
    return both.withColumn("stable_lag", F.when(is_told, short)).drop("first_open")
