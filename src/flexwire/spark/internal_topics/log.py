"""The log of an internal topic as views read it, up to a moment: `open_log`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.arguments import refuse, to_choice
from flexwire.capture.log_segment import Damage
from flexwire.capture.log_state import read_checkpoint
from flexwire.capture.logs.files import open_file
from flexwire.capture.logs.finding import find_logs
from flexwire.capture.logs.names import Partition
from flexwire.capture.logs.planning import between
from flexwire.capture.logs.query import LogQuery
from flexwire.errors import CaptureError
from flexwire.spark.internal_topics.control_records import control_records, several
from flexwire.spark.internal_topics.reading import PLACE, TRANSACTIONAL, Asked, read_records
from flexwire.spark.internal_topics.records import BY_NAME, internal_records, kept_names
from flexwire.spark.internal_topics.times import first_after
from flexwire.storage.listing import list_files
from flexwire.tables.typed_records import HEAD_COLUMNS
from flexwire.wire.limits import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from pyspark.sql import Column, DataFrame, SparkSession

    from flexwire.capture.logs.finding import Replica
    from flexwire.spark.internal_topics.control_records import Paths
    from flexwire.tables.typed_records import Records

IS_LATER, HIDES = "is_later", "hides"
"""What `InternalLog.typed` adds: whether a record is after the moment that is asked for, and
whether it is one for which compaction may have removed another that was before it."""

_CHECKPOINT: Final = "cleaner-offset-checkpoint"
_ROWS: Final = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "producer_id bigint, producer_epoch smallint, is_transactional boolean"
)


@dataclass(frozen=True, slots=True)
class LogFiles:
    """Where the log is that ``rows`` are all the records of."""

    rows: DataFrame
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InternalLog:
    """The records of an internal topic up to a moment, and what is known of its compaction.

    Attributes:
        rows: the records, with the columns of Spark's Kafka source, and of their batch
            ``producer_id``, ``producer_epoch``, ``is_transactional``; without these they are what
            a consumer with ``read_committed`` had, and what is pending is not known.
        topic: the name of the topic, or of its decoder.
        ends: how transactions ended, as `control_records` gives it.
        until: by partition, the first offset that is after the moment; where there is none, the
            moment is the end of the log.
        cleaned: by partition, the offset up to which the log was compacted.
        files: where there are the files of ``rows``, which then are read and typed in one task.
    """

    rows: DataFrame
    topic: str
    ends: DataFrame | None = None
    until: Mapping[int, int] = field(default_factory=dict)
    cleaned: Mapping[int, int] = field(default_factory=dict)
    files: LogFiles | None = None

    def __post_init__(self) -> None:
        """Refuse a log of which it is not known how its transactions ended."""
        if TRANSACTIONAL in self.rows.columns and self.ends is None:
            raise refuse("ends", "how transactions ended, as control_records gives it", None)

    def typed(
        self,
        records: Records,
        columns: Sequence[str] | None = None,
        *,
        of_transactions: bool | None = None,
        only_last: bool = False,
    ) -> DataFrame:
        """Give these records as `internal_records` does, of no other, with `IS_LATER` and `HIDES`.

        Args:
            records: as in `internal_records`: their names, or for each the fields that are wanted.
            columns: which of its other columns are wanted, all by default; ``partition`` and
                ``offset`` are given in any case.
            of_transactions: none but records of transactions, where it is known which are; or
                where it is false, none that count only when a transaction ends.
            only_last: what a later record of its key replaces is not wanted, and may be missing,
                but for the last tombstone of the key.

        Those that have an error are not among them: `unreadable` gives them.
        """
        wanted = self._columns()
        if columns is not None:
            wanted = [one for one in wanted if one in {*columns, *PLACE[:2]}]
        # What is before a moment is not replaced by what is after it.
        only_last &= not self.until and BY_NAME[self.topic].has_keys
        asked = Asked(records, wanted, of_transactions=of_transactions, only_last=only_last)
        found = self._read(asked)
        if found is None:
            typed = internal_records(self.rows, self.topic, records)
            found = typed.where(F.col("message").isin(*records) & F.col("error").isNull())
            if of_transactions is not None:
                waits = F.col(TRANSACTIONAL) & (F.lit(of_transactions) | ~F.col("is_tombstone"))
                found = found.where(waits == of_transactions)
            found = found.select(*wanted, *records)
        later = self.is_later
        offset = F.col("offset")
        hides = later & (offset < _by_partition(self.cleaned, 0)) if self.cleaned else F.lit(False)
        return found.withColumns({IS_LATER: later, HIDES: hides})

    def unreadable(self, records: Records) -> DataFrame:
        """Give the records that have an error, as `internal_records` does, without structures."""
        columns = self._columns()
        found = self._read(Asked(records, columns, unreadable=True))
        if found is None:
            typed = internal_records(self.rows, self.topic, records)
            found = typed.where(F.col("error").isNotNull()).select(*columns)
        return found.where(~self.is_later)

    def _columns(self) -> list[str]:
        """Name the columns that there are besides those of records."""
        return [*kept_names(self.rows), *HEAD_COLUMNS]

    def _read(self, asked: Asked) -> DataFrame | None:
        """Read and type what is asked for at once; None where the files of rows are not known."""
        if self.files is None or self.files.rows is not self.rows:
            return None
        topic = BY_NAME[self.topic]
        return read_records(self.rows.sparkSession, self.files.paths, topic, asked)

    @property
    def is_later(self) -> Column:
        """Whether the record at ``partition`` and ``offset`` is after the moment."""
        if not self.until:
            return F.lit(False)
        return F.col("offset") >= _by_partition(self.until, INT64_MAX)

    @property
    def has_transactions(self) -> bool:
        """Whether it is known which records are of transactions, and how these ended."""
        return TRANSACTIONAL in self.rows.columns

    @property
    def incomplete(self) -> tuple[int, ...]:
        """The partitions that were compacted beyond the moment.

        What was removed in them, and has no other record any more, is in no view.
        """
        moments = self.until.items()
        return tuple(sorted(one for one, at in moments if at < self.cleaned.get(one, 0)))


def unreadable(log: InternalLog, records: Records) -> DataFrame:
    """Give the records that do not decode, with their ``error``: no view knows what they say.

    Those of types that are in no release that is known are among them.
    """
    return log.unreadable(records)


def open_log(
    spark: SparkSession,
    paths: Paths,
    topic: str,
    *,
    offsets: Mapping[int, int] | None = None,
    time: datetime | None = None,
) -> InternalLog:
    """Open the log of an internal topic in a broker's log directories, as `kafka-log` reads them.

    ``offsets`` says for partitions before which offset a view ends; ``time``, which has a time
    zone, that it ends before the first record that is later. Neither means all there is. Raises as
    `kafka-log` does for paths that have no log.
    """
    of = BY_NAME[to_choice(topic, "topic", BY_NAME)]
    if time is not None and time.tzinfo is None:
        raise refuse("time", "a datetime with a time zone", time)
    given = several(paths)
    later = None if time is None else first_after(time)
    query = LogQuery(
        topics=(of.topic,),
        ending={Partition(of.topic, one): at for one, at in (offsets or {}).items()},
        ending_timestamp=later,
    )
    logs = find_logs(given, query)
    ends = {one.partition.partition: between(one, query).high for one in logs}
    reader = spark.read.format("kafka-log").schema(_ROWS).option("topic", of.topic)
    named = tuple(str(one) for one in given)
    rows = reader.load([*named])
    return InternalLog(
        rows,
        topic,
        control_records(spark, given, (of.topic,)),
        {one: high + 1 for one, high in ends.items() if high < INT64_MAX},
        {one.partition.partition: _cleaned(one) for one in logs},
        LogFiles(rows, named),
    )


def _cleaned(log: Replica) -> int:
    """Give the offset up to which a log was compacted; beyond its end where nothing says it."""
    beside = f"{log.directory.rstrip('/').rpartition('/')[0]}/{_CHECKPOINT}"
    try:
        [checkpoint] = list_files([beside], _is_checkpoint, "is a checkpoint")
    except CaptureError:
        return INT64_MAX
    if not checkpoint.size:
        # A broker makes it empty, and compacts some time later.
        return 0
    with open_file(checkpoint) as file:
        entries = [*read_checkpoint(file)]
    if any(isinstance(one, Damage) for one in entries):
        return INT64_MAX
    at = [one["offset"] for one in entries if isinstance(one, dict) and _is_of(log, one)]
    # A partition that was never compacted is not in it.
    return int(max(at, default=0))


def _is_of(log: Replica, entry: dict[str, object]) -> bool:
    return (entry["topic"], entry["partition"]) == log.partition


def _is_checkpoint(name: str) -> bool:
    return name == _CHECKPOINT


def _by_partition(numbers: Mapping[int, int], default: int) -> Column:
    """Give what a mapping says of ``partition``."""
    told = F.create_map(*(F.lit(one) for pair in numbers.items() for one in pair))
    return F.coalesce(F.element_at(told, F.col("partition")), F.lit(default)).cast("bigint")
