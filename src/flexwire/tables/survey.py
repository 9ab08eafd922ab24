"""The survey of a capture: one pass over all its frames, which decodes next to nothing.

Frames are understood in order, and what a frame means may be known only at the end: whether its
connection is Kafka, which software its client is, whether its request was answered. So all of a
capture is read twice. The survey reads it from the first packet to the last, keeps in a file what
the state of all connections is at every cut, and says in the end what only the whole capture says.
Then each range between two cuts is decoded by itself, with nothing to guess and nothing to join.
"""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.capture.brokers import Brokers
from flexwire.capture.columns.flows import Flows
from flexwire.capture.columns.segments import CHUNK_BYTES, FileNotes, SegmentReader
from flexwire.capture.columns.turns import Judgement, Told, Turns, paired
from flexwire.schema.catalog import catalog
from flexwire.tables.inputs import looks, opener
from flexwire.tables.messages import message_rows
from flexwire.tables.record_places import TOPIC_NAMES_MESSAGE
from flexwire.wire.limits import INT64_MAX, INT64_MIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from flexwire.capture.columns.frames import FrameColumns
    from flexwire.capture.columns.segments import Position, SegmentColumns
    from flexwire.capture.columns.turns import Facts
    from flexwire.capture.connections import CapturedConnection
    from flexwire.errors import CaptureError
    from flexwire.storage.source import Source

    Array = np.ndarray[Any, np.dtype[Any]]

NAMES = "names"
"""The name of what is kept for all ranges: the names of topics by their ids."""

Software = tuple[str | None, str | None]

RANGE_BYTES = 1 << 30
"""About so many bytes of segments are decoded by one task."""

SOFTWARE_MESSAGE = "ApiVersionsRequest"
"""Where a client says what software it is, since version 3 (KIP-511)."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be analyzed, and how: the same for the survey and for every range.

    ``release`` is that of the captured brokers, where it is known. A file that cannot be opened, or
    is not a capture, ends the survey unless such are to be skipped.
    """

    files: tuple[Source, ...]
    brokers: Brokers = field(default_factory=Brokers)
    release: str | None = None
    show_credentials: bool = False
    record_bytes: bool = False
    range_bytes: int = RANGE_BYTES
    chunk_bytes: int = CHUNK_BYTES
    skip_unreadable: bool = False

    @property
    def digest(self) -> str:
        """A name for the input, in hexadecimal: it is the same where all files are the same."""
        told = hashlib.sha256()
        for one in self.files:
            told.update(f"{one.url}\0{one.size}\0{one.version}\n".encode())
        return told.hexdigest()


@dataclass(slots=True)
class Snapshot:
    """Where a range begins: the place in the files, and the state of all connections there."""

    position: Position | None
    flows: Flows
    turns: Turns


@dataclass(slots=True)
class Known:
    """What a range has to be told: where it ends, and what the whole capture says.

    ``files`` are those that it lies in, ``software`` is the name and version of each connection's
    client.
    """

    files: tuple[Source, ...]
    stop: Position | None
    told: Told
    software: dict[str, Software]


@dataclass(slots=True)
class Survey:
    """What a survey found out; ``ranges`` of it are to be decoded.

    ``notes`` are those of the files, in order, and ``unreadable`` says why files give nothing, in
    the order of those that were asked for. With such a file that is not to be skipped, nothing else
    was found out. Nor was it unless it ``is_ordered``: files that overlap in time show the same
    connections, and the capture is not to be decoded range by range. ``span_us`` is the time from
    the first frame of Kafka's to the last.
    """

    ranges: int = 0
    is_ordered: bool = True
    notes: list[FileNotes] = field(default_factory=list)
    connections: list[CapturedConnection] = field(default_factory=list)
    span_us: int = 0
    unreadable: list[CaptureError] = field(default_factory=list)


