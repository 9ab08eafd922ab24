"""Convert paths and a query to the pieces to be read, and find the aborted transactions.

Next to each segment in which an aborted transaction ends, a broker writes an index of aborted
transactions. If a segment has other indexes but not this one, it contains no aborted transactions.
If a segment has no index at all, it was copied without its indexes. In that case, its own control
batches show the aborted transactions. A transaction is open if it is open in the newest producer
snapshot and no later batch ends it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from flexwire.arguments import refuse
from flexwire.errors import (
    LOG_DAMAGED,
    ArgumentError,
    CaptureError,
    DecodeError,
    RecordError,
)
from flexwire.logs.discovery import find_logs
from flexwire.logs.files import EVERY, Bounds, LogQuery, open_file
from flexwire.logs.positions import (
    cuts,
    first_as_late,
    latest_time,
    offset_index,
    start_of,
    stop_of,
)
from flexwire.logs.records import LogPiece, TransactionAbort, by_producer, in_aborted, read_headers
from flexwire.logs.segments import (
    Damage,
    place_at,
    read_batch,
    read_producer_snapshot,
    read_transaction_index,
)
from flexwire.protocol.record_types import decode_control_record
from flexwire.storage.filesystems import shown
from flexwire.wire.batch_layout import CONTROL_MASK, TRANSACTIONAL_MASK
from flexwire.wire.limits import INT64_MAX, INT64_MIN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from flexwire.columnar.batch_table import BatchHeaders
    from flexwire.logs.files import LogSegment
    from flexwire.logs.replicas import Replica
    from flexwire.storage.input_file import InputFile

    Words = np.ndarray[Any, Any]


_ABORT = 0


class TransactionOutcome(IntEnum):
    """The outcome of the transaction to which a batch belongs."""

    NONE = 0
    """The batch belongs to no transaction, or is the control batch that ends one."""
    COMMITTED = 1
    ABORTED = 2
    OPEN = 3
    """The transaction had not ended at the end of the log."""
    UNKNOWN = 4
    """A required index, snapshot or control batch is damaged."""


@dataclass(frozen=True)
class Transactions:
    """The outcomes of the transactions in a log.

    Attributes:
        aborted: the aborted transactions.
        opened: the first offset of each open transaction, by its producer.
        is_known: false if the file with these facts is damaged.
    """

    aborted: tuple[TransactionAbort, ...] = ()
    opened: Mapping[int, int] = field(default_factory=dict)
    is_known: bool = True

    @cached_property
    def _by_producer(self) -> dict[int, list[TransactionAbort]]:
        return by_producer(self.aborted)

    def outcomes(self, attributes: Words, producers: Words, base_offsets: Words) -> Words:
        """Return the `TransactionOutcome` of each batch."""
        is_of_transaction = attributes & (TRANSACTIONAL_MASK | CONTROL_MASK) == TRANSACTIONAL_MASK
        ended = TransactionOutcome.COMMITTED if self.is_known else TransactionOutcome.UNKNOWN
        outcomes: Words = np.where(
            is_of_transaction, np.int64(ended), np.int64(TransactionOutcome.NONE)
        )
        if not self.is_known or not (self.aborted or self.opened):
            return outcomes
        own = np.where(is_of_transaction, producers, -1)
        outcomes[in_aborted(own, base_offsets, self._by_producer)] = TransactionOutcome.ABORTED
        for producer, first in self.opened.items():
            outcomes[(own == producer) & (base_offsets >= first)] = TransactionOutcome.OPEN
        return outcomes


def transactions_if_sound(replica: Replica) -> Transactions:
    """Return the outcomes of a log's transactions. Damaged files make the outcomes unknown."""
    try:
        return read_transactions(replica)
    except CaptureError:
        return Transactions(is_known=False)


def transactions_of(replica: Replica) -> tuple[tuple[TransactionAbort, ...], int]:
    """Return the aborted transactions, and the first offset that may belong to an open one.

    Raises `CaptureError` if an index or a snapshot is damaged.
    """
    transactions = read_transactions(replica)
    return transactions.aborted, min(transactions.opened.values(), default=INT64_MAX)


def read_transactions(replica: Replica) -> Transactions:
    """Return the outcomes of a log's transactions.

    Raises `CaptureError` if an index, a snapshot or a control batch is damaged.
    """
    aborted = set[TransactionAbort]()
    ends = _TransactionListener({})
    is_alone = _is_alone(replica)
    start = 0
    if replica.snapshots and not is_alone:
        start, snapshot = replica.snapshots[-1]
        ends = _TransactionListener(_open_in(snapshot))
    for segment in replica.segments:
        if segment.transaction_index is not None:
            aborted.update(_indexed(segment.transaction_index))
    for segment in walked_segments(replica):
        ends.walk(replica, segment, start)
    for index in replica.later_transactions:
        aborted.update(_indexed(index))
    if is_alone:
        # All segments have been read, starting with the first, so all aborted transactions are
        # known.
        aborted.update(ends.aborted)
    return Transactions(tuple(sorted(aborted)), ends.open)


