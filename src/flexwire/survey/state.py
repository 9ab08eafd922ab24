"""The state of a survey while it goes through a capture, and its ranges."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from flexwire.capture.pairing.pairing import Hindsight, Judgement, Pairing, build_paired
from flexwire.capture.reassembly.flows import Flows
from flexwire.capture.reassembly.frames import gather_bytes
from flexwire.capture.reassembly.merging import MergedReader, MergePosition, QueuedFile
from flexwire.capture.reassembly.segments import FilePosition, SegmentReader
from flexwire.schema.catalog import catalog
from flexwire.survey.client_instances import find_instances
from flexwire.survey.request import (
    NAMES,
    MergePlan,
    RangeContext,
    RangeStart,
    Survey,
    make_opener,
    make_reader,
    range_context_name,
    range_origins_name,
    range_start_name,
)
from flexwire.survey.saved_state import SavedState, SavedStateError
from flexwire.survey.speculation import key_of
from flexwire.tables.frames import Introductions
from flexwire.tables.messages import message_rows
from flexwire.tables.spec_places import TOPIC_NAMES_MESSAGE
from flexwire.wire.limits import INT32_MAX, INT64_MAX, INT64_MIN
from flexwire.wire.segment_layout import CORRELATION_ID_SIZE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from flexwire.capture.pairing.pairing import HeaderColumns
    from flexwire.capture.reassembly.connections import CapturedConnection
    from flexwire.capture.reassembly.frames import FrameColumns
    from flexwire.capture.reassembly.segments import SegmentColumns
    from flexwire.columnar.arrays import NumpyArray
    from flexwire.storage.input_file import InputFile
    from flexwire.survey.client_instances import GivenInstance
    from flexwire.survey.request import AnalysisRequest, FileLook
    from flexwire.tables.frames import Software


SOFTWARE_MESSAGE = "ApiVersionsRequest"
"""The message in which a client names its software, since version 3 (KIP-511)."""

_UINT16 = 0xFFFF


class UnprovenError(Exception):
    """The surveys of the pieces cannot be used, so the capture has to be surveyed in order."""


class LateError(UnprovenError):
    """The capture is older than the end of the analysis from whose state it should continue."""


TopicName = tuple[str, str]
"""The id and the name of a topic."""

KeyClocks = tuple[str, int, int]
"""A connection key, and the clock of the file at its first and at its last segment."""


@dataclass(slots=True)
class _OpenRange:
    """The facts about one range so far."""

    size: int = 0
    rows: int = 0
    stop: CutPosition = None
    connections: set[int] = field(default_factory=set)


class SurveyState:
    """Takes the frames of a capture in order. `finish` keeps the facts about the whole capture."""

    def __init__(
        self,
        request: AnalysisRequest,
        keep: Callable[[str, bytes], None],
        before: SavedState | None = None,
    ) -> None:
        self._request = request
        self._keep = keep
        self._has_start = before is not None
        if before is None:
            flows = Flows(brokers=request.brokers)
            pairing = Pairing(show_credentials=request.show_credentials)
            before = SavedState(flows, pairing, {}, {}, {}, {}, 0)
        self.flows, self.pairing = before.flows, before.pairing
        self._software, self._instances = before.software, before.instances
        self._names, self._began = before.names, before.began
        self._names_before = dict(before.names)
        self.order = SegmentOrder(self.flows.ends())
        self._asked_before = self.pairing.unanswered()
        self._ranges: list[_OpenRange] = []
        self._times = _FrameTimes()
        self.survey = Survey()

    @property
    def size(self) -> int:
        """How many bytes the range has so far."""
        return self._ranges[-1].size

    def begin_range(self, position: CutPosition, keys: Iterable[str] | None = None) -> None:
        """Begin a range at a position; None is the start of the capture.

        With ``keys``, the range contains only connections of these keys and is not the last one.
        Then only the state of these connections is kept.
        """
        number = len(self._ranges)
        self._ranges.append(_OpenRange())
        if number or self._has_start:
            flows, pairing = self.flows, self.pairing
            if keys is not None:
                wanted = set(keys)
                flows = flows.only(keys)
                pairing = pairing.only(lambda name: key_of(name) in wanted)
            snapshot = RangeStart(position, flows, pairing)
            self._keep(range_start_name(number), pickle.dumps(snapshot, pickle.HIGHEST_PROTOCOL))

    def add(self, size: int, stop: CutPosition, rows: int = 0) -> None:
        """Count bytes and segments of the range, which ends at ``stop`` for now."""
        self._ranges[-1].size += size
        self._ranges[-1].rows += rows
        self._ranges[-1].stop = stop

    def see(self, frames: FrameColumns, preset: HeaderColumns | None = None) -> HeaderColumns:
        """Take in frames. If some are ``preset``, the caller reads the bodies of all frames."""
        headers = self.pairing.read_headers(frames, preset)
        self._ranges[-1].connections |= set(np.unique(frames.connection).tolist())
        self._times.note(frames)
        if preset is None:
            self.read(frames, headers)
        return headers

    def read(self, frames: FrameColumns, headers: HeaderColumns) -> None:
        """Read the bodies of frames that say something about the whole capture."""
        for rows in decode_bodies(frames, headers, SOFTWARE_MESSAGE, self._request.release):
            for connection, index, software in find_software(rows):
                self.note_software(connection, index, software)
        for row, given in find_instances(frames, headers, self._instances):
            self.note_instance(frames.connections[frames.connection[row]], given)
        named = find_topic_names(frames, headers, self._request.release)
        for topics in {topics for _, topics in named}:
            self.note_names(topics)

    def note_software(self, connection: str, index: int, software: Software) -> None:
        """Take in the software that the request with this index names. The first request counts."""
        earlier = self._software.get(connection)
        if earlier is None or index < earlier[0]:
            self._software[connection] = index, software

    def note_instance(self, connection: str, given: GivenInstance) -> None:
        """Take in the client instance id that a frame gives. The first frame counts."""
        self._instances[connection] = min(given, self._instances.get(connection, given))

    def note_names(self, names: Iterable[TopicName]) -> None:
        """Take in names of topics. If an id has two names, the one that sorts last stays."""
        for identity, name in set(names):
            self._names[identity] = max(name, self._names.get(identity, name))

    def end_connections(self) -> None:
        """Take in which connections have ended."""
        for ended in self.flows.ended():
            self._note_connection(ended)
            self.pairing.end(ended.connection)

    def _note_connection(self, connection: CapturedConnection) -> None:
        client_id = self.pairing.client_id(connection.connection)
        self.survey.connections.append(msgspec.structs.replace(connection, client_id=client_id))

    def finish(self, files: CaptureFiles) -> Survey:
        """End the capture, which has these files, and keep the entries for each range."""
        rest, paused = self.flows.pause() if self._request.pauses else (self.flows.finish(), [])
        for frames in rest:
            self.see(frames)
        self.end_connections()
        for connection in paused:
            self._note_connection(connection)
        self._ranges[-1].stop = None
        # Chunks and pieces end connections in another order.
        self.survey.connections.sort(key=lambda ended: (ended.first_us, ended.connection))
        self._tell(files)
        self.survey.ranges = len(self._ranges)
        self.survey.topic_names = dict(self._names.items() - self._names_before.items())
        if self._request.continuation is not None and self._request.pauses:
            saved = self._saved(self._request.continuation.run)
            self.survey.state, self.survey.held_bytes = saved.packed()
            self.survey.end_us = saved.end_us
        return self.survey

    def _saved(self, run: str) -> SavedState:
        """Return the state of the connections that are open, for a later analysis."""
        names = set(self.flows.open_names())
        return SavedState(
            self.flows,
            self.pairing,
            {name: self._software[name] for name in names & self._software.keys()},
            {name: self._instances[name] for name in names & self._instances.keys()},
            self._names,
            {name: self._began.get(name, run) for name in names},
            max(self.flows.ends().values(), default=0),
        )

    def _tell(self, files: CaptureFiles) -> None:
        """Keep the facts about the whole capture for ranges, and complete the connection rows."""
        ended = {connection.connection: connection for connection in self.survey.connections}
        known = self._introductions(
            {name for name, one in ended.items() if one.is_kafka and one.reads_as_kafka}
        )
        unanswered, early = self.pairing.unanswered(), self.pairing.early()
        self.survey.connections = [
            self._completed(connection, known, unanswered) for connection in self.survey.connections
        ]
        all_names = self.flows.connections
        is_kafka = [name in ended and ended[name].is_kafka for name in all_names]
        self.survey.span_us = self._times.span_us(np.array(is_kafka, np.bool_))
        self._keep(NAMES, pickle.dumps(self._names, pickle.HIGHEST_PROTOCOL))
        for number, part in enumerate(self._ranges):
            its_files, merge_plan = files.until(part.stop, part.rows)
            names = {all_names[place] for place in part.connections}
            hindsight = Hindsight(
                judgements={
                    name: Judgement(
                        ended[name].is_kafka,
                        ended[name].reads_as_kafka,
                        ended[name].seen_from_start,
                    )
                    for name in names & ended.keys()
                },
                unanswered={name: unanswered[name] for name in names & unanswered.keys()},
                early={name: early[name] for name in names & early.keys()},
            )
            context = RangeContext(
                its_files,
                part.stop,
                hindsight,
                known.only(names),
                merge_plan,
                has_start=number > 0 or self._has_start,
                is_paused=self._request.pauses,
            )
            self._keep(range_context_name(number), pickle.dumps(context, pickle.HIGHEST_PROTOCOL))
            if self._request.continuation is not None:
                origins = {name: self._began[name] for name in names & self._began.keys()}
                data = pickle.dumps(origins, pickle.HIGHEST_PROTOCOL)
                self._keep(range_origins_name(number), data)

    def _introductions(self, names: set[str]) -> Introductions:
        """Return the known facts about the clients of some connections."""
        return Introductions(
            {name: self._software[name][1] for name in names & self._software.keys()},
            {name: self._instances[name].text for name in names & self._instances.keys()},
        )

    def _completed(
        self,
        connection: CapturedConnection,
        known: Introductions,
        unanswered: Mapping[str, list[int]],
    ) -> CapturedConnection:
        """Return a connection with its client, and with its facts from earlier analyses."""
        name = connection.connection
        software_name, software_version = known.software.get(name, (None, None))
        asked_before = {*self._asked_before.get(name, ())}
        believed = connection.is_kafka and connection.reads_as_kafka
        return msgspec.structs.replace(
            connection,
            client_instance_id=known.instances.get(name),
            client_id=connection.client_id if believed else None,
            client_software_name=software_name,
            client_software_version=software_version,
            began_in=self._began.get(name),
            answered_indexes=tuple(sorted(asked_before.difference(unanswered.get(name, ()))))
            or None,
        )


def decode_bodies(
    frames: FrameColumns, headers: HeaderColumns, name: str, release: str | None
) -> Iterator[pa.RecordBatch]:
    """Return the rows of one message's table for frames."""
    entry = catalog().entry(name)
    rows = np.flatnonzero(headers.api_key == entry.api_key)
    if not len(rows):
        return
    batch = build_paired(frames.take(rows), headers.take(rows), Hindsight())
    carried = batch.filter(pc.equal(batch["body"], name))
    if len(carried):
        yield message_rows(carried, name, release=release)


