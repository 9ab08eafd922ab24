"""Which logs there are, and which of several replicas of a partition Kafka would go on with.

Kafka compares two logs by the epoch first and by the offset then, as records of an older epoch that
another leader did not have are cut off (KIP-101).

The leader's log is the partition, and replicas in the ISR have all of it. The log of the cluster's
metadata says who these are. Where it is not at hand, or older than the replicas, the log with the
higher leader epoch is the newer one, and of two with the same epoch the longer one. The longest log
may be that of a leader that died, and whose last records nobody else had.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from flexwire.errors import CaptureError
from flexwire.logs.checkpoints import broker_of
from flexwire.logs.files import is_log_file, open_file
from flexwire.logs.leadership import Leaderships
from flexwire.logs.metadata import find_metadata, newest_base
from flexwire.logs.positions import last_indexed
from flexwire.logs.replicas import WORDS, Replica, replicas_among
from flexwire.logs.segments import BatchPlace, Damage, walk
from flexwire.protocol.credentials import METADATA_TOPIC
from flexwire.storage.file_search import list_files
from flexwire.storage.output_directory import OutputDirectory
from flexwire.wire.batch_layout import HEADER, HEADER_SIZE, RECORD_BATCH

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from flexwire.logs.files import LogQuery, LogSegment, Partition
    from flexwire.logs.leadership import Leadership
    from flexwire.logs.segments import LogFile
    from flexwire.storage.input_file import InputFile


def find_logs(paths: Iterable[str | Path], query: LogQuery) -> list[Replica]:
    """Give the logs in ``paths`` that ``query`` wants, one for each partition unless it wants all.

    A path is a segment, a directory of a partition or one above such directories, a pattern, or
    the URL of any of these. Raises `CaptureError` where there is no log, and `StorageError`.
    """
    return logs_among(list_files(paths, is_log_file, WORDS), query)


def logs_among(sources: Iterable[InputFile], query: LogQuery) -> list[Replica]:
    """Do the same with files that were listed."""
    listed = [*sources]
    found = replicas_among(listed, query)
    if query.replicas == "all":
        return found
    return _one_each(found, {one.url.rpartition("/")[0] for one in listed})


def _one_each(found: list[Replica], directories: Iterable[str]) -> list[Replica]:
    """Return one log of each partition, as Kafka would go on with it, and what a tier has more."""
    by_partition: dict[Partition, list[Replica]] = defaultdict(list)
    for one in found:
        by_partition[one.partition].append(one)
    several = [
        one.directory
        for replicas in by_partition.values()
        for one in replicas
        if not one.is_tiered and sum(not other.is_tiered for other in replicas) > 1
    ]
    leaders = leaders_beside(several, directories) if several else {}
    chosen = []
    for partition, replicas in by_partition.items():
        brokers = [one for one in replicas if not one.is_tiered]
        log = best_of(brokers or replicas, leaders.get(partition))
        tiers = [one for one in replicas if one.is_tiered and one is not log]
        # A broker that does not lead may write it down later.
        log = replace(log, start=max(one.start for one in replicas))
        chosen.append(_with_tier(log, best_of(tiers, None)) if tiers else log)
    return chosen


def _with_tier(log: Replica, tier: Replica) -> Replica:
    first = log.segments[0].base_offset
    older = [
        replace(one, below=first if one.below is None else min(first, one.below))
        for one in tier.segments
        if one.base_offset < first
    ]
    return replace(log, segments=(*older, *log.segments))


UNKNOWN_EPOCH: Final = -1
"""The leader epoch of a message set, which has none, and of a log without a batch."""


class LogTip(NamedTuple):
    """The end of a log: the leader epoch of its last batch, and the offset where it goes on."""

    epoch: int
    end: int


def tip_of(segments: Sequence[LogSegment]) -> LogTip:
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
                return LogTip(epoch_of(log, last), max(end, last.last_offset + 1))
    return LogTip(UNKNOWN_EPOCH, end)


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

    def by_tip(one: Replica) -> tuple[LogTip, int]:
        # If two logs end alike, the one that begins first has more.
        return tips[one.directory], -one.segments[0].base_offset

    return max(in_step(replicas, tips, leadership), key=by_tip)


def in_step(
    replicas: Sequence[Replica], tips: Mapping[str, LogTip], leadership: Leadership | None
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
    wanted |= {one for one in named if any(True for _ in OutputDirectory(one).entries())}
    found: list[tuple[LogTip, str, Leaderships]] = []
    for one in sorted(wanted):
        made = _leaderships(one)
        if made is not None:
            found.append((made[0], one, made[1]))
    return max(found, key=lambda one: one[:2])[2].by_partition() if found else {}


def _leaderships(directory: str) -> tuple[LogTip, Leaderships] | None:
    """Read the metadata in a directory; None where what it adds up to is not known."""
    try:
        files = find_metadata(directory)
        base, epoch = newest_base(files)
    except CaptureError:
        return None
    made = Leaderships()
    made.read(source for name, source in files.snapshots if name == base.snapshot)
    made.read(files.segments, base.start)
    return LogTip(epoch, base.end), made
