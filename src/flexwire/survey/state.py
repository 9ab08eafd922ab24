"""What a survey knows as it goes through a capture, and where the ranges lie."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.capture.pairing.pairing import Hindsight, Judgement, Pairing, build_paired
from flexwire.capture.reassembly.flows import Flows
from flexwire.capture.reassembly.frames import gather_bytes
from flexwire.capture.reassembly.merging import MergedReader, MergePosition, QueuedFile
from flexwire.capture.reassembly.segments import FilePosition, SegmentReader
from flexwire.schema.catalog import catalog
from flexwire.survey.request import (
    NAMES,
    MergePlan,
    RangeContext,
    RangeStart,
    Survey,
    known_name,
    make_opener,
    make_reader,
    start_name,
)
from flexwire.survey.speculation import key_of
from flexwire.tables.messages import message_rows
from flexwire.tables.spec_places import TOPIC_NAMES_MESSAGE
from flexwire.wire.limits import INT32_MAX, INT64_MAX, INT64_MIN
from flexwire.wire.segment_layout import CORRELATION_ID_SIZE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from flexwire.capture.pairing.pairing import HeaderColumns
    from flexwire.capture.reassembly.frames import FrameColumns
    from flexwire.capture.reassembly.segments import SegmentColumns
    from flexwire.columnar.arrays import NumpyArray
    from flexwire.storage.input_file import InputFile
    from flexwire.survey.request import AnalysisRequest, FileLook
    from flexwire.tables.frames import Software


SOFTWARE_MESSAGE = "ApiVersionsRequest"
"""Where a client says what software it is, since version 3 (KIP-511)."""

_UINT16 = 0xFFFF

TopicName = tuple[str, str]
"""The id and the name of a topic."""

KeyClocks = tuple[str, int, int]
"""A connection key, and the clock of the file at its first and at its last segment."""


@dataclass(slots=True)
class _OpenRange:
    """What is found out of a range while the survey goes through it."""

    size: int = 0
    rows: int = 0
    stop: CutPosition = None
    connections: set[int] = field(default_factory=set)


class SurveyState:
    """Takes the frames of a capture in order; `tell` keeps what the whole of it says."""

    def __init__(self, asked: AnalysisRequest, keep: Callable[[str, bytes], None]) -> None:
        self._asked = asked
        self._keep = keep
        self.flows = Flows(brokers=asked.brokers)
        self.turns = Pairing(show_credentials=asked.show_credentials)
        self.order = SegmentOrder()
        self._software: dict[str, tuple[int, Software]] = {}
        self._names: dict[str, str] = {}
        self._ranges: list[_OpenRange] = []
        self._times = _FrameTimes()
        self.survey = Survey()

    @property
    def size(self) -> int:
        """How many bytes the range has until now."""
        return self._ranges[-1].size

    def begin_range(self, position: CutPosition, keys: Iterable[str] | None = None) -> None:
        """Begin a range at a position, the first one at None.

        If it shows only connections of some ``keys``, and is not the last, it gets these alone.
        """
        number = len(self._ranges)
        self._ranges.append(_OpenRange())
        if number:
            flows, turns = self.flows, self.turns
            if keys is not None:
                some = set(keys)
                flows = flows.only(keys)
                turns = turns.only(lambda name: key_of(name) in some)
            snapshot = RangeStart(position, flows, turns)
            self._keep(start_name(number), pickle.dumps(snapshot, pickle.HIGHEST_PROTOCOL))

    def add(self, size: int, stop: CutPosition, rows: int = 0) -> None:
        """Count bytes and segments of the range, which ends there for now."""
        self._ranges[-1].size += size
        self._ranges[-1].rows += rows
        self._ranges[-1].stop = stop

    def see(self, frames: FrameColumns, given: HeaderColumns | None = None) -> HeaderColumns:
        """Take in frames; of those that are given, others read the bodies."""
        facts = self.turns.facts(frames, given)
        self._ranges[-1].connections |= set(np.unique(frames.connection).tolist())
        self._times.note(frames)
        if given is None:
            self.read(frames, facts)
        return facts

    def read(self, frames: FrameColumns, facts: HeaderColumns) -> None:
        """Read the bodies of frames that say something of the whole."""
        for rows in bodies(frames, facts, SOFTWARE_MESSAGE, self._asked.release):
            for connection, index, software in software_in(rows):
                self.note_software(connection, index, software)
        told = topics_told(frames, facts, self._asked.release)
        for pairs in {pairs for _, pairs in told}:
            self.note_names(pairs)

    def note_software(self, connection: str, index: int, software: Software) -> None:
        """Take in what the request of an index says; the first one counts."""
        known = self._software.get(connection)
        if known is None or index < known[0]:
            self._software[connection] = index, software

    def note_names(self, names: Iterable[TopicName]) -> None:
        """Take in names of topics; of two names of one id the last in their order stays."""
        for identity, name in set(names):
            self._names[identity] = max(name, self._names.get(identity, name))

    def end_connections(self) -> None:
        """Take in which connections have ended."""
        for ended in self.flows.ended():
            self.survey.connections.append(ended)
            self.turns.end(ended.connection)

    def finish(self, files: CaptureFiles) -> Survey:
        """The capture has ended, after these files; keep what each range has to know."""
        for frames in self.flows.finish():
            self.see(frames)
        self.end_connections()
        self._ranges[-1].stop = None
        # Chunks and pieces end them in another order.
        self.survey.connections.sort(key=lambda one: (one.first_us, one.connection))
        self._tell(files)
        self.survey.ranges = len(self._ranges)
        return self.survey

    def _tell(self, files: CaptureFiles) -> None:
        kafka = {one.connection: one for one in self.survey.connections}
        unanswered, early = self.turns.unanswered(), self.turns.early()
        all_names = self.flows.connections
        is_kafka = [one in kafka and kafka[one].is_kafka for one in all_names]
        self.survey.span_us = self._times.span_us(np.array(is_kafka, np.bool_))
        self._keep(NAMES, pickle.dumps(self._names, pickle.HIGHEST_PROTOCOL))
        for number, one in enumerate(self._ranges):
            within, at_once = files.until(one.stop, one.rows)
            names = {all_names[place] for place in one.connections}
            told = Hindsight(
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
            known = RangeContext(within, one.stop, told, software, at_once)
            self._keep(known_name(number), pickle.dumps(known, pickle.HIGHEST_PROTOCOL))


def bodies(
    frames: FrameColumns, facts: HeaderColumns, name: str, release: str | None
) -> Iterator[pa.RecordBatch]:
    """The rows of one message's table that frames carry."""
    entry = catalog().entry(name)
    rows = np.flatnonzero(facts.api_key == entry.api_key)
    if not len(rows):
        return
    some = build_paired(frames.take(rows), facts.take(rows), Hindsight())
    carried = some.filter(pc.equal(some["body"], name))
    if len(carried):
        yield message_rows(carried, name, release=release)