def find_software(rows: pa.RecordBatch) -> Iterator[tuple[str, int, Software]]:
    """Return the connection, the frame's index and the software of requests that name it."""
    named = pc.struct_field(rows["body"], "client_software_name")
    naming = rows.filter(pc.fill_null(pc.not_equal(named, ""), False))
    for connection, index, body in zip(
        *(naming[name].to_pylist() for name in ("connection", "frame_index", "body")), strict=True
    ):
        version = body["client_software_version"] or None
        yield connection, index, (body["client_software_name"], version)


def find_topic_names(
    frames: FrameColumns,
    headers: HeaderColumns,
    release: str | None,
    wanted: NumpyArray | None = None,
) -> Iterator[tuple[int, frozenset[TopicName]]]:
    """Return the rows of responses that name topics, and those topics.

    Only ``wanted`` rows are read, if they are given. A response with the same bytes as another one
    is not decoded again, because clients repeat the same request and these responses are a large
    share of a broker's traffic.
    """
    api_key = catalog().entry(TOPIC_NAMES_MESSAGE).api_key
    rows = np.flatnonzero(
        (headers.api_key == api_key) & frames.is_response & (True if wanted is None else wanted)
    )
    if not len(rows):
        return
    _, first, groups = np.unique(
        _alike(frames, headers, rows), return_index=True, return_inverse=True
    )
    read = rows[first]
    representatives = frames.take(read)
    names = [representatives.connections[place] for place in representatives.connection.tolist()]
    indexes = zip(names, representatives.index.tolist(), strict=True)
    group_of = {connection_and_index: group for group, connection_and_index in enumerate(indexes)}
    topics_of: dict[int, frozenset[TopicName]] = {}
    for decoded in decode_bodies(representatives, headers.take(read), TOPIC_NAMES_MESSAGE, release):
        for connection, index, topics in _topics_in(decoded):
            topics_of[group_of[connection, index]] = topics
    for row, group in zip(rows.tolist(), groups.tolist(), strict=True):
        if group in topics_of:
            yield row, topics_of[group]


