"""The files of a log: their names, the segments that they form, and queries that select logs.

For tiered storage, the layout is that of Kafka's own `LocalTieredStorage`. Other implementations
name and transform files in their own ways.
"""

from __future__ import annotations

import io
import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from flexwire.logs.segments import LogFile
from flexwire.storage.filesystems import local_path, scheme_of
from flexwire.wire.limits import INT64_MAX, INT64_MIN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from flexwire.storage.input_file import InputFile


# A request to a store takes as long as reading this many bytes.
_FETCHED: Final = 1 << 18
_READ_AHEAD: Final = 1 << 16


@contextmanager
def open_file(source: InputFile) -> Iterator[LogFile]:
    """Open a file for random access, with the length that it had when it was listed.

    Raises `StorageError` if the file no longer exists or has been replaced.
    """
    if scheme_of(source.url):
        store = io.BufferedReader(_StoreFile(source), _FETCHED)
        yield LogFile(Path(source.name), store, source.size)
        return
    # Opening the source checks that the file is still the one that was listed.
    source.open().close()
    with local_path(source.url).open("rb", buffering=_READ_AHEAD) as file:
        yield LogFile(Path(source.url), file, source.size)


class _StoreFile(io.RawIOBase):
    """A file in a store, read piece by piece."""

    def __init__(self, source: InputFile) -> None:
        self._source = source
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        starts = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._source.size}
        self._at = starts[whence] + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override] # what BufferedReader gives
        stop = min(self._at + len(buffer), self._source.size)
        if stop <= self._at:
            return 0
        with self._source.open(self._at, stop) as piece:
            data = piece.read(stop - self._at)
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX, SNAPSHOT = (
    "log",
    "index",
    "timeindex",
    "txnindex",
    "snapshot",
)
"""The kinds of files, given by the extensions of their names."""
DELETED, CLEANED, SWAP = "deleted", "cleaned", "swap"
"""A second extension in the name of a file that a broker is about to delete or add."""

_UUID: Final = "[A-Za-z0-9_-]{22}"
_FILE: Final = re.compile(
    rf"([0-9]{{20}})(-{_UUID})?\.(log|index|timeindex|txnindex|snapshot)"
    r"(?:\.(deleted|cleaned|swap))?"
)
_DIRECTORY: Final = re.compile(r"(.+)-([0-9]{1,10})")
_TIERED_DIRECTORY: Final = re.compile(rf"(.+)-([0-9]{{1,10}})-{_UUID}")
# A broker deletes files of the first kind and ignores files of the second kind. A file of the third
# kind has not been copied completely.
_SET_ASIDE: Final = re.compile(r".+\.[0-9a-f]{32}-(?:delete|stray|future)")


class FileName(NamedTuple):
    """The parts of a file name. ``segment`` distinguishes files of the same offset in a tier."""

    base_offset: int
    segment: str
    kind: str
    state: str


class Partition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def parse_file(name: str) -> FileName | None:
    """Return the parts of a file's name, or None if the file does not belong to a log.

    >>> parse_file("00000000000000000042.log.swap")
    FileName(base_offset=42, segment='', kind='log', state='swap')
    """
    match = _FILE.fullmatch(name)
    if match is None or int(match[1]) >= 1 << 63:
        return None
    return FileName(int(match[1]), match[2] or "", match[3], match[4] or "")


LOG_NAMES: Final = "has the name of a log segment"
"""A description of the file names in a log, for error messages."""


def is_log_file(name: str) -> bool:
    """Return whether a file, judging by its name, is a log segment or belongs to one."""
    return parse_file(name) is not None


def is_set_aside(directory: str) -> bool:
    """Return whether a broker would skip this directory because it is deleted or incomplete.

    >>> is_set_aside("orders-0.00c04fd430c800c04fd430c800c04fd4-delete"), is_set_aside("orders-0")
    (True, False)
    """
    return _SET_ASIDE.fullmatch(directory) is not None


