"""Read the log of an internal topic up to a moment: `open_log`.

If a function on rows decoded a log, the rows would move from Python to Java, back to Python, and to
Java again. Instead, a task reads its pieces of the log, skips records of other types before
decoding, and returns only the requested columns and fields. The rows then move to Java only once.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F  # noqa: N812 - the usual name in Spark programs

from flexwire.answers.state.records import (
    BY_NAME,
    control_records,
    in_tasks,
    internal_records,
    kept_names,
    last_of_keys,
    several,
)
from flexwire.arguments import iso_time, refuse, to_choice, to_int
from flexwire.columnar.record_columns import BATCH_COLUMNS, RECORD_COLUMNS
from flexwire.facts.units import microseconds_of
from flexwire.logs.discovery import find_logs
from flexwire.logs.files import LogQuery, Partition, parse_directory
from flexwire.logs.holes import PieceOffsets, holes_of, offsets_of
from flexwire.logs.pieces import between
from flexwire.logs.records import BatchDamage, read_piece
from flexwire.protocol.internal_topics import InternalTopic
from flexwire.tables.typed_records import HEAD_COLUMNS, Records, TypedRecords
from flexwire.wire.limits import INT64_MAX, LAST_MILLISECOND

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import Column, DataFrame, SparkSession

    from flexwire.answers.state.records import Paths
    from flexwire.logs.holes import Holes
    from flexwire.logs.records import LogPiece
    from flexwire.logs.replicas import Replica


def first_after(time: datetime) -> int:
    """Return the first record time after a time (which has a time zone), in ms since 1970.

    >>> first_after(datetime(1970, 1, 1, 0, 0, 0, 10_600, tzinfo=UTC))
    11
    >>> first_after(datetime(1970, 1, 1, 0, 0, 0, 10_000, tzinfo=UTC))
    11
    """
    return microseconds_of(time) // 1000 + 1


def elapsed_us(since: str | Column, now: Column) -> Column:
    """Return how many µs have passed (at least 0), or null if either time is unknown."""
    elapsed = now - F.unix_micros(since)
    return F.when(elapsed.isNotNull(), F.greatest(elapsed, F.lit(0).cast("bigint")))


def is_older(since: str | Column, now: Column, than: timedelta) -> Column:
    """Return whether more than a given time has passed, or null if either time is unknown."""
    return elapsed_us(since, now) > than // timedelta(microseconds=1)


def moment(milliseconds: str | Column) -> Column:
    """Return ms since 1970 as a timestamp, or null for -1 and for times after the year 9999."""
    column = F.col(milliseconds) if isinstance(milliseconds, str) else milliseconds
    return F.timestamp_millis(F.when(column.between(0, LAST_MILLISECOND), column))


TRANSACTIONAL: Final = "is_transactional"
PLACE: Final = ("partition", "offset", "timestamp")
_KEY, _VALUE = "key", "value"
_LOGGER = logging.getLogger("flexwire")


@dataclass(frozen=True, slots=True)
class LogSelection:
    """The records and columns of a log that a view needs.

    Attributes:
        records: as in `internal_records`.
        columns: the columns besides those of ``records``.
        unreadable: if true, read only records that do not decode, whatever their type. Otherwise,
            read only those ``records`` that decode.
        of_transactions: if true, read only records of transactions. If false, read no records that
            count only when a transaction ends (tombstones count immediately).
        only_last: if true, records that a later record of the same key replaces may be missing, as
            after compaction, except for the last tombstone. Records may be repeated.
    """

    records: Records
    columns: Sequence[str]
    unreadable: bool = False
    of_transactions: bool | None = None
    only_last: bool = False


def read_records(
    spark: SparkSession, paths: Sequence[str], topic: InternalTopic, selection: LogSelection
) -> DataFrame:
    """Read the selected records of an internal topic from logs, in the same way as `kafka-log`."""
    typed = TypedRecords(topic, selection.records)
    kinds = {"partition": pa.int32(), **RECORD_COLUMNS, **BATCH_COLUMNS, **HEAD_COLUMNS}
    columns = [(name, kinds[name]) for name in selection.columns]
    structures = (
        []
        if selection.unreadable
        else [typed.schema.field(record_type) for record_type in typed.records]
    )
    schema = pa.schema([*columns, *structures])
    read = partial(typed_piece, topic.value, selection, schema.names)
    return in_tasks(spark, paths, (topic.topic,), read, schema)


def typed_piece(
    topic: str, selection: LogSelection, columns: Sequence[str], piece: LogPiece
) -> Iterator[pa.RecordBatch]:
    """Yield the selected records of a piece, without columns that are the same in all rows."""
    typed = TypedRecords(InternalTopic(topic), selection.records)
    columns_by_type = RECORD_COLUMNS | BATCH_COLUMNS
    needed = {_KEY, _VALUE, *(column for column in columns if column in columns_by_type)}
    if selection.of_transactions is not None:
        needed.add(TRANSACTIONAL)
    read = [column for column in columns_by_type if column in needed]
    batches = _of_interest(selection, typed, piece, read)
    if not selection.only_last:
        for batch in batches:
            yield _typed(selection, typed, columns, batch)[0]
        return
    unread: list[pa.Array] = []
    for batch in last_of_keys(batches, _KEY, _VALUE):
        typed_batch, rows = _typed(selection, typed, columns, batch)
        if typed_batch.num_rows < batch.num_rows:
            unread.append(batch.column(_KEY).filter(pc.invert(rows)))
        yield typed_batch
    if unread:
        # If the last record of a key does not decode, an earlier one that does is used.
        keys = pa.concat_arrays(unread)
        for batch in _of_interest(selection, typed, piece, read, is_again=True):
            some = batch.filter(pc.is_in(batch.column(_KEY), keys))
            yield _typed(selection, typed, columns, some)[0]


def _typed(
    selection: LogSelection, typed: TypedRecords, columns: Sequence[str], batch: pa.RecordBatch
) -> tuple[pa.RecordBatch, pa.BooleanArray]:
    """Decode records. Return the selected records, and a mask that marks them."""
    decoded = typed.decode(batch.column(_KEY), batch.column(_VALUE), None)
    there = dict(zip(typed.schema.names, decoded, strict=True))
    rows = there["error"].is_valid()
    if not selection.unreadable:
        names = pa.array(typed.records, pa.string())
        rows = pc.and_not(pc.is_in(there["message"], names), rows)
    there |= {name: batch.column(name) for name in batch.schema.names}
    chosen = [column for column in columns if column in there]
    batch = pa.RecordBatch.from_arrays([there[name] for name in chosen], names=chosen)
    return batch if rows.true_count == len(rows) else batch.filter(rows), rows


def _of_interest(
    selection: LogSelection,
    typed: TypedRecords,
    piece: LogPiece,
    columns: Sequence[str],
    *,
    is_again: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Yield the records of a piece, except those that are certainly not selected.

    When a piece is read a second time, its damage is not reported again.
    """
    only = selection.of_transactions is True
    for item in read_piece(piece, columns, of_transactions=only):
        if isinstance(item, BatchDamage):
            if not is_again:
                where = f"{piece.log.name}, byte {item.position}"
                _LOGGER.warning("%s: skipped, as a broker would do: %s", where, item.reason)
            continue
        batch = item
        if selection.of_transactions is False:
            rows = pc.invert(batch.column(TRANSACTIONAL))
            if rows.false_count:
                batch = batch.filter(pc.or_(rows, batch.column(_VALUE).is_null()))
        if not selection.unreadable:
            rows = typed.may_have(batch.column(_KEY), batch.column(_VALUE))
            batch = batch if rows.all() else batch.filter(pa.array(rows))
        if batch.num_rows:
            yield batch