def _alike(frames: FrameColumns, headers: HeaderColumns, rows: NumpyArray) -> NumpyArray:
    """Return a number for each row. Rows with the same number have bodies that decode alike."""
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
    versions = headers.api_version[rows].astype(np.int64) & _UINT16
    alike = codes << 32 | versions
    # A row that was not plain may decode differently, for reasons unknown at this point.
    plain = ~np.isin(rows, [*headers.odd, *frames.error])
    return np.where(plain, alike, different)


def _topics_in(rows: pa.RecordBatch) -> Iterator[tuple[str, int, frozenset[TopicName]]]:
    """Return the connection, the frame's index and the topics of responses that name some."""
    lists = pc.struct_field(rows["body"], "topics")
    sizes = pc.fill_null(pc.list_value_length(lists), 0).to_pylist()
    topics = pc.list_flatten(lists)
    ids = pc.struct_field(topics, "topic_id").to_pylist()
    names = pc.struct_field(topics, "name").to_pylist()
    at = 0
    for connection, index, size in zip(
        rows["connection"].to_pylist(), rows["frame_index"].to_pylist(), sizes, strict=True
    ):
        pairs = zip(ids[at : at + size], names[at : at + size], strict=True)
        at += size
        named = frozenset(
            (topic_id, name)
            for topic_id, name in pairs
            if topic_id is not None and name is not None
        )
        if named:
            yield connection, index, named


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

    def span_us(self, connections: NumpyArray) -> int:
        """Return the time from the first to the last frame of some connections, or 0."""
        self._make_room(len(connections))
        connections = connections & (self._last >= self._first)
        if not connections.any():
            return 0
        return int(self._last[connections].max() - self._first[connections].min())


