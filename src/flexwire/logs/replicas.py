"""The log of a partition in one directory, where it ends, and which of several Kafka would keep.

Kafka compares two logs by the epoch first and by the offset then, as records of an older epoch that
another leader did not have are cut off (KIP-101).

The leader's log is the partition, and replicas in the ISR have all of it. The log of the cluster's
metadata says who these are. Where it is not at hand, or older than the replicas, the log with the
higher leader epoch is the newer one, and of two with the same epoch the longer one. The longest log
may be that of a leader that died, and whose last records nobody else had.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from flexwire.errors import CaptureError
from flexwire.logs.checkpoints import broker_of
from flexwire.logs.files import open_file
from flexwire.logs.leadership import Leaderships
from flexwire.logs.positions import last_indexed
from flexwire.logs.segments import BatchPlace, Damage, walk
from flexwire.protocol.credentials import METADATA_TOPIC
from flexwire.storage.filesystems import shown
from flexwire.storage.place import Place
from flexwire.wire.batch_layout import HEADER, HEADER_SIZE, RECORD_BATCH

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from flexwire.logs.files import Partition, Segment
    from flexwire.logs.leadership import Leadership
    from flexwire.logs.segments import LogFile
    from flexwire.storage.source import Source


@dataclass(frozen=True, slots=True)
class Replica:
    """The log of a partition in one directory: its segments in order, and producer snapshots.

    ``later_transactions`` are indexes of segments after these, where not all of a log was named.
    The records before ``start`` were deleted.
    """

    partition: Partition
    directory: str
    is_tiered: bool
    segments: tuple[Segment, ...]
    snapshots: tuple[tuple[int, Source], ...] = ()
    later_transactions: tuple[Source, ...] = ()
    start: int = 0

    @property
    def first(self) -> int:
        """The first offset that it may have."""
        return max(self.segments[0].base_offset, self.start)

    @property
    def beside(self) -> str:
        """The directory of all logs that this one is in."""
        return self.directory.rstrip("/").rpartition("/")[0]

    def __str__(self) -> str:
        return f"{self.partition} in {shown(self.directory)}"


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


_METADATA: Final = f"{METADATA_TOPIC}-0"


def best_of(replicas: Sequence[Replica], leadership: Leadership | None) -> Replica:
    """Return the replica that Kafka would go on with."""
    if len(replicas) == 1:
        return replicas[0]
    tips = {one.directory: tip_of(one.segments) for one in replicas}

    def by_tip(one: Replica) -> tuple[Tip, int]:
        # If two logs end alike, the one that begins first has more.
        return tips[one.directory], -one.segments[0].base_offset

    return max(in_step(replicas, tips, leadership), key=by_tip)


def in_step(
    replicas: Sequence[Replica], tips: Mapping[str, Tip], leadership: Leadership | None
) -> Sequence[Replica]:
    """Return the leader's replica, else those in the ISR, else all of them.

    All of them too where the metadata is older than the last records of a replica.
    """
    if leadership is None or leadership.epoch < max(one.epoch for one in tips.values()):
        return replicas
    brokers = {one.directory: broker_of(one.beside) for one in replicas}
    leader = [one for one in replicas if brokers[one.directory] == leadership.leader]
    isr = [one for one in replicas if brokers[one.directory] in leadership.isr]
    return leader or isr or replicas


def leaders_beside(
    replicas: Iterable[str], directories: Iterable[str]
) -> dict[Partition, Leadership]:
    """Return who leads each partition, by the newest log of the cluster's metadata.

    It is looked for among ``directories``, and beside those of ``replicas``. Empty where there is
    none, or where its state at its end is not known.
    """
    beside = {one.rstrip("/").rpartition("/")[0] for one in replicas}
    wanted = {one for one in directories if one.rpartition("/")[2] == _METADATA}
    named = {f"{one}/{_METADATA}" for one in beside}
    wanted |= {one for one in named if any(True for _ in Place(one).entries())}
    found: list[tuple[Tip, str, Leaderships]] = []
    for one in sorted(wanted):
        made = _leaderships(one)
        if made is not None:
            found.append((made[0], one, made[1]))
    return max(found, key=lambda one: one[:2])[2].by_partition() if found else {}


def _leaderships(directory: str) -> tuple[Tip, Leaderships] | None:
    """Read the metadata in a directory; None where what it adds up to is not known."""
    # That module finds logs by this room.
    from flexwire.logs.metadata import (  # noqa: PLC0415 - see above
        find_metadata,
        newest_base,
    )

    try:
        files = find_metadata(directory)
        base, epoch = newest_base(files)
    except CaptureError:
        return None
    made = Leaderships()
    made.read(source for name, source in files.snapshots if name == base.snapshot)
    made.read(files.segments, base.start)
    return Tip(epoch, base.end), made
