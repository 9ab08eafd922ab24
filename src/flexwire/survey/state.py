"""The state of a survey during its pass over a capture, and its ranges."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np

from flexwire.capture.pairing.pairing import Hindsight, Judgement, Pairing
from flexwire.capture.pairing.saved import join_pairings
from flexwire.capture.reassembly.assembly import WHOLE
from flexwire.capture.reassembly.flows import Flows
from flexwire.survey.bodies import (
    SOFTWARE_MESSAGE,
    decode_bodies,
    find_software,
    find_topic_names,
)
from flexwire.survey.client_instances import find_instances
from flexwire.survey.request import (
    NAMES,
    RangeContext,
    RangeStart,
    Survey,
    range_context_name,
    range_origins_name,
    range_start_name,
)
from flexwire.survey.saved_state import SavedState, SavedStateError
from flexwire.survey.speculation import key_of
from flexwire.tables.frames import Introductions
from flexwire.wire.limits import INT64_MAX, INT64_MIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from flexwire.capture.pairing.pairing import HeaderColumns, RequestSummary
    from flexwire.capture.reassembly.assembly import ConnectionShare
    from flexwire.capture.reassembly.connections import CapturedConnection
    from flexwire.capture.reassembly.frames import FrameColumns
    from flexwire.capture.reassembly.packet_scan import FileNotes
    from flexwire.capture.reassembly.segments import SegmentColumns
    from flexwire.columnar.arrays import NumpyArray
    from flexwire.survey.bodies import TopicName
    from flexwire.survey.capture_files import CaptureFiles, CutPosition
    from flexwire.survey.client_instances import GivenInstance
    from flexwire.survey.request import AnalysisRequest
    from flexwire.tables.frames import Software


# The rank of a key consists of the number of its first chunk and its number in the reader.
_RANK_BITS = 32


class UnprovenError(Exception):
    """The surveys of the pieces cannot be used, so the capture must be surveyed in order."""


class LateError(UnprovenError):
    """The capture is older than the end of the analysis that it should continue."""


KeyClocks = tuple[str, int, int]
"""A connection key, and the clock of the file at the key's first and last segment."""


@dataclass(slots=True)
class OpenRange:
    """The facts about one range so far.

    ``connection`` numbers are indexes into `Flows.connections`.
    """

    size: int = 0
    rows: int = 0
    stop: CutPosition = None
    connections: set[int] = field(default_factory=set)


@dataclass(slots=True)
class SurveyPart:
    """The state of the survey of a share of the connections at the end of the capture.

    ``ranks`` give the keys of all shares the order in which they first appeared. ``forgotten`` and
    ``early`` come from the pairing. ``connections`` are the connections that have ended.
    """

    flows: Flows
    pairing: Pairing
    ranks: dict[str, int]
    ranges: list[OpenRange]
    times: FrameTimes
    notes: list[FileNotes]
    connections: list[CapturedConnection]
    forgotten: dict[str, list[int]]
    early: dict[str, dict[int, RequestSummary]]
    software: dict[str, tuple[int, Software]]
    instances: dict[str, GivenInstance]
    names: dict[str, str]

    @property
    def cuts(self) -> list[tuple[int, int, CutPosition]]:
        """The ends of the part's ranges."""
        return [(part.size, part.rows, part.stop) for part in self.ranges]