def load_state(request: AnalysisRequest, data: bytes | None) -> SavedState | None:
    """Return the saved state that an analysis begins with, if there is any.

    Raises `SavedStateError` if it cannot be read, or was written with other options.
    """
    if data is None:
        return None
    saved = SavedState.from_bytes(data)
    if saved.flows.brokers != request.brokers:
        raise SavedStateError("it was written with other brokers or ports")
    if saved.pairing.show_credentials != request.show_credentials:
        raise SavedStateError("it was written with another choice about credentials")
    return saved


LATE_US: Final = 60_000_000
"""A later analysis continues a connection if its segments are late by no more than this."""


class SegmentOrder:
    """Says whether the segments of each connection come in order, also across files.

    A file is read in its own order. Its clock is the latest time in it so far. Two files overlap if
    a connection continues in the second one at a clock behind that of the first. ``ends`` are the
    times of the last segments in an earlier analysis, by connection key.
    """

    def __init__(self, ends: dict[str, int] | None = None) -> None:
        self._ends = ends or {}
        self._file = ""
        self._clock = 0
        self._last: dict[str, tuple[int, str]] = {}

    def keeps(self, segments: SegmentColumns) -> bool:
        """Take in a chunk; return whether it is in order. Raises `LateError`."""
        return self.goes_on(segments.file, *read_clocks(segments))

    def check_late(self, segments: SegmentColumns) -> None:
        """Take in a chunk that was merged, and so is in order. Raises `LateError`."""
        if self._ends:
            self._check_late(read_clocks(segments)[0])

    def _check_late(self, keys: list[KeyClocks]) -> None:
        for name, begins, _ in keys if self._ends else ():
            end = self._ends.pop(name, None)
            if end is not None and begins < end - LATE_US:
                raise LateError

    def goes_on(self, file: str, keys: list[KeyClocks], clock: int) -> bool:
        """Take in a part of a file, by its own clock alone; return whether it is in order.

        Raises `LateError` if the part is older than the end of the earlier analysis.
        """
        self._check_late(keys)
        if file != self._file:
            self._file, self._clock = file, 0
        for name, begins, ends in keys:
            before = self._last.get(name)
            if before is not None and before > (max(begins, self._clock), file):
                return False
            self._last[name] = max(ends, self._clock), file
        self._clock = max(self._clock, clock)
        return True


