"""Merge the survey of one piece into the true state of the capture before it.

The kernels' result for a connection depends on its segments and on the state of its two ends. The
kernels look at two parts of this state to decide which segments to process: the sequence numbers,
and the held bytes of frames. If the guesses about these two parts were right, the piece's result is
the true result. If a frame crosses into the piece, its first bytes are held, and the piece contains
the rest of it. That frame must end exactly where the piece guessed that the next frame begins. If
it is unknown where frames begin, the kernels skip only bytes in which no frame can begin, whatever
came before them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from flexwire.capture.pairing import layout as L  # noqa: N812 - a short prefix for a few names
from flexwire.capture.pairing.apis import api_table
from flexwire.capture.pairing.pairing import HeaderColumns
from flexwire.capture.reassembly.course import NOTED_FRAMES
from flexwire.capture.reassembly.frames import FrameColumns, join_frames, pick_rows
from flexwire.capture.reassembly.packet_scan import FileNotes
from flexwire.capture.reassembly.streams import FRAMES
from flexwire.schema.catalog import catalog
from flexwire.survey.client_instances import assigning_api_keys, present_api_keys
from flexwire.survey.piece_survey import ExchangeIsolation, number_first_steps
from flexwire.survey.request import make_reader
from flexwire.survey.speculation import HEAD_BYTES, MARK, MARK_ID, FastPathStep, key_of
from flexwire.survey.state import UnprovenError
from flexwire.tables.spec_places import TOPIC_NAMES_MESSAGE
from flexwire.wire.limits import INT64_MIN
from flexwire.wire.segment_layout import CORRELATION_ID_IN_REQUEST, PREFIX_LENGTH

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from flexwire.capture.reassembly.assembly import FrameAssembler
    from flexwire.capture.reassembly.connections import CapturedFrame
    from flexwire.capture.reassembly.segments import FilePosition, SegmentColumns, SegmentReader
    from flexwire.capture.reassembly.streams import Handoff, HandoffResult, SideResult, SideState
    from flexwire.columnar.arrays import NumpyArray
    from flexwire.survey.capture_files import SequentialFiles
    from flexwire.survey.pieces import PieceFrames, PieceSummary
    from flexwire.survey.request import AnalysisRequest
    from flexwire.survey.speculation import StepLog
    from flexwire.survey.state import SurveyState


_NUMBER = struct.Struct(">i")

Payloads = tuple[bytes | None, bytes | None]
"""The payloads of the first request and of the first response, if they exist."""


class OverlapError(UnprovenError):
    """Files must be merged, because they overlap in time and contain the same connections."""


class CrossingFrame(NamedTuple):
    """A frame that crosses into the piece: its payload, and the time of its held bytes."""

    payload: bytes
    last_us: int


class Proof(NamedTuple):
    """The true history of a connection. ``indexes`` must be added to the indexes of its frames."""

    connection: str
    result: HandoffResult
    indexes: tuple[int, int]
    crossings: tuple[CrossingFrame | None, CrossingFrame | None]


def prove(handoff: Handoff, step: FastPathStep, payloads: Payloads, limit: int) -> Proof | None:
    """Return the true result for a connection in its true state, or None if the guess was wrong."""
    guess, result = step.handoff, step.result
    request = _SideProof(handoff.request, guess.request, result.request, limit)
    response = _SideProof(handoff.response, guess.response, result.response, limit)
    sides = (request, response)
    if handoff.client != guess.client or not all(side.goes_on() for side in sides):
        return None
    for side, is_crossing, payload in zip(sides, step.is_crossing, payloads, strict=True):
        if side.seeks:
            continue
        if not (side.crosses(payload) if is_crossing else side.is_same()):
            return None
    noted = _true_notes(step, request.crossing, response.crossing)
    if noted is None:
        return None
    return Proof(
        handoff.connection,
        replace(result, noted=noted, request=request.side_result, response=response.side_result),
        (request.index, response.index),
        (request.crossing, response.crossing),
    )


class _SideProof:
    """One end of a connection: its true state, its guessed state, and its result in the step."""

    def __init__(
        self, true: SideState, guess: SideState, side_result: SideResult, limit: int
    ) -> None:
        self._true, self._guess, self._limit = true, guess, limit
        self.side_result = side_result
        self.index = true.next_index - guess.next_index
        self.crossing: CrossingFrame | None = None

    @property
    def seeks(self) -> bool:
        """True if it is unknown where frames begin in the bytes of this end."""
        return self._guess.seeks != FRAMES

    def goes_on(self) -> bool:
        """Return whether the step begins with the next byte of this end."""
        true, guess, side_result = self._true, self._guess, self.side_result
        if true.sequence != guess.sequence or true.seeks != guess.seeks:
            return False
        return side_result.size <= true.room and not (
            side_result.repeated and true.before < guess.before
        )

    def is_same(self) -> bool:
        """Return whether the held bytes of a frame equal the guessed bytes."""
        true, guess = self._true, self._guess
        return true.held == guess.held and (
            not true.held or (true.first_us, true.last_us) == (guess.first_us, guess.last_us)
        )

    def crosses(self, payload: bytes | None) -> bool:
        """Return whether the held frame continues as guessed.

        If the frame is complete, it has a ``payload``.
        """
        true, side_result = self._true, self.side_result
        held_by_piece = self._guess.held[HEAD_BYTES:]
        tail = side_result.held[HEAD_BYTES:] if payload is None else payload[len(MARK) :]
        if not (true.held.endswith(held_by_piece) and tail.startswith(held_by_piece)):
            return False
        following = tail[len(held_by_piece) :]
        frame = true.held + following
        if len(frame) < PREFIX_LENGTH:
            length = None
        else:
            (length,) = _NUMBER.unpack_from(frame)
            if not 0 < length <= self._limit:
                return False
        if payload is None:
            if length is not None and length + PREFIX_LENGTH <= len(frame):
                return False
            self._grow(frame, following)
            return True
        if length is None or length + PREFIX_LENGTH != len(frame) or not following:
            return False
        # The piece put a mark in front of this frame, which changed the frame's length.
        sizes = side_result.sizes - len(payload) - PREFIX_LENGTH + len(frame)
        last = length if side_result.frames == 1 else side_result.length
        self.side_result = side_result._replace(sizes=sizes, length=last)
        self.crossing = CrossingFrame(
            frame[PREFIX_LENGTH:], true.last_us if true.held else INT64_MIN
        )
        return True

    def _grow(self, frame: bytes, following: bytes) -> None:
        true, side_result = self._true, self.side_result
        first_us, last_us = side_result.first_us, side_result.last_us
        if true.held:
            first_us, last_us = min(true.first_us, first_us), max(true.last_us, last_us)
        elif not following:
            first_us, last_us = true.first_us, true.last_us
        self.side_result = side_result._replace(held=frame, first_us=first_us, last_us=last_us)


def _true_notes(
    step: FastPathStep, request: CrossingFrame | None, response: CrossingFrame | None
) -> list[tuple[bool, int]] | None:
    """Return the correlation ids, with those of crossing frames, or None if one is uncertain."""
    noted = list(step.result.noted)
    for is_request, crossing in ((True, request), (False, response)):
        places = [place for place, note in enumerate(noted) if note == (is_request, MARK_ID)]
        if crossing is None:
            continue
        if not places and step.frames > NOTED_FRAMES:
            # Later frames have replaced this frame.
            continue
        if len(places) != 1 or step.frames > NOTED_FRAMES:
            return None
        noted[places[0] : places[0] + 1] = [
            (is_request, note)
            for note in read_correlation_ids(crossing.payload, is_request=is_request)
        ]
    return noted


def read_correlation_ids(payload: bytes, *, is_request: bool) -> list[int]:
    """Return the correlation id of a frame, or an empty list if the frame ends before the id."""
    start = CORRELATION_ID_IN_REQUEST if is_request else 0
    if len(payload) < start + _NUMBER.size:
        return []
    return [_NUMBER.unpack_from(payload, start)[0]]


# The approximate number of bytes in a group of frames that are processed as Python objects.
_SEEN_BYTES = 64 << 20


@dataclass(slots=True)
class _Round:
    """Rows and other frames of many connections. The frames of one connection are adjacent."""

    rows: list[NumpyArray] = field(default_factory=list)
    frames: list[CapturedFrame] = field(default_factory=list)


def _topics_api_key() -> int:
    return int(catalog().entry(TOPIC_NAMES_MESSAGE).api_key or 0)


def _telling_api_keys(api_keys: Iterable[int]) -> list[int]:
    """Return the api keys whose responses contain facts about the whole capture."""
    return [_topics_api_key(), *assigning_api_keys(api_keys)]


class PieceMerger:
    """Merge a piece into the state of a survey that ends where the piece begins."""

    def __init__(
        self,
        request: AnalysisRequest,
        files: SequentialFiles,
        state: SurveyState,
        summary: PieceSummary,
    ) -> None:
        self._request = request
        self._files = files
        self._state = state
        self._flows = state.flows
        self._summary = summary
        self._frames: PieceFrames = summary.frames
        self._rounds: list[_Round] = []
        self._proven_segments: dict[str, int] = {}  # The number of verified segments of each key.
        self._rows_of = self._by_key()
        self._isolation = ExchangeIsolation(summary.frames.left_out, state.pairing)
        self._first_steps = number_first_steps(summary.logs)
        rows = len(self._frames.connection)
        self._connection = np.full(rows, -1, np.int32)
        self._index = self._frames.index.copy()
        self._time_us = self._frames.time_us.copy()
        self._payloads: dict[int, bytes] = {}
        # Responses whose bodies the piece did not pass on, and the connections for which these
        # bodies may contain facts.
        headers, has_payload = self._frames.headers, self._frames.stop > self._frames.start
        self._lacks_body = (headers.kind == L.UNPAIRED) & (headers.is_preset > 0) & ~has_payload
        self._asking: set[str] = set()
        if self._lacks_body.any():
            keys = _telling_api_keys(catalog().api_keys())
            self._asking = set().union(*map(state.pairing.awaiting, keys))

    def run(self) -> None:
        """Merge the whole piece. Raises `UnprovenError`."""
        state, summary, flows = self._state, self._summary, self._flows
        for file, keys, clock in summary.clocks:
            if not state.order.goes_on(file, keys, clock):
                raise OverlapError
        for key in summary.keys:
            self._take(key)
        self._see_all()
        self._read_again()
        flows.files.update(summary.files)
        state.end_connections()

    def _by_key(self) -> dict[str, NumpyArray]:
        """Return the rows of each key, in order."""
        frames = self._frames
        numbers: dict[str, int] = {}
        keys = [numbers.setdefault(key_of(name), len(numbers)) for name in frames.names]
        of_row = np.array(keys, np.int64)[frames.connection] if keys else frames.connection
        order = np.argsort(of_row, kind="stable")
        bounds = np.searchsorted(of_row[order], np.arange(len(numbers) + 1))
        return {key: order[bounds[number] : bounds[number + 1]] for key, number in numbers.items()}

    def _take(self, key: str) -> None:
        flows, summary = self._flows, self._summary
        is_known = flows.has(key)
        # Assemblers are kept in the order in which their keys first appeared.
        assembler = flows.take_back(key)
        rows = self._rows_of.get(key, np.zeros(0, np.int64))
        fresh = summary.fresh.get(key)
        log = summary.logs.get(key)
        if fresh is not None and not is_known:
            flows.adopt(key, fresh, summary.ended.get(key, []))
            self._connection[rows] = self._true_numbers(self._frames.connection[rows])
            self._round(0).rows.append(rows)
        elif log is not None and is_known:
            self._follow(key, assembler, log, rows)
        else:
            self._proven_segments[key] = 0

    def _true_numbers(self, connections: NumpyArray) -> NumpyArray:
        """Return the true numbers of connections to which the piece gave its own numbers."""
        used, places = np.unique(connections, return_inverse=True)
        names = self._frames.names
        numbers = [self._flows.number(names[number]) for number in used.tolist()]
        return np.array(numbers, np.int32)[places]

    def _follow(self, key: str, assembler: FrameAssembler, log: StepLog, rows: NumpyArray) -> None:
        """Use the steps of a log until one step cannot be verified."""
        flows, at, segments, number = self._flows, 0, 0, 0
        ordinals, first_step = self._frames.ordinal[rows], self._first_steps[key]
        for step_number, step in enumerate(log.steps, first_step):
            start, stop = np.searchsorted(ordinals, (at, at + step.frames)).tolist()
            step_rows = rows[start:stop]
            if not isinstance(step, FastPathStep):
                if self._shakes_hands(step_rows):
                    self._proven_segments[key] = segments
                    return
                frames = assembler.push(step.segment)
                flows.note_ended(assembler)
                self._check(frames)
                self._round(number).frames += frames
                at, segments, number = at + step.frames, segments + 1, number + 1
                continue
            proof = self._proof(assembler, step, step_rows)
            if proof is not None and not self._is_isolated(proof, step_number):
                proof = None
            if proof is None:
                self._proven_segments[key] = segments
                return
            assembler.take_back(proof.result)
            self._count(proof, step_rows)
            self._round(number).rows.append(step_rows)
            at, segments, number = at + step.frames, segments + step.result.segments, number + 1
        if not log.is_whole:
            self._proven_segments[key] = segments

    def _proof(
        self, assembler: FrameAssembler, step: FastPathStep, rows: NumpyArray
    ) -> Proof | None:
        handoff = assembler.hand_off()
        if handoff is None:
            return None
        if self._state.pairing.flags(handoff.connection) & L.BY_OBJECTS:
            return None
        frames = self._frames
        is_unread = self._lacks_body[rows]
        if is_unread.any() and handoff.connection in self._asking:
            return None
        is_response = frames.is_response[rows]
        requests, responses = rows[~is_response], rows[is_response]
        payloads = self._first_payload(requests), self._first_payload(responses)
        proof = prove(handoff, step, payloads, self._flows.limit)
        if proof is None:
            return None
        request = proof.crossings[0]
        if request is not None and api_table().is_handshake(request.payload):
            return None
        for its_rows, crossing in zip((requests, responses), proof.crossings, strict=True):
            if crossing is not None:
                row = int(its_rows[0])
                self._payloads[row] = crossing.payload
                self._time_us[row] = max(int(self._time_us[row]), crossing.last_us)
        return proof

    def _first_payload(self, rows: NumpyArray) -> bytes | None:
        if not len(rows):
            return None
        start, stop = self._frames.start[rows[0]], self._frames.stop[rows[0]]
        return self._frames.data[start:stop].tobytes()

    def _is_isolated(self, proof: Proof, step: int) -> bool:
        """Return whether the exchanges that a step left out are isolated from all other frames."""
        for is_request, crossing in zip((True, False), proof.crossings, strict=True):
            if crossing is not None:
                self._note(proof.connection, crossing.payload, is_request=is_request)
        return self._isolation.is_isolated(step, proof.connection)

    def _note(self, connection: str, payload: bytes, *, is_request: bool) -> None:
        self._isolation.note(connection, read_correlation_ids(payload, is_request=is_request))

    def _count(self, proof: Proof, rows: NumpyArray) -> None:
        frames = self._frames
        ask, answer = proof.indexes
        self._connection[rows] = self._flows.number(proof.connection)
        self._index[rows] += np.where(frames.is_response[rows], answer, ask)

    def _shakes_hands(self, rows: NumpyArray) -> bool:
        """Return whether one of these requests changes how later frames are read."""
        if not len(rows):
            return False
        headers = self._frames.headers
        asks = rows[headers.kind[rows] == L.REQUEST]
        versions = zip(
            headers.api_key[asks].tolist(), headers.api_version[asks].tolist(), strict=True
        )
        return any(api_table().shakes_hands(*api) for api in versions)

    def _check(self, frames: list[CapturedFrame]) -> None:
        """Raise `UnprovenError` if a frame changes how later frames are read."""
        for frame in frames:
            if frame.direction == "request" and api_table().is_handshake(frame.payload):
                raise UnprovenError
            self._note(frame.connection, frame.payload, is_request=frame.direction == "request")

    def _round(self, number: int) -> _Round:
        while len(self._rounds) <= number:
            self._rounds.append(_Round())
        return self._rounds[number]

    def _see_all(self) -> None:
        """Add the frames of all rounds, several rounds at a time.

        The overhead of one call equals the time that a thousand rows take.
        """
        rows: list[NumpyArray] = []
        frames: list[CapturedFrame] = []
        of_rows: list[int] = []
        of_frames: list[int] = []
        size, last = 0, len(self._rounds) - 1
        for number, merge_round in enumerate(self._rounds):
            round_rows = np.sort(np.concatenate([np.zeros(0, np.int64), *merge_round.rows]))
            rows.append(round_rows)
            of_rows += [number] * len(round_rows)
            frames += merge_round.frames
            of_frames += [number] * len(merge_round.frames)
            size += sum(len(frame.payload) for frame in merge_round.frames)
            if size >= _SEEN_BYTES or number == last:
                order = np.argsort(np.array(of_rows + of_frames, np.int64), kind="stable")
                self._see(np.concatenate(rows), frames, order)
                rows, frames, of_rows, of_frames, size = [], [], [], [], 0

    def _see(self, rows: NumpyArray, objects: list[CapturedFrame], order: NumpyArray) -> None:
        """Add rows of the piece, and frames that are objects, in the given order."""
        if not len(order):
            return
        flows, state = self._flows, self._state
        for frame in objects:
            flows.number(frame.connection)
        # The piece does not keep the names of their files.
        others = FrameColumns.from_frames(objects, "", flows.connections)
        places = np.argsort(order, kind="stable")
        parts = [(self._columns(rows), places[: len(rows)]), (others, places[len(rows) :])]
        frames, _ = join_frames(parts, flows.connections, "")
        piece = self._frames.headers
        preset = HeaderColumns.joined(
            [piece.take(rows), HeaderColumns.fresh(len(objects), [])], piece.clients
        )
        preset = preset.take(order)
        rows = np.append(rows, np.full(len(objects), -1))[order]
        is_preset = preset.is_preset.astype(np.bool_)
        piece_headers = preset.take(np.arange(len(rows)))
        for name in ("kind", "api_key", "api_version", "correlation_id", "client", "flags"):
            getattr(preset, name)[~is_preset] = 0
        headers = state.see(frames, preset)
        self._check_preset(frames, is_preset)
        has_payload = frames.stop > frames.start
        read = np.flatnonzero(has_payload & (~is_preset | (headers.kind == L.ANSWER)))
        state.read(frames.take(read), headers.take(read))
        is_told = self._is_told(headers, piece_headers, is_preset & ~has_payload)
        self._note_topics(rows, headers, is_told)
        self._note_instances(rows, frames, is_told)
        for place in _places_of(rows, self._frames.software):
            name = frames.connections[frames.connection[place]]
            software = self._frames.software[int(rows[place])]
            state.note_software(name, int(frames.index[place]), software)

    def _check_preset(self, frames: FrameColumns, is_preset: NumpyArray) -> None:
        """Raise `UnprovenError` for a preset row after a request that tokens may follow."""
        for place in np.unique(frames.connection[is_preset]).tolist():
            if not self._state.pairing.flags(frames.connections[place]) & L.BY_OBJECTS:
                continue
            is_its = frames.connection == place
            last = np.flatnonzero(is_its & is_preset)[-1]
            others = np.flatnonzero(is_its & ~is_preset & ~frames.is_response)
            first = (row for row in others if api_table().is_handshake(frames.payload(int(row))))
            if next(first, -1) < last:
                raise UnprovenError

    def _is_told(
        self, headers: HeaderColumns, piece_headers: HeaderColumns, is_unread: NumpyArray
    ) -> NumpyArray:
        """Return which responses contain a new fact and answer a correctly guessed request.

        Raises `UnprovenError` if a response ``is_unread`` here but the piece has read it.
        """
        keys = _telling_api_keys(present_api_keys(headers))
        tells = (headers.kind == L.ANSWER) & np.isin(headers.api_key, keys)
        is_same = (piece_headers.kind == headers.kind) & (piece_headers.api_key == headers.api_key)
        is_same &= piece_headers.api_version == headers.api_version
        if (is_unread & tells & ~is_same).any():
            raise UnprovenError
        is_told: NumpyArray = tells & is_same
        return is_told

    def _note_topics(self, rows: NumpyArray, headers: HeaderColumns, is_told: NumpyArray) -> None:
        """Record the names of topics in responses."""
        is_named = is_told & (headers.api_key == _topics_api_key())
        topics = self._frames.topics
        places = [place for place in _places_of(rows, topics) if is_named[place]]
        for names in {topics[int(rows[place])] for place in places}:
            self._state.note_names(names)

    def _note_instances(self, rows: NumpyArray, frames: FrameColumns, is_told: NumpyArray) -> None:
        """Record the client instance ids in requests and responses."""
        instances = self._frames.instances
        for place in _places_of(rows, instances):
            if is_told[place] or not frames.is_response[place]:
                name = frames.connections[frames.connection[place]]
                given = instances[int(rows[place])]._replace(frame_index=int(frames.index[place]))
                self._state.note_instance(name, given)

    def _columns(self, rows: NumpyArray) -> FrameColumns:
        piece = self._frames
        start, stop = piece.start[rows], piece.stop[rows]
        data = [piece.data]
        size = len(piece.data)
        if self._payloads:
            for place in np.flatnonzero(np.isin(rows, list(self._payloads))).tolist():
                payload = np.frombuffer(self._payloads[int(rows[place])], np.uint8)
                data.append(payload)
                start[place], stop[place] = size, size + len(payload)
                size += len(payload)
        return FrameColumns(
            connection=self._connection[rows],
            is_response=piece.is_response[rows],
            index=self._index[rows],
            time_us=self._time_us[rows],
            first_us=piece.first_us[rows],
            size=stop - start,
            start=start,
            stop=stop,
            connections=self._flows.connections,
            data=np.concatenate(data) if len(data) > 1 else data[0],
            file="",
            error=pick_rows(piece.error, rows),
            unplaced=set(pick_rows(dict.fromkeys(piece.unplaced), rows)),
        )

    def _read_again(self) -> None:
        """Process the segments of the keys that are not verified."""
        if not self._proven_segments:
            return
        state, left = self._state, dict(self._proven_segments)
        for reader in self._readers():
            for item in reader:
                if isinstance(item, FileNotes):
                    continue
                segments = _without(item, left)
                if len(segments):
                    state.survey.redone += len(segments)
                    state.see(self._flows.push(segments))

    def _readers(self) -> Iterator[SegmentReader]:
        """Yield readers for the parts of the piece that have an unverified key."""
        summary = self._summary
        numbers = [place for place, key in enumerate(summary.keys) if key in self._proven_segments]
        if any(chunk.start is None or chunk.stop is None for chunk in summary.chunks):
            yield self._reader(summary.start, summary.stop)
            return
        begin = end = None
        for chunk in summary.chunks:
            if not np.isin(chunk.keys, numbers).any():
                continue
            if begin is not None and chunk.start == end:
                end = chunk.stop
                continue
            if begin is not None:
                yield self._reader(begin, end)
            begin, end = chunk.start, chunk.stop
        if begin is not None:
            yield self._reader(begin, end)

    def _reader(self, start: FilePosition, stop: FilePosition | None) -> SegmentReader:
        return make_reader(self._request, self._files.between(start, stop), start, stop)


def _places_of(rows: NumpyArray, by_row: Mapping[int, object]) -> list[int]:
    """Return the places of the rows that have an entry in ``by_row``, in order."""
    places: list[int] = np.flatnonzero(np.isin(rows, list(by_row))).tolist()
    return places


def _without(segments: SegmentColumns, left_to_skip: dict[str, int]) -> SegmentColumns:
    """Return the segments of some keys, after ``left_to_skip`` skipped segments of each key."""
    is_kept = np.zeros(len(segments), np.bool_)
    for number in np.unique(segments.key).tolist():
        key = segments.keys[number]
        if key in left_to_skip:
            rows = np.flatnonzero(segments.key == number)
            skipped = min(left_to_skip[key], len(rows))
            left_to_skip[key] -= skipped
            is_kept[rows[skipped:]] = True
    return segments.take(np.flatnonzero(is_kept))
