"""The request and the result of a survey, the state of each range, and how files are opened."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from flexwire.capture.files.comments import (
    CapturedPart,
    added_tags_in,
    part_in,
    rehearsed_release_in,
)
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
from flexwire.tables.frames import Introductions

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
    from flexwire.storage.output_directory import OutputDirectory


NAMES = "names"
"""The name of an entry for all ranges. The entry contains the names of topics by id."""

RANGE_BYTES = 1 << 30
"""The approximate number of bytes of segments that one task decodes."""


class Continuation(NamedTuple):
    """How an analysis continues another one: its own ``run``, and where to find the state.

    ``before`` is the directory of the run whose final state is loaded, or None if no state is
    loaded. The capture ends with this analysis, unless it ``pauses``.
    """

    run: str
    before: OutputDirectory | None = None
    pauses: bool = True


@dataclass(frozen=True, slots=True)
class AnalysisRequest:
    """The input and the options of an analysis. The survey and every range get the same request.

    ``release`` is the release of the captured brokers, if it is known. With ``skip_unreadable``,
    files that cannot be opened or are not captures are skipped; otherwise they end the survey.
    ``takes_sampled`` specifies whether a follower reads files that contain only some of the
    connections. ``inflation`` limits the decompressed size of record batches. With a
    ``continuation``, a later analysis continues the capture.
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
    continuation: Continuation | None = None

    @property
    def pauses(self) -> bool:
        """True if a later analysis will continue the capture."""
        return self.continuation is not None and self.continuation.pauses

    @property
    def digest(self) -> str:
        """A hexadecimal name for the input, which is the same if all files are the same."""
        digest = hashlib.sha256()
        for file in self.files:
            digest.update(f"{file.url}\0{file.size}\0{file.version}\n".encode())
        return digest.hexdigest()


@dataclass(slots=True)
class RangeStart:
    """The start of a range: its position in the files, and the state of all connections there.

    If the connections were surveyed in shares, this is the state of one share. The connection keys
    of a share have ``ranks``, which give the keys of all shares the order in which they first
    appeared.
    """

    position: FilePosition | MergePosition | None
    flows: Flows
    pairing: Pairing
    ranks: dict[str, int] = field(default_factory=dict)


class MergePlan(NamedTuple):
    """How a range's files are merged: the files that begin in it, and its segment count.

    ``rows`` is None for the last range, which gets all the remaining segments.
    """

    queued: tuple[QueuedFile, ...]
    rows: int | None


@dataclass(slots=True)
class RangeContext:
    """The facts about a range in addition to its start: its end, and facts about the whole capture.

    ``files`` contains the files that the range covers. Files are read one after the other if there
    is no ``merge_plan``. The first range ``has_start`` only if the analysis continues another
    analysis. The last range ``is_paused`` if a later analysis continues the capture. ``shares`` is
    the number of shares of the connections. Each share has its own `RangeStart`.
    """

    files: tuple[InputFile, ...]
    stop: FilePosition | MergePosition | None
    hindsight: Hindsight
    introductions: Introductions
    merge_plan: MergePlan | None = None
    has_start: bool = True
    is_paused: bool = False
    shares: int = 1

    @classmethod
    def joined(cls, parts: Sequence[RangeContext]) -> RangeContext:
        """Return the context of one range that joins these adjacent ranges."""
        files = dict.fromkeys(file for part in parts for file in part.files)
        hindsights = [part.hindsight for part in parts]
        hindsight = Hindsight(
            dict(item for part in hindsights for item in part.judgements.items()),
            dict(item for part in hindsights for item in part.unanswered.items()),
            dict(item for part in hindsights for item in part.early.items()),
        )
        told = [part.introductions for part in parts]
        introductions = Introductions(
            dict(item for part in told for item in part.software.items()),
            dict(item for part in told for item in part.instances.items()),
        )
        plan = _join_plans(parts)
        return cls(
            tuple(files), parts[-1].stop, hindsight, introductions, plan, parts[0].has_start,
            parts[-1].is_paused, parts[0].shares,
        )  # fmt: skip


def _join_plans(parts: Sequence[RangeContext]) -> MergePlan | None:
    plans = [part.merge_plan for part in parts if part.merge_plan is not None]
    if not plans:
        return None
    queued = tuple(file for plan in plans for file in plan.queued)
    is_last = plans[-1].rows is None
    return MergePlan(queued, None if is_last else sum(plan.rows or 0 for plan in plans))


@dataclass(slots=True)
class Survey:
    """The result of a survey. ``ranges`` is the number of ranges to decode.

    ``notes`` contains the notes on the files, in order. ``unreadable`` contains the reasons why
    files could not be read, in the order of the request. If an unreadable file must not be skipped,
    the rest of the survey is empty. The capture ``is_merged`` if its files overlap in time and
    contain the same connections, and were therefore merged by time. ``span_us`` is the time from
    the first Kafka frame to the last. ``redone`` is the number of segments that were read a second
    time because a guess about them was wrong. ``marks`` contains the marks in the files, by file
    name. ``topic_names`` contains the names that no earlier analysis knew, by topic id. ``state``
    is the state with which a later analysis begins, ``end_us`` is the time of its last segment, and
    ``held_bytes`` is the number of frame bytes in it. ``begins_anew`` is the reason why the state
    of an earlier analysis was not used.
    """

    ranges: int = 0
    is_merged: bool = False
    notes: list[FileNotes] = field(default_factory=list)
    connections: list[CapturedConnection] = field(default_factory=list)
    span_us: int = 0
    unreadable: list[CaptureError] = field(default_factory=list)
    topic_names: dict[str, str] = field(default_factory=dict)
    state: bytes | None = None
    end_us: int = 0
    held_bytes: int = 0
    begins_anew: str | None = None
    marks: list[tuple[str, FileMarks]] = field(default_factory=list)
    redone: int = field(default=0, compare=False)


