"""Which transactions of a log were aborted, and which have not ended.

A broker keeps an index of aborted transactions beside each segment that has the end of one, and a
segment without it has none; a segment that lies there without any index was copied alone, and its
own control batches say it. What has not ended is what the newest producer snapshot has open and the
batches after it do not end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from flexwire.capture.log_segment import Damage, place_at, read_batch
from flexwire.capture.log_state import read_producer_snapshot, read_transaction_index
from flexwire.capture.logs.files import open_file
from flexwire.capture.logs.positions import offset_index, start_of
from flexwire.capture.logs.reading import Aborted, LogPiece, read_headers
from flexwire.errors import CaptureError, DecodeError, RecordError
from flexwire.protocol.control_records import decode_control_record
from flexwire.wire.batch_layout import CONTROL_MASK, TRANSACTIONAL_MASK
from flexwire.wire.limits import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flexwire.capture.logs.replica import Replica
    from flexwire.capture.logs.segment import Segment
    from flexwire.columnar.records import BatchHeaders
    from flexwire.storage.source import Source

_ABORT = 0


def transactions_of(replica: Replica) -> tuple[tuple[Aborted, ...], int]:
    """Give the aborted transactions, and the first offset that may be of one without an end.

    Raises `CaptureError` where an index or a snapshot is damaged.
    """
    aborted = set[Aborted]()
    ends = _Ends({})
    alone = [one for one in replica.segments if not (one.index or one.time_index)]
    start = 0
    if replica.snapshots and not alone:
        start, snapshot = replica.snapshots[-1]
        ends = _Ends(_open_in(snapshot))
    for segment, following in zip(replica.segments, [*replica.segments[1:], None], strict=True):
        if segment.transaction_index is not None:
            aborted.update(_indexed(segment.transaction_index))
        if following is None or following.base_offset > start:
            ends.walk(replica, segment, start)
    for index in replica.later_transactions:
        aborted.update(_indexed(index))
    if alone:
        # The walk began with the first segment, so it has heard of all.
        aborted.update(ends.aborted)
    return tuple(sorted(aborted)), min(ends.open.values(), default=INT64_MAX)


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