def software_in(rows: pa.RecordBatch) -> Iterator[tuple[str, int, Software]]:
    """The connection, the frame's index and the software of requests that say it."""
    named = pc.struct_field(rows["body"], "client_software_name")
    kept = rows.filter(pc.fill_null(pc.not_equal(named, ""), False))
    for connection, index, body in zip(
        *(kept[name].to_pylist() for name in ("connection", "frame_index", "body")), strict=True
    ):
        version = body["client_software_version"] or None
        yield connection, index, (body["client_software_name"], version)


def topics_told(
    frames: FrameColumns,
    facts: HeaderColumns,
    release: str | None,
    wanted: NumpyArray | None = None,
) -> Iterator[tuple[int, frozenset[TopicName]]]:
    """The rows of responses that name some topics, of those that are wanted, and these topics.

    What has the bytes of another one is not decoded again: clients ask for the same again and
    again, and much of what a broker says is this.
    """
    api_key = catalog().entry(TOPIC_NAMES_MESSAGE).api_key
    rows = np.flatnonzero(
        (facts.api_key == api_key) & frames.is_response & (True if wanted is None else wanted)
    )
    if not len(rows):
        return
    _, first, which = np.unique(_alike(frames, facts, rows), return_index=True, return_inverse=True)
    read = rows[first]
    some = frames.take(read)
    names = [some.connections[one] for one in some.connection.tolist()]
    place_of = {both: at for at, both in enumerate(zip(names, some.index.tolist(), strict=True))}
    found: dict[int, frozenset[TopicName]] = {}
    for decoded in bodies(some, facts.take(read), TOPIC_NAMES_MESSAGE, release):
        for connection, index, topics in _topics_in(decoded):
            found[place_of[connection, index]] = topics
    for row, one in zip(rows.tolist(), which.tolist(), strict=True):
        if one in found:
            yield row, found[one]