def range_start_name(number: int, share: int = 0) -> str:
    """Return the name of the entry for the start of a range, for one share of the connections."""
    return f"start-{number:06d}" + (f"-{share:06d}" if share else "")


def range_context_name(number: int) -> str:
    """Return the name of the entry for a range, which is written when the capture has ended."""
    return f"known-{number:06d}"


def range_origins_name(number: int) -> str:
    """Return the name of the entry for connections in a range that began in an earlier analysis."""
    return f"origins-{number:06d}"


LOOK_BYTES: Final = 1 << 20
"""The largest number of bytes that are read to find when a file begins, if they contain a segment.
"""

# The smallest number of bytes that each read from a store requests, even if many files are read at
# the same time.
_LEAST_PIECE = 256 * 1024
# Most of the time needed to examine a file in a store is spent waiting.
_LOOKS_AT_ONCE = 16


class FileMarks(NamedTuple):
    """The marks of a capture file. The marks precede the first packet of the file.

    ``part`` is the part of the traffic that the file contains, or None for all traffic.
    ``added_tags`` contains the header tags that the tap adds to the requests that it forwards.
    ``rehearsed`` is the release that the tap rehearses.
    """

    part: CapturedPart | None = None
    added_tags: tuple[int, ...] = ()
    rehearsed: str | None = None


NO_MARKS: Final = FileMarks()


@dataclass(frozen=True, slots=True)
class FileLook:
    """The capture time of a file's first segment, or the reason why the file has no segment.

    Without a segment, ``first_us`` is the time of the first packet, or 0 if there is no packet.
    ``marks`` contains the marks in the file.
    """

    source: InputFile
    first_us: int = 0
    error: CaptureError | None = None
    marks: FileMarks = NO_MARKS


def make_opener(sources: Iterable[InputFile], among: int = 1) -> Opener:
    """Return a function that opens listed files by name, to read ``among`` files simultaneously.

    The opener raises `OSError` for a file that cannot be opened. The opener raises `StorageError`
    if the file is gone or was replaced, either when it opens the file or when the file is read.
    """
    return _opener(sources, None, max(PIECE_BYTES // among, _LEAST_PIECE))


def make_reader(
    request: AnalysisRequest,
    files: list[InputFile],
    start: FilePosition | None = None,
    stop: FilePosition | None = None,
) -> SegmentReader:
    """Return a reader of the segments of some files, in their order, as the survey reads them."""
    return SegmentReader(
        [file.name for file in files],
        chunk_bytes=request.chunk_bytes,
        start=start,
        stop=stop,
        opener=make_opener(files),
        show_credentials=request.show_credentials,
    )


def look_at_files(sources: Iterable[InputFile]) -> list[FileLook]:
    """Examine each file, in order. Raises `StorageError` for a file that is gone or changed."""
    files = list(sources)
    if not any(scheme_of(file.url) for file in files):
        return list(map(_look, files))
    with ThreadPoolExecutor(_LOOKS_AT_ONCE, thread_name_prefix="flexwire-look") as pool:
        return list(pool.map(_look, files))


def read_marks(sources: Iterable[InputFile]) -> list[tuple[str, FileMarks]]:
    """Return the marks of each file, by name. Files without marks are left out."""
    marked = []
    for source in sources:
        with suppress(CaptureError), open_capture(source.name, make_opener([source])) as (file, _):
            if (marks := _marks(file)) != NO_MARKS:
                marked.append((source.name, marks))
    return marked


def _marks(file: io.BufferedReader[Any]) -> FileMarks:
    return FileMarks(part_in(file), added_tags_in(file), rehearsed_release_in(file))


def _look(source: InputFile) -> FileLook:
    try:
        packet_us, segment_us, marks = _first_us(source, min(LOOK_BYTES, source.size))
        if segment_us is None:
            # Many bytes may precede the first segment.
            segment_us = _first_segment_us(source)
    except CaptureError as error:
        return FileLook(source, error=error)
    first_us = (packet_us or 0) if segment_us is None else segment_us
    return FileLook(source, first_us, marks=marks)


def _first_us(source: InputFile, stop: int) -> tuple[int | None, int | None, FileMarks]:
    """Return when the first packet and the first segment were captured, and the file's marks.

    Only the bytes before ``stop`` are read.
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
    by_name = {source.name: source for source in sources}

    def open_source(name: str, start: int) -> io.BufferedReader[Any]:
        try:
            return by_name[name].open(start, stop, piece=piece)
        except StorageError as error:
            if error.tried != "open":
                raise
            raise OSError(error.reason) from error

    return open_source