def read_clocks(segments: SegmentColumns) -> tuple[list[KeyClocks], int]:
    """Return the clock at the first and last segment of each key in a chunk, and at its end."""
    clock = np.maximum.accumulate(segments.timestamp_us)
    # If several values are assigned to one place, the last one stays.
    first, last = np.empty((2, len(segments.keys)), np.int64)
    first[segments.key[::-1]] = clock[::-1]
    last[segments.key] = clock
    keys = np.flatnonzero(np.bincount(segments.key))
    columns = (keys.tolist(), first[keys].tolist(), last[keys].tolist())
    names = [segments.keys[key] for key in columns[0]]
    return list(zip(names, *columns[1:], strict=True)), int(clock[-1])


CutPosition = FilePosition | MergePosition | None
"""Where a range begins or ends. None is the start and the end of the capture."""


class CaptureFiles(Protocol):
    """The files of a capture, in its order."""

    def until(self, stop: CutPosition, rows: int) -> tuple[tuple[InputFile, ...], MergePlan | None]:
        """Return the files of the next range, which ends at ``stop`` after ``rows`` segments."""


class SequentialFiles:
    """Files that are read one after the other.

    There may be a million files. So the files of a piece are found by name, without a search
    through all files.
    """

    def __init__(self, files: list[InputFile]) -> None:
        self._files = files
        self._places = {file.name: place for place, file in enumerate(files)}
        self._start: FilePosition | None = None

    def between(self, start: FilePosition | None, stop: FilePosition | None) -> list[InputFile]:
        """Return the files from one position to another; None is the start or the end of all."""
        first = 0 if start is None else self._places[start.file]
        end = len(self._files) if stop is None else self._places[stop.file] + 1
        return self._files[first:end]

    def until(
        self, stop: CutPosition, _rows: int
    ) -> tuple[tuple[InputFile, ...], MergePlan | None]:
        """See `CaptureFiles`."""
        end = stop if isinstance(stop, FilePosition) else None
        within, self._start = self.between(self._start, end), end
        return tuple(within), None


class MergedFiles:
    """Files that are merged by time."""

    def __init__(self, request: AnalysisRequest, looks: list[FileLook]) -> None:
        self._request = request
        # The clock of a file begins at 0.
        self._queue = sorted(QueuedFile(max(0, look.first_us), look.source.name) for look in looks)
        sources = {look.source.name: look.source for look in looks}
        self._sources = {queued.file: sources[queued.file] for queued in self._queue}
        self._start = MergePosition((), 0)

    def reader(self) -> MergedReader:
        """Return a reader of all files."""
        return _make_merged_reader(self._request, self._queue, tuple(self._sources.values()))

    def until(self, stop: CutPosition, rows: int) -> tuple[tuple[InputFile, ...], MergePlan | None]:
        """See `CaptureFiles`."""
        start = self._start
        is_last = not isinstance(stop, MergePosition)
        if isinstance(stop, MergePosition):
            self._start = stop
        last = len(self._queue) if is_last else self._start.begun
        begun = tuple(self._queue[start.begun : last])
        names = [progress.position.file for progress in start.under_way]
        names += [queued.file for queued in begun]
        within = tuple(self._sources[name] for name in names)
        return within, MergePlan(begun, None if is_last else rows)


def make_range_reader(
    request: AnalysisRequest, context: RangeContext, start: CutPosition
) -> SegmentReader | MergedReader:
    """Return a reader of the segments of a range that begins at ``start``."""
    merge_plan = context.merge_plan
    if merge_plan is not None:
        place = start if isinstance(start, MergePosition) else None
        return _make_merged_reader(
            request, merge_plan.queued, context.files, place, merge_plan.rows
        )
    start = start if isinstance(start, FilePosition) else None
    stop = context.stop if isinstance(context.stop, FilePosition) else None
    return make_reader(request, list(context.files), start, stop)


def _make_merged_reader(
    request: AnalysisRequest,
    queued: list[QueuedFile] | tuple[QueuedFile, ...],
    files: tuple[InputFile, ...],
    start: MergePosition | None = None,
    rows: int | None = None,
) -> MergedReader:
    return MergedReader(
        queued,
        under_way=() if start is None else start.under_way,
        rows=rows,
        chunk_bytes=request.chunk_bytes,
        most_skipped=request.range_bytes,
        opener=partial(make_opener, files),
        show_credentials=request.show_credentials,
    )
