"""The survey of one piece of a capture, without what came before it.

A request and its response that both stand in one step of a log change nothing for anything else:
what waits before them waits after them. That holds if nothing else on their connection has their
correlation id, in the piece (`without_exchanges` sees to that) and among what waits from before it,
or crosses into it (`Apart` finds that out). So of most frames a piece hands over no row.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from flexwire.capture.pairing import layout as L  # noqa: N812 - a word in front of a few
from flexwire.capture.pairing.pairing import HeaderColumns, Pairing
from flexwire.capture.reassembly.frames import pick_rows
from flexwire.capture.reassembly.segments import FileNotes
from flexwire.kernels import load_kernel
from flexwire.protocol.conversation import DEFAULT_IN_FLIGHT
from flexwire.schema.catalog import catalog
from flexwire.survey.pieces import PieceChunk, PieceFrames, PieceSummary
from flexwire.survey.request import make_reader
from flexwire.survey.speculation import FastPathStep, SpeculativeFlows, key_of
from flexwire.survey.state import SOFTWARE_MESSAGE, bodies, clocks, software_in, topics_told

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa

    from flexwire.capture.reassembly.frames import FrameColumns
    from flexwire.capture.reassembly.segments import FilePosition, SegmentColumns
    from flexwire.columnar.arrays import NumpyArray
    from flexwire.survey.pieces import Piece
    from flexwire.survey.request import AnalysisRequest
    from flexwire.survey.speculation import StepLog
    from flexwire.survey.state import KeyClocks, TopicName
    from flexwire.tables.frames import Software


_EXCHANGE_COLUMNS = ("connection", "is_response", "index", "time_us", "first_us", "start", "stop")
_TOLD = ("error", "software", "topics")
# So many requests wait at most of each: those from before, those of the piece, and those that only
# the whole knows. With more, the oldest could be forgotten, and which is that?
_MOST_WAITING: Final = DEFAULT_IN_FLIGHT // 4


class RowSteps(NamedTuple):
    """Where the rows of a piece belong: ``order`` is that of their keys, and in it of the rows.

    In that order, ``key`` numbers their keys, and ``step`` the runs of their logs, -1 for others.
    """

    order: NumpyArray
    key: NumpyArray
    step: NumpyArray


def first_steps(logs: Mapping[str, StepLog]) -> dict[str, int]:
    """The number of the first step of each log, where steps are numbered through."""
    sizes = np.cumsum([0, *(len(one.steps) for one in logs.values())]).tolist()
    return dict(zip(logs, sizes, strict=False))


def steps_of(frames: PieceFrames, logs: Mapping[str, StepLog], *, is_first: bool) -> RowSteps:
    """The steps of all rows; of the first piece, which supposes nothing, a connection is a step."""
    connection = frames.connection.astype(np.int64)
    if is_first:
        order = np.argsort(connection, kind="stable")
        return RowSteps(order, connection[order], connection[order])
    numbers: dict[str, int] = {}
    of_name = [numbers.setdefault(key_of(one), len(numbers)) for one in frames.names]
    key = np.array(of_name, np.int64)[connection] if of_name else connection
    order = np.argsort(key, kind="stable")
    firsts, steps, sizes = first_steps(logs), [], []
    for one, rows in zip(numbers, np.bincount(key, minlength=len(numbers)).tolist(), strict=True):
        left = rows
        log = logs.get(one)
        for number, step in enumerate([] if log is None else log.steps, firsts.get(one, 0)):
            steps.append(number if isinstance(step, FastPathStep) else -1)
            sizes.append(min(left, step.frames))
            left -= sizes[-1]
        steps.append(-1)
        sizes.append(left)
    return RowSteps(order, key[order], np.repeat(np.array(steps, np.int64), sizes))


def without_exchanges(
    frames: PieceFrames, made_up: NumpyArray, steps: RowSteps, *, is_first: bool
) -> PieceFrames:
    """Leave the rows out that need not be handed over; ``made_up`` are those of no true frame."""
    if not len(made_up):
        return frames
    step = np.empty_like(steps.step)
    step[steps.order] = steps.step
    asks, answers = _exchanges(frames, made_up, steps, step)
    is_left_out = _silent(frames) & ~_strange(frames, made_up) & (step >= 0)
    is_left_out[asks] = is_left_out[answers] = True
    other = np.full(len(step), -1)
    other[asks], other[answers] = answers, asks
    wanted = np.unique(np.concatenate([_wanted(frames, steps), _telling(frames, step)]))
    is_left_out[wanted] = False
    partners = other[wanted]
    is_left_out[partners[partners >= 0]] = False
    codes = np.zeros(0, np.int64)
    if not is_first:
        asks = asks[is_left_out[asks]]
        codes = np.unique(_codes(step[asks], frames.facts.correlation_id[asks]))
    ordinal = np.empty_like(step)
    firsts = np.searchsorted(steps.key, steps.key)
    ordinal[steps.order] = np.arange(len(step)) - firsts
    return _taken(frames, np.flatnonzero(~is_left_out), ordinal, _spans(codes))


def _taken(
    frames: PieceFrames, rows: NumpyArray, ordinal: NumpyArray, left_out: NumpyArray
) -> PieceFrames:
    some: dict[str, Any] = {name: getattr(frames, name)[rows] for name in _EXCHANGE_COLUMNS}
    some |= {name: pick_rows(getattr(frames, name), rows) for name in _TOLD}
    return replace(
        frames,
        **some,
        facts=frames.facts.take(rows),
        unplaced=set(pick_rows(dict.fromkeys(frames.unplaced), rows)),
        ordinal=ordinal[rows],
        left_out=left_out,
    )


def _silent(frames: PieceFrames) -> NumpyArray:
    """Which rows are requests that no response is expected of."""
    facts = frames.facts
    found: NumpyArray = (facts.kind == L.REQUEST) & (facts.is_given > 0) & (facts.is_expected == 0)
    return found


def _strange(frames: PieceFrames, made_up: NumpyArray) -> NumpyArray:
    """Which rows are of connections with frames of which others have to say what they are."""
    found = np.zeros(len(frames.names), np.bool_)
    found[frames.connection[(frames.facts.is_given == 0) & ~made_up]] = True
    return found[frames.connection]


def _exchanges(
    frames: PieceFrames, made_up: NumpyArray, steps: RowSteps, step: NumpyArray
) -> tuple[NumpyArray, NumpyArray]:
    """The rows of requests and of their responses that nothing else in the piece concerns."""
    kind, ids = frames.facts.kind, frames.facts.correlation_id
    is_given = frames.facts.is_given > 0
    rows = np.flatnonzero(is_given & ~_silent(frames) & ~_strange(frames, made_up))
    codes = _codes(frames.connection[rows], ids[rows])
    order = np.argsort(codes, kind="stable")
    rows, codes = rows[order], codes[order]
    begins = _begins(codes)
    starts = np.flatnonzero(begins)
    if not len(starts):
        return rows, rows
    sizes = np.diff(np.append(starts, len(rows)))
    is_odd = (np.arange(len(rows)) - np.repeat(starts, sizes)) % 2 == 1
    fits = kind[rows] == np.where(is_odd, L.ANSWER, L.REQUEST)
    by_turns = np.logical_and.reduceat(fits, starts) & (sizes % 2 == 0)
    asks = np.flatnonzero(np.repeat(by_turns, sizes) & ~is_odd)
    asks, answers = rows[asks], rows[asks + 1]
    within = (step[asks] == step[answers]) & (step[asks] >= 0)
    asks, answers = asks[within], answers[within]
    few = ~_crowded(frames, steps, asks, answers)[asks]
    return asks[few], answers[few]


def _crowded(
    frames: PieceFrames, steps: RowSteps, asks: NumpyArray, answers: NumpyArray
) -> NumpyArray:
    """Which rows are of keys with so many requests at once that some may be forgotten."""
    found = np.zeros(len(steps.order), np.bool_)
    change = np.zeros(len(steps.order), np.int64)
    change[(frames.facts.kind == L.REQUEST) & ~_silent(frames)] = 1
    change[answers] = -1
    waiting = np.cumsum(change[steps.order])
    if waiting.max(initial=0) <= _MOST_WAITING:
        return found
    starts = np.flatnonzero(_begins(steps.key))
    alone = change.copy()
    alone[asks] = alone[answers] = 0
    change -= alone
    # An exchange leaves nothing: each key begins with none that wait.
    most = np.maximum.reduceat(np.cumsum(change[steps.order]), starts)
    most += np.add.reduceat(alone[steps.order], starts)
    sizes = np.diff(np.append(starts, len(steps.order)))
    found[steps.order] = np.repeat(most > _MOST_WAITING, sizes)
    return found


def _wanted(frames: PieceFrames, steps: RowSteps) -> NumpyArray:
    """Rows that say of a step what its frames say together.

    They are its first and last, by their time, and its first and last request: by the last, and by
    all before it, it is known whether its connection may hold credentials.
    """
    order, facts = steps.order, frames.facts
    begins = _begins(steps.step) | _begins(steps.key)
    number = np.cumsum(begins) - 1
    times = frames.time_us[order]
    starts = np.flatnonzero(begins)
    found = []
    for ends in (np.minimum, np.maximum):
        places = np.flatnonzero(times == ends.reduceat(times, starts)[number])
        found.append(places[_begins(number[places])])
    asks = np.flatnonzero((facts.kind[order] == L.REQUEST) & (facts.is_given[order] > 0))
    begins = _begins(number[asks])
    found += [asks[begins], asks[np.roll(begins, -1)]]
    return order[np.concatenate(found)]


def _telling(frames: PieceFrames, step: NumpyArray) -> NumpyArray:
    """The rows whose bodies say something; of those of a step that say the same, the first."""
    found = {
        (int(step[row]), id(topics)): row for row, topics in sorted(frames.topics.items())[::-1]
    }
    return np.array([*frames.software, *found.values()], np.int64)


def _begins(column: NumpyArray) -> NumpyArray:
    """Where a value is another than that before it."""
    found: NumpyArray = np.ones(len(column), np.bool_)
    np.not_equal(column[1:], column[:-1], out=found[1:])
    return found


def _codes(number: NumpyArray, ids: NumpyArray) -> NumpyArray:
    return number.astype(np.int64) << L.SIDE_SHIFT | ids.astype(np.int64) & L.CORRELATION_MASK


def _spans(codes: NumpyArray) -> NumpyArray:
    """The first and the last of the numbers that follow one another."""
    if not len(codes):
        return np.zeros((0, 2), np.int64)
    starts = np.flatnonzero(np.diff(codes, prepend=codes[0] - 2) != 1)
    return np.stack([codes[starts], codes[np.append(starts[1:] - 1, -1)]], axis=1)


class ExchangeIsolation:
    """Whether the exchanges that were left out are apart from what only the whole knows.

    ``waiting`` is what waits from before the piece, and other frames are noted.
    """

    def __init__(self, left_out: NumpyArray, turns: Pairing) -> None:
        self._first, self._last = left_out[:, 0], left_out[:, 1]
        self._ids = turns.waiting() if len(left_out) else {}

    def note(self, connection: str, ids: Iterable[int]) -> None:
        """Take in the correlation ids of frames that the piece does not know as they truly are."""
        known = self._ids.get(connection, np.zeros(0, np.int64))
        self._ids[connection] = np.append(known, np.array([*ids], np.int64))

    def is_so(self, step: int, connection: str) -> bool:
        """Whether it is so of those of a step."""
        ids = self._ids.get(connection)
        if ids is None or not len(self._first):
            return True
        codes = _codes(np.array(step), ids)
        places = np.searchsorted(self._first, codes, "right") - 1
        is_within = (places >= 0) & (codes <= self._last[places])
        return not is_within.any() and len(ids) <= _MOST_WAITING


# The request of a response may be known only to those before; so much of it travels for that.
_MOST_UNPAIRED = 64 * 1024
_COLUMNS = ("connection", "is_response", "index", "time_us", "first_us")


def has_kernels() -> bool:
    """Whether pieces can be surveyed: without kernels, no connection is lent."""
    return all(load_kernel(name) is not None for name in ("frames", "pairing"))


def survey_piece(asked: AnalysisRequest, piece: Piece, *, is_first: bool) -> PieceSummary | None:
    """Survey a piece; None where it is not known where it begins."""
    start = piece.begin()
    if start is None:
        return None
    survey = _PieceSurveyor(asked, is_first=is_first)
    reader = make_reader(asked, list(piece.files), start, piece.until)
    at: FilePosition | None = start
    notes: list[FileNotes] = []
    chunks: list[PieceChunk] = []
    for item in reader:
        if isinstance(item, FileNotes):
            notes.append(item)
            continue
        survey.take(item)
        after = reader.position
        chunks.append(PieceChunk(at, after, np.unique(item.key)))
        at = after
    flows = survey.flows
    assemblers, logs = flows.assemblers(), flows.logs()
    return PieceSummary(
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


class _PieceSurveyor:
    """Takes the chunks of a piece."""

    def __init__(self, asked: AnalysisRequest, *, is_first: bool) -> None:
        self._asked = asked
        self._is_first = is_first
        self.flows = SpeculativeFlows(brokers=asked.brokers, is_first=is_first)
        self._turns = Pairing(show_credentials=asked.show_credentials)
        self.size = 0
        self.clocks: list[tuple[str, list[KeyClocks], int]] = []
        self._rows = 0
        self._columns: list[dict[str, NumpyArray]] = []
        self._facts: list[HeaderColumns] = []
        self._clients: dict[str, int] = {}
        self._payloads: list[NumpyArray] = []
        self._payload_bytes = 0
        self._error: dict[int, str] = {}
        self._unplaced: set[int] = set()
        self._software: dict[int, Software] = {}
        self._told: set[str] = set()  # connections whose software is known
        self._topics: dict[int, frozenset[TopicName]] = {}
        self._same_topics: dict[frozenset[TopicName], frozenset[TopicName]] = {}

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
        facts = HeaderColumns.fresh(len(frames), [])
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

    def _made_up(self, frames: FrameColumns) -> NumpyArray:
        """Which frames began before the piece."""
        found = np.zeros(len(frames), np.bool_)
        for row in np.flatnonzero(frames.index == 0).tolist():
            one = self.flows.made_up.get(int(frames.connection[row]))
            if one is not None:
                found[row] = one.is_made_up("response" if frames.is_response[row] else "request")
        return found

    def _is_given(self, frames: FrameColumns, facts: HeaderColumns) -> NumpyArray:
        """Which frames need not be read again, whatever was before them."""
        found: NumpyArray = (facts.kind == L.REQUEST) & ~frames.is_response
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

    def _read(
        self, frames: FrameColumns, facts: HeaderColumns, is_given: NumpyArray, rows: NumpyArray
    ) -> None:
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
        self, frames: FrameColumns, facts: HeaderColumns, name: str, wanted: NumpyArray
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

    def _numbered(self, clients: NumpyArray, texts: list[str]) -> NumpyArray:
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
        self,
        frames: FrameColumns,
        facts: HeaderColumns,
        made_up: NumpyArray,
        with_payload: NumpyArray,
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

    def frames(self, logs: dict[str, StepLog]) -> PieceFrames:
        """The frames of the piece, but for exchanges that are over within a step of their log."""

        def column(name: str, kind: type) -> NumpyArray:
            parts: list[NumpyArray] = [np.asarray(one[name], kind) for one in self._columns]
            return np.concatenate([np.zeros(0, kind), *parts])

        frames = PieceFrames(
            names=self.flows.connections,
            connection=column("connection", np.int32),
            is_response=column("is_response", np.bool_),
            index=column("index", np.int64),
            time_us=column("time_us", np.int64),
            first_us=column("first_us", np.int64),
            start=column("start", np.int64),
            stop=column("stop", np.int64),
            data=np.concatenate([np.zeros(0, np.uint8), *self._payloads]),
            facts=HeaderColumns.joined(self._facts, list(self._clients)),
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
