"""Find where the replicas of a partition differ, and which records Kafka would remove.

All records of a leader epoch come from the same leader. Two logs are therefore equal up to the end
of the last epoch that began at the same offset in both (KIP-101). The other batches are compared by
their headers, because compaction may have removed the beginning of an epoch.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Final, NamedTuple

from flexwire.errors import CaptureError
from flexwire.logs.checkpoints import broker_of
from flexwire.logs.discovery import epoch_of, logs_among, tip_of
from flexwire.logs.files import LogQuery, open_file
from flexwire.logs.positions import offset_index, start_of
from flexwire.logs.segments import BatchPlace, Damage, read_checkpoint, walk
from flexwire.storage.file_search import list_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from flexwire.logs.discovery import LogTip
    from flexwire.logs.files import Partition
    from flexwire.logs.replicas import Replica
    from flexwire.storage.input_file import InputFile

_EPOCHS: Final = "leader-epoch-checkpoint"


class Divergence(NamedTuple):
    """The differing replicas of a partition. The first one is the replica that is read.

    ``brokers`` contains the broker ids from `meta.properties`. Each tuple contains one entry per
    replica. ``first_difference`` is the first offset at which two replicas have records of
    different leader epochs.
    """

    partition: Partition
    directories: tuple[str, ...]
    brokers: tuple[int | None, ...]
    tips: tuple[LogTip, ...]
    first_difference: int


def divergences(sources: Sequence[InputFile]) -> list[Divergence]:
    """Return the partitions that have several replicas among the files, if these replicas differ.

    Raises `StorageError` for files that no longer exist.
    """
    by_partition: dict[Partition, list[Replica]] = defaultdict(list)
    for replica in logs_among(sources, LogQuery(replicas="all")):
        if not replica.is_tiered:
            by_partition[replica.partition].append(replica)
    if all(len(replicas) == 1 for replicas in by_partition.values()):
        return []
    read = {log.partition: log for log in logs_among(sources, LogQuery()) if not log.is_tiered}
    differences = []
    for partition, replicas in sorted(by_partition.items()):
        first = read[partition]
        others = [replica for replica in replicas if replica.directory != first.directory]
        offsets = [first_difference(first, other) for other in others]
        known_offsets = [offset for offset in offsets if offset is not None]
        if known_offsets:
            ordered = [first, *others]
            differences.append(
                Divergence(
                    partition,
                    tuple(replica.directory for replica in ordered),
                    tuple(broker_of(replica.beside) for replica in ordered),
                    tuple(tip_of(replica.segments) for replica in ordered),
                    min(known_offsets),
                )
            )
    return differences


def first_difference(log: Replica, other: Replica) -> int | None:
    """Return the first offset at which two logs have records of different epochs, or None."""
    start = max(_alike_to(log, other), log.first, other.first)
    mine, theirs = _epochs_from(log, start), _epochs_from(other, start)
    left, right = next(mine, None), next(theirs, None)
    while left is not None and right is not None:
        first = max(left.first, right.first)
        if first <= min(left.last, right.last) and left.epoch != right.epoch:
            return max(first, start)
        if left.last <= right.last:
            left = next(mine, None)
        else:
            right = next(theirs, None)
    return None


def _alike_to(first: Replica, other: Replica) -> int:
    """Return an offset below which two logs are equal, or 0 if no checkpoint shows this."""
    mine, theirs = _began(first), _began(other)
    common = [epoch for epoch, start in mine.items() if theirs.get(epoch) == start]
    if not common:
        return 0
    last = max(common)
    ends = [
        min((start for epoch, start in began.items() if epoch > last), default=None)
        for began in (mine, theirs)
    ]
    tips = (tip_of(log.segments).end for log in (first, other))
    return min(tip if end is None else end for end, tip in zip(ends, tips, strict=True))


def _began(log: Replica) -> dict[int, int]:
    """Return the start of each leader epoch in a log, or nothing if no valid file lists them."""
    try:
        [source] = list_files([f"{log.directory}/{_EPOCHS}"], _is_epochs, "is a checkpoint")
    except CaptureError:
        return {}
    with open_file(source) as file:
        entries = [*read_checkpoint(file)]
    if any(isinstance(entry, Damage) for entry in entries):
        return {}
    return {entry["epoch"]: entry["startOffset"] for entry in entries if isinstance(entry, dict)}


def _is_epochs(name: str) -> bool:
    return name == _EPOCHS


class _BatchOffsets(NamedTuple):
    """The offsets and the leader epoch of a batch."""

    first: int
    last: int
    epoch: int


def _epochs_from(log: Replica, offset: int) -> Iterator[_BatchOffsets]:
    """Yield the batches of a log, starting at an offset."""
    following = [*(later.base_offset for later in log.segments[1:]), None]
    for segment, end in zip(log.segments, following, strict=True):
        if end is not None and end <= offset:
            continue
        with open_file(segment.log) as file:
            for place in walk(file, start_of(segment, offset_index(segment), file, offset)):
                if isinstance(place, BatchPlace) and place.last_offset >= offset:
                    yield _BatchOffsets(place.base_offset, place.last_offset, epoch_of(file, place))
