"""The log of a partition in one directory: its files, as a broker would take them when it starts.

It removes what ends in ``.deleted`` and ``.cleaned``; what ends in ``.swap`` has replaced the
segments in its range, unless a ``.cleaned`` file stands at or before it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from flexwire.errors import CaptureError
from flexwire.logs.checkpoints import log_starts
from flexwire.logs.files import (
    CLEANED,
    INDEX,
    LOG,
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

WORDS: Final = "has the name of a log segment"
"""What is true of the files of logs, as an error says it."""


@dataclass(frozen=True, slots=True)
class Replica:
    """The log of a partition in one directory: its segments in order, and producer snapshots.

    ``later_transactions`` are indexes of segments after these, where not all of a log was named.
    The records before ``start`` were deleted.
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
        """The first offset that it may have."""
        return max(self.segments[0].base_offset, self.start)

    @property
    def beside(self) -> str:
        """The directory of all logs that this one is in."""
        return self.directory.rstrip("/").rpartition("/")[0]

    def __str__(self) -> str:
        return f"{self.partition} in {shown(self.directory)}"


def replicas_among(sources: Iterable[InputFile], query: LogQuery) -> list[Replica]:
    """Return the logs that ``query`` wants among files that were listed, one for each directory."""
    directories: dict[str, Named] = defaultdict(dict)
    for source in sources:
        _add(directories, source)
    for directory, files in directories.items():
        if all(one.kind == LOG for one in files):
            # Segments were named, and not their directory: what is beside them is wanted too.
            beside: dict[str, Named] = defaultdict(dict)
            for source in list_files([directory], is_log_file, WORDS):
                _add(beside, source)
            files |= {
                name: source for name, source in beside[directory].items() if name.kind != LOG
            }
    found = [
        log
        for directory, files in sorted(directories.items())
        for log in _logs_in(directory, files, query)
    ]
    return found if query.includes_deleted else _started(found)


def _started(found: list[Replica]) -> list[Replica]:
    """Say where logs start; a tier's files do not, and go on before a broker's."""
    brokers = {one.directory.rpartition("/")[0] for one in found if not one.is_tiered}
    starts = {directory: log_starts(directory) for directory in sorted(brokers)}
    return [
        replace(one, start=starts.get(one.directory.rpartition("/")[0], {}).get(one.partition, 0))
        for one in found
    ]


def _add(directories: dict[str, Named], source: InputFile) -> None:
    directory, _, name = source.url.rpartition("/")
    parsed = parse_file(name)
    if parsed is None:
        reason = f"its name is not that of a log segment, as {'0' * 20}.log"
        raise CaptureError(reason, source=shown(source.url))
    if not is_set_aside(directory.rpartition("/")[2]):
        directories[directory][parsed] = source


def _logs_in(directory: str, files: Named, query: LogQuery) -> Iterable[Replica]:
    """Give the log in a directory, if it is wanted; a tier's files have names of their own."""
    for is_tiered in (False, True):
        mine = {one: source for one, source in files.items() if bool(one.segment) is is_tiered}
        if not any(one.kind == LOG for one in mine):
            continue
        partition = parse_directory(directory.rpartition("/")[2], is_tiered=is_tiered)
        if partition is None:
            expected = "TOPIC-PARTITION" + ("-ID" if is_tiered else "")
            reason = f"expected a directory with the name {expected} around log segments"
            raise CaptureError(reason, source=shown(directory))
        if query.wants(partition):
            segments = _in_order(mine) if is_tiered else _as_started(mine)
            if segments:
                snapshots = sorted(
                    (one.base_offset, source)
                    for one, source in mine.items()
                    if one.kind == SNAPSHOT and not one.state
                )
                last = segments[-1].base_offset
                later = tuple(
                    source
                    for one, source in mine.items()
                    if one.kind == TRANSACTION_INDEX and not one.state and one.base_offset > last
                )
                yield Replica(partition, directory, is_tiered, segments, tuple(snapshots), later)


def _segments(files: Named, state: str) -> dict[tuple[int, str], LogSegment]:
    """Give the segments whose files have an ending."""
    kinds: dict[tuple[int, str], dict[str, InputFile]] = defaultdict(dict)
    for one, source in files.items():
        if one.state == state:
            kinds[one.base_offset, one.segment][one.kind] = source
    return {
        key: LogSegment(
            key[0],
            found[LOG],
            found.get(INDEX),
            found.get(TIME_INDEX),
            found.get(TRANSACTION_INDEX),
        )
        for key, found in kinds.items()
        if LOG in found
    }


def _as_started(files: Named) -> tuple[LogSegment, ...]:
    """Give the segments that a broker has after it started."""
    segments = _segments(files, "")
    cleaned = [one.base_offset for one in files if one.state == CLEANED]
    swapped = {
        key: segment
        for key, segment in _segments(files, SWAP).items()
        if not cleaned or key[0] < min(cleaned)
    }
    if swapped:
        low = min(offset for offset, _ in swapped)
        high = max(map(end_offset, swapped.values()))
        segments = {key: one for key, one in segments.items() if not low <= key[0] < high}
    return tuple(sorted((segments | swapped).values(), key=lambda one: one.base_offset))


def _in_order(files: Named) -> tuple[LogSegment, ...]:
    """Give the segments of a tier, each up to where the next begins.

    A segment may have been copied twice: the longest of each base offset is taken.
    """
    longest: dict[int, LogSegment] = {}
    for one in _segments(files, "").values():
        other = longest.get(one.base_offset)
        if other is None or one.log.size > other.log.size:
            longest[one.base_offset] = one
    ordered = sorted(longest.values(), key=lambda one: one.base_offset)
    nexts = [one.base_offset for one in ordered[1:]]
    return tuple(
        replace(one, below=below)
        for one, below in zip(ordered, [*nexts, ordered[-1].below] if ordered else [], strict=True)
    )
