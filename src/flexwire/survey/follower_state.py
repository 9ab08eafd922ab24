"""What is known of the connections of captures that grow, and the rows of the frames that end.

There is no end that could say something of the whole. So a row says what was captured up to the
last byte of its frame, and no later: it is the same wherever the captures are cut. Rows that differ
in what was known by then, as of a connection's first frame, are decoded apart from one another.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from flexwire.capture.pairing import layout as L  # noqa: N812 - a word in front of a few
from flexwire.capture.pairing.headers import ConnectionReader, FrameReader
from flexwire.capture.pairing.pairing import Hindsight, Judgement, Pairing, build_paired
from flexwire.capture.reassembly.assembly import FrameAssembler
from flexwire.capture.reassembly.connections import KafkaEvidence
from flexwire.capture.reassembly.flows import Flows
from flexwire.survey.speculation import key_of
from flexwire.survey.state import SOFTWARE_MESSAGE, bodies, software_in, topics_told
from flexwire.tables.frames import TableRows, ends_of
from flexwire.tables.row_filter import FRAMES, RECORDS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from flexwire.capture.pairing.pairing import HeaderColumns, RequestSummary
    from flexwire.capture.reassembly.connections import CapturedConnection
    from flexwire.capture.reassembly.frames import FrameColumns
    from flexwire.capture.reassembly.segments import SegmentColumns
    from flexwire.columnar.arrays import NumpyArray
    from flexwire.survey.request import AnalysisRequest
    from flexwire.tables.frames import Software
    from flexwire.tables.records import Rows
    from flexwire.tables.row_filter import RowFilter

    FileOffsets = dict[str, int]


OVER_US: Final = 300_000_000
"""A connection that was closed is forgotten after so much time of the capture: five minutes."""
IDLE_US: Final = 86_400_000_000
"""One that was not closed is forgotten a day after its last segment."""
MANY_KEYS: Final = 10_000
"""Of fewer connections none is forgotten."""
MOST_FORGOTTEN: Final = 1_000_000
"""Of so many ends it is known how many connections they had; then the first are forgotten."""


@dataclass(slots=True)
class FollowStep:
    """Frames that were added, and what was known when each of them ended.

    Of each row ``is_proven`` says whether its connection had shown that it is Kafka,
    ``is_introduced`` whether its client had said its software, if it does so here, and ``told``
    which of the ``names`` of topics were known. ``early`` has what requests say that are cut, of
    responses that are whole, by connection and the response's index.
    """

    frames: FrameColumns
    facts: HeaderColumns
    judgements: dict[str, Judgement]
    software: dict[str, Software]
    introduced: set[str]
    names: list[dict[str, str]]
    is_proven: NumpyArray
    is_introduced: NumpyArray
    told: NumpyArray
    early: dict[str, dict[int, RequestSummary]]


class FollowerState:
    """Takes the segments of captures in order; can be pickled between two chunks of them."""

    def __init__(self, asked: AnalysisRequest, wanted: RowFilter) -> None:
        self._asked = asked
        self._wanted = wanted
        self._flows = Flows(brokers=asked.brokers, endless=True)
        self._turns = Pairing(show_credentials=asked.show_credentials)
        self._software: dict[str, Software] = {}
        self._names: dict[str, str] = {}
        # How many connections were forgotten that had the same ends.
        self._forgotten: dict[str, int] = {}
        self._most_keys = MANY_KEYS
        # Of connections that have shown nothing yet.
        self._evidence: dict[str, KafkaEvidence] = {}
        self._proven: set[str] = set()

    def pickled(self, keys: Collection[str] | None = None) -> bytes:
        """Give the state; for what shows only the connections of some keys, theirs alone."""
        some = self if keys is None else self._only(keys)
        return pickle.dumps(some, pickle.HIGHEST_PROTOCOL)

    def _only(self, keys: Collection[str]) -> FollowerState:
        some = FollowerState(self._asked, self._wanted)
        some._flows = self._flows.only(keys)
        known = self._flows.files
        some._flows.files.update({key: known[key] for key in keys if key in known})
        some._turns = self._turns.only(lambda name: key_of(name) in keys)
        some._software = {name: one for name, one in self._software.items() if key_of(name) in keys}
        some._names = self._names
        some._forgotten = {key: one for key, one in self._forgotten.items() if key in keys}
        some._evidence = {name: one for name, one in self._evidence.items() if key_of(name) in keys}
        some._proven = {name for name in self._proven if key_of(name) in keys}
        return some

    def take(self, segments: SegmentColumns) -> FollowStep:
        """Take in a chunk, and give the frames that are whole with it."""
        self._remember(segments)
        frames = self._flows.push(segments, in_order=True)
        facts = self._turns.facts(frames)
        ended = {one.connection: one for one in self._flows.ended()}
        shown = [frames.connections[one] for one in np.unique(frames.connection).tolist()]
        is_proven = self._prove(frames)
        introduced = self._introduce(frames, facts)
        is_introduced = np.ones(len(frames), np.bool_)
        for name, row in introduced.items():
            is_its = frames.connection[:row] == frames.connections.index(name)
            is_introduced[:row] &= ~is_its
        names, told = self._name(frames, facts)
        step = FollowStep(
            frames,
            facts,
            {name: self._judged(name, ended.get(name)) for name in shown},
            {name: self._software[name] for name in shown if name in self._software},
            set(introduced),
            names,
            is_proven,
            is_introduced,
            told,
            self._early(frames, facts),
        )
        for name in ended:
            self._turns.end(name)
            self._software.pop(name, None)
            self._evidence.pop(name, None)
            self._proven.discard(name)
        if len(self._flows.files) > self._most_keys:
            # Not the last: one time may be damaged.
            self._forget(int(np.median(segments.timestamp_us)))
        return step

    def _forget(self, now_us: int) -> None:
        """Forget connections that have ended; of their ends how many they were stays."""
        kept = set()
        for key in self._flows.files:
            idle = self._flows.take_back(key).idle()
            if now_us - idle.last_us < (OVER_US if idle.is_over else IDLE_US):
                kept.add(key)
            else:
                self._forgotten[key] = idle.ordinal
        while len(self._forgotten) > MOST_FORGOTTEN:
            del self._forgotten[next(iter(self._forgotten))]
        some = self._only(kept).__dict__
        most = max(MANY_KEYS, 2 * len(kept))
        self.__dict__ |= {**some, "_forgotten": self._forgotten, "_most_keys": most}

    def _remember(self, segments: SegmentColumns) -> None:
        for number in np.unique(segments.key).tolist() if self._forgotten else ():
            ordinal = self._forgotten.pop(segments.keys[number], None)
            if ordinal is not None:
                assembler = FrameAssembler(brokers=self._asked.brokers, endless=True)
                assembler.go_on_after(ordinal)
                self._flows.adopt(segments.keys[number], assembler, ())

    def _judged(self, name: str, ended: CapturedConnection | None) -> Judgement:
        """Say what a connection is, as far as that is known before its end."""
        brokers = self._asked.brokers
        is_kafka = not brokers or any(map(brokers.has, ends_of(name)))
        if ended is not None:
            return Judgement(is_kafka, True, ended.seen_from_start)
        assembler = self._flows.assembler(key_of(name))
        return Judgement(is_kafka, True, assembler.seen_from_start(name))

    def _early(
        self, frames: FrameColumns, facts: HeaderColumns
    ) -> dict[str, dict[int, RequestSummary]]:
        """Return what is known of the requests that come after their responses here."""
        early = self._turns.take_early()
        unpaired = np.flatnonzero(facts.kind == L.UNPAIRED)
        for place in np.unique(frames.connection[unpaired]).tolist():
            name = frames.connections[place]
            cut = self._flows.take_back(key_of(name)).cut_requests(name)
            if not cut:
                continue
            one = ConnectionReader(FrameReader())
            for request in cut:
                one.read(request)
            for row in unpaired[frames.connection[unpaired] == place].tolist():
                response = frames.frame(row)
                _, said, _ = one.read(response)
                if said is not None and said.time_us <= response.timestamp_us:
                    early.setdefault(name, {}).setdefault(response.index, said)
        return early

    def _prove(self, frames: FrameColumns) -> NumpyArray:
        """Say of each row whether its connection has shown by then that it is Kafka."""
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
                if evidence.found or (self._asked.brokers and evidence.hint):
                    self._proven.add(name)
                    del self._evidence[name]
                    break
                is_proven[row] = False
        return is_proven

    def _introduce(self, frames: FrameColumns, facts: HeaderColumns) -> dict[str, int]:
        """Note the software of clients; give the rows where one says it for the first time."""
        if not self._wanted.gives(FRAMES):
            return {}
        found: dict[str, tuple[int, Software]] = {}
        for rows in bodies(frames, facts, SOFTWARE_MESSAGE, self._asked.release):
            for name, index, software in software_in(rows):
                if name not in self._software:
                    found[name] = min(found.get(name, (index, software)), (index, software))
        told = {}
        for name, (index, software) in found.items():
            self._software[name] = software
            is_it = frames.connection == frames.connections.index(name)
            is_it &= ~frames.is_response & (frames.index == index)
            told[name] = int(np.flatnonzero(is_it)[0])
        return told

    def _name(
        self, frames: FrameColumns, facts: HeaderColumns
    ) -> tuple[list[dict[str, str]], NumpyArray]:
        """Give the names of topics as they came to be known, and which of these each row has."""
        names, told = [self._names], np.zeros(len(frames), np.int64)
        if not self._wanted.gives(RECORDS):
            return names, told
        for row, topics in topics_told(frames, facts, self._asked.release):
            known = names[-1]
            new = {one: name for one, name in topics if name > known.get(one, "")}
            if new:
                names.append({**known, **new})
                told[row:] = len(names) - 1
        self._names = names[-1]
        return names, told


def rows_of(
    step: FollowStep, asked: AnalysisRequest, wanted: RowFilter, tables: TableRows
) -> Iterator[tuple[str, Rows]]:
    """Give the rows of the frames of a step, each batch with the name of its table."""
    known = (step.told << 1 | step.is_proven) << 1 | step.is_introduced
    for code in np.unique(known).tolist():
        rows = np.flatnonzero(known == code)
        frames, facts = step.frames, step.facts
        if len(rows) < len(frames):
            frames, facts = frames.take(rows), facts.take(rows)
        judgements, software = step.judgements, step.software
        if not code & 2:
            judgements = {
                name: one._replace(seen_from_start=False) for name, one in judgements.items()
            }
        if not code & 1:
            software = {name: one for name, one in software.items() if name not in step.introduced}
        told = Hindsight(judgements, early=step.early)
        batch = build_paired(frames, facts, told, show_credentials=asked.show_credentials)
        # A response comes later.
        at = batch.schema.get_field_index("answered")
        batch = batch.set_column(at, "answered", pa.nulls(len(batch), pa.bool_()))
        batch = wanted.frames(batch)
        if len(batch):
            yield from tables.of(batch, step.names[code >> 2], software)