class SurveyState:
    """Process the frames of a capture in order. `finish` writes the facts about the whole capture.

    With a ``share`` of the connections, only the segments of that share are processed. `part` then
    returns the facts of the share, and another object joins the parts of all shares.
    """

    def __init__(
        self,
        request: AnalysisRequest,
        keep: Callable[[str, bytes], None],
        before: SavedState | None = None,
        share: ConnectionShare = WHOLE,
    ) -> None:
        self._share, self._shares, self._chunks = share, 1, 0
        self._request = request
        self._keep = keep
        self._has_start = before is not None
        if before is None:
            flows = Flows(brokers=request.brokers)
            pairing = Pairing(show_credentials=request.show_credentials)
            before = SavedState(flows, pairing, {}, {}, {}, {}, 0)
        self._ranks: dict[str, int] = {}
        if not share.is_whole:
            keys = list(before.flows.assemblers())
            self._ranks = {key: place for place, key in enumerate(keys, -len(keys))}
            self._ranks = {key: rank for key, rank in self._ranks.items() if share.has(key)}
            before = before.only(share.has)
        self.flows, self.pairing = before.flows, before.pairing
        self._software, self._instances = before.software, before.instances
        self._names, self._began = before.names, before.began
        self._names_before = dict(before.names)
        self.order = SegmentOrder(self.flows.ends())
        self._asked_before = self.pairing.unanswered()
        self._ranges: list[OpenRange] = []
        self._times = FrameTimes()
        self.survey = Survey()

    @property
    def size(self) -> int:
        """The number of bytes of the range so far."""
        return self._ranges[-1].size

    def begin_range(self, position: CutPosition, keys: Iterable[str] | None = None) -> None:
        """Begin a range at a position. None stands for the start of the capture.

        With ``keys``, the range contains only connections with these keys, and it is not the last
        range. Only the state of these connections is then written.
        """
        number = len(self._ranges)
        self._ranges.append(OpenRange())
        if number or self._has_start:
            flows, pairing = self.flows, self.pairing
            if keys is not None:
                wanted = set(keys)
                flows = flows.only(keys)
                pairing = pairing.only(lambda name: key_of(name) in wanted)
            snapshot = RangeStart(position, flows, pairing, self._ranks)
            name = range_start_name(number, self._share.number)
            self._keep(name, pickle.dumps(snapshot, pickle.HIGHEST_PROTOCOL))

    def add(self, size: int, stop: CutPosition, rows: int = 0) -> None:
        """Count bytes and segments of the range, which currently ends at ``stop``."""
        self._ranges[-1].size += size
        self._ranges[-1].rows += rows
        self._ranges[-1].stop = stop

    def push(self, segments: SegmentColumns) -> None:
        """Add the segments of a chunk."""
        if not self._share.is_whole:
            self._rank(segments)
        self.see(self.flows.push(segments))
        self.end_connections()

    def _rank(self, segments: SegmentColumns) -> None:
        """Rank new keys, chunk by chunk, in the order of the flows of all connections."""
        for number in np.flatnonzero(np.bincount(segments.key)).tolist():
            self._ranks.setdefault(segments.keys[number], self._chunks << _RANK_BITS | number)
        self._chunks += 1

    def see(self, frames: FrameColumns, preset: HeaderColumns | None = None) -> HeaderColumns:
        """Add frames. If some of them are ``preset``, the caller reads the bodies of all frames."""
        headers = self.pairing.read_headers(frames, preset)
        self._ranges[-1].connections |= set(np.unique(frames.connection).tolist())
        self._times.note(frames)
        if preset is None:
            self.read(frames, headers)
        return headers

    def read(self, frames: FrameColumns, headers: HeaderColumns) -> None:
        """Read the frame bodies that contain facts about the whole capture."""
        for rows in decode_bodies(frames, headers, SOFTWARE_MESSAGE, self._request.release):
            for connection, index, software in find_software(rows):
                self.note_software(connection, index, software)
        for row, given in find_instances(frames, headers, self._instances):
            self.note_instance(frames.connections[frames.connection[row]], given)
        named = find_topic_names(frames, headers, self._request.release)
        for topics in {topics for _, topics in named}:
            self.note_names(topics)

    def note_software(self, connection: str, index: int, software: Software) -> None:
        """Record the software that the request with this index names.

        Only the first request counts.
        """
        earlier = self._software.get(connection)
        if earlier is None or index < earlier[0]:
            self._software[connection] = index, software

    def note_instance(self, connection: str, given: GivenInstance) -> None:
        """Record the client instance id of a frame. Only the first frame counts."""
        self._instances[connection] = min(given, self._instances.get(connection, given))

    def note_names(self, names: Iterable[TopicName]) -> None:
        """Record names of topics. If an id has two names, the name that sorts last is kept."""
        for identity, name in set(names):
            self._names[identity] = max(name, self._names.get(identity, name))

    def end_connections(self) -> None:
        """Record which connections have ended."""
        for ended in self.flows.ended():
            self._note_connection(ended)
            self.pairing.end(ended.connection)

    def _note_connection(self, connection: CapturedConnection) -> None:
        client_id = self.pairing.client_id(connection.connection)
        self.survey.connections.append(msgspec.structs.replace(connection, client_id=client_id))

    def part(self) -> SurveyPart:
        """Return the facts of a share at the end of the capture."""
        return SurveyPart(
            self.flows,
            self.pairing,
            self._ranks,
            self._ranges,
            self._times,
            self.survey.notes,
            self.survey.connections,
            self.pairing.forgotten(),
            self.pairing.early(),
            self._software,
            self._instances,
            self._names,
        )

    def join(self, parts: Sequence[SurveyPart]) -> None:
        """Add the parts of all shares. Call this instead of adding segments.

        Raises `UnprovenError` if the ranges of the parts differ, which can happen if files have
        changed.
        """
        first = parts[0]
        if any(part.cuts != first.cuts for part in parts):
            raise UnprovenError
        self._shares = len(parts)
        self._ranges = [OpenRange(*cut) for cut in first.cuts]
        starts = [RangeStart(None, part.flows, part.pairing, part.ranks) for part in parts]
        start = join_starts(starts)
        self.flows, self.pairing = start.flows, start.pairing
        self.survey.notes += first.notes
        for part in parts:
            self._take_part(part)

    def _take_part(self, part: SurveyPart) -> None:
        known = part.flows.connections
        numbers = np.array([self.flows.number(name) for name in known], np.int64)
        self._times.add(part.times, numbers)
        for mine, theirs in zip(self._ranges, part.ranges, strict=True):
            mine.connections.update(numbers[list(theirs.connections)].tolist())
        self.survey.connections += part.connections
        self.pairing.know(part.forgotten, part.early)
        for connection, (index, software) in part.software.items():
            self.note_software(connection, index, software)
        for connection, given in part.instances.items():
            self.note_instance(connection, given)
        self.note_names(part.names.items())

    def finish(self, files: CaptureFiles) -> Survey:
        """End the capture, which consists of these files, and write the entries for each range."""
        rest, paused = self.flows.pause() if self._request.pauses else (self.flows.finish(), [])
        for frames in rest:
            self.see(frames)
        self.end_connections()
        for connection in paused:
            self._note_connection(connection)
        self._ranges[-1].stop = None
        # Chunks and pieces end connections in different orders.
        self.survey.connections.sort(key=lambda ended: (ended.first_us, ended.connection))
        self._tell(files)
        self.survey.ranges = len(self._ranges)
        self.survey.topic_names = dict(sorted(self._names.items() - self._names_before.items()))
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
        """Write the facts about the whole capture for ranges, and complete the connection rows."""
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
                shares=self._shares,
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
        """Return a connection with the facts about its client, and those of earlier analyses."""
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


