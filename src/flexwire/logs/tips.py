"""Where logs end: the leader epoch of the last batch, and the offset after it.

Kafka compares two logs by the epoch first and by the offset then, as records of an older epoch that
another leader did not have are cut off (KIP-101).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from flexwire.logs.files import open_file
from flexwire.logs.log_segment import BatchPlace, Damage, walk
from flexwire.logs.positions import last_indexed
from flexwire.wire.batch_layout import HEADER, HEADER_SIZE, RECORD_BATCH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.logs.log_segment import LogFile
    from flexwire.logs.segment import Segment

UNKNOWN_EPOCH: Final = -1
"""The leader epoch of a message set, which has none, and of a log without a batch."""


class Tip(NamedTuple):
    """The end of a log: the leader epoch of its last batch, and the offset where it goes on."""

    epoch: int
    end: int


def tip_of(segments: Sequence[Segment]) -> Tip:
    """Return where a log ends, up to the last whole batch; its segments are in order."""
    end = segments[-1].base_offset
    for segment in reversed(segments):
        with open_file(segment.log) as log:
            last: BatchPlace | None = None
            for place in walk(log, last_indexed(segment, log)):
                if isinstance(place, Damage):
                    break
                last = place
            if last is not None:
                return Tip(epoch_of(log, last), max(end, last.last_offset + 1))
    return Tip(UNKNOWN_EPOCH, end)


def epoch_of(log: LogFile, place: BatchPlace) -> int:
    """Return the leader epoch of a batch."""
    if place.magic != RECORD_BATCH:
        return UNKNOWN_EPOCH
    _, _, epoch, *_ = HEADER.unpack(log.read(place.position, HEADER_SIZE))
    return int(epoch)