def parse_directory(name: str, *, is_tiered: bool) -> Partition | None:
    """Return the partition that the name of a directory states, or None for any other name.

    >>> parse_directory("clicks-eu-12", is_tiered=False)
    Partition(topic='clicks-eu', partition=12)
    >>> parse_directory("clicks-eu-12-tvHCaSDsQZWsjr5rbtCjxA", is_tiered=True)
    Partition(topic='clicks-eu', partition=12)
    """
    match = (_TIERED_DIRECTORY if is_tiered else _DIRECTORY).fullmatch(name)
    if match is None or int(match[2]) >= 1 << 31:
        return None
    return Partition(match[1], int(match[2]))


@dataclass(frozen=True, slots=True)
class LogSegment:
    """A segment and its indexes. Offsets from ``below`` on belong to another segment."""

    base_offset: int
    log: InputFile
    index: InputFile | None = None
    time_index: InputFile | None = None
    transaction_index: InputFile | None = None
    below: int | None = None


Isolation = Literal["read_uncommitted", "read_committed"]
Replicas = Literal["longest", "all"]
PIECE_BYTES: Final = 128 << 20
"""The default number of bytes per task, the same as in Spark's own file sources."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """The lowest and highest allowed numbers, both inclusive."""

    low: int = INT64_MIN
    high: int = INT64_MAX

    def __and__(self, other: Bounds) -> Bounds:
        return Bounds(max(self.low, other.low), min(self.high, other.high))

    @property
    def is_empty(self) -> bool:
        """True if no number is allowed."""
        return self.low > self.high

    @property
    def ends(self) -> tuple[int | None, int | None]:
        """Both ends. None means that there is no limit."""
        low = None if self.low == INT64_MIN else self.low
        return low, None if self.high == INT64_MAX else self.high


EVERY: Final = Bounds()
"""No bounds: every number is allowed."""


@dataclass(frozen=True, slots=True)
class LogQuery:
    """A selection of logs, and of the records to read from them.

    Attributes:
        topics: names of topics, or None for all topics, including internal ones.
        partitions: numbers of partitions, or None for all.
        starting: the first offset by partition. Other partitions start where their logs start.
        ending: the offset after the last offset, by partition. Other partitions end where their
            logs end.
        starting_timestamp: each partition is read from its first record at or after this time, in
            ms.
        ending_timestamp: each partition is read up to, but not including, its first record at or
            after this time, in ms.
        offsets: only records with these offsets.
        timestamps: only records with these timestamps, in ms.
        isolation: "read_committed" leaves out the records of aborted and open transactions.
        replicas: which directory is read if several directories contain the same partition.
            "longest" is the directory with which Kafka would continue. The cluster's metadata shows
            the leader and the ISR. Without this metadata, leader epochs and then the ends of the
            logs decide. "all" reads all directories.
        includes_deleted: also read records before the start of a log, if its files still contain
            them.
        piece_bytes: the approximate size of one piece.
        starting_timestamps: like ``starting_timestamp``, for single partitions, which then ignore
            ``starting_timestamp``.
        ending_timestamps: like ``ending_timestamp``, for single partitions, which then ignore
            ``ending_timestamp``.
        needs_start: whether a partition without a record as late as its starting timestamp raises
            `ArgumentError`. Otherwise no records of the partition are read.
        least_tasks: tasks are made smaller until there are about this many.
    """

    topics: Collection[str] | None = None
    partitions: Collection[int] | None = None
    starting: Mapping[Partition, int] = field(default_factory=dict)
    ending: Mapping[Partition, int] = field(default_factory=dict)
    starting_timestamp: int | None = None
    ending_timestamp: int | None = None
    offsets: Bounds = EVERY
    timestamps: Bounds = EVERY
    isolation: Isolation = "read_uncommitted"
    replicas: Replicas = "longest"
    includes_deleted: bool = False
    piece_bytes: int = PIECE_BYTES
    starting_timestamps: Mapping[Partition, int] = field(default_factory=dict)
    ending_timestamps: Mapping[Partition, int] = field(default_factory=dict)
    needs_start: bool = False
    least_tasks: int = 1

    def wants(self, partition: Partition) -> bool:
        """Return whether the query includes a partition."""
        is_topic = self.topics is None or partition.topic in self.topics
        return is_topic and (self.partitions is None or partition.partition in self.partitions)
