"""The survey of one piece of a capture, merged into what is known of all that is before it.

What kernels make of a lent connection depends on how both ends stand, and on the segments. Only
sequence numbers, and what is held of frames, decide what they take. So if these were as supposed,
the same became of the connection as in the piece. Of a frame that crosses
into the piece, its first bytes are held, and the piece has its tail: it has to be whole exactly
where the piece supposed that the next one begins. Where no frame is known to begin, bytes are
passed over that surely begin none, whatever was before them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from flexwire.capture.pairing import layout as L  # noqa: N812 - a word in front of a few
from flexwire.capture.pairing.apis import api_table
from flexwire.capture.pairing.pairing import HeaderColumns
from flexwire.capture.reassembly.course import NOTED_FRAMES
from flexwire.capture.reassembly.flows import join_frames
from flexwire.capture.reassembly.frames import FrameColumns, pick_rows
from flexwire.capture.reassembly.packet_scan import FileNotes
from flexwire.capture.reassembly.streams import FRAMES
from flexwire.schema.catalog import catalog
from flexwire.survey.piece_survey import ExchangeIsolation, first_steps
from flexwire.survey.request import make_reader
from flexwire.survey.speculation import HEAD_BYTES, MARK, MARK_ID, FastPathStep, key_of
from flexwire.tables.spec_places import TOPIC_NAMES_MESSAGE
from flexwire.wire.limits import INT64_MIN
from flexwire.wire.segment_layout import CORRELATION_ID_IN_REQUEST, PREFIX_LENGTH

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from flexwire.capture.reassembly.assembly import FrameAssembler
    from flexwire.capture.reassembly.connections import CapturedFrame
    from flexwire.capture.reassembly.segments import FilePosition, SegmentColumns, SegmentReader
    from flexwire.capture.reassembly.streams import Handoff, HandoffResult, SideResult, SideState
    from flexwire.columnar.arrays import NumpyArray
    from flexwire.survey.pieces import PieceFrames, PieceSummary
    from flexwire.survey.request import AnalysisRequest
    from flexwire.survey.speculation import StepLog
    from flexwire.survey.state import SequentialFiles, SurveyState


_NUMBER = struct.Struct(">i")

Payloads = tuple[bytes | None, bytes | None]
"""Of requests and of responses the first frame's, if there is one."""


class UnprovenError(Exception):
    """The whole has to be surveyed in order: what was found out of a piece is of no use."""


class OverlapError(UnprovenError):
    """Files overlap in time and show the same connections, so they have to be merged."""


class CrossingFrame(NamedTuple):
    """A frame that crossed into the piece: its payload, and when what was held was last seen."""

    payload: bytes
    last_us: int


class Proof(NamedTuple):
    """What truly became of a connection; ``indexes`` are to be added to those of its frames."""

    connection: str
    taken: HandoffResult
    indexes: tuple[int, int]
    crossed: tuple[CrossingFrame | None, CrossingFrame | None]


def prove(lent: Handoff, run: FastPathStep, payloads: Payloads, limit: int) -> Proof | None:
    """Say what became of a connection that stands as ``lent``; None if it is not as supposed."""
    said, taken = run.lent, run.taken
    request = _SideProof(lent.request, said.request, taken.request, limit)
    response = _SideProof(lent.response, said.response, taken.response, limit)
    ends = (request, response)
    if lent.client != said.client or not all(one.goes_on() for one in ends):
        return None
    for one, is_crossing, payload in zip(ends, run.is_crossing, payloads, strict=True):
        if one.seeks:
            continue
        if not (one.crosses(payload) if is_crossing else one.is_same()):
            return None
    noted = _noted(run, request.crossed, response.crossed)
    if noted is None:
        return None
    return Proof(
        lent.connection,
        replace(taken, noted=noted, request=request.went, response=response.went),
        (request.index, response.index),
        (request.crossed, response.crossed),
    )


