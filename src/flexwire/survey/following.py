"""Captures that grow: how far they are read, and the state that the next reading needs.

An offset says of each file how many of its bytes were read, whole blocks of them. The state of all
connections there is held in memory as long as a follower lives; another one makes it again from the
files, up to the offset.

There is no end that could say something of the whole. So a row says what was captured up to the
last byte of its frame, and no later: it is the same wherever the captures are cut. Rows that differ
in what was known by then, as of a connection's first frame, are decoded apart from one another.
"""

from __future__ import annotations

import logging
import pickle
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from flexwire.capture.files.blocks import WholeBlocks
from flexwire.capture.pairing import layout as L  # noqa: N812 - a word in front of a few
from flexwire.capture.pairing.pairing import Judgement, Told, Turns, paired
from flexwire.capture.pairing.reading import FrameReader, OneConnection
from flexwire.capture.reassembly.assembly import FrameAssembler
from flexwire.capture.reassembly.connections import Evidence
from flexwire.capture.reassembly.flows import Flows
from flexwire.capture.reassembly.segments import FileNotes, Position, SegmentReader
from flexwire.errors import CaptureError, StorageError
from flexwire.storage.file_search import list_captures
from flexwire.storage.filesystems import local_path, scheme_of
from flexwire.storage.local import compress, decompress
from flexwire.survey.guessed_connections import key_of
from flexwire.survey.pieces import COMPRESSED
from flexwire.survey.request import looks, opener
from flexwire.survey.state import SOFTWARE_MESSAGE, bodies, software_in, topics_told
from flexwire.tables.frames import TableRows, ends_of
from flexwire.tables.row_filter import FRAMES, RECORDS

if TYPE_CHECKING:
    from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
    from pathlib import Path

    from flexwire.capture.pairing.pairing import Facts, Said
    from flexwire.capture.reassembly.connections import CapturedConnection
    from flexwire.capture.reassembly.frames import FrameColumns
    from flexwire.capture.reassembly.segments import SegmentColumns
    from flexwire.storage.input_file import InputFile
    from flexwire.survey.request import Asked
    from flexwire.tables.frames import Software
    from flexwire.tables.records import Rows
    from flexwire.tables.row_filter import RowFilter

    Array = np.ndarray[Any, np.dtype[Any]]
    Offsets = dict[str, int]


OVER_US: Final = 300_000_000
"""A connection that was closed is forgotten after so much time of the capture: five minutes."""
IDLE_US: Final = 86_400_000_000
"""One that was not closed is forgotten a day after its last segment."""
MANY_KEYS: Final = 10_000
"""Of fewer connections none is forgotten."""
MOST_FORGOTTEN: Final = 1_000_000
"""Of so many ends it is known how many connections they had; then the first are forgotten."""


@dataclass(slots=True)
class Step:
    """Frames that were added, and what was known when each of them ended.

    Of each row ``is_proven`` says whether its connection had shown that it is Kafka,
    ``is_introduced`` whether its client had said its software, if it does so here, and ``told``
    which of the ``names`` of topics were known. ``early`` has what requests say that are cut, of
    responses that are whole, by connection and the response's index.
    """

    frames: FrameColumns
    facts: Facts
    judgements: dict[str, Judgement]
    software: dict[str, Software]
    introduced: set[str]
    names: list[dict[str, str]]
    is_proven: Array
    is_introduced: Array
    told: Array
    early: dict[str, dict[int, Said]]


