"""Find logs, and choose the replica of a partition with which Kafka would continue.

Kafka compares two logs first by leader epoch and then by offset. Records of an older epoch that the
next leader did not have are removed (KIP-101).

The leader's log is authoritative, and replicas in the ISR contain all of its records. The cluster's
metadata log shows the leader and the ISR. If the metadata log is missing or older than the
replicas, the log with the higher leader epoch is newer. If two logs have the same epoch, the longer
log is newer. The length of a log alone proves nothing: the log may belong to a failed leader, and
perhaps no other broker had its last records.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from flexwire.errors import CaptureError
from flexwire.logs.checkpoints import broker_of
from flexwire.logs.files import LOG_NAMES, is_log_file, open_file
from flexwire.logs.leadership import Leaderships
from flexwire.logs.metadata import find_metadata, newest_base
from flexwire.logs.positions import last_indexed
from flexwire.logs.replicas import Replica, replicas_among
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
    """Return the logs in ``paths`` that ``query`` selects: one per partition, or all replicas.

    A path is a segment, a partition's directory, a directory above these, a pattern, or the URL of
    any of these. Raises `CaptureError` if there is no log, and `StorageError` if a path cannot be
    read.
    """
    return logs_among(list_files(paths, is_log_file, LOG_NAMES), query)


def logs_among(sources: Iterable[InputFile], query: LogQuery) -> list[Replica]:
    """Return the logs among the listed files, as `find_logs` does."""
    listed = [*sources]
    replicas = replicas_among(listed, query)
    if query.replicas == "all":
        return replicas
    return _one_each(replicas, {source.url.rpartition("/")[0] for source in listed})


def _one_each(all_replicas: list[Replica], directories: Iterable[str]) -> list[Replica]:
    """Return one log per partition, chosen as Kafka would, with older segments from a tier."""
    by_partition: dict[Partition, list[Replica]] = defaultdict(list)
    for replica in all_replicas:
        by_partition[replica.partition].append(replica)
    several = [
        replica.directory
        for replicas in by_partition.values()
        for replica in replicas
        if not replica.is_tiered and sum(not other.is_tiered for other in replicas) > 1
    ]
    leaders = leaders_beside(several, directories) if several else {}
    chosen = []
    for partition, replicas in by_partition.items():
        brokers = [replica for replica in replicas if not replica.is_tiered]
        log = best_of(brokers or replicas, leaders.get(partition))
        tiers = [replica for replica in replicas if replica.is_tiered and replica is not log]
        # A broker that is not the leader may record the new start later.
        log = replace(log, start=max(replica.start for replica in replicas))
        chosen.append(_with_tier(log, best_of(tiers, None)) if tiers else log)
    return chosen


def _with_tier(log: Replica, tier: Replica) -> Replica:
    first = log.segments[0].base_offset
    older = [
        replace(segment, below=first if segment.below is None else min(first, segment.below))
        for segment in tier.segments
        if segment.base_offset < first
    ]
    return replace(log, segments=(*older, *log.segments))


UNKNOWN_EPOCH: Final = -1
"""The leader epoch that is assumed for an empty log, and for a message set, which contains none."""


class LogTip(NamedTuple):
    """The end of a log: the leader epoch of its last batch, and the next offset."""

    epoch: int
    end: int


def tip_of(segments: Sequence[LogSegment]) -> LogTip:
    """Return the end of a log after its last complete batch. ``segments`` must be in order."""
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
    """Return the leader epoch in a batch."""
    if place.magic != RECORD_BATCH:
        return UNKNOWN_EPOCH
    _, _, epoch, *_ = HEADER.unpack(log.read(place.position, HEADER_SIZE))
    return int(epoch)


_METADATA: Final = f"{METADATA_TOPIC}-0"


def best_of(replicas: Sequence[Replica], leadership: Leadership | None) -> Replica:
    """Return the replica with which Kafka would continue."""
    if len(replicas) == 1:
        return replicas[0]
    tips = {replica.directory: tip_of(replica.segments) for replica in replicas}

    def by_tip(replica: Replica) -> tuple[LogTip, int]:
        # If two logs have the same end, the one that starts earlier contains more records.
        return tips[replica.directory], -replica.segments[0].base_offset

    return max(in_step(replicas, tips, leadership), key=by_tip)


def in_step(
    replicas: Sequence[Replica], tips: Mapping[str, LogTip], leadership: Leadership | None
) -> Sequence[Replica]:
    """Return the leader's replica, or else the replicas in the ISR, or else all replicas.

    All replicas are also returned if the metadata is older than the last records of any replica.
    """
    if leadership is None or leadership.epoch < max(tip.epoch for tip in tips.values()):
        return replicas
    brokers = {replica.directory: broker_of(replica.beside) for replica in replicas}
    leader = [replica for replica in replicas if brokers[replica.directory] == leadership.leader]
    isr = [replica for replica in replicas if brokers[replica.directory] in leadership.isr]
    return leader or isr or replicas


def leaders_beside(
    replicas: Iterable[str], directories: Iterable[str]
) -> dict[Partition, Leadership]:
    """Return the leader of each partition, according to the cluster's newest metadata log.

    The metadata log is searched for among ``directories``, and next to the directories of
    ``replicas``. The result is empty if no metadata log is found, or if its final state is unknown.
    """
    beside = {replica.rstrip("/").rpartition("/")[0] for replica in replicas}
    metadata = {directory for directory in directories if directory.rpartition("/")[2] == _METADATA}
    named = {f"{parent}/{_METADATA}" for parent in beside}
    metadata |= {path for path in named if any(True for _ in OutputDirectory(path).entries())}
    states: list[tuple[LogTip, str, Leaderships]] = []
    for directory in sorted(metadata):
        state = _leaderships(directory)
        if state is not None:
            states.append((state[0], directory, state[1]))
    return max(states, key=lambda state: state[:2])[2].by_partition() if states else {}


def _leaderships(directory: str) -> tuple[LogTip, Leaderships] | None:
    """Read the metadata log in a directory. Return None if the final state is unknown."""
    try:
        files = find_metadata(directory)
        base, epoch = newest_base(files)
    except CaptureError:
        return None
    leaderships = Leaderships()
    leaderships.read(source for name, source in files.snapshots if name == base.snapshot)
    leaderships.read(files.segments, base.start)
    return LogTip(epoch, base.end), leaderships