def _alike(frames: FrameColumns, facts: HeaderColumns, rows: NumpyArray) -> NumpyArray:
    """Give a number for each row: two have the same if their bodies are decoded to the same."""
    begins = np.minimum(frames.start[rows] + CORRELATION_ID_SIZE, frames.stop[rows])
    sizes = frames.stop[rows] - begins
    different = -1 - np.arange(len(rows))
    if sizes.sum() > INT32_MAX:
        return different
    offsets = np.zeros(len(rows) + 1, np.int32)
    np.cumsum(sizes, out=offsets[1:])
    data = gather_bytes(frames.data, begins, offsets)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    texts = pa.Array.from_buffers(pa.binary(), len(rows), buffers)
    codes = np.asarray(texts.dictionary_encode().indices).astype(np.int64)
    versions = facts.api_version[rows].astype(np.int64) & _UINT16
    alike = codes << 32 | versions
    # Of what was not plain nobody knows here what it hangs on.
    plain = ~np.isin(rows, [*facts.odd, *frames.error])
    return np.where(plain, alike, different)


def _topics_in(rows: pa.RecordBatch) -> Iterator[tuple[str, int, frozenset[TopicName]]]:
    """The connection, the frame's index and the topics of responses that name some."""
    lists = pc.struct_field(rows["body"], "topics")
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_pylist()
    topics = pc.list_flatten(lists)
    ids = pc.struct_field(topics, "topic_id").to_pylist()
    names = pc.struct_field(topics, "name").to_pylist()
    at = 0
    for connection, index, size in zip(
        rows["connection"].to_pylist(), rows["frame_index"].to_pylist(), sizes, strict=True
    ):
        both = zip(ids[at : at + size], names[at : at + size], strict=True)
        at += size
        found = frozenset((one, name) for one, name in both if one is not None and name is not None)
        if found:
            yield connection, index, found


class _FrameTimes:
    """When the first and the last frame of each connection was seen."""

    def __init__(self) -> None:
        self._first = np.zeros(0, np.int64)
        self._last = np.zeros(0, np.int64)

    def note(self, frames: FrameColumns) -> None:
        self._make_room(len(frames.connections))
        np.minimum.at(self._first, frames.connection, frames.time_us)
        np.maximum.at(self._last, frames.connection, frames.time_us)

    def _make_room(self, connections: int) -> None:
        more = connections - len(self._first)
        if more > 0:
            self._first = np.append(self._first, np.full(more, INT64_MAX))
            self._last = np.append(self._last, np.full(more, INT64_MIN))

    def span_us(self, wanted: NumpyArray) -> int:
        """From the first to the last frame of some connections; 0 where they have none."""
        self._make_room(len(wanted))
        wanted = wanted & (self._last >= self._first)
        if not wanted.any():
            return 0
        return int(self._last[wanted].max() - self._first[wanted].min())


class SegmentOrder:
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
        return self.goes_on(segments.file, *clocks(segments))

    def goes_on(self, file: str, keys: list[KeyClocks], clock: int) -> bool:
        """Take in a part of a file, by the clock of that part alone; whether it is in order."""
        if file != self._file:
            self._file, self._clock = file, 0
        for name, begins, ends in keys:
            known = self._last.get(name)
            if known is not None and known > (max(begins, self._clock), file):
                return False
            self._last[name] = max(ends, self._clock), file
        self._clock = max(self._clock, clock)
        return True