class Followed:
    """Takes the segments of captures in order; can be pickled between two chunks of them."""

    def __init__(self, asked: Asked, wanted: RowFilter) -> None:
        self._asked = asked
        self._wanted = wanted
        self._flows = Flows(brokers=asked.brokers, endless=True)
        self._turns = Turns(show_credentials=asked.show_credentials)
        self._software: dict[str, Software] = {}
        self._names: dict[str, str] = {}
        # How many connections were forgotten that had the same ends.
        self._forgotten: dict[str, int] = {}
        self._most_keys = MANY_KEYS
        # Of connections that have shown nothing yet.
        self._evidence: dict[str, Evidence] = {}
        self._proven: set[str] = set()

    def pickled(self, keys: Collection[str] | None = None) -> bytes:
        """Give the state; for what shows only the connections of some keys, theirs alone."""
        some = self if keys is None else self._only(keys)
        return pickle.dumps(some, pickle.HIGHEST_PROTOCOL)

    def _only(self, keys: Collection[str]) -> Followed:
        some = Followed(self._asked, self._wanted)
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

    def take(self, segments: SegmentColumns) -> Step:
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
        step = Step(
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

    def _early(self, frames: FrameColumns, facts: Facts) -> dict[str, dict[int, Said]]:
        """Return what is known of the requests that come after their responses here."""
        early = self._turns.take_early()
        unpaired = np.flatnonzero(facts.kind == L.UNPAIRED)
        for place in np.unique(frames.connection[unpaired]).tolist():
            name = frames.connections[place]
            cut = self._flows.take_back(key_of(name)).cut_requests(name)
            if not cut:
                continue
            one = OneConnection(FrameReader())
            for request in cut:
                one.read(request)
            for row in unpaired[frames.connection[unpaired] == place].tolist():
                response = frames.frame(row)
                _, said, _ = one.read(response)
                if said is not None and said.time_us <= response.timestamp_us:
                    early.setdefault(name, {}).setdefault(response.index, said)
        return early

    def _prove(self, frames: FrameColumns) -> Array:
        """Say of each row whether its connection has shown by then that it is Kafka."""
        is_proven = np.ones(len(frames), np.bool_)
        for place in np.unique(frames.connection).tolist():
            name = frames.connections[place]
            if name in self._proven:
                continue
            evidence = self._evidence.setdefault(name, Evidence())
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

    def _introduce(self, frames: FrameColumns, facts: Facts) -> dict[str, int]:
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

    def _name(self, frames: FrameColumns, facts: Facts) -> tuple[list[dict[str, str]], Array]:
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
    step: Step, asked: Asked, wanted: RowFilter, tables: TableRows
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
        told = Told(judgements, early=step.early)
        batch = paired(frames, facts, told, show_credentials=asked.show_credentials)
        # A response comes later.
        at = batch.schema.get_field_index("answered")
        batch = batch.set_column(at, "answered", pa.nulls(len(batch), pa.bool_()))
        batch = wanted.frames(batch)
        if len(batch):
            yield from tables.of(batch, step.names[code >> 2], software)


HELD_BYTES: Final = 32 << 20
"""Of so many bytes it is known which connections they show before a task is told of these."""

_GROW: Final = {"", "hdfs"}  # a file of any other store is there as a whole, or not at all
_BEGUN_BYTES: Final = 28  # of a section's header; that of a pcap file has fewer
_LOGGER = logging.getLogger("flexwire")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a file; it begins with the file where it has no ``start``."""

    source: InputFile
    start: Position | None
    stop: Position


@dataclass(frozen=True, slots=True)
class Stretch:
    """Parts of files that one task reads, and the state before them."""

    state: bytes
    parts: tuple[Part, ...]


def stretch_rows(asked: Asked, wanted: RowFilter, stretch: Stretch) -> Iterator[tuple[str, Rows]]:
    """Give the rows of the frames that end in a stretch, each batch with its table's name."""
    # It was pickled for this very task.
    state: Followed = pickle.loads(decompress(stretch.state))  # noqa: S301 - see above
    tables = TableRows(
        wanted,
        release=asked.release,
        show_credentials=asked.show_credentials,
        record_bytes=asked.record_bytes,
        inflation=asked.inflation,
    )
    for part in stretch.parts:
        for item in _reader(asked, part):
            if isinstance(item, FileNotes):
                if item.error is not None:
                    raise item.error
                continue
            yield from rows_of(state.take(item), asked, wanted, tables)


def _reader(asked: Asked, part: Part) -> SegmentReader:
    return SegmentReader(
        [part.source.name],
        chunk_bytes=asked.chunk_bytes,
        start=part.start,
        stop=part.stop,
        opener=opener([part.source]),
        show_credentials=asked.show_credentials,
    )


class CaptureFollower:
    """Reads the captures in some paths again and again, as they grow and others come.

    Files are read one after the other, in the order of their first segments. Those that are gzip'd
    are left alone. With ``fails_on_loss`` it is a `CaptureError` where a file is gone, or was cut
    off, before all of it was read; otherwise what is left is read.
    """

    def __init__(
        self,
        paths: Iterable[str | Path],
        asked: Asked,
        wanted: RowFilter,
        *,
        fails_on_loss: bool = True,
    ) -> None:
        self._paths = list(paths)
        self._asked = asked
        self._wanted = wanted
        self._fails_on_loss = fails_on_loss
        self._found = _Files(asked)
        # How far each file was whole, and how many bytes it had.
        self._whole: dict[str, WholeBlocks] = {}
        self._sizes: dict[str, int] = {}
        self._state = Followed(asked, wanted)
        self._positions: dict[str, Position] = {}
        self._at: Offsets | None = {}
        self._given: tuple[Offsets, Offsets, list[Stretch]] | None = None

    def latest(
        self,
        start: Mapping[str, int] | None,
        most_bytes: int | None = None,
        most_files: int | None = None,
        *,
        until: Mapping[str, int] | None = None,
    ) -> Offsets:
        """Give the offset up to which is to be read after ``start``; None for the last one given.

        At most so many bytes are added, but a block at least, in so many files. With ``until``
        nothing after that is given, nor of other files.
        """
        if start is None:
            start = {name: one.end for name, one in self._whole.items()}
        files = self._found.find(self._paths)
        self._check_gone(start, {one.name for one in files})
        ends: Offsets = {}
        left, files_left, has_more = most_bytes, most_files, False
        for file in files:
            begin = end = start.get(file.name, 0)
            size = file.size if until is None else min(file.size, until.get(file.name, 0))
            # What follows in another file is not read before the rest of this one.
            if not has_more and files_left != 0 and not self._is_cut(file, begin):
                end, has_more = self._end(file, begin, size, left)
            if end > begin:
                left = None if left is None else left - (end - begin)
                has_more = has_more or (left is not None and left <= 0)
                files_left = None if files_left is None else files_left - 1
            if end:
                ends[file.name] = end
        self._sizes = {one.name: one.size for one in files}
        return dict(sorted(ends.items()))

    def _end(self, file: InputFile, begin: int, size: int, most: int | None) -> tuple[int, bool]:
        """Up to where a file is to be read, and whether it may have more."""
        if scheme_of(file.url) not in _GROW:
            return max(begin, size), False
        known = self._whole.get(file.name)
        if known is None or known.end != begin:
            known = WholeBlocks(file.name)
        if size <= begin:
            return begin, False
        if known.end < begin:
            known.look(file.open, begin)
        was_sound = known.damage is None
        has_more = known.look(file.open, size, most)
        if was_sound and known.damage is not None:
            _LOGGER.warning("%s, byte %d: not read on: %s", file.name, known.end, known.damage)
        self._whole[file.name] = known
        return max(begin, known.end), has_more

    def _check_gone(self, start: Mapping[str, int], there: set[str]) -> None:
        for name, begin in start.items():
            if name in there:
                continue
            self._whole.pop(name, None)
            if self._sizes.get(name, 0) > begin:
                self._lose(name, f"it is gone, and was read up to byte {begin} only")

    def _is_cut(self, file: InputFile, begin: int) -> bool:
        if file.size >= begin:
            return False
        self._lose(file.name, f"it has {file.size} bytes, and was read up to byte {begin}")
        return True

    def _lose(self, name: str, reason: str) -> None:
        if self._fails_on_loss:
            reason = f"{reason}; to go on with what is left, set failOnDataLoss to false"
            raise CaptureError(reason, source=name)
        _LOGGER.warning("%s: %s", name, reason)

    def stretches(self, start: Mapping[str, int], end: Mapping[str, int]) -> list[Stretch]:
        """Give what was added to files between two offsets, a stretch for each task."""
        begin, stop = dict(start), dict(end)
        if self._given is not None and self._given[:2] == (begin, stop):
            return self._given[2]
        if self._at != begin:
            self._state, self._positions = Followed(self._asked, self._wanted), {}
            for _ in self._advance({}, begin, gives=False):
                pass
        # Where this fails, all is to be made again.
        self._at = None
        found = list(self._advance(begin, stop))
        self._at = stop
        self._positions = {name: self._positions[name] for name in stop if name in self._positions}
        self._given = begin, stop, found
        return found

    def _advance(self, start: Offsets, end: Offsets, *, gives: bool = True) -> Iterator[Stretch]:
        """Bring the state from one offset to another."""
        files = {one.name: one for one in self._found.find(self._paths)}
        for name in end.keys() - files.keys():
            if end[name] > start.get(name, 0):
                self._lose(name, f"it is gone, and is to be read up to byte {end[name]}")
        making = _Making(self._asked, self._state, gives=gives)
        for name, file in files.items():
            stop = end.get(name, 0)
            if stop <= start.get(name, 0) or self._is_cut(file, stop):
                continue
            known = self._positions.get(name)
            if known is None or not known.is_end:
                part = Part(file, known, Position(name, stop))
                self._positions[name] = yield from making.read(part)
        yield from making.finish()


SAMPLED: Final = (
    "it holds a part of what passed, as it says: set acceptSampled to true to read it, and do "
    "not take what is counted for the whole"
)
"""Why a capture is not read unasked."""


class _Files:
    """The files in some paths, in their order."""

    def __init__(self, asked: Asked) -> None:
        self._skips = asked.skip_unreadable
        self._takes_sampled = asked.takes_sampled
        # When a file of this size begins; None where it is no capture.
        self._begins: dict[str, tuple[int, int | None]] = {}

    def find(self, paths: Iterable[str | Path]) -> list[InputFile]:
        """Give those that have begun. Raises `CaptureError` for one that is not a capture."""
        found = {one.name: one for path in paths for one in _listed(path)}
        self._look([one for one in found.values() if not self._is_known(one)])
        times = {name: self._begins[name][1] for name in found if name in self._begins}
        kept = [(first_us, name) for name, first_us in times.items() if first_us is not None]
        return [found[name] for _, name in sorted(kept)]

    def _is_known(self, file: InputFile) -> bool:
        size, first_us = self._begins.get(file.name, (-1, 0))
        return bool(first_us) or size == file.size or file.size < _BEGUN_BYTES

    def _look(self, files: list[InputFile]) -> None:
        for file in files:
            # One that is gone by now is listed no more next time.
            with suppress(StorageError):
                (look,) = looks([file])
                if look.error is not None:
                    if not self._skips:
                        raise look.error
                    _LOGGER.warning("%s: not read: %s", file.name, look.error.reason)
                if look.marks.part is not None and not self._takes_sampled:
                    raise CaptureError(SAMPLED, source=file.name)
                first_us = None if look.error is not None else look.first_us
                self._begins[file.name] = file.size, first_us


def _listed(path: str | Path) -> list[InputFile]:
    try:
        found = list_captures([path])
    except CaptureError:
        # The first file is still to come.
        if scheme_of(str(path)) or not local_path(str(path)).is_dir():
            raise
        found = []
    return [one for one in found if not one.name.endswith(COMPRESSED)]


class _Making:
    """Stretches while they are made, from parts that are read one after the other."""

    def __init__(self, asked: Asked, state: Followed, *, gives: bool) -> None:
        self._asked = asked
        self._state = state
        self._gives = gives
        self._held: list[SegmentColumns] = []
        self._size = 0
        self._begun: bytes | None = None
        self._parts: list[Part] = []

    def read(self, part: Part) -> Generator[Stretch, None, Position]:
        """Read a part; returns where it ended."""
        reader, here = _reader(self._asked, part), part.start
        for item in reader:
            if isinstance(item, FileNotes):
                _tell(item)
                continue
            self._hold(item)
            stop = reader.position
            if self._size >= self._asked.range_bytes and stop is not None:
                self._parts.append(replace(part, start=here, stop=stop))
                yield from self.finish()
                here = stop
        end = reader.position or part.stop
        if here is None or here.offset < part.stop.offset:
            self._parts.append(replace(part, start=here))
        return end

    def _hold(self, segments: SegmentColumns) -> None:
        self._size += segments.weight
        if self._begun is not None or not self._gives:
            self._state.take(segments)
        else:
            self._held.append(segments)
            if self._size > HELD_BYTES:
                self._begin(None)

    def _begin(self, keys: set[str] | None) -> None:
        self._begun = compress(self._state.pickled(keys))
        for one in self._held:
            self._state.take(one)
        self._held = []

    def finish(self) -> Iterator[Stretch]:
        """Give what was read since the last stretch, if it has any segments."""
        if self._gives and (self._held or self._begun is not None):
            if self._begun is None:
                shown = (one.keys[key] for one in self._held for key in set(one.key.tolist()))
                self._begin(set(shown))
            yield Stretch(self._begun or b"", tuple(self._parts))
        self._begun, self._parts, self._size = None, [], 0


def _tell(notes: FileNotes) -> None:
    """Tell how many packets of a part give nothing that should."""
    if notes.error is not None:
        raise notes.error
    for reason, packets in notes.unreadable.packets.items():
        _LOGGER.warning("%s: %d packets are not read: %s", notes.file, packets, reason)
