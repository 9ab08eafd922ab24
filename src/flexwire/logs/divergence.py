"""Where replicas of a partition differ: the records that Kafka would cut off from one of them.

All records of a leader epoch come from one leader. So two logs are alike up to where the last epoch
that both began at the same offset ends in one of them (KIP-101). What follows there is looked up in
the headers of batches, as compaction may have removed whatever an epoch began with.
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
    """Replicas of a partition that differ, and the one of them that is read.

    ``brokers`` are those that `meta.properties` names. All have an entry for each replica; the one
    that is read comes first. ``first_difference`` is the first offset at which two of them have a
    record of another leader epoch.
    """

    partition: Partition
    directories: tuple[str, ...]
    brokers: tuple[int | None, ...]
    tips: tuple[LogTip, ...]
    first_difference: int


def divergences(sources: Sequence[InputFile]) -> list[Divergence]:
    """Return the partitions of which several replicas are among the files, and differ.

    Raises `StorageError` for files that are gone.
    """
    by_partition: dict[Partition, list[Replica]] = defaultdict(list)
    for one in logs_among(sources, LogQuery(replicas="all")):
        if not one.is_tiered:
            by_partition[one.partition].append(one)
    if all(len(replicas) == 1 for replicas in by_partition.values()):
        return []
    read = {one.partition: one for one in logs_among(sources, LogQuery()) if not one.is_tiered}
    found = []
    for partition, replicas in sorted(by_partition.items()):
        first = read[partition]
        others = [one for one in replicas if one.directory != first.directory]
        offsets = [first_difference(first, other) for other in others]
        known = [one for one in offsets if one is not None]
        if known:
            ordered = [first, *others]
            found.append(
                Divergence(
                    partition,
                    tuple(one.directory for one in ordered),
                    tuple(broker_of(one.beside) for one in ordered),
                    tuple(tip_of(one.segments) for one in ordered),
                    min(known),
                )
            )
    return found


def first_difference(one: Replica, other: Replica) -> int | None:
    """Return the first offset at which two logs have records of another epoch; None for none."""
    start = max(_alike_to(one, other), one.first, other.first)
    mine, theirs = _epochs_from(one, start), _epochs_from(other, start)
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


def _alike_to(one: Replica, other: Replica) -> int:
    """Return an offset below which two logs are alike; 0 where no checkpoint says it."""
    mine, theirs = _began(one), _began(other)
    common = [epoch for epoch, start in mine.items() if theirs.get(epoch) == start]
    if not common:
        return 0
    last = max(common)
    ends = [
        min((start for epoch, start in began.items() if epoch > last), default=None)
        for began in (mine, theirs)
    ]
    tips = (tip_of(log.segments).end for log in (one, other))
    return min(tip if end is None else end for end, tip in zip(ends, tips, strict=True))


def _began(log: Replica) -> dict[int, int]:
    """Return where each leader epoch of a log begins; empty where no sound file says it."""
    try:
        [source] = list_files([f"{log.directory}/{_EPOCHS}"], _is_epochs, "is a checkpoint")
    except CaptureError:
        return {}
    with open_file(source) as file:
        entries = [*read_checkpoint(file)]
    if any(isinstance(one, Damage) for one in entries):
        return {}
    return {one["epoch"]: one["startOffset"] for one in entries if isinstance(one, dict)}


def _is_epochs(name: str) -> bool:
    return name == _EPOCHS


class _BatchOffsets(NamedTuple):
    """The offsets of a batch, and its leader epoch."""

    first: int
    last: int
    epoch: int


def _epochs_from(log: Replica, offset: int) -> Iterator[_BatchOffsets]:
    """Return the batches of a log from an offset on."""
    following = [*(one.base_offset for one in log.segments[1:]), None]
    for segment, end in zip(log.segments, following, strict=True):
        if end is not None and end <= offset:
            continue
        with open_file(segment.log) as file:
            for place in walk(file, start_of(segment, offset_index(segment), file, offset)):
                if isinstance(place, BatchPlace) and place.last_offset >= offset:
                    yield _BatchOffsets(place.base_offset, place.last_offset, epoch_of(file, place))