class _SideProof:
    """One end: how it truly stood, how it was said to, and how far it has come since."""

    def __init__(self, true: SideState, said: SideState, went: SideResult, limit: int) -> None:
        self._true, self._said, self._limit = true, said, limit
        self.went = went
        self.index = true.next_index - said.next_index
        self.crossed: CrossingFrame | None = None

    @property
    def seeks(self) -> bool:
        """Whether no frame is known to begin in it."""
        return self._said.seeks != FRAMES

    def goes_on(self) -> bool:
        """Whether its bytes are those that follow."""
        true, said, went = self._true, self._said, self.went
        if true.sequence != said.sequence or true.seeks != said.seeks:
            return False
        return went.size <= true.room and not (went.repeated and true.before < said.before)

    def is_same(self) -> bool:
        """Whether what is held of a frame is what was said."""
        true, said = self._true, self._said
        return true.held == said.held and (
            not true.held or (true.first_us, true.last_us) == (said.first_us, said.last_us)
        )

    def crosses(self, payload: bytes | None) -> bool:
        """Whether the frame that is held goes on as was said; ``payload`` if it became whole."""
        true, went = self._true, self.went
        known = self._said.held[HEAD_BYTES:]
        tail = went.held[HEAD_BYTES:] if payload is None else payload[len(MARK) :]
        if not (true.held.endswith(known) and tail.startswith(known)):
            return False
        following = tail[len(known) :]
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
        # In the piece it had its own length, and a mark.
        sizes = went.sizes - len(payload) - PREFIX_LENGTH + len(frame)
        last = length if went.frames == 1 else went.length
        self.went = went._replace(sizes=sizes, length=last)
        self.crossed = CrossingFrame(
            frame[PREFIX_LENGTH:], true.last_us if true.held else INT64_MIN
        )
        return True

    def _grow(self, frame: bytes, following: bytes) -> None:
        true, went = self._true, self.went
        first_us, last_us = went.first_us, went.last_us
        if true.held:
            first_us, last_us = min(true.first_us, first_us), max(true.last_us, last_us)
        elif not following:
            first_us, last_us = true.first_us, true.last_us
        self.went = went._replace(held=frame, first_us=first_us, last_us=last_us)


def _noted(
    run: FastPathStep, request: CrossingFrame | None, response: CrossingFrame | None
) -> list[tuple[bool, int]] | None:
    """The correlation ids noted, with those of frames that crossed; None where one is not sure."""
    noted = list(run.taken.noted)
    for is_request, crossed in ((True, request), (False, response)):
        places = [place for place, one in enumerate(noted) if one == (is_request, MARK_ID)]
        if crossed is None:
            continue
        if not places and run.frames > NOTED_FRAMES:
            # Others came after it.
            continue
        if len(places) != 1 or run.frames > NOTED_FRAMES:
            return None
        noted[places[0] : places[0] + 1] = [
            (is_request, one) for one in correlation_ids(crossed.payload, is_request=is_request)
        ]
    return noted


def correlation_ids(payload: bytes, *, is_request: bool) -> list[int]:
    """The correlation id of a frame; none where it ends before."""
    start = CORRELATION_ID_IN_REQUEST if is_request else 0
    if len(payload) < start + _NUMBER.size:
        return []
    return [_NUMBER.unpack_from(payload, start)[0]]


# So many bytes of frames that are objects are taken in at once.
_SEEN_BYTES = 64 << 20


@dataclass(slots=True)
class _Round:
    """Frames of many connections, of each such as follow one another: rows, and others."""

    rows: list[NumpyArray] = field(default_factory=list)
    frames: list[CapturedFrame] = field(default_factory=list)


def _asked_for_topics() -> int:
    return int(catalog().entry(TOPIC_NAMES_MESSAGE).api_key or 0)


