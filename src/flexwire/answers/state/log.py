"""The log of an internal topic as views read it, up to a moment: `open_log`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - what every Spark program calls it

from flexwire.answers.state.control_records import control_records, in_tasks, several
from flexwire.answers.state.reading import PLACE, TRANSACTIONAL, Asked, read_records
from flexwire.answers.state.records import BY_NAME, internal_records, kept_names
from flexwire.answers.state.times import first_after
from flexwire.arguments import refuse, to_choice
from flexwire.logs.files import LogQuery, Partition
from flexwire.logs.finding import find_logs
from flexwire.logs.holes import Held, held_by, holes_of
from flexwire.logs.planning import between
from flexwire.tables.typed_records import HEAD_COLUMNS
from flexwire.wire.limits import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime
    from pathlib import Path

    from pyspark.sql import Column, DataFrame, SparkSession

    from flexwire.answers.state.control_records import Paths
    from flexwire.logs.holes import Holes
    from flexwire.logs.reading import LogPiece
    from flexwire.logs.replicas import Replica
    from flexwire.tables.typed_records import Records

IS_LATER, HIDES = "is_later", "hides"
"""What `InternalLog.typed` adds: whether a record is after the moment that is asked for, and
whether it is one for which compaction may have removed another that was before it."""

_HELD: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        *((name, pa.int64()) for name in Held._fields),
    ]
)
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
        cleaned: by partition, the offset up to which records are missing, because the log was
            compacted or pruned: the offset after its last hole, 0 where nothing is missing.
        files: where there are the files of ``rows``, which then are read and typed in one task.
        whole: by partition, the offset up to which no record is missing; 0 where it is not known.
    """

    rows: DataFrame
    topic: str
    ends: DataFrame | None = None
    until: Mapping[int, int] = field(default_factory=dict)
    cleaned: Mapping[int, int] = field(default_factory=dict)
    files: LogFiles | None = None
    whole: Mapping[int, int] = field(default_factory=dict)

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
        # A later record may have replaced one that is missing: how far a log was compacted that was
        # copied from another broker, nothing says.
        hides = later & F.col("partition").isin(*self.holed) if self.holed else F.lit(False)
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
    def holed(self) -> tuple[int, ...]:
        """The partitions of which records from before the moment are missing."""
        return tuple(sorted(one for one in self.until if self._is_holed(one)))

    @property
    def incomplete(self) -> tuple[int, ...]:
        """The partitions of which something may be in no view.

        At an earlier moment there may have been a key all of whose records are missing. Where
        records have no keys nothing replaces one, and what is missing is missing at any moment.
        """
        moments = self.until
        if not BY_NAME[self.topic].has_keys:
            return tuple(sorted(one for one in self.cleaned if self._is_holed(one)))
        return tuple(one for one in self.holed if moments[one] < self.cleaned[one])

    def _is_holed(self, partition: int) -> bool:
        moment, whole = self.until.get(partition, INT64_MAX), self.whole.get(partition, 0)
        return self.cleaned.get(partition, 0) > 0 and moment > whole


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
    logs = {one.partition.partition: one for one in find_logs(given, query)}
    ends = {one: between(log, query).high for one, log in logs.items()}
    asked = {one for one, high in ends.items() if high < INT64_MAX or not of.has_keys}
    holes = _holes(spark, given, of.topic, {one: logs[one] for one in asked})
    reader = spark.read.format("kafka-log").schema(_ROWS).option("topic", of.topic)
    named = tuple(str(one) for one in given)
    rows = reader.load([*named])
    return InternalLog(
        rows,
        topic,
        control_records(spark, given, (of.topic,)),
        # Where no record is later, the moment is the end.
        {one: ends[one] + 1 for one, where in holes.items() if ends[one] < where.log_end - 1},
        {one: where.end + _is_within(ends[one], where, time) for one, where in holes.items()},
        LogFiles(rows, named),
        {one: where.first for one, where in holes.items()},
    )


def _is_within(last: int, holes: Holes, time: datetime | None) -> bool:
    """Return whether a moment by time may lie within the last hole, which ends at ``last``."""
    return time is not None and holes.end == last + 1


def _holes(
    spark: SparkSession, paths: Sequence[str | Path], topic: str, logs: Mapping[int, Replica]
) -> dict[int, Holes]:
    """Find where logs have holes, by partition."""
    if not logs:
        return {}
    found: dict[int, list[Held]] = {one: [] for one in logs}
    rows = in_tasks(spark, paths, (topic,), _held, _HELD, partitions=[*logs])
    for row in rows.collect():
        found[row["partition"]].append(Held(*(row[name] for name in Held._fields)))
    return {one: holes_of(log, found[one]) for one, log in logs.items()}


def _held(piece: LogPiece) -> Iterator[pa.RecordBatch]:
    found = held_by(piece)
    if found is not None:
        yield pa.RecordBatch.from_pylist([found._asdict()], _HELD)


def _by_partition(numbers: Mapping[int, int], default: int) -> Column:
    """Give what a mapping says of ``partition``."""
    told = F.create_map(*(F.lit(one) for pair in numbers.items() for one in pair))
    return F.coalesce(F.element_at(told, F.col("partition")), F.lit(default)).cast("bigint")