class Surveyor:
    """Makes the survey of a capture, and gives ``keep`` what the ranges need, by its name."""

    def __init__(self, asked: Asked, keep: Callable[[str, bytes], None]) -> None:
        self._asked = asked
        self._keep = keep
        self._flows = Flows(brokers=asked.brokers)
        self._turns = Turns(show_credentials=asked.show_credentials)
        self._order = _Order()
        self._software: dict[str, tuple[int, Software]] = {}
        self._names: dict[str, str] = {}
        self._ranges: list[_Range] = []
        self._times = _Times()
        self._survey = Survey()

    def run(self) -> Survey:
        """Read all files.

        Raises `StorageError` for one that is gone or another since it was listed, and where a
        store or a disk gives only a part of it.
        """
        asked, survey = self._asked, self._survey
        found = looks(asked.files)
        survey.unreadable = [one.error for one in found if one.error is not None]
        if survey.unreadable and not asked.skip_unreadable:
            return survey
        survey.notes += [
            FileNotes(one.source.name, error=one.error) for one in found if one.error is not None
        ]
        readable = [one for one in found if one.error is None]
        readable.sort(key=lambda one: (one.first_us, one.source.name))
        files = [one.source for one in readable]
        reader = SegmentReader(
            [one.name for one in files],
            chunk_bytes=asked.chunk_bytes,
            opener=opener(files),
            show_credentials=asked.show_credentials,
        )
        self._begin_range(None)
        for item in reader:
            if isinstance(item, FileNotes):
                if item.error is not None:
                    # A moment ago it could be read.
                    raise item.error
                survey.notes.append(item)
                continue
            if not self._order.keeps(item):
                survey.is_ordered = False
                return survey
            current = self._ranges[-1]
            if current.size >= asked.range_bytes and current.stop is not None:
                self._begin_range(current.stop)
                current = self._ranges[-1]
            self._see(self._flows.push(item))
            self._end_connections()
            current.size += len(item.data)
            current.stop = reader.position
        for frames in self._flows.finish():
            self._see(frames)
        self._end_connections()
        self._ranges[-1].stop = None
        self._tell(files)
        survey.ranges = len(self._ranges)
        return survey

    def _begin_range(self, position: Position | None) -> None:
        number = len(self._ranges)
        self._ranges.append(_Range())
        if number:
            snapshot = Snapshot(position, self._flows, self._turns)
            self._keep(start_name(number), pickle.dumps(snapshot, pickle.HIGHEST_PROTOCOL))

    def _see(self, frames: FrameColumns) -> None:
        facts = self._turns.facts(frames)
        self._ranges[-1].connections |= set(np.unique(frames.connection).tolist())
        self._times.note(frames)
        for rows in self._bodies(frames, facts, SOFTWARE_MESSAGE):
            self._note_software(rows)
        for rows in self._bodies(frames, facts, TOPIC_NAMES_MESSAGE):
            self._note_names(rows)

    def _end_connections(self) -> None:
        for ended in self._flows.ended():
            self._survey.connections.append(ended)
            self._turns.end(ended.connection)

    def _bodies(self, frames: FrameColumns, facts: Facts, name: str) -> Iterator[pa.RecordBatch]:
        """The rows of one message's table that frames carry."""
        entry = catalog().entry(name)
        rows = np.flatnonzero(facts.api_key == entry.api_key)
        if not len(rows):
            return
        some = paired(frames.take(rows), facts.take(rows), Told())
        carried = some.filter(pc.equal(some["body"], name))
        if len(carried):
            yield message_rows(carried, name, release=self._asked.release)

    def _note_software(self, rows: pa.RecordBatch) -> None:
        named = pc.struct_field(rows["body"], "client_software_name")
        kept = rows.filter(pc.fill_null(pc.not_equal(named, ""), False))
        for connection, index, body in zip(
            *(kept[name].to_pylist() for name in ("connection", "frame_index", "body")), strict=True
        ):
            known = self._software.get(connection)
            if known is None or index < known[0]:
                version = body["client_software_version"] or None
                self._software[connection] = index, (body["client_software_name"], version)

    def _note_names(self, rows: pa.RecordBatch) -> None:
        topics = pc.list_flatten(pc.struct_field(rows["body"], "topics"))
        both = pa.table(
            [pc.struct_field(topics, "topic_id"), pc.struct_field(topics, "name")], ["id", "name"]
        ).drop_null()
        for identity, name in set(zip(*(one.to_pylist() for one in both.columns), strict=True)):
            self._names[identity] = max(name, self._names.get(identity, name))

    def _tell(self, files: list[Source]) -> None:
        """Keep what each range has to know."""
        names_of_files = [one.name for one in files]
        kafka = {one.connection: one for one in self._survey.connections}
        unanswered, early = self._turns.unanswered(), self._turns.early()
        all_names = self._flows.connections
        is_kafka = [one in kafka and kafka[one].is_kafka for one in all_names]
        self._survey.span_us = self._times.span_us(np.array(is_kafka, np.bool_))
        self._keep(NAMES, pickle.dumps(self._names, pickle.HIGHEST_PROTOCOL))
        first = 0
        for number, one in enumerate(self._ranges):
            last = (
                len(files) - 1 if one.stop is None else names_of_files.index(one.stop.file, first)
            )
            within, first = tuple(files[first : last + 1]), last
            names = {all_names[place] for place in one.connections}
            told = Told(
                judgements={
                    name: Judgement(ended.is_kafka, ended.reads_as_kafka, ended.seen_from_start)
                    for name in names
                    if (ended := kafka.get(name)) is not None
                },
                unanswered={name: unanswered[name] for name in names & unanswered.keys()},
                early={name: early[name] for name in names & early.keys()},
            )
            software = {
                name: self._software[name][1]
                for name in names & self._software.keys()
                if kafka[name].is_kafka and kafka[name].reads_as_kafka
            }
            known = Known(within, one.stop, told, software)
            self._keep(known_name(number), pickle.dumps(known, pickle.HIGHEST_PROTOCOL))