Moment: TypeAlias = datetime | Mapping[str, int]
"""A time with a time zone, or the first excluded offset for each partition of internal topics."""

_TOPICS: Final = frozenset(topic.topic for topic in InternalTopic)
_OFFSET: Final = re.compile(r"([^=]+)=([0-9]{1,18})")
_EXPECTED: Final = (
    "a datetime with a time zone, or the offset for each partition of internal topics, such as "
    '{"__consumer_offsets-3": 17}'
)


@dataclass(frozen=True, slots=True)
class AsOf:
    """The end of a view: the first record later than ``time``, or these ``offsets``.

    If neither is given, views end at the end of each log. If ``offsets`` does not contain a
    partition, the view of that partition also ends at the end of the log.

    >>> AsOf.parse({"__cluster_metadata-0": 186}).text
    'offset 186 of __cluster_metadata-0'
    """

    time: datetime | None = None
    offsets: Mapping[Partition, int] = field(default_factory=dict)

    @classmethod
    def parse(cls, moment: Moment) -> AsOf:
        """Parse a moment. Raises `ArgumentError` if the value does not specify a moment."""
        if isinstance(moment, datetime) and moment.tzinfo is not None:
            try:
                return cls(moment.astimezone(UTC))
            except OverflowError:
                # In UTC, the time would be before year 1 or after year 9999.
                raise refuse("as_of", _EXPECTED, moment) from None
        if not isinstance(moment, Mapping) or not moment:
            raise refuse("as_of", _EXPECTED, moment)
        offsets = {}
        for name, offset in moment.items():
            partition = parse_directory(name, is_tiered=False) if isinstance(name, str) else None
            if partition is None or partition.topic not in _TOPICS or partition in offsets:
                raise refuse("as_of", _EXPECTED, moment)
            offsets[partition] = to_int(offset, "as_of", least=0)
        return cls(None, offsets)

    @property
    def text(self) -> str:
        """The moment in words, or an empty string for the end."""
        if self.time is not None:
            return f"{self.time.astimezone(UTC).replace(tzinfo=None).isoformat(' ')} UTC"
        named = (f"offset {at} of {partition}" for partition, at in sorted(self.offsets.items()))
        return ", ".join(named)

    def of(self, topic: InternalTopic) -> dict[int, int]:
        """Return the offsets that were given for a topic's partitions."""
        named = self.offsets.items()
        return {
            partition.partition: at for partition, at in named if partition.topic == topic.topic
        }


