"""The survey of one piece of a capture, without knowing what came before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from flexwire.capture.pairing.pairing import Facts, Turns
from flexwire.capture.reassembly.segments import FileNotes
from flexwire.kernels.capture import turns_layout as L  # noqa: N812 - a word in front of a few
from flexwire.kernels.engine import kernel
from flexwire.schema.catalog import catalog
from flexwire.survey.exchanges import steps_of, without_exchanges
from flexwire.survey.findings import SOFTWARE_MESSAGE, bodies, clocks, software_in, topics_told
from flexwire.survey.inputs import reader_of
from flexwire.survey.pieces import Chunk, Frames, Summary
from flexwire.survey.supposed import SupposedFlows

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from flexwire.capture.reassembly.frames import FrameColumns
    from flexwire.capture.reassembly.segments import Position, SegmentColumns
    from flexwire.survey.findings import Clocks, Topic
    from flexwire.survey.pieces import Piece
    from flexwire.survey.supposed import Log
    from flexwire.survey.survey_parts import Asked, Software

    Array = np.ndarray[Any, np.dtype[Any]]

# The request of a response may be known only to those before; so much of it travels for that.
_MOST_UNPAIRED = 64 * 1024
_COLUMNS = ("connection", "is_response", "index", "time_us", "first_us")


def has_kernels() -> bool:
    """Whether pieces can be surveyed: without kernels, no connection is lent."""
    return all(kernel(name) is not None for name in ("plan_frames", "join_frames", "read_turns"))


def survey_piece(asked: Asked, piece: Piece, *, is_first: bool) -> Summary | None:
    """Survey a piece; None where it is not known where it begins."""
    start = piece.begin()
    if start is None:
        return None
    survey = _PieceSurvey(asked, is_first=is_first)
    reader = reader_of(asked, list(piece.files), start, piece.until)
    at: Position | None = start
    notes: list[FileNotes] = []
    chunks: list[Chunk] = []
    for item in reader:
        if isinstance(item, FileNotes):
            notes.append(item)
            continue
        survey.take(item)
        after = reader.position
        chunks.append(Chunk(at, after, np.unique(item.key)))
        at = after
    flows = survey.flows
    assemblers, logs = flows.assemblers(), flows.logs()
    return Summary(
        start,
        reader.position,
        survey.size,
        notes,
        survey.clocks,
        chunks,
        reader.keys,
        flows.files,
        logs,
        assemblers,
        flows.ended_by_key,
        survey.frames(logs),
    )


class _PieceSurvey:
    """Takes the chunks of a piece."""

    def __init__(self, asked: Asked, *, is_first: bool) -> None:
        self._asked = asked
        self._is_first = is_first
        self.flows = SupposedFlows(brokers=asked.brokers, is_first=is_first)
        self._turns = Turns(show_credentials=asked.show_credentials)
        self.size = 0
        self.clocks: list[tuple[str, list[Clocks], int]] = []
        self._rows = 0
        self._columns: list[dict[str, Array]] = []
        self._facts: list[Facts] = []
        self._clients: dict[str, int] = {}
        self._payloads: list[Array] = []
        self._payload_bytes = 0
        self._error: dict[int, str] = {}
        self._unplaced: set[int] = set()
        self._software: dict[int, Software] = {}
        self._told: set[str] = set()  # connections whose software is known
        self._topics: dict[int, frozenset[Topic]] = {}
        self._same_topics: dict[frozenset[Topic], frozenset[Topic]] = {}

    def take(self, segments: SegmentColumns) -> None:
        self.size += segments.weight
        told, clock = clocks(segments)
        self.clocks.append((segments.file, told, clock))
        frames = self.flows.push(segments)
        if len(frames):
            self._take(frames)

    def _take(self, frames: FrameColumns) -> None:
        made_up = self._made_up(frames)
        real = np.flatnonzero(~made_up)
        facts = Facts.fresh(len(frames), [])
        some = frames if len(real) == len(frames) else frames.take(real)
        said = self._turns.facts(some)
        is_given = self._is_given(some, said)
        self._read(some, said, is_given, real)
        for name in ("kind", "api_key", "api_version", "correlation_id", "is_expected", "flags"):
            getattr(facts, name)[real] = getattr(said, name)
        asks = np.flatnonzero(is_given & ~some.is_response)
        facts.client[real[asks]] = self._numbered(said.client[asks], said.clients)
        facts.is_given[real] = is_given
        unpaired = (facts.kind == L.UNPAIRED) & (frames.stop - frames.start <= _MOST_UNPAIRED)
        self._keep(frames, facts, made_up, (facts.is_given == 0) | unpaired)

    def _made_up(self, frames: FrameColumns) -> Array:
        """Which frames began before the piece."""
        found = np.zeros(len(frames), np.bool_)
        for row in np.flatnonzero(frames.index == 0).tolist():
            one = self.flows.made_up.get(int(frames.connection[row]))
            if one is not None:
                found[row] = one.is_made_up("response" if frames.is_response[row] else "request")
        return found

    def _is_given(self, frames: FrameColumns, facts: Facts) -> Array:
        """Which frames need not be read again, whatever was before them."""
        found: Array = (facts.kind == L.REQUEST) & ~frames.is_response
        found |= np.isin(facts.kind, (L.UNPAIRED, L.ANSWER)) & frames.is_response
        found[[*facts.odd, *frames.error]] = False
        by_objects = [
            place
            for place in np.unique(frames.connection).tolist()
            if self._turns.flags(frames.connections[place]) & L.BY_OBJECTS
        ]
        if by_objects:
            found &= ~np.isin(frames.connection, by_objects)
        return found

    def _read(self, frames: FrameColumns, facts: Facts, is_given: Array, rows: Array) -> None:
        """Read the bodies that say something of the whole, as `Findings.read` does."""
        asks = is_given & ~frames.is_response
        for found, places in self._bodies(frames, facts, SOFTWARE_MESSAGE, asks):
            for name, index, software in software_in(found):
                if name not in self._told:
                    self._told.add(name)
                    self._software[self._rows + int(rows[places[name, index]])] = software
        answers = is_given & (facts.kind == L.ANSWER)
        for row, topics in topics_told(frames, facts, self._asked.release, answers):
            same = self._same_topics.setdefault(topics, topics)
            self._topics[self._rows + int(rows[row])] = same

    def _bodies(
        self, frames: FrameColumns, facts: Facts, name: str, wanted: Array
    ) -> Iterator[tuple[pa.RecordBatch, dict[tuple[str, int], int]]]:
        """Some rows of a message's table, and the places of all by connection and index."""
        rows = np.flatnonzero(wanted & (facts.api_key == catalog().entry(name).api_key))
        if not len(rows):
            return
        some = frames.take(rows)
        names = [frames.connections[one] for one in some.connection.tolist()]
        both = zip(names, some.index.tolist(), strict=True)
        places = dict(zip(both, rows.tolist(), strict=True))
        for found in bodies(some, facts.take(rows), name, self._asked.release):
            yield found, places

    def _numbered(self, clients: Array, texts: list[str]) -> Array:
        """The numbers of client ids, as the piece counts them."""
        used, places = np.unique(clients, return_inverse=True)
        numbers = [
            L.NO_CLIENT
            if one == L.NO_CLIENT
            else self._clients.setdefault(texts[one], len(self._clients))
            for one in used.tolist()
        ]
        return np.array(numbers, np.int32)[places]

    def _keep(
        self, frames: FrameColumns, facts: Facts, made_up: Array, with_payload: Array
    ) -> None:
        sizes = np.where(with_payload, frames.stop - frames.start, 0)
        stop = self._payload_bytes + np.cumsum(sizes)
        columns = {name: getattr(frames, name) for name in _COLUMNS}
        columns |= {"start": stop - sizes, "stop": stop, "made_up": made_up}
        self._columns.append(columns)
        for row in np.flatnonzero(sizes).tolist():
            self._payloads.append(frames.data[frames.start[row] : frames.stop[row]].copy())
        self._payload_bytes = int(stop[-1])
        self._error |= {self._rows + row: reason for row, reason in frames.error.items()}
        self._unplaced |= {self._rows + row for row in frames.unplaced}
        self._facts.append(facts)
        self._rows += len(frames)

    def frames(self, logs: dict[str, Log]) -> Frames:
        """The frames of the piece, but for exchanges that are over within a step of their log."""

        def column(name: str, kind: type) -> Array:
            parts: list[Array] = [np.asarray(one[name], kind) for one in self._columns]
            return np.concatenate([np.zeros(0, kind), *parts])

        frames = Frames(
            names=self.flows.connections,
            connection=column("connection", np.int32),
            is_response=column("is_response", np.bool_),
            index=column("index", np.int64),
            time_us=column("time_us", np.int64),
            first_us=column("first_us", np.int64),
            start=column("start", np.int64),
            stop=column("stop", np.int64),
            data=np.concatenate([np.zeros(0, np.uint8), *self._payloads]),
            facts=Facts.joined(self._facts, list(self._clients)),
            ordinal=column("start", np.int64),
            left_out=np.zeros((0, 2), np.int64),
            error=self._error,
            unplaced=self._unplaced,
            software=self._software,
            topics=self._topics,
        )
        steps = steps_of(frames, logs, is_first=self._is_first)
        made_up = column("made_up", np.bool_)
        return without_exchanges(frames, made_up, steps, is_first=self._is_first)