def walked_segments(replica: Replica) -> tuple[LogSegment, ...]:
    """Return the segments whose headers `read_transactions` reads."""
    start = replica.snapshots[-1][0] if replica.snapshots and not _is_alone(replica) else 0
    nexts = [*(later.base_offset for later in replica.segments[1:]), INT64_MAX]
    both = zip(replica.segments, nexts, strict=True)
    return tuple(segment for segment, following in both if following > start)


def _is_alone(replica: Replica) -> bool:
    """Return whether a segment lacks the indexes that a broker stores next to it."""
    return any(not (segment.index or segment.time_index) for segment in replica.segments)


def _indexed(index: InputFile) -> Iterator[TransactionAbort]:
    with open_file(index) as file:
        for entry in _sound(index, read_transaction_index(file)):
            yield TransactionAbort(entry["producerId"], entry["firstOffset"], entry["lastOffset"])


def _open_in(snapshot: InputFile) -> dict[int, int]:
    """Return the first offset of each open transaction in a snapshot, by producer."""
    with open_file(snapshot) as file:
        entries = list(_sound(snapshot, read_producer_snapshot(file)))
    return {
        entry["producerId"]: entry["currentTxnFirstOffset"]
        for entry in entries
        if entry["currentTxnFirstOffset"] >= 0
    }


def _sound(
    source: InputFile, entries: Iterator[dict[str, Any] | Damage]
) -> Iterator[dict[str, Any]]:
    for entry in entries:
        if isinstance(entry, Damage):
            damage = CaptureError(entry.reason, source=source.name, offset=entry.position)
            raise damage.under(LOG_DAMAGED)
        yield entry


class _TransactionListener:
    """Receive batches in order, and determine the outcomes of their transactions."""

    def __init__(self, first_offsets: dict[int, int]) -> None:
        self.open = first_offsets
        self.aborted: list[TransactionAbort] = []

    def walk(self, replica: Replica, segment: LogSegment, offset: int) -> None:
        """Process the batches of a segment, starting at an offset."""

        def hear(at: int, headers: BatchHeaders) -> None:
            rows = headers.attributes & TRANSACTIONAL_MASK != 0
            rows &= headers.base_offsets >= offset
            columns = (headers.positions, headers.base_offsets, headers.producer_ids)
            is_control = headers.attributes[rows] & CONTROL_MASK != 0
            for position, base, producer, ends in zip(
                *(column[rows].tolist() for column in columns), is_control.tolist(), strict=True
            ):
                if not ends:
                    self.open.setdefault(producer, base)
                    continue
                first = self.open.pop(producer, None)
                if first is not None and _is_abort(segment.log, at + position):
                    self.aborted.append(TransactionAbort(producer, first, base))

        with open_file(segment.log) as log:
            start = start_of(segment, offset_index(segment), log, offset)
        source = segment.log
        piece = LogPiece(
            replica.partition, replica.directory, source, start, source.size, is_end=True
        )
        read_headers(piece, hear)


def _is_abort(source: InputFile, position: int) -> bool:
    with open_file(source) as log:
        try:
            records = read_batch(log, place_at(log, position)).records
            # If no records of the transaction are left, compaction may have removed the record.
            kinds = [decode_control_record(record.key, record.value).type for record in records]
            return kinds[:1] == [_ABORT]
        except (RecordError, DecodeError) as error:
            reason = f"cannot tell whether this control batch aborts its transaction: {error}"
            damage = CaptureError(reason, source=source.name, offset=position)
            raise damage.under(LOG_DAMAGED) from None


# Opening a file takes as long as reading this many bytes.
_OPENING: Final = 1 << 20


def plan(paths: Iterable[str | Path], query: LogQuery) -> list[list[LogPiece]]:
    """Return the pieces to read, grouped by task, in the order of the logs.

    Raises `CaptureError` and `StorageError` for invalid files, and `ArgumentError` if offsets are
    given for a partition that does not exist.
    """
    logs = find_logs(paths, query)
    there = {replica.partition for replica in logs}
    for name, by_partition in (
        ("starting offsets", query.starting),
        ("ending offsets", query.ending),
        ("starting timestamps", query.starting_timestamps),
        ("ending timestamps", query.ending_timestamps),
    ):
        for partition in by_partition:
            if partition not in there:
                names = ", ".join(map(str, sorted(there)[:20])) or "none"
                raise refuse(name, f"partitions that exist ({names})", partition)
    return split_tasks([(log, query) for log in logs])