END: Final = AsOf()


def to_as_of(time_or_offsets: Moment | None) -> AsOf:
    """Return a moment as `AsOf`; None stands for the end.

    Raises `ArgumentError` for any other value.
    """
    return END if time_or_offsets is None else AsOf.parse(time_or_offsets)


def parse_moment(texts: Sequence[str]) -> Moment | None:
    """Parse the values of a command-line option: a time or offsets.

    Returns None if there are no values. A time without a time zone is interpreted as UTC. Raises
    `ArgumentError`.

    >>> parse_moment(["2026-11-22T10:00Z"])
    datetime.datetime(2026, 11, 22, 10, 0, tzinfo=datetime.timezone.utc)
    >>> parse_moment(["__consumer_offsets-3=17", "__consumer_offsets-4=0"])
    {'__consumer_offsets-3': 17, '__consumer_offsets-4': 0}
    """
    if not texts:
        return None
    named = [_OFFSET.fullmatch(text) for text in texts]
    offsets = {match[1]: int(match[2]) for match in named if match is not None}
    if len(offsets) == len(texts):
        AsOf.parse(offsets)
        return offsets
    time = iso_time(texts[0]) if len(texts) == 1 else None
    if time is None:
        expected = (
            "one ISO 8601 time, or TOPIC-PARTITION=OFFSET for each partition of internal topics"
        )
        raise refuse("as_of", expected, " ".join(texts))
    return time


IS_LATER, HIDES = "is_later", "hides"
"""The columns that `InternalLog.typed` adds. They show whether a record is after the requested
moment, and whether compaction may have removed an earlier record because of this one.
"""

_HELD: Final = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        *((name, pa.int64()) for name in PieceOffsets._fields),
    ]
)
_ROWS: Final = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, "
    "producer_id bigint, producer_epoch smallint, is_transactional boolean"
)


