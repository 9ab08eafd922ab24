"""What a survey is asked, what it returns, and the capture files that it reads."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flexwire.capture.files.comments import CapturedPart, added_tags_in, part_in
from flexwire.capture.files.links import Skipped, UnreadablePacketError, read_segment
from flexwire.capture.files.packets import CapturedPacket
from flexwire.capture.files.reading import open_capture, packets_of
from flexwire.capture.pairing.pairing import Hindsight
from flexwire.capture.reassembly.connections import BrokerEnds
from flexwire.capture.reassembly.segments import CHUNK_BYTES, FileNotes, SegmentReader
from flexwire.errors import CaptureError, StorageError
from flexwire.records.inflation import INFLATION, Inflation
from flexwire.storage.filesystems import scheme_of
from flexwire.storage.input_file import PIECE_BYTES

if TYPE_CHECKING:
    import io
    from collections.abc import Iterable, Sequence

    from flexwire.capture.files.reading import Opener
    from flexwire.capture.pairing.pairing import Pairing
    from flexwire.capture.reassembly.connections import CapturedConnection
    from flexwire.capture.reassembly.flows import Flows
    from flexwire.capture.reassembly.merging import MergePosition, QueuedFile
    from flexwire.capture.reassembly.segments import FilePosition
    from flexwire.storage.input_file import InputFile
    from flexwire.tables.frames import Software


NAMES = "names"
"""The name of what is kept for all ranges: the names of topics by their ids."""

RANGE_BYTES = 1 << 30
"""About so many bytes of segments are decoded by one task."""


@dataclass(frozen=True, slots=True)
class AnalysisRequest:
    """What is to be analyzed, and how: the same for the survey and for every range.

    ``release`` is that of the captured brokers, where it is known. A file that cannot be opened, or
    is not a capture, ends the survey unless such are to be skipped. ``takes_sampled`` is whether
    whoever follows files takes those that hold a part of all connections. ``inflation`` bounds what
    record batches inflate to.
    """

    files: tuple[InputFile, ...]
    brokers: BrokerEnds = field(default_factory=BrokerEnds)
    release: str | None = None
    show_credentials: bool = False
    record_bytes: bool = False
    range_bytes: int = RANGE_BYTES
    chunk_bytes: int = CHUNK_BYTES
    skip_unreadable: bool = False
    takes_sampled: bool = True
    inflation: Inflation = INFLATION

    @property
    def digest(self) -> str:
        """A name for the input, in hexadecimal: it is the same where all files are the same."""
        told = hashlib.sha256()
        for one in self.files:
            told.update(f"{one.url}\0{one.size}\0{one.version}\n".encode())
        return told.hexdigest()


@dataclass(slots=True)
class RangeStart:
    """Where a range begins: the place in the files, and the state of all connections there."""

    position: FilePosition | MergePosition | None
    flows: Flows
    turns: Pairing


class MergePlan(NamedTuple):
    """How the files of a range are merged: which are to be begun, and how many segments it has.

    The last range has all that are left, None.
    """

    waiting: tuple[QueuedFile, ...]
    rows: int | None


@dataclass(slots=True)
class RangeContext:
    """What a range has to be told: where it ends, and what the whole capture says.

    ``files`` are those that it lies in, ``software`` is the name and version of each connection's
    client. Files are read one after the other, unless they are to be read ``at_once``.
    """

    files: tuple[InputFile, ...]
    stop: FilePosition | MergePosition | None
    told: Hindsight
    software: dict[str, Software]
    at_once: MergePlan | None = None

    @classmethod
    def joined(cls, some: Sequence[RangeContext]) -> RangeContext:
        """What a range has to be told that is some which follow one another."""
        files = dict.fromkeys(file for one in some for file in one.files)
        tolds = [one.told for one in some]
        told = Hindsight(
            {name: said for one in tolds for name, said in one.judgements.items()},
            {name: said for one in tolds for name, said in one.unanswered.items()},
            {name: said for one in tolds for name, said in one.early.items()},
        )
        software = {name: said for one in some for name, said in one.software.items()}
        return cls(tuple(files), some[-1].stop, told, software, _joined(some))


def _joined(some: Sequence[RangeContext]) -> MergePlan | None:
    parts = [one.at_once for one in some if one.at_once is not None]
    if not parts:
        return None
    waiting = tuple(waiting for one in parts for waiting in one.waiting)
    is_last = parts[-1].rows is None
    return MergePlan(waiting, None if is_last else sum(one.rows or 0 for one in parts))


@dataclass(slots=True)
class Survey:
    """What a survey found out; ``ranges`` of it are to be decoded.

    ``notes`` are those of the files, in order, and ``unreadable`` says why files give nothing, in
    the order of those that were asked for. With such a file that is not to be skipped, nothing else
    was found out. Files that overlap in time and show the same connections are merged by time: the
    capture ``is_merged``. ``span_us`` is the time from the first frame of Kafka's to the last.
    ``redone`` segments were read once more, because what had been supposed of them was not so.
    ``marks`` are what files say of themselves, by their names.
    """

    ranges: int = 0
    is_merged: bool = False
    notes: list[FileNotes] = field(default_factory=list)
    connections: list[CapturedConnection] = field(default_factory=list)
    span_us: int = 0
    unreadable: list[CaptureError] = field(default_factory=list)
    marks: list[tuple[str, FileMarks]] = field(default_factory=list)
    redone: int = field(default=0, compare=False)


def start_name(number: int) -> str:
    """The name of what is kept of the start of a range."""
    return f"start-{number:06d}"


def known_name(number: int) -> str:
    """The name of what is kept for a range from the end of the capture."""
    return f"known-{number:06d}"


LOOK_BYTES: Final = 1 << 20
"""Of a file with a segment in so many bytes no more are read to say when it begins."""

# So much of a file is fetched from a store at a time, however many are read at once.
_LEAST_PIECE = 256 * 1024
# A look at a file in a store is mostly waiting for it.
_LOOKS_AT_ONCE = 16


class FileMarks(NamedTuple):
    """What a capture file says of itself, before its first packet.

    ``part`` is what it holds, where that is not all. ``added_tags`` are the header tags that its
    tap adds to the requests that it sends on.
    """

    part: CapturedPart | None = None
    added_tags: tuple[int, ...] = ()


NO_MARKS: Final = FileMarks()


@dataclass(frozen=True, slots=True)
class FileLook:
    """When the first segment of a file was captured, or why the file gives none.

    Without any it is that of a packet, or 0. ``marks`` are what it says of itself.
    """

    source: InputFile
    first_us: int = 0
    error: CaptureError | None = None
    marks: FileMarks = NO_MARKS


def make_opener(sources: Iterable[InputFile], among: int = 1) -> Opener:
    """Open these files by their names, as they were listed, to be read ``among`` so many at once.

    Raises `OSError` for one that cannot be opened, and `StorageError`, then and while it is read,
    for one that is gone or another by now.
    """
    return _opener(sources, None, max(PIECE_BYTES // among, _LEAST_PIECE))


def make_reader(
    asked: AnalysisRequest,
    files: list[InputFile],
    start: FilePosition | None = None,
    stop: FilePosition | None = None,
) -> SegmentReader:
    """Read the segments of some files, in their order, as the survey does."""
    return SegmentReader(
        [one.name for one in files],
        chunk_bytes=asked.chunk_bytes,
        start=start,
        stop=stop,
        opener=make_opener(files),
        show_credentials=asked.show_credentials,
    )


def look_at_files(sources: Iterable[InputFile]) -> list[FileLook]:
    """Look at each file, in their order. Raises `StorageError` for one that is gone or another."""
    every = list(sources)
    if not any(scheme_of(one.url) for one in every):
        return list(map(_look, every))
    with ThreadPoolExecutor(_LOOKS_AT_ONCE, thread_name_prefix="flexwire-look") as pool:
        return list(pool.map(_look, every))


def read_marks(sources: Iterable[InputFile]) -> list[tuple[str, FileMarks]]:
    """Each file that says something of itself, by its name."""
    found = []
    for source in sources:
        with suppress(CaptureError), open_capture(source.name, make_opener([source])) as (file, _):
            if (marks := _marks(file)) != NO_MARKS:
                found.append((source.name, marks))
    return found


def _marks(file: io.BufferedReader[Any]) -> FileMarks:
    return FileMarks(part_in(file), added_tags_in(file))


def _look(source: InputFile) -> FileLook:
    try:
        packet_us, segment_us, marks = _first_us(source, min(LOOK_BYTES, source.size))
        if segment_us is None:
            # What comes before all segments may be long.
            segment_us = _first_segment_us(source)
    except CaptureError as error:
        return FileLook(source, error=error)
    first_us = (packet_us or 0) if segment_us is None else segment_us
    return FileLook(source, first_us, marks=marks)


def _first_us(source: InputFile, stop: int) -> tuple[int | None, int | None, FileMarks]:
    """When the first packet, and the first segment, of a part of a file was captured.

    And what it says of itself.
    """
    first_us = None
    with open_capture(source.name, _opener([source], stop)) as (file, _):
        marks = _marks(file)
        for packet in packets_of(source.name, file):
            if not isinstance(packet, CapturedPacket):
                continue
            if first_us is None:
                first_us = packet.timestamp_us
            try:
                read_segment(packet)
            except (Skipped, UnreadablePacketError):
                continue
            return first_us, packet.timestamp_us, marks
    return first_us, None, marks


def _first_segment_us(source: InputFile) -> int | None:
    chunks = SegmentReader(
        [source.name], chunk_bytes=LOOK_BYTES, opener=make_opener([source])
    ).chunks()
    with closing(chunks):
        first = next(chunks)
    if isinstance(first, FileNotes):
        if first.error is not None:
            raise first.error
        return None
    return int(first.timestamp_us[0])


def _opener(sources: Iterable[InputFile], stop: int | None, piece: int = PIECE_BYTES) -> Opener:
    by_name = {one.name: one for one in sources}

    def opened(name: str, start: int) -> io.BufferedReader[Any]:
        try:
            return by_name[name].open(start, stop, piece=piece)
        except StorageError as error:
            if error.tried != "open":
                raise
            raise OSError(error.reason) from error

    return opened
