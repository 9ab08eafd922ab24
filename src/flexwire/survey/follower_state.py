"""The state of the connections in growing captures, and the rows of their completed frames.

A growing capture has no end at which facts about the whole capture are known. A row therefore
depends only on the bytes up to the last byte of its frame. The row is the same wherever the
captures are cut. If different facts were known at the times of two frames, their rows are decoded
in separate batches. These facts are the client's software and the client instance id.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from flexwire.capture.pairing import layout as L  # noqa: N812 - a short prefix for a few names
from flexwire.capture.pairing.headers import ConnectionReader, FrameReader
from flexwire.capture.pairing.pairing import Hindsight, Judgement, Pairing, build_paired
from flexwire.capture.reassembly.assembly import FrameAssembler
from flexwire.capture.reassembly.connections import KafkaEvidence
from flexwire.capture.reassembly.flows import Flows
from flexwire.capture.reassembly.idling import is_idle
from flexwire.survey.bodies import (
    SOFTWARE_MESSAGE,
    decode_bodies,
    find_software,
    find_topic_names,
)
from flexwire.survey.client_instances import find_instances
from flexwire.survey.speculation import key_of
from flexwire.tables.frames import Introductions, TableRows, ends_of
from flexwire.tables.row_filter import FRAMES, RECORDS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from flexwire.capture.pairing.pairing import HeaderColumns, RequestSummary
    from flexwire.capture.reassembly.connections import CapturedConnection
    from flexwire.capture.reassembly.frames import FrameColumns
    from flexwire.capture.reassembly.segments import SegmentColumns
    from flexwire.columnar.arrays import NumpyArray
    from flexwire.survey.client_instances import GivenInstance
    from flexwire.survey.request import AnalysisRequest
    from flexwire.tables.frames import Software
    from flexwire.tables.records import Rows
    from flexwire.tables.row_filter import RowFilter

    FileOffsets = dict[str, int]


MANY_KEYS: Final = 10_000
"""The number of connections below which no connection is forgotten."""
MOST_FORGOTTEN: Final = 1_000_000
"""The largest number of forgotten endpoint pairs whose connection counts are kept."""


@dataclass(slots=True)
class FollowStep:
    """The frames that a chunk added, and the facts that were known when each of them ended.

    For each row, ``is_proven`` tells whether its connection had been recognized as Kafka by then.
    ``is_introduced`` tells whether its client had named its software by then, but only for clients
    that name their software in this step. ``is_identified`` tells the same about the client
    instance id. ``names_known`` is the number of topic ``names`` that were known. ``early``
    contains facts from incomplete requests about complete responses, by connection and the
    response's index.
    """

    frames: FrameColumns
    headers: HeaderColumns
    judgements: dict[str, Judgement]
    introductions: Introductions
    introduced: set[str]
    identified: set[str]
    names: list[dict[str, str]]
    is_proven: NumpyArray
    is_introduced: NumpyArray
    is_identified: NumpyArray
    names_known: NumpyArray
    early: dict[str, dict[int, RequestSummary]]


class FollowerState:
    """Process the segments of captures in order. The state can be pickled between two chunks."""

    def __init__(self, request: AnalysisRequest, row_filter: RowFilter) -> None:
        self._request = request
        self._row_filter = row_filter
        self._flows = Flows(brokers=request.brokers, endless=True)
        self._pairing = Pairing(show_credentials=request.show_credentials)
        self._software: dict[str, Software] = {}
        self._instances: dict[str, GivenInstance] = {}
        self._names: dict[str, str] = {}
        # The number of forgotten connections for each endpoint pair.
        self._forgotten: dict[str, int] = {}
        self._most_keys = MANY_KEYS
        # The evidence about connections that are not yet recognized as Kafka.
        self._evidence: dict[str, KafkaEvidence] = {}
        self._proven: set[str] = set()

    def pickled(self, keys: Collection[str] | None = None) -> bytes:
        """Return the pickled state.

        With ``keys``, the state contains only the connections with these keys.
        """
        state = self if keys is None else self._only(keys)
        return pickle.dumps(state, pickle.HIGHEST_PROTOCOL)

    def _only(self, keys: Collection[str]) -> FollowerState:
        state = FollowerState(self._request, self._row_filter)
        state._flows = self._flows.only(keys)
        files = self._flows.files
        state._flows.files.update({key: files[key] for key in keys if key in files})
        state._pairing = self._pairing.only(lambda name: key_of(name) in keys)
        state._software = {
            name: value for name, value in self._software.items() if key_of(name) in keys
        }
        state._instances = {
            name: value for name, value in self._instances.items() if key_of(name) in keys
        }
        state._names = self._names
        state._forgotten = {key: value for key, value in self._forgotten.items() if key in keys}
        state._evidence = {
            name: value for name, value in self._evidence.items() if key_of(name) in keys
        }
        state._proven = {name for name in self._proven if key_of(name) in keys}
        return state

    def take(self, segments: SegmentColumns) -> FollowStep:
        """Add a chunk of segments. Return the frames that it completes."""
        self._remember(segments)
        frames = self._flows.push(segments, in_order=True)
        headers = self._pairing.read_headers(frames)
        ended = {connection.connection: connection for connection in self._flows.ended()}
        names_here = [frames.connections[place] for place in np.unique(frames.connection).tolist()]
        is_proven = self._prove(frames)
        introduced = self._introduce(frames, headers)
        identified = self._identify(frames, headers)
        names, names_known = self._name(frames, headers)
        step = FollowStep(
            frames,
            headers,
            {name: self._judge(name, ended.get(name)) for name in names_here},
            Introductions(
                {name: self._software[name] for name in names_here if name in self._software},
                {
                    name: self._instances[name].text
                    for name in names_here
                    if name in self._instances
                },
            ),
            set(introduced),
            set(identified),
            names,
            is_proven,
            _from_rows_on(frames, introduced),
            _from_rows_on(frames, identified),
            names_known,
            self._early(frames, headers),
        )
        for name in ended:
            self._pairing.end(name)
            self._software.pop(name, None)
            self._instances.pop(name, None)
            self._evidence.pop(name, None)
            self._proven.discard(name)
        if len(self._flows.files) > self._most_keys:
            # The median time is used instead of the last time, because a single time may be
            # damaged.
            self._forget(int(np.median(segments.timestamp_us)))
        return step

    def _forget(self, now_us: int) -> None:
        """Forget connections that have ended.

        The number of connections between their endpoints is kept.
        """
        kept_keys = set()
        for key in self._flows.files:
            activity = self._flows.take_back(key).activity()
            if is_idle(activity, now_us):
                self._forgotten[key] = activity.ordinal
            else:
                kept_keys.add(key)
        while len(self._forgotten) > MOST_FORGOTTEN:
            del self._forgotten[next(iter(self._forgotten))]
        state = self._only(kept_keys).__dict__
        most = max(MANY_KEYS, 2 * len(kept_keys))
        self.__dict__ |= {**state, "_forgotten": self._forgotten, "_most_keys": most}

    def _remember(self, segments: SegmentColumns) -> None:
        for number in np.unique(segments.key).tolist() if self._forgotten else ():
            ordinal = self._forgotten.pop(segments.keys[number], None)
            if ordinal is not None:
                assembler = FrameAssembler(brokers=self._request.brokers, endless=True)
                assembler.go_on_after(ordinal)
                self._flows.adopt(segments.keys[number], assembler, ())

    def _judge(self, name: str, ended: CapturedConnection | None) -> Judgement:
        """Return whether a connection carries Kafka, as far as this is known before its end."""
        brokers = self._request.brokers
        is_kafka = not brokers or any(map(brokers.has, ends_of(name)))
        if ended is not None:
            return Judgement(is_kafka, True, ended.seen_from_start)
        assembler = self._flows.assembler(key_of(name))
        return Judgement(is_kafka, True, assembler.seen_from_start(name))

    def _early(
        self, frames: FrameColumns, headers: HeaderColumns
    ) -> dict[str, dict[int, RequestSummary]]:
        """Return the known facts about requests that come after their responses in the captures."""
        early = self._pairing.take_early()
        unpaired = np.flatnonzero(headers.kind == L.UNPAIRED)
        for place in np.unique(frames.connection[unpaired]).tolist():
            name = frames.connections[place]
            cut = self._flows.take_back(key_of(name)).cut_requests(name)
            if not cut:
                continue
            reader = ConnectionReader(FrameReader())
            for request in cut:
                reader.read(request)
            for row in unpaired[frames.connection[unpaired] == place].tolist():
                response = frames.frame(row)
                _, summary, _ = reader.read(response)
                if summary is not None and summary.time_us <= response.timestamp_us:
                    early.setdefault(name, {}).setdefault(response.index, summary)
        return early

    def _prove(self, frames: FrameColumns) -> NumpyArray:
        """Return for each row whether its connection had been recognized as Kafka by then."""
        is_proven = np.ones(len(frames), np.bool_)
        for place in np.unique(frames.connection).tolist():
            name = frames.connections[place]
            if name in self._proven:
                continue
            evidence = self._evidence.setdefault(name, KafkaEvidence())
            for row in np.flatnonzero(frames.connection == place).tolist():
                if row not in frames.unplaced:
                    direction = frames.frame(row).direction
                    is_whole = row not in frames.error
                    evidence.see(direction, frames.payload(row), is_whole=is_whole)
                if evidence.found or (self._request.brokers and evidence.hint):
                    self._proven.add(name)
                    del self._evidence[name]
                    break
                is_proven[row] = False
        return is_proven

    def _introduce(self, frames: FrameColumns, headers: HeaderColumns) -> dict[str, int]:
        """Record clients' software. Return the rows that name the software for the first time."""
        if not self._row_filter.gives(FRAMES):
            return {}
        software_here: dict[str, tuple[int, Software]] = {}
        for rows in decode_bodies(frames, headers, SOFTWARE_MESSAGE, self._request.release):
            for name, index, software in find_software(rows):
                if name not in self._software:
                    software_here[name] = min(
                        software_here.get(name, (index, software)), (index, software)
                    )
        rows_of_names = {}
        for name, (index, software) in software_here.items():
            self._software[name] = software
            is_its = frames.connection == frames.connections.index(name)
            is_its &= ~frames.is_response & (frames.index == index)
            rows_of_names[name] = int(np.flatnonzero(is_its)[0])
        return rows_of_names

    def _identify(self, frames: FrameColumns, headers: HeaderColumns) -> dict[str, int]:
        """Record the instance ids of clients.

        Return the rows that contain an id for the first time.
        """
        if not self._row_filter.gives(FRAMES):
            return {}
        rows_of_names = {}
        for row, given in list(find_instances(frames, headers, self._instances, by_row=True)):
            name = frames.connections[frames.connection[row]]
            self._instances[name] = given
            rows_of_names[name] = row
        return rows_of_names

    def _name(
        self, frames: FrameColumns, headers: HeaderColumns
    ) -> tuple[list[dict[str, str]], NumpyArray]:
        """Return the topic names in the order of discovery, and how many were known at each row."""
        names, names_known = [self._names], np.zeros(len(frames), np.int64)
        if not self._row_filter.gives(RECORDS):
            return names, names_known
        for row, topics in find_topic_names(frames, headers, self._request.release):
            earlier = names[-1]
            # If a response contains two names for an id, the name that sorts last is kept.
            new = {
                topic_id: name
                for topic_id, name in sorted(topics)
                if name > earlier.get(topic_id, "")
            }
            if new:
                names.append({**earlier, **new})
                names_known[row:] = len(names) - 1
        self._names = names[-1]
        return names, names_known