def start_name(number: int) -> str:
    """The name of what is kept of the start of a range."""
    return f"start-{number:06d}"


def known_name(number: int) -> str:
    """The name of what is kept for a range from the end of the capture."""
    return f"known-{number:06d}"


@dataclass(slots=True)
class _Range:
    """What is found out of a range while the survey goes through it."""

    size: int = 0
    stop: Position | None = None
    connections: set[int] = field(default_factory=set)


class _Times:
    """When the first and the last frame of each connection was seen."""

    def __init__(self) -> None:
        self._first = np.zeros(0, np.int64)
        self._last = np.zeros(0, np.int64)

    def note(self, frames: FrameColumns) -> None:
        more = len(frames.connections) - len(self._first)
        if more > 0:
            self._first = np.append(self._first, np.full(more, INT64_MAX))
            self._last = np.append(self._last, np.full(more, INT64_MIN))
        np.minimum.at(self._first, frames.connection, frames.time_us)
        np.maximum.at(self._last, frames.connection, frames.time_us)

    def span_us(self, wanted: Array) -> int:
        """From the first to the last frame of some connections; 0 where they have none."""
        wanted = wanted & (self._last >= self._first)
        if not wanted.any():
            return 0
        return int(self._last[wanted].max() - self._first[wanted].min())


class _Order:
    """Whether the segments of each connection come in order, over files too.

    They are read in the order of each file. The clock of a file is the latest time in it until
    then; where that of the next file to show a connection is behind, the two overlap.
    """

    def __init__(self) -> None:
        self._file = ""
        self._clock = 0
        self._last: dict[str, tuple[int, str]] = {}

    def keeps(self, segments: SegmentColumns) -> bool:
        """Take in a chunk; whether it is in order."""
        if segments.file != self._file:
            self._file, self._clock = segments.file, 0
        clocks = np.maximum.accumulate(np.maximum(segments.timestamp_us, self._clock))
        self._clock = int(clocks[-1])
        # Of those that are put at one place the last stays.
        first, last = np.empty((2, len(segments.keys)), np.int64)
        first[segments.key[::-1]] = clocks[::-1]
        last[segments.key] = clocks
        keys = np.flatnonzero(np.bincount(segments.key))
        columns: Iterable[Array] = (keys, first[keys], last[keys])
        for key, begins, ends in zip(*(one.tolist() for one in columns), strict=True):
            name = segments.keys[key]
            known = self._last.get(name)
            if known is not None and known > (begins, self._file):
                return False
            self._last[name] = ends, self._file
        return True
