"""The survey of one piece of a capture, without the bytes before the piece.

If a request and its response are in the same step of a log, they do not affect other frames. The
request and its response leave the set of pending requests unchanged if no other frame on their
connection has the same correlation id. `drop_exchanges` checks this for the frames of the piece.
`ExchangeIsolation` checks this for the requests that are pending from before the piece, and for
frames that cross into it. A piece therefore passes on no rows for most of its frames.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from flexwire.capture.pairing import layout as L  # noqa: N812 - a short prefix for a few names
from flexwire.capture.pairing.pairing import HeaderColumns, Pairing
from flexwire.capture.reassembly.frames import pick_rows
from flexwire.capture.reassembly.segments import FileNotes
from flexwire.kernels import load_kernel
from flexwire.protocol.conversation import DEFAULT_IN_FLIGHT
from flexwire.schema.catalog import catalog
from flexwire.survey.bodies import (
    SOFTWARE_MESSAGE,
    decode_bodies,
    find_software,
    find_topic_names,
)
from flexwire.survey.client_instances import find_instances
from flexwire.survey.pieces import PieceChunk, PieceFrames, PieceSummary
from flexwire.survey.request import make_reader
from flexwire.survey.speculation import FastPathStep, SpeculativeFlows, key_of
from flexwire.survey.state import read_clocks

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa

    from flexwire.capture.reassembly.frames import FrameColumns
    from flexwire.capture.reassembly.segments import FilePosition, SegmentColumns
    from flexwire.columnar.arrays import NumpyArray
    from flexwire.survey.bodies import TopicName
    from flexwire.survey.client_instances import GivenInstance
    from flexwire.survey.pieces import Piece
    from flexwire.survey.request import AnalysisRequest
    from flexwire.survey.speculation import StepLog
    from flexwire.survey.state import KeyClocks
    from flexwire.tables.frames import Software


_EXCHANGE_COLUMNS = ("connection", "is_response", "index", "time_us", "first_us", "start", "stop")
_BY_ROW = ("error", "software", "instances", "topics")
# The largest number of requests that can be pending in each group: those from before the piece,
# those in the piece, and those that are found only in the whole capture. With more requests, the
# oldest would be evicted, and a piece cannot know which request that is.
_MOST_PENDING: Final = DEFAULT_IN_FLIGHT // 4


class RowSteps(NamedTuple):
    """The key and the step of each row of a piece.

    ``order`` sorts the rows by key.

    In this order, ``key`` contains the number of each row's key. ``step`` contains the number of
    the row's fast-path step, or -1 for any other step.
    """

    order: NumpyArray
    key: NumpyArray
    step: NumpyArray


def number_first_steps(logs: Mapping[str, StepLog]) -> dict[str, int]:
    """Return the number of the first step of each log. Steps are numbered across all logs."""
    sizes = np.cumsum([0, *(len(log.steps) for log in logs.values())]).tolist()
    return dict(zip(logs, sizes, strict=False))


def assign_steps(frames: PieceFrames, logs: Mapping[str, StepLog], *, is_first: bool) -> RowSteps:
    """Return the steps of all rows.

    In the first piece, where nothing is guessed, each connection is one step.
    """
    connection = frames.connection.astype(np.int64)
    if is_first:
        order = np.argsort(connection, kind="stable")
        return RowSteps(order, connection[order], connection[order])
    numbers: dict[str, int] = {}
    key_of_name = [numbers.setdefault(key_of(key_name), len(numbers)) for key_name in frames.names]
    key = np.array(key_of_name, np.int64)[connection] if key_of_name else connection
    order = np.argsort(key, kind="stable")
    firsts, steps, sizes = number_first_steps(logs), [], []
    for key_name, rows in zip(
        numbers, np.bincount(key, minlength=len(numbers)).tolist(), strict=True
    ):
        left = rows
        log = logs.get(key_name)
        for number, step in enumerate([] if log is None else log.steps, firsts.get(key_name, 0)):
            steps.append(number if isinstance(step, FastPathStep) else -1)
            sizes.append(min(left, step.frames))
            left -= sizes[-1]
        steps.append(-1)
        sizes.append(left)
    return RowSteps(order, key[order], np.repeat(np.array(steps, np.int64), sizes))


def drop_exchanges(
    frames: PieceFrames, made_up: NumpyArray, steps: RowSteps, *, is_first: bool
) -> PieceFrames:
    """Drop the rows that need not be passed on. ``made_up`` rows are not real frames."""
    if not len(made_up):
        return frames
    step = np.empty_like(steps.step)
    step[steps.order] = steps.step
    asks, answers = _find_exchanges(frames, made_up, steps, step)
    is_left_out = _without_response(frames) & ~_on_unread_connections(frames, made_up) & (step >= 0)
    is_left_out[asks] = is_left_out[answers] = True
    other = np.full(len(step), -1)
    other[asks], other[answers] = answers, asks
    needed = np.unique(
        np.concatenate([_step_edges(frames, steps), _informative_rows(frames, step)])
    )
    is_left_out[needed] = False
    partners = other[needed]
    is_left_out[partners[partners >= 0]] = False
    codes = np.zeros(0, np.int64)
    if not is_first:
        asks = asks[is_left_out[asks]]
        codes = np.unique(_step_and_id(step[asks], frames.headers.correlation_id[asks]))
    ordinal = np.empty_like(step)
    firsts = np.searchsorted(steps.key, steps.key)
    ordinal[steps.order] = np.arange(len(step)) - firsts
    return _take_rows(frames, np.flatnonzero(~is_left_out), ordinal, _spans(codes))


def _take_rows(
    frames: PieceFrames, rows: NumpyArray, ordinal: NumpyArray, left_out: NumpyArray
) -> PieceFrames:
    columns: dict[str, Any] = {name: getattr(frames, name)[rows] for name in _EXCHANGE_COLUMNS}
    columns |= {name: pick_rows(getattr(frames, name), rows) for name in _BY_ROW}
    return replace(
        frames,
        **columns,
        headers=frames.headers.take(rows),
        unplaced=set(pick_rows(dict.fromkeys(frames.unplaced), rows)),
        ordinal=ordinal[rows],
        left_out=left_out,
    )


def _without_response(frames: PieceFrames) -> NumpyArray:
    """Return which rows are requests that get no response."""
    headers = frames.headers
    is_silent: NumpyArray = (
        (headers.kind == L.REQUEST) & (headers.is_preset > 0) & (headers.is_expected == 0)
    )
    return is_silent


def _on_unread_connections(frames: PieceFrames, made_up: NumpyArray) -> NumpyArray:
    """Return which rows are on connections with frames that only the merger can read."""
    has_unread = np.zeros(len(frames.names), np.bool_)
    has_unread[frames.connection[(frames.headers.is_preset == 0) & ~made_up]] = True
    return has_unread[frames.connection]


def _find_exchanges(
    frames: PieceFrames, made_up: NumpyArray, steps: RowSteps, step: NumpyArray
) -> tuple[NumpyArray, NumpyArray]:
    """Return the rows of requests and responses that affect no other frame in the piece."""
    kind, ids = frames.headers.kind, frames.headers.correlation_id
    is_preset = frames.headers.is_preset > 0
    rows = np.flatnonzero(
        is_preset & ~_without_response(frames) & ~_on_unread_connections(frames, made_up)
    )
    codes = _step_and_id(frames.connection[rows], ids[rows])
    order = np.argsort(codes, kind="stable")
    rows, codes = rows[order], codes[order]
    begins = _starts_group(codes)
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
    few = ~_on_crowded_keys(frames, steps, asks, answers)[asks]
    return asks[few], answers[few]


def _on_crowded_keys(
    frames: PieceFrames, steps: RowSteps, asks: NumpyArray, answers: NumpyArray
) -> NumpyArray:
    """Return which rows belong to keys with more pending requests than are kept."""
    is_crowded = np.zeros(len(steps.order), np.bool_)
    change = np.zeros(len(steps.order), np.int64)
    change[(frames.headers.kind == L.REQUEST) & ~_without_response(frames)] = 1
    change[answers] = -1
    pending = np.cumsum(change[steps.order])
    if pending.max(initial=0) <= _MOST_PENDING:
        return is_crowded
    starts = np.flatnonzero(_starts_group(steps.key))
    alone = change.copy()
    alone[asks] = alone[answers] = 0
    change -= alone
    # An exchange leaves no request pending, so each key begins without pending requests.
    most = np.maximum.reduceat(np.cumsum(change[steps.order]), starts)
    most += np.add.reduceat(alone[steps.order], starts)
    sizes = np.diff(np.append(starts, len(steps.order)))
    is_crowded[steps.order] = np.repeat(most > _MOST_PENDING, sizes)
    return is_crowded


def _step_edges(frames: PieceFrames, steps: RowSteps) -> NumpyArray:
    """Return the rows that must be kept to represent all frames of their step.

    These rows are the first and last frame by time, and the first and last request. The last
    request, together with everything before it, shows whether the connection may carry credentials.
    """
    order, headers = steps.order, frames.headers
    begins = _starts_group(steps.step) | _starts_group(steps.key)
    number = np.cumsum(begins) - 1
    times = frames.time_us[order]
    starts = np.flatnonzero(begins)
    edges = []
    for ends in (np.minimum, np.maximum):
        places = np.flatnonzero(times == ends.reduceat(times, starts)[number])
        edges.append(places[_starts_group(number[places])])
    asks = np.flatnonzero((headers.kind[order] == L.REQUEST) & (headers.is_preset[order] > 0))
    begins = _starts_group(number[asks])
    edges += [asks[begins], asks[np.roll(begins, -1)]]
    return order[np.concatenate(edges)]


def _informative_rows(frames: PieceFrames, step: NumpyArray) -> NumpyArray:
    """Return the rows whose bodies contain new facts.

    If several rows in a step are equal, only the first is returned.
    """
    first_rows = {
        (int(step[row]), id(topics)): row for row, topics in sorted(frames.topics.items())[::-1]
    }
    return np.array([*frames.software, *frames.instances, *first_rows.values()], np.int64)


def _starts_group(column: NumpyArray) -> NumpyArray:
    """Return where a value differs from the value before it."""
    starts: NumpyArray = np.ones(len(column), np.bool_)
    np.not_equal(column[1:], column[:-1], out=starts[1:])
    return starts


def _step_and_id(number: NumpyArray, ids: NumpyArray) -> NumpyArray:
    return number.astype(np.int64) << L.SIDE_SHIFT | ids.astype(np.int64) & L.CORRELATION_MASK


def _spans(codes: NumpyArray) -> NumpyArray:
    """Return the first and the last number of each run of consecutive numbers."""
    if not len(codes):
        return np.zeros((0, 2), np.int64)
    starts = np.flatnonzero(np.diff(codes, prepend=codes[0] - 2) != 1)
    return np.stack([codes[starts], codes[np.append(starts[1:] - 1, -1)]], axis=1)


class ExchangeIsolation:
    """Decide whether exchanges that were left out are isolated from all other frames.

    The requests that were pending at the start of the piece are known from the beginning. The
    caller adds other frames with `note`.
    """

    def __init__(self, left_out: NumpyArray, pairing: Pairing) -> None:
        self._first, self._last = left_out[:, 0], left_out[:, 1]
        self._ids = pairing.waiting() if len(left_out) else {}

    def note(self, connection: str, ids: Iterable[int]) -> None:
        """Add the correlation ids of frames whose true form the piece does not know."""
        earlier = self._ids.get(connection, np.zeros(0, np.int64))
        self._ids[connection] = np.append(earlier, np.array([*ids], np.int64))

    def is_isolated(self, step: int, connection: str) -> bool:
        """Return whether the exchanges that a step left out are isolated."""
        ids = self._ids.get(connection)
        if ids is None or not len(self._first):
            return True
        codes = _step_and_id(np.array(step), ids)
        places = np.searchsorted(self._first, codes, "right") - 1
        is_within = (places >= 0) & (codes <= self._last[places])
        return not is_within.any() and len(ids) <= _MOST_PENDING


# The largest number of bytes of an unpaired response that are passed on. Only a frame from before
# the piece can be the request for this response.
_MOST_UNPAIRED = 64 * 1024
_COLUMNS = ("connection", "is_response", "index", "time_us", "first_us")


def has_kernels() -> bool:
    """Return whether pieces can be surveyed. Without kernels there is no fast path."""
    return all(load_kernel(name) is not None for name in ("frames", "pairing"))


def survey_piece(request: AnalysisRequest, piece: Piece, *, is_first: bool) -> PieceSummary | None:
    """Survey a piece, or return None if the start of the piece is unknown."""
    start = piece.begin()
    if start is None:
        return None
    survey = _PieceSurveyor(request, is_first=is_first)
    reader = make_reader(request, list(piece.files), start, piece.until)
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
    """Survey the chunks of a piece."""

    def __init__(self, request: AnalysisRequest, *, is_first: bool) -> None:
        self._request = request
        self._is_first = is_first
        self.flows = SpeculativeFlows(brokers=request.brokers, is_first=is_first)
        self._pairing = Pairing(show_credentials=request.show_credentials)
        self.size = 0
        self.clocks: list[tuple[str, list[KeyClocks], int]] = []
        self._rows = 0
        self._columns: list[dict[str, NumpyArray]] = []
        self._headers: list[HeaderColumns] = []
        self._clients: dict[str, int] = {}
        self._payloads: list[NumpyArray] = []
        self._payload_bytes = 0
        self._error: dict[int, str] = {}
        self._unplaced: set[int] = set()
        self._software: dict[int, Software] = {}
        self._introduced: set[str] = set()  # The connections whose software is already known.
        self._instances: dict[int, GivenInstance] = {}
        self._instance_of: dict[str, GivenInstance] = {}  # The first id so far, by connection.
        self._topics: dict[int, frozenset[TopicName]] = {}
        self._same_topics: dict[frozenset[TopicName], frozenset[TopicName]] = {}

    def take(self, segments: SegmentColumns) -> None:
        self.size += segments.weight
        key_clocks, clock = read_clocks(segments)
        self.clocks.append((segments.file, key_clocks, clock))
        frames = self.flows.push(segments)
        if len(frames):
            self._take(frames)

    def _take(self, frames: FrameColumns) -> None:
        made_up = self._find_made_up(frames)
        real = np.flatnonzero(~made_up)
        headers = HeaderColumns.fresh(len(frames), [])
        real_frames = frames if len(real) == len(frames) else frames.take(real)
        real_headers = self._pairing.read_headers(real_frames)
        is_preset = self._find_preset(real_frames, real_headers)
        self._read(real_frames, real_headers, is_preset, real)
        for name in ("kind", "api_key", "api_version", "correlation_id", "is_expected", "flags"):
            getattr(headers, name)[real] = getattr(real_headers, name)
        asks = np.flatnonzero(is_preset & ~real_frames.is_response)
        headers.client[real[asks]] = self._renumber_clients(
            real_headers.client[asks], real_headers.clients
        )
        headers.is_preset[real] = is_preset
        unpaired = (headers.kind == L.UNPAIRED) & (frames.stop - frames.start <= _MOST_UNPAIRED)
        self._keep(frames, headers, made_up, (headers.is_preset == 0) | unpaired)

    def _find_made_up(self, frames: FrameColumns) -> NumpyArray:
        """Return which frames began before the piece."""
        is_made_up = np.zeros(len(frames), np.bool_)
        for row in np.flatnonzero(frames.index == 0).tolist():
            assembler = self.flows.by_number.get(int(frames.connection[row]))
            if assembler is not None:
                is_made_up[row] = assembler.is_made_up(
                    "response" if frames.is_response[row] else "request"
                )
        return is_made_up

    def _find_preset(self, frames: FrameColumns, headers: HeaderColumns) -> NumpyArray:
        """Return which frames need not be read again, whatever came before the piece."""
        is_preset: NumpyArray = (headers.kind == L.REQUEST) & ~frames.is_response
        is_preset |= np.isin(headers.kind, (L.UNPAIRED, L.ANSWER)) & frames.is_response
        is_preset[[*headers.odd, *frames.error]] = False
        by_objects = [
            place
            for place in np.unique(frames.connection).tolist()
            if self._pairing.flags(frames.connections[place]) & L.BY_OBJECTS
        ]
        if by_objects:
            is_preset &= ~np.isin(frames.connection, by_objects)
        return is_preset

    def _read(
        self, frames: FrameColumns, headers: HeaderColumns, is_preset: NumpyArray, rows: NumpyArray
    ) -> None:
        """Read bodies that contain facts about the whole capture, as `SurveyState.read` does."""
        asks = is_preset & ~frames.is_response
        for bodies, places in self._bodies(frames, headers, SOFTWARE_MESSAGE, asks):
            for name, index, software in find_software(bodies):
                if name not in self._introduced:
                    self._introduced.add(name)
                    self._software[self._rows + int(rows[places[name, index]])] = software
        for row, given in find_instances(frames, headers, self._instance_of, is_preset):
            name = frames.connections[frames.connection[row]]
            self._instance_of[name] = min(given, self._instance_of.get(name, given))
            self._instances[self._rows + int(rows[row])] = given
        answers = is_preset & (headers.kind == L.ANSWER)
        for row, topics in find_topic_names(frames, headers, self._request.release, answers):
            same = self._same_topics.setdefault(topics, topics)
            self._topics[self._rows + int(rows[row])] = same

    def _bodies(
        self, frames: FrameColumns, headers: HeaderColumns, name: str, wanted: NumpyArray
    ) -> Iterator[tuple[pa.RecordBatch, dict[tuple[str, int], int]]]:
        """Yield rows of a message's table, and each frame's row by connection and index."""
        rows = np.flatnonzero(wanted & (headers.api_key == catalog().entry(name).api_key))
        if not len(rows):
            return
        selected = frames.take(rows)
        names = [frames.connections[place] for place in selected.connection.tolist()]
        indexes = zip(names, selected.index.tolist(), strict=True)
        places = dict(zip(indexes, rows.tolist(), strict=True))
        for rows_of_message in decode_bodies(
            selected, headers.take(rows), name, self._request.release
        ):
            yield rows_of_message, places

    def _renumber_clients(self, clients: NumpyArray, texts: list[str]) -> NumpyArray:
        """Return the piece's own numbers for client ids."""
        used, places = np.unique(clients, return_inverse=True)
        numbers = [
            L.NO_CLIENT
            if client == L.NO_CLIENT
            else self._clients.setdefault(texts[client], len(self._clients))
            for client in used.tolist()
        ]
        return np.array(numbers, np.int32)[places]

    def _keep(
        self,
        frames: FrameColumns,
        headers: HeaderColumns,
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
        self._headers.append(headers)
        self._rows += len(frames)

    def frames(self, logs: dict[str, StepLog]) -> PieceFrames:
        """Return the frames of the piece, except exchanges that begin and end in one step."""

        def column(name: str, kind: type) -> NumpyArray:
            parts: list[NumpyArray] = [np.asarray(columns[name], kind) for columns in self._columns]
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
            headers=HeaderColumns.joined(self._headers, list(self._clients)),
            ordinal=column("start", np.int64),
            left_out=np.zeros((0, 2), np.int64),
            error=self._error,
            unplaced=self._unplaced,
            software=self._software,
            instances=self._instances,
            topics=self._topics,
        )
        steps = assign_steps(frames, logs, is_first=self._is_first)
        made_up = column("made_up", np.bool_)
        return drop_exchanges(frames, made_up, steps, is_first=self._is_first)