def clocks(segments: SegmentColumns) -> tuple[list[KeyClocks], int]:
    """The clock at the first and at the last segment of each key in a chunk, and at its end."""
    found = np.maximum.accumulate(segments.timestamp_us)
    # Of those that are put at one place the last stays.
    first, last = np.empty((2, len(segments.keys)), np.int64)
    first[segments.key[::-1]] = found[::-1]
    last[segments.key] = found
    keys = np.flatnonzero(np.bincount(segments.key))
    columns = (keys.tolist(), first[keys].tolist(), last[keys].tolist())
    told = [(segments.keys[key], begins, ends) for key, begins, ends in zip(*columns, strict=True)]
    return told, int(found[-1])


CutPosition = FilePosition | MergePosition | None
"""Where a range begins or ends: None at the start and at the end of the capture."""


class CaptureFiles(Protocol):
    """The files of a capture, in its order."""

    def until(self, stop: CutPosition, rows: int) -> tuple[tuple[InputFile, ...], MergePlan | None]:
        """Give the files of the next range, which ends there after so many segments."""


class SequentialFiles:
    """Files that are read one after the other, of which any row is found by where it lies.

    There may be a million, so that nobody goes through all their names for each piece.
    """

    def __init__(self, files: list[InputFile]) -> None:
        self._files = files
        self._places = {one.name: place for place, one in enumerate(files)}
        self._start: FilePosition | None = None

    def between(self, start: FilePosition | None, stop: FilePosition | None) -> list[InputFile]:
        """The files from one position to another; None is the start or the end of all."""
        first = 0 if start is None else self._places[start.file]
        end = len(self._files) if stop is None else self._places[stop.file] + 1
        return self._files[first:end]

    def until(
        self, stop: CutPosition, _rows: int
    ) -> tuple[tuple[InputFile, ...], MergePlan | None]:
        """See `Files`."""
        end = stop if isinstance(stop, FilePosition) else None
        within, self._start = self.between(self._start, end), end
        return tuple(within), None


class MergedFiles:
    """Files that are merged by time."""

    def __init__(self, asked: AnalysisRequest, looks: list[FileLook]) -> None:
        self._asked = asked
        # A clock begins at 0.
        found = [(QueuedFile(max(0, one.first_us), one.source.name), one.source) for one in looks]
        found.sort(key=lambda one: one[0])
        self._waiting = [waiting for waiting, _ in found]
        self._sources = {source.name: source for _, source in found}
        self._front = MergePosition((), 0)

    def reader(self) -> MergedReader:
        """Read all of them."""
        return _merged(self._asked, self._waiting, tuple(self._sources.values()))

    def until(self, stop: CutPosition, rows: int) -> tuple[tuple[InputFile, ...], MergePlan | None]:
        """See `Files`."""
        before = self._front
        is_last = not isinstance(stop, MergePosition)
        if isinstance(stop, MergePosition):
            self._front = stop
        last = len(self._waiting) if is_last else self._front.begun
        waiting = tuple(self._waiting[before.begun : last])
        names = [one.position.file for one in before.under_way] + [one.file for one in waiting]
        within = tuple(self._sources[name] for name in names)
        return within, MergePlan(waiting, None if is_last else rows)


def reader_between(
    asked: AnalysisRequest, known: RangeContext, start: CutPosition
) -> SegmentReader | MergedReader:
    """Read the segments of a range that begins there."""
    at_once = known.at_once
    if at_once is not None:
        front = start if isinstance(start, MergePosition) else None
        return _merged(asked, at_once.waiting, known.files, front, at_once.rows)
    start = start if isinstance(start, FilePosition) else None
    stop = known.stop if isinstance(known.stop, FilePosition) else None
    return make_reader(asked, list(known.files), start, stop)


def _merged(
    asked: AnalysisRequest,
    waiting: list[QueuedFile] | tuple[QueuedFile, ...],
    files: tuple[InputFile, ...],
    start: MergePosition | None = None,
    rows: int | None = None,
) -> MergedReader:
    return MergedReader(
        waiting,
        under_way=() if start is None else start.under_way,
        rows=rows,
        chunk_bytes=asked.chunk_bytes,
        most_skipped=asked.range_bytes,
        opener=partial(make_opener, files),
        show_credentials=asked.show_credentials,
    )
