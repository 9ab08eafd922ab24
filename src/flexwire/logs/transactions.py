"""Which transactions of a log were aborted, and which have not ended.

A broker keeps an index of aborted transactions beside each segment that has the end of one, and a
segment without it has none; a segment that lies there without any index was copied alone, and its
own control batches say it. What has not ended is what the newest producer snapshot has open and the
batches after it do not end.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from flexwire.errors import CaptureError, DecodeError, RecordError
from flexwire.logs.files import open_file
from flexwire.logs.log_segment import Damage, place_at, read_batch
from flexwire.logs.log_state import read_producer_snapshot, read_transaction_index
from flexwire.logs.positions import offset_index, start_of
from flexwire.logs.reading import (
    Aborted,
    LogPiece,
    by_producer,
    in_aborted,
    read_headers,
)
from flexwire.protocol.record_types import decode_control_record
from flexwire.wire.batch_layout import CONTROL_MASK, TRANSACTIONAL_MASK
from flexwire.wire.limits import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from flexwire.columnar.records import BatchHeaders
    from flexwire.logs.replica import Replica
    from flexwire.logs.segment import Segment
    from flexwire.storage.source import Source

    Words = np.ndarray[Any, Any]

_ABORT = 0


class Outcome(IntEnum):
    """What became of the transaction of a batch."""

    NONE = 0
    """It is in no transaction, or is the control batch that ends one."""
    COMMITTED = 1
    ABORTED = 2
    OPEN = 3
    """It had not ended where the log ends."""
    UNKNOWN = 4
    """An index, a snapshot or a control batch that says it is damaged."""


@dataclass(frozen=True)
class Transactions:
    """How the transactions of a log ended.

    Attributes:
        aborted: the aborted transactions.
        opened: the first offset of each transaction that has no end, by its producer.
        is_known: false where what says it is damaged.
    """

    aborted: tuple[Aborted, ...] = ()
    opened: Mapping[int, int] = field(default_factory=dict)
    is_known: bool = True

    @cached_property
    def _by_producer(self) -> dict[int, list[Aborted]]:
        return by_producer(self.aborted)

    def outcomes(self, attributes: Words, producers: Words, base_offsets: Words) -> Words:
        """Return the `Outcome` of each of some batches."""
        is_of_transaction = attributes & (TRANSACTIONAL_MASK | CONTROL_MASK) == TRANSACTIONAL_MASK
        known = Outcome.COMMITTED if self.is_known else Outcome.UNKNOWN
        found: Words = np.where(is_of_transaction, np.int64(known), np.int64(Outcome.NONE))
        if not self.is_known or not (self.aborted or self.opened):
            return found
        own = np.where(is_of_transaction, producers, -1)
        found[in_aborted(own, base_offsets, self._by_producer)] = Outcome.ABORTED
        for producer, first in self.opened.items():
            found[(own == producer) & (base_offsets >= first)] = Outcome.OPEN
        return found


def known_transactions(replica: Replica) -> Transactions:
    """Return how the transactions of a log ended; not known where what says it is damaged."""
    try:
        return read_transactions(replica)
    except CaptureError:
        return Transactions(is_known=False)


def transactions_of(replica: Replica) -> tuple[tuple[Aborted, ...], int]:
    """Give the aborted transactions, and the first offset that may be of one without an end.

    Raises `CaptureError` where an index or a snapshot is damaged.
    """
    found = read_transactions(replica)
    return found.aborted, min(found.opened.values(), default=INT64_MAX)


def read_transactions(replica: Replica) -> Transactions:
    """Return how the transactions of a log ended.

    Raises `CaptureError` where an index, a snapshot or a control batch is damaged.
    """
    aborted = set[Aborted]()
    ends = _Ends({})
    is_alone = _is_alone(replica)
    start = 0
    if replica.snapshots and not is_alone:
        start, snapshot = replica.snapshots[-1]
        ends = _Ends(_open_in(snapshot))
    for segment in replica.segments:
        if segment.transaction_index is not None:
            aborted.update(_indexed(segment.transaction_index))
    for segment in walked(replica):
        ends.walk(replica, segment, start)
    for index in replica.later_transactions:
        aborted.update(_indexed(index))
    if is_alone:
        # The walk began with the first segment, so it has heard of all.
        aborted.update(ends.aborted)
    return Transactions(tuple(sorted(aborted)), ends.open)


def walked(replica: Replica) -> tuple[Segment, ...]:
    """Return the segments whose headers `read_transactions` reads."""
    start = replica.snapshots[-1][0] if replica.snapshots and not _is_alone(replica) else 0
    nexts = [*(one.base_offset for one in replica.segments[1:]), INT64_MAX]
    both = zip(replica.segments, nexts, strict=True)
    return tuple(segment for segment, following in both if following > start)


def _is_alone(replica: Replica) -> bool:
    """Return whether a segment lies there without the indexes that a broker keeps beside it."""
    return any(not (one.index or one.time_index) for one in replica.segments)


def _indexed(index: Source) -> Iterator[Aborted]:
    with open_file(index) as file:
        for entry in _sound(index, read_transaction_index(file)):
            yield Aborted(entry["producerId"], entry["firstOffset"], entry["lastOffset"])


def _open_in(snapshot: Source) -> dict[int, int]:
    """Give the first offset of each transaction that a snapshot has open, by producer."""
    with open_file(snapshot) as file:
        entries = list(_sound(snapshot, read_producer_snapshot(file)))
    return {
        one["producerId"]: one["currentTxnFirstOffset"]
        for one in entries
        if one["currentTxnFirstOffset"] >= 0
    }


def _sound(source: Source, entries: Iterator[dict[str, Any] | Damage]) -> Iterator[dict[str, Any]]:
    for entry in entries:
        if isinstance(entry, Damage):
            raise CaptureError(entry.reason, source=source.name, offset=entry.position)
        yield entry


class _Ends:
    """Hears of batches in order, and says what the transactions in them came to."""

    def __init__(self, first_offsets: dict[int, int]) -> None:
        self.open = first_offsets
        self.aborted: list[Aborted] = []

    def walk(self, replica: Replica, segment: Segment, offset: int) -> None:
        """Hear of the batches of a segment from an offset on."""

        def hear(at: int, headers: BatchHeaders) -> None:
            rows = headers.attributes & TRANSACTIONAL_MASK != 0
            rows &= headers.base_offsets >= offset
            columns = (headers.positions, headers.base_offsets, headers.producer_ids)
            is_control = headers.attributes[rows] & CONTROL_MASK != 0
            for position, base, producer, ends in zip(
                *(one[rows].tolist() for one in columns), is_control.tolist(), strict=True
            ):
                if not ends:
                    self.open.setdefault(producer, base)
                    continue
                first = self.open.pop(producer, None)
                if first is not None and _is_abort(segment.log, at + position):
                    self.aborted.append(Aborted(producer, first, base))

        with open_file(segment.log) as log:
            start = start_of(segment, offset_index(segment), log, offset)
        source = segment.log
        piece = LogPiece(
            replica.partition, replica.directory, source, start, source.size, is_end=True
        )
        read_headers(piece, hear)


def _is_abort(source: Source, position: int) -> bool:
    with open_file(source) as log:
        try:
            records = read_batch(log, place_at(log, position)).records
            # Compaction may have removed the record of one whose transaction has none left.
            kinds = [decode_control_record(one.key, one.value).type for one in records]
            return kinds[:1] == [_ABORT]
        except (RecordError, DecodeError) as error:
            reason = f"a control batch that does not say whether it aborts: {error}"
            raise CaptureError(reason, source=source.name, offset=position) from None