class PieceMerger:
    """A piece that begins where all before it ends, on its way into the findings of these."""

    def __init__(
        self,
        asked: AnalysisRequest,
        files: SequentialFiles,
        findings: SurveyState,
        summary: PieceSummary,
    ) -> None:
        self._asked = asked
        self._files = files
        self._findings = findings
        self._flows = findings.flows
        self._summary = summary
        self._frames: PieceFrames = summary.frames
        self._rounds: list[_Round] = []
        self._failed: dict[str, int] = {}  # how many segments of a key counted
        self._rows_of = self._by_key()
        self._apart = ExchangeIsolation(summary.frames.left_out, findings.turns)
        self._first_steps = first_steps(summary.logs)
        rows = len(self._frames.connection)
        self._connection = np.full(rows, -1, np.int32)
        self._index = self._frames.index.copy()
        self._time_us = self._frames.time_us.copy()
        self._payloads: dict[int, bytes] = {}
        # Responses whose bodies are not here, and connections on which they may be of use.
        facts, has_payload = self._frames.facts, self._frames.stop > self._frames.start
        self._is_long = (facts.kind == L.UNPAIRED) & (facts.is_given > 0) & ~has_payload
        self._asking: set[str] = set()
        if self._is_long.any():
            self._asking = findings.turns.awaiting(_asked_for_topics())

    def run(self) -> None:
        """Take in all of it. Raises `UnprovenError`."""
        findings, summary, flows = self._findings, self._summary, self._flows
        for file, keys, clock in summary.clocks:
            if not findings.order.goes_on(file, keys, clock):
                raise OverlapError
        for key in summary.keys:
            self._take(key)
        self._see_all()
        self._read_again()
        flows.files.update(summary.files)
        findings.end_connections()

    def _by_key(self) -> dict[str, NumpyArray]:
        """The rows of each key, in order."""
        frames = self._frames
        numbers: dict[str, int] = {}
        keys = [numbers.setdefault(key_of(one), len(numbers)) for one in frames.names]
        of_row = np.array(keys, np.int64)[frames.connection] if keys else frames.connection
        order = np.argsort(of_row, kind="stable")
        bounds = np.searchsorted(of_row[order], np.arange(len(numbers) + 1))
        return {key: order[bounds[number] : bounds[number + 1]] for key, number in numbers.items()}

    def _take(self, key: str) -> None:
        flows, summary = self._flows, self._summary
        is_known = flows.has(key)
        # Assemblers stand in the order in which their keys appeared.
        assembler = flows.take_back(key)
        rows = self._rows_of.get(key, np.zeros(0, np.int64))
        fresh = summary.fresh.get(key)
        log = summary.logs.get(key)
        if fresh is not None and not is_known:
            flows.adopt(key, fresh, summary.ended.get(key, []))
            self._connection[rows] = self._numbered(self._frames.connection[rows])
            self._round(0).rows.append(rows)
        elif log is not None and is_known:
            self._follow(key, assembler, log, rows)
        else:
            self._failed[key] = 0

    def _numbered(self, connections: NumpyArray) -> NumpyArray:
        """The true numbers of connections that the piece has numbered."""
        used, places = np.unique(connections, return_inverse=True)
        names = self._frames.names
        numbers = [self._flows.number(names[one]) for one in used.tolist()]
        return np.array(numbers, np.int32)[places]

    def _follow(self, key: str, assembler: FrameAssembler, log: StepLog, rows: NumpyArray) -> None:
        """Take the steps of a log as long as they are proven."""
        flows, at, segments, number = self._flows, 0, 0, 0
        ordinals, first_step = self._frames.ordinal[rows], self._first_steps[key]
        for step_number, step in enumerate(log.steps, first_step):
            start, stop = np.searchsorted(ordinals, (at, at + step.frames)).tolist()
            its = rows[start:stop]
            if not isinstance(step, FastPathStep):
                if self._shakes_hands(its):
                    self._failed[key] = segments
                    return
                found = assembler.push(step.segment)
                flows.note_ended(assembler)
                self._check(found)
                self._round(number).frames += found
                at, segments, number = at + step.frames, segments + 1, number + 1
                continue
            proof = self._proof(assembler, step, its)
            if proof is not None and not self._is_apart(proof, step_number):
                proof = None
            if proof is None:
                self._failed[key] = segments
                return
            assembler.take_back(proof.taken)
            self._count(proof, its)
            self._round(number).rows.append(its)
            at, segments, number = at + step.frames, segments + step.taken.segments, number + 1
        if not log.is_whole:
            self._failed[key] = segments

    def _proof(
        self, assembler: FrameAssembler, run: FastPathStep, rows: NumpyArray
    ) -> Proof | None:
        lent = assembler.lend()
        if lent is None:
            return None
        if self._findings.turns.flags(lent.connection) & L.BY_OBJECTS:
            return None
        frames = self._frames
        is_unread = self._is_long[rows]
        if is_unread.any() and lent.connection in self._asking:
            return None
        is_response = frames.is_response[rows]
        ends = []
        for way in (False, True):
            its = rows[is_response == way]
            payload = frames.data[frames.start[its[0]] : frames.stop[its[0]]] if len(its) else None
            ends.append((its, None if payload is None else payload.tobytes()))
        (asks, asked), (answers, answered) = ends
        proof = prove(lent, run, (asked, answered), self._flows.limit)
        if proof is None:
            return None
        crossed = proof.crossed[0]
        if crossed is not None and api_table().is_handshake(crossed.payload):
            return None
        for its, one in zip((asks, answers), proof.crossed, strict=True):
            if one is not None:
                row = int(its[0])
                self._payloads[row] = one.payload
                self._time_us[row] = max(int(self._time_us[row]), one.last_us)
        return proof

    def _is_apart(self, proof: Proof, step: int) -> bool:
        """Whether the exchanges of a step that were left out are apart from all others."""
        for is_request, one in zip((True, False), proof.crossed, strict=True):
            if one is not None:
                self._note(proof.connection, one.payload, is_request=is_request)
        return self._apart.is_so(step, proof.connection)

    def _note(self, connection: str, payload: bytes, *, is_request: bool) -> None:
        self._apart.note(connection, correlation_ids(payload, is_request=is_request))

    def _count(self, proof: Proof, rows: NumpyArray) -> None:
        frames = self._frames
        ask, answer = proof.indexes
        self._connection[rows] = self._flows.number(proof.connection)
        self._index[rows] += np.where(frames.is_response[rows], answer, ask)

    def _shakes_hands(self, rows: NumpyArray) -> bool:
        """Whether a request among these rows says that those after it are read in another way."""
        if not len(rows):
            return False
        facts = self._frames.facts
        asks = rows[facts.kind[rows] == L.REQUEST]
        both = zip(facts.api_key[asks].tolist(), facts.api_version[asks].tolist(), strict=True)
        return any(api_table().shakes_hands(*one) for one in both)

    def _check(self, found: list[CapturedFrame]) -> None:
        """See that no frame changes how those after it are read."""
        for one in found:
            if one.direction == "request" and api_table().is_handshake(one.payload):
                raise UnprovenError
            self._note(one.connection, one.payload, is_request=one.direction == "request")

    def _round(self, number: int) -> _Round:
        while len(self._rounds) <= number:
            self._rounds.append(_Round())
        return self._rounds[number]

    def _see_all(self) -> None:
        """Take in the frames of all rounds, in few goes: each takes as long as a thousand rows."""
        rows: list[NumpyArray] = []
        frames: list[CapturedFrame] = []
        of_rows: list[int] = []
        of_frames: list[int] = []
        size, last = 0, len(self._rounds) - 1
        for number, one in enumerate(self._rounds):
            its = np.sort(np.concatenate([np.zeros(0, np.int64), *one.rows]))
            rows.append(its)
            of_rows += [number] * len(its)
            frames += one.frames
            of_frames += [number] * len(one.frames)
            size += sum(len(frame.payload) for frame in one.frames)
            if size >= _SEEN_BYTES or number == last:
                order = np.argsort(np.array(of_rows + of_frames, np.int64), kind="stable")
                self._see(np.concatenate(rows), frames, order)
                rows, frames, of_rows, of_frames, size = [], [], [], [], 0

    def _see(self, rows: NumpyArray, found: list[CapturedFrame], order: NumpyArray) -> None:
        """Take in rows of the piece's frames, and frames after them, in an order."""
        if not len(order):
            return
        flows, findings = self._flows, self._findings
        for frame in found:
            flows.number(frame.connection)
        # Of their file nothing is kept.
        others = FrameColumns.from_frames(found, "", flows.connections)
        places = np.argsort(order, kind="stable")
        made = [(self._columns(rows), places[: len(rows)]), (others, places[len(rows) :])]
        frames, _ = join_frames(made, flows.connections, "")
        piece = self._frames.facts
        given = HeaderColumns.joined(
            [piece.take(rows), HeaderColumns.fresh(len(found), [])], piece.clients
        )
        given = given.take(order)
        rows = np.append(rows, np.full(len(found), -1))[order]
        is_given = given.is_given.astype(np.bool_)
        said = given.take(np.arange(len(rows)))
        for name in ("kind", "api_key", "api_version", "correlation_id", "client", "flags"):
            getattr(given, name)[~is_given] = 0
        facts = findings.see(frames, given)
        self._check_given(frames, is_given)
        has_payload = frames.stop > frames.start
        read = np.flatnonzero(has_payload & (~is_given | (facts.kind == L.ANSWER)))
        findings.read(frames.take(read), facts.take(read))
        self._note_topics(rows, facts, said, is_given & ~has_payload)
        for place in _places(rows, self._frames.software):
            name = frames.connections[frames.connection[place]]
            software = self._frames.software[int(rows[place])]
            findings.note_software(name, int(frames.index[place]), software)

    def _check_given(self, frames: FrameColumns, is_given: NumpyArray) -> None:
        """See that no row was given after the request from which on its connection has tokens."""
        for place in np.unique(frames.connection[is_given]).tolist():
            if not self._findings.turns.flags(frames.connections[place]) & L.BY_OBJECTS:
                continue
            is_its = frames.connection == place
            last = np.flatnonzero(is_its & is_given)[-1]
            others = np.flatnonzero(is_its & ~is_given & ~frames.is_response)
            first = (one for one in others if api_table().is_handshake(frames.payload(int(one))))
            if next(first, -1) < last:
                raise UnprovenError

    def _note_topics(
        self, rows: NumpyArray, facts: HeaderColumns, said: HeaderColumns, is_unread: NumpyArray
    ) -> None:
        """Take in what the bodies of responses say, if they answer what the piece supposed."""
        is_named = (facts.kind == L.ANSWER) & (facts.api_key == _asked_for_topics())
        is_same = (said.kind == facts.kind) & (said.api_key == facts.api_key)
        is_same &= said.api_version == facts.api_version
        if (is_unread & is_named & ~is_same).any():
            raise UnprovenError
        topics = self._frames.topics
        places = [one for one in _places(rows, topics) if is_named[one] and is_same[one]]
        for some in {topics[int(rows[place])] for place in places}:
            self._findings.note_names(some)

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
        """Take in the segments of the keys that are not proven."""
        if not self._failed:
            return
        findings, left = self._findings, dict(self._failed)
        for reader in self._readers():
            for item in reader:
                if isinstance(item, FileNotes):
                    continue
                segments = _without(item, left)
                if len(segments):
                    findings.survey.redone += len(segments)
                    findings.see(self._flows.push(segments))

    def _readers(self) -> Iterator[SegmentReader]:
        """Readers of those parts of the piece that show one of these keys."""
        summary = self._summary
        wanted = [place for place, key in enumerate(summary.keys) if key in self._failed]
        if any(one.start is None or one.stop is None for one in summary.chunks):
            yield self._reader(summary.start, summary.stop)
            return
        begin = end = None
        for one in summary.chunks:
            if not np.isin(one.keys, wanted).any():
                continue
            if begin is not None and one.start == end:
                end = one.stop
                continue
            if begin is not None:
                yield self._reader(begin, end)
            begin, end = one.start, one.stop
        if begin is not None:
            yield self._reader(begin, end)

    def _reader(self, start: FilePosition, stop: FilePosition | None) -> SegmentReader:
        return make_reader(self._asked, self._files.between(start, stop), start, stop)


def _places(rows: NumpyArray, told: Mapping[int, object]) -> list[int]:
    """The places of those rows, in order, of which something is told."""
    found: list[int] = np.flatnonzero(np.isin(rows, list(told))).tolist()
    return found


def _without(segments: SegmentColumns, left: dict[str, int]) -> SegmentColumns:
    """Only the segments of some keys, without so many of each as are ``left`` to pass over."""
    kept = np.zeros(len(segments), np.bool_)
    for number in np.unique(segments.key).tolist():
        key = segments.keys[number]
        if key in left:
            rows = np.flatnonzero(segments.key == number)
            passed = min(left[key], len(rows))
            left[key] -= passed
            kept[rows[passed:]] = True
    return segments.take(np.flatnonzero(kept))