@dataclass(frozen=True, slots=True)
class LogFiles:
    """The directories of a log whose records are ``rows``."""

    rows: DataFrame
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InternalLog:
    """The records of an internal topic up to a moment, and facts about the topic's compaction.

    Attributes:
        rows: the records, with the columns of Spark's Kafka source, and ``producer_id``,
            ``producer_epoch`` and ``is_transactional`` of their batch. Without these three columns,
            the records are those that a consumer with ``read_committed`` receives, and pending
            records are unknown.
        topic: the name of the topic, or of its decoder.
        ends: the ends of transactions, as `control_records` returns them.
        until: by partition, the first offset after the moment; without one, the moment is the end
            of the log.
        cleaned: by partition, the offset up to which records are missing, because the log was
            compacted or pruned: the offset after the last hole; 0 if nothing is missing.
        files: the files of ``rows``, if they are known; one task then reads and decodes them.
        whole: by partition, the offset up to which no record is missing; 0 if this is unknown.
    """

    rows: DataFrame
    topic: str
    ends: DataFrame | None = None
    until: Mapping[int, int] = field(default_factory=dict)
    cleaned: Mapping[int, int] = field(default_factory=dict)
    files: LogFiles | None = None
    whole: Mapping[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise an error if the ends of the log's transactions are unknown."""
        if TRANSACTIONAL in self.rows.columns and self.ends is None:
            raise refuse("ends", "the ends of transactions, as control_records returns them", None)

    def typed(
        self,
        records: Records,
        columns: Sequence[str] | None = None,
        *,
        of_transactions: bool | None = None,
        only_last: bool = False,
    ) -> DataFrame:
        """Return records as `internal_records` does, with the columns `IS_LATER` and `HIDES`.

        Args:
            records: as in `internal_records`: names of records, or the fields to return for each.
            columns: the other columns to return, all by default; ``partition`` and ``offset`` are
                always returned.
            of_transactions: if true, return only records of transactions, if these are known. If
                false, return no records that count only when a transaction ends.
            only_last: if true, records that a later record of the same key replaces may be missing,
                except for the key's last tombstone.

        Records with an error are left out; `unreadable` returns them.
        """
        needed_columns = self._columns()
        if columns is not None:
            needed_columns = [
                column for column in needed_columns if column in {*columns, *PLACE[:2]}
            ]
        # A record from after the moment does not replace a record from before it.
        only_last &= not self.until and BY_NAME[self.topic].has_keys
        selection = LogSelection(
            records, needed_columns, of_transactions=of_transactions, only_last=only_last
        )
        rows = self._read(selection)
        if rows is None:
            typed = internal_records(self.rows, self.topic, records)
            rows = typed.where(F.col("message").isin(*records) & F.col("error").isNull())
            if of_transactions is not None:
                waits = F.col(TRANSACTIONAL) & (F.lit(of_transactions) | ~F.col("is_tombstone"))
                rows = rows.where(waits == of_transactions)
            rows = rows.select(*needed_columns, *records)
        later = self.is_later
        # A later record may have replaced a missing record. If a log was copied from another
        # broker, no file states how far it was compacted.
        hides = later & F.col("partition").isin(*self.holed) if self.holed else F.lit(False)
        return rows.withColumns({IS_LATER: later, HIDES: hides})

    def unreadable(self, records: Records) -> DataFrame:
        """Return the records with an error, like `internal_records`, but without structures."""
        columns = self._columns()
        rows = self._read(LogSelection(records, columns, unreadable=True))
        if rows is None:
            typed = internal_records(self.rows, self.topic, records)
            rows = typed.where(F.col("error").isNotNull()).select(*columns)
        return rows.where(~self.is_later)

    def _columns(self) -> list[str]:
        """Return the names of the columns besides those of the requested records."""
        return [*kept_names(self.rows), *HEAD_COLUMNS]

    def _read(self, selection: LogSelection) -> DataFrame | None:
        """Read and decode selected records in one task, or return None if the files are unknown."""
        if self.files is None or self.files.rows is not self.rows:
            return None
        topic = BY_NAME[self.topic]
        return read_records(self.rows.sparkSession, self.files.paths, topic, selection)

    @property
    def is_later(self) -> Column:
        """Return whether the record at ``partition`` and ``offset`` is after the moment."""
        if not self.until:
            return F.lit(False)
        return F.col("offset") >= _by_partition(self.until, INT64_MAX)

    @property
    def has_transactions(self) -> bool:
        """True if it is known which records belong to transactions, and how transactions ended."""
        return TRANSACTIONAL in self.rows.columns

    @property
    def holed(self) -> tuple[int, ...]:
        """The partitions in which records from before the moment are missing."""
        return tuple(sorted(partition for partition in self.until if self._is_holed(partition)))

    @property
    def incomplete(self) -> tuple[int, ...]:
        """The partitions whose views may be incomplete.

        If a moment before the end is requested, all records of a key that existed then may be
        missing. Records without keys are never replaced, so if some are missing, they are missing
        at any moment.
        """
        moments = self.until
        if not BY_NAME[self.topic].has_keys:
            return tuple(
                sorted(partition for partition in self.cleaned if self._is_holed(partition))
            )
        return tuple(
            partition for partition in self.holed if moments[partition] < self.cleaned[partition]
        )

    def _is_holed(self, partition: int) -> bool:
        moment, whole = self.until.get(partition, INT64_MAX), self.whole.get(partition, 0)
        return self.cleaned.get(partition, 0) > 0 and moment > whole


def unreadable(log: InternalLog, records: Records) -> DataFrame:
    """Return the records that do not decode, with their ``error``; no view contains them.

    Records whose type exists in no known release are included.
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
    """Open the log of an internal topic in a broker's directories, as read by `kafka-log`.

    ``offsets`` contains the offset before which a view ends, for each partition. ``time``, which
    has a time zone, ends a view before the first later record. If neither is given, a view covers
    the whole log. Raises the same errors as `kafka-log` for paths without a log.
    """
    of = BY_NAME[to_choice(topic, "topic", BY_NAME)]
    if time is not None and time.tzinfo is None:
        raise refuse("time", "a datetime with a time zone", time)
    path_list = several(paths)
    later = None if time is None else first_after(time)
    query = LogQuery(
        topics=(of.topic,),
        ending={Partition(of.topic, partition): at for partition, at in (offsets or {}).items()},
        ending_timestamp=later,
    )
    logs = {each_log.partition.partition: each_log for each_log in find_logs(path_list, query)}
    ends = {partition: between(log, query).high for partition, log in logs.items()}
    partitions = {
        partition for partition, high in ends.items() if high < INT64_MAX or not of.has_keys
    }
    holes = _holes(
        spark, path_list, of.topic, {partition: logs[partition] for partition in partitions}
    )
    reader = spark.read.format("kafka-log").schema(_ROWS).option("topic", of.topic)
    named = tuple(str(partition) for partition in path_list)
    rows = reader.load([*named])
    return InternalLog(
        rows,
        topic,
        control_records(spark, path_list, (of.topic,)),
        # If no record is later than the time, the view ends at the end of the log.
        {
            partition: ends[partition] + 1
            for partition, where in holes.items()
            if ends[partition] < where.log_end - 1
        },
        {
            partition: where.end + _is_within(ends[partition], where, time)
            for partition, where in holes.items()
        },
        LogFiles(rows, named),
        {partition: where.first for partition, where in holes.items()},
    )


def _is_within(last: int, holes: Holes, time: datetime | None) -> bool:
    """Return whether the time may lie inside the last hole, which ends at offset ``last``."""
    return time is not None and holes.end == last + 1


def _holes(
    spark: SparkSession, paths: Sequence[str | Path], topic: str, logs: Mapping[int, Replica]
) -> dict[int, Holes]:
    """Return the holes in logs, by partition."""
    if not logs:
        return {}
    held_offsets: dict[int, list[PieceOffsets]] = {each_log: [] for each_log in logs}
    rows = in_tasks(spark, paths, (topic,), _held, _HELD, partitions=[*logs])
    for row in rows.collect():
        held_offsets[row["partition"]].append(
            PieceOffsets(*(row[name] for name in PieceOffsets._fields))
        )
    return {partition: holes_of(log, held_offsets[partition]) for partition, log in logs.items()}


def _held(piece: LogPiece) -> Iterator[pa.RecordBatch]:
    held = offsets_of(piece)
    if held is not None:
        yield pa.RecordBatch.from_pylist([held._asdict()], _HELD)


def _by_partition(numbers: Mapping[int, int], default: int) -> Column:
    """Return the mapping's value for the column ``partition``."""
    numbers_map = F.create_map(*(F.lit(item) for pair in numbers.items() for item in pair))
    return F.coalesce(F.element_at(numbers_map, F.col("partition")), F.lit(default)).cast("bigint")