def join_starts(starts: Sequence[RangeStart]) -> RangeStart:
    """Return the start of a range from the starts of all shares."""
    if len(starts) == 1:
        return starts[0]
    ranks = {key: rank for start in starts for key, rank in start.ranks.items()}
    return RangeStart(
        starts[0].position,
        Flows.joined([start.flows for start in starts], sorted(ranks, key=ranks.__getitem__)),
        join_pairings([start.pairing for start in starts]),
    )


class FrameTimes:
    """The times of the first and the last frame of each connection."""

    def __init__(self) -> None:
        self._first = np.zeros(0, np.int64)
        self._last = np.zeros(0, np.int64)

    def note(self, frames: FrameColumns) -> None:
        """Record the times of frames."""
        self._make_room(len(frames.connections))
        np.minimum.at(self._first, frames.connection, frames.time_us)
        np.maximum.at(self._last, frames.connection, frames.time_us)

    def add(self, times: FrameTimes, numbers: NumpyArray) -> None:
        """Add the times of other connections, which have these numbers in this object."""
        self._make_room(int(numbers.max(initial=-1)) + 1)
        numbers = numbers[: len(times._first)]
        self._first[numbers], self._last[numbers] = times._first, times._last

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
    """Return the saved state with which an analysis begins, or None if no state was saved.

    Raises `SavedStateError` if the state cannot be read, or was written with other options.
    """
    if data is None:
        return None
    saved = SavedState.from_bytes(data)
    if saved.flows.brokers != request.brokers:
        raise SavedStateError("the state was written with different brokers or ports")
    if saved.pairing.show_credentials != request.show_credentials:
        raise SavedStateError("the state was written with a different credentials setting")
    return saved


LATE_US: Final = 60_000_000
"""The largest delay of a connection's segments, in microseconds, after which a later analysis still
continues the connection.
"""


class SegmentOrder:
    """Check that the segments of each connection are in order, including across files.

    A file is read in its own order. The clock of a file is the latest time in it so far. Two files
    overlap if a connection continues in the second file at a clock before the clock of the first
    file. ``ends`` contains the times of the last segments of an earlier analysis, by connection
    key.
    """

    def __init__(self, ends: dict[str, int] | None = None) -> None:
        self._ends = ends or {}
        self._file = ""
        self._clock = 0
        self._last: dict[str, tuple[int, str]] = {}

    def keeps(self, segments: SegmentColumns) -> bool:
        """Check a chunk, and return whether it is in order. Raises `LateError`."""
        return self.goes_on(segments.file, *read_clocks(segments))

    def check_late(self, segments: SegmentColumns) -> None:
        """Check a chunk that is in order because it was merged. Raises `LateError`."""
        if self._ends and len(segments):
            self._check_late(read_clocks(segments)[0])

    def _check_late(self, keys: list[KeyClocks]) -> None:
        for name, begins, _ in keys if self._ends else ():
            end = self._ends.pop(name, None)
            if end is not None and begins < end - LATE_US:
                raise LateError

    def goes_on(self, file: str, keys: list[KeyClocks], clock: int) -> bool:
        """Add a part of a file, using only that file's clock. Return whether it is in order.

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
    clock = segments.clock_us
    if clock is None:
        clock = np.maximum.accumulate(segments.timestamp_us)
    # If several values are assigned to the same place, the last value is kept.
    first, last = np.empty((2, len(segments.keys)), np.int64)
    first[segments.key[::-1]] = clock[::-1]
    last[segments.key] = clock
    keys = np.flatnonzero(np.bincount(segments.key))
    columns = (keys.tolist(), first[keys].tolist(), last[keys].tolist())
    names = [segments.keys[key] for key in columns[0]]
    return list(zip(names, *columns[1:], strict=True)), int(clock[-1])