def _from_rows_on(frames: FrameColumns, rows: dict[str, int]) -> NumpyArray:
    """Return which rows are at or after the given row of their connection, if there is one."""
    is_after = np.ones(len(frames), np.bool_)
    for name, row in rows.items():
        is_its = frames.connection[:row] == frames.connections.index(name)
        is_after[:row] &= ~is_its
    return is_after


def build_step_rows(
    step: FollowStep, request: AnalysisRequest, row_filter: RowFilter, tables: TableRows
) -> Iterator[tuple[str, Rows]]:
    """Yield the rows of the frames of a step, each batch with the name of its table."""
    code_of_row = (step.names_known << 1 | step.is_identified) << 1 | step.is_proven
    code_of_row = code_of_row << 1 | step.is_introduced
    for code in np.unique(code_of_row).tolist():
        rows = np.flatnonzero(code_of_row == code)
        frames, headers = step.frames, step.headers
        if len(rows) < len(frames):
            frames, headers = frames.take(rows), headers.take(rows)
        judgements, software = step.judgements, step.introductions.software
        instances = step.introductions.instances
        if not code & 2:
            judgements = {
                name: judgement._replace(seen_from_start=False)
                for name, judgement in judgements.items()
            }
        if not code & 1:
            software = {
                name: value for name, value in software.items() if name not in step.introduced
            }
        if not code & 4:
            instances = {
                name: value for name, value in instances.items() if name not in step.identified
            }
        hindsight = Hindsight(judgements, early=step.early)
        batch = build_paired(frames, headers, hindsight, show_credentials=request.show_credentials)
        # The response may still come.
        column = batch.schema.get_field_index("answered")
        batch = batch.set_column(column, "answered", pa.nulls(len(batch), pa.bool_()))
        batch = row_filter.frames(batch)
        if len(batch):
            introductions = Introductions(software, instances)
            yield from tables.of(batch, step.names[code >> 3], introductions)