def split_tasks(parts: Sequence[tuple[Replica, LogQuery]]) -> list[list[LogPiece]]:
    """Return the tasks that read logs, each with its query.

    If there are fewer tasks than a query requests, smaller pieces are made.
    """
    pieces = [piece for log, query in parts for piece in pieces_of(log, query)]
    if not pieces:
        return []
    wanted, size = parts[0][1].least_tasks, parts[0][1].piece_bytes
    tasks = tasks_of(pieces, size)
    if len(tasks) >= wanted:
        return tasks
    size = max(1, sum(piece.stop - piece.start for piece in pieces) // wanted)
    smaller = (
        piece for log, query in parts for piece in pieces_of(log, replace(query, piece_bytes=size))
    )
    return tasks_of(smaller, size, opening=0)


def check_topics(paths: Iterable[str | Path], topics: Collection[str]) -> None:
    """Raise `ArgumentError` for a requested topic that none of the paths contains."""
    there = {replica.partition.topic for replica in find_logs(paths, LogQuery(replicas="all"))}
    for topic in sorted(topics):
        if topic not in there:
            names = ", ".join(sorted(there)[:20])
            raise refuse("topic", f"topics that exist ({names})", topic)


def tasks_of(
    pieces: Iterable[LogPiece], size: int, opening: int = _OPENING
) -> list[list[LogPiece]]:
    """Group pieces into tasks of at most ``size`` bytes; each file adds ``opening`` bytes."""
    tasks: list[list[LogPiece]] = []
    weight = 0
    for piece in pieces:
        cost = piece.stop - piece.start + opening
        if not tasks or weight + cost > size + opening:
            tasks.append([])
            weight = 0
        tasks[-1].append(piece)
        weight += cost
    return tasks


def pieces_of(log: Replica, query: LogQuery) -> Iterator[LogPiece]:
    """Yield the pieces of a log that the query selects."""
    aborted: tuple[TransactionAbort, ...] = ()
    offsets = query.offsets & between(log, query) & Bounds(low=log.start)
    if query.isolation == "read_committed" and not offsets.is_empty:
        aborted, first_open = transactions_of(log)
        offsets &= Bounds(high=first_open - 1)
    for segment, following in zip(log.segments, [*log.segments[1:], None], strict=True):
        last = segment is log.segments[-1]
        bounds = offsets if segment.below is None else offsets & Bounds(high=segment.below - 1)
        is_before = following is not None and following.base_offset <= bounds.low
        if bounds.is_empty or is_before or bounds.high < segment.base_offset:
            continue
        if not segment.log.size or (not last and _is_earlier(segment, query.timestamps.low)):
            continue
        end = None if following is None else following.base_offset
        mine = tuple(
            abort
            for abort in aborted
            if abort.last_offset >= segment.base_offset
            and (end is None or abort.first_offset < end)
        )
        for start, stop in _ranges(segment, bounds, query.piece_bytes):
            yield LogPiece(
                log.partition,
                shown(log.directory),
                segment.log,
                start,
                stop,
                is_end=last and stop == segment.log.size,
                offsets=bounds,
                timestamps=query.timestamps,
                aborted=mine,
            )


def between(log: Replica, query: LogQuery) -> Bounds:
    """Return the range of offsets to be read from a log."""
    low = query.starting.get(log.partition, INT64_MIN)
    bounds = Bounds(low=low)
    if log.partition in query.ending:
        bounds &= Bounds(high=query.ending[log.partition] - 1)
    starting = query.starting_timestamps.get(log.partition, query.starting_timestamp)
    if starting is not None:
        first = _first_as_late(log, starting)
        if first is None and query.needs_start:
            raise ArgumentError(
                f"{log.partition} has no record at or after the starting timestamp {starting}"
            )
        bounds &= Bounds(0, -1) if first is None else Bounds(low=first)
    ending = query.ending_timestamps.get(log.partition, query.ending_timestamp)
    if ending is not None:
        first = _first_as_late(log, ending)
        bounds &= EVERY if first is None else Bounds(high=first - 1)
    return bounds


def _first_as_late(log: Replica, timestamp: int) -> int | None:
    for segment in log.segments:
        if segment is log.segments[-1] or not _is_earlier(segment, timestamp):
            offset = first_as_late(segment, timestamp)
            if offset is not None:
                return offset
    return None


def _is_earlier(segment: LogSegment, timestamp: int) -> bool:
    """Return whether all records in a segment are certainly earlier; false for the last segment."""
    if timestamp == INT64_MIN:
        return False
    latest = latest_time(segment)
    return latest is not None and latest < timestamp


def _ranges(segment: LogSegment, bounds: Bounds, size: int) -> Iterator[tuple[int, int]]:
    """Return the byte ranges of a segment to be read. Each range consists of complete batches."""
    start, stop = 0, segment.log.size
    is_bounded = bounds.low > segment.base_offset or bounds.ends[1] is not None
    if not is_bounded and stop <= size:
        yield start, stop
        return
    index = offset_index(segment)
    with open_file(segment.log) as log:
        if is_bounded:
            start = start_of(segment, index, log, bounds.low)
            stop = stop_of(segment, index, log, bounds.high)
        positions = cuts(segment, index, log, range(start, stop), size)
    yield from zip([start, *positions], [*positions, stop], strict=True)
