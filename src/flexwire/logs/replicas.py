"""The log of a partition in one directory: the files that a broker would load when it starts.

A broker deletes files whose names end in ``.deleted`` or ``.cleaned``. Files whose names end in
``.swap`` replace the segments in their range, unless a ``.cleaned`` file has the same or a lower
base offset.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from flexwire.errors import CaptureError
from flexwire.logs.checkpoints import log_starts
from flexwire.logs.files import (
    CLEANED,
    INDEX,
    LOG,
    LOG_NAMES,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TRANSACTION_INDEX,
    FileName,
    LogSegment,
    Partition,
    is_log_file,
    is_set_aside,
    parse_directory,
    parse_file,
)
from flexwire.logs.positions import end_offset
from flexwire.storage.file_search import list_files
from flexwire.storage.filesystems import shown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexwire.logs.files import LogQuery
    from flexwire.storage.input_file import InputFile

    Named = dict[FileName, InputFile]


@dataclass(frozen=True, slots=True)
class Replica:
    """The log of a partition in one directory: its segments in order, and its producer snapshots.

    ``later_transactions`` contains the indexes of later segments, if the user specified only a part
    of a log. The records before ``start`` have been deleted.
    """

    partition: Partition
    directory: str
    is_tiered: bool
    segments: tuple[LogSegment, ...]
    snapshots: tuple[tuple[int, InputFile], ...] = ()
    later_transactions: tuple[InputFile, ...] = ()
    start: int = 0

    @property
    def first(self) -> int:
        """The lowest offset that the log may still contain."""
        return max(self.segments[0].base_offset, self.start)

    @property
    def beside(self) -> str:
        """The directory that contains this log and the broker's other logs."""
        return self.directory.rstrip("/").rpartition("/")[0]

    def __str__(self) -> str:
        return f"{self.partition} in {shown(self.directory)}"


def replicas_among(sources: Iterable[InputFile], query: LogQuery) -> list[Replica]:
    """Return the logs among the listed files that ``query`` selects, one for each directory."""
    directories: dict[str, Named] = defaultdict(dict)
    for source in sources:
        _add(directories, source)
    for directory, files in directories.items():
        if all(name.kind == LOG for name in files):
            # The user specified single segments rather than their directory. The files next to
            # these segments are also needed.
            beside: dict[str, Named] = defaultdict(dict)
            for source in list_files([directory], is_log_file, LOG_NAMES):
                _add(beside, source)
            files |= {
                name: source for name, source in beside[directory].items() if name.kind != LOG
            }
    replicas = [
        log
        for directory, files in sorted(directories.items())
        for log in _logs_in(directory, files, query)
    ]
    return replicas if query.includes_deleted else _started(replicas)


def _started(replicas: list[Replica]) -> list[Replica]:
    """Return the logs, with their start offsets.

    The files in a tier have no start offset, and precede the files of a broker.
    """
    brokers = {
        replica.directory.rpartition("/")[0] for replica in replicas if not replica.is_tiered
    }
    starts = {directory: log_starts(directory) for directory in sorted(brokers)}
    return [
        replace(
            replica,
            start=starts.get(replica.directory.rpartition("/")[0], {}).get(replica.partition, 0),
        )
        for replica in replicas
    ]


def _add(directories: dict[str, Named], source: InputFile) -> None:
    directory, _, name = source.url.rpartition("/")
    parsed = parse_file(name)
    if parsed is None:
        reason = f"expected the name of a log segment, such as {'0' * 20}.log"
        raise CaptureError(reason, source=shown(source.url))
    if not is_set_aside(directory.rpartition("/")[2]):
        directories[directory][parsed] = source


def _logs_in(directory: str, files: Named, query: LogQuery) -> Iterable[Replica]:
    """Yield the log in a directory, if the query selects it. A tier names files differently."""
    for is_tiered in (False, True):
        mine = {name: source for name, source in files.items() if bool(name.segment) is is_tiered}
        if not any(name.kind == LOG for name in mine):
            continue
        partition = parse_directory(directory.rpartition("/")[2], is_tiered=is_tiered)
        if partition is None:
            expected = "TOPIC-PARTITION" + ("-ID" if is_tiered else "")
            reason = f"log segments must be in a directory named {expected}"
            raise CaptureError(reason, source=shown(directory))
        if query.wants(partition):
            segments = _in_order(mine) if is_tiered else _as_started(mine)
            if segments:
                snapshots = sorted(
                    (name.base_offset, source)
                    for name, source in mine.items()
                    if name.kind == SNAPSHOT and not name.state
                )
                last = segments[-1].base_offset
                later = tuple(
                    source
                    for name, source in mine.items()
                    if name.kind == TRANSACTION_INDEX and not name.state and name.base_offset > last
                )
                yield Replica(partition, directory, is_tiered, segments, tuple(snapshots), later)


def _segments(files: Named, state: str) -> dict[tuple[int, str], LogSegment]:
    """Return the segments whose file names have a certain extension."""
    kinds: dict[tuple[int, str], dict[str, InputFile]] = defaultdict(dict)
    for name, source in files.items():
        if name.state == state:
            kinds[name.base_offset, name.segment][name.kind] = source
    return {
        key: LogSegment(
            key[0],
            files_by_kind[LOG],
            files_by_kind.get(INDEX),
            files_by_kind.get(TIME_INDEX),
            files_by_kind.get(TRANSACTION_INDEX),
        )
        for key, files_by_kind in kinds.items()
        if LOG in files_by_kind
    }


def _as_started(files: Named) -> tuple[LogSegment, ...]:
    """Return the segments that a broker has after it starts."""
    segments = _segments(files, "")
    cleaned = [name.base_offset for name in files if name.state == CLEANED]
    swapped = {
        key: segment
        for key, segment in _segments(files, SWAP).items()
        if not cleaned or key[0] < min(cleaned)
    }
    if swapped:
        low = min(offset for offset, _ in swapped)
        high = max(map(end_offset, swapped.values()))
        segments = {key: segment for key, segment in segments.items() if not low <= key[0] < high}
    return tuple(sorted((segments | swapped).values(), key=lambda segment: segment.base_offset))


def _in_order(files: Named) -> tuple[LogSegment, ...]:
    """Return the segments of a tier. Each segment ends where the next segment begins.

    If a segment was copied twice, the longer copy is used.
    """
    longest: dict[int, LogSegment] = {}
    for segment in _segments(files, "").values():
        other = longest.get(segment.base_offset)
        if other is None or segment.log.size > other.log.size:
            longest[segment.base_offset] = segment
    ordered = sorted(longest.values(), key=lambda segment: segment.base_offset)
    nexts = [segment.base_offset for segment in ordered[1:]]
    return tuple(
        replace(segment, below=below)
        for segment, below in zip(
            ordered, [*nexts, ordered[-1].below] if ordered else [], strict=True
        )
    )
