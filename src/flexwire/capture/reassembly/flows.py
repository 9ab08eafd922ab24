"""From segments to frames, for all the connections of a capture at once.

Each connection key has its `FrameAssembler`, which begins with the connection and is told of all
that is unusual in it. Between that, while segments follow one another, it lends the connection to
the kernels, which take the segments of all connections in one call and stop before any that they
are not sure of. So the frames are those that the assemblers alone would give, and the assemblers
hold the whole state: what is pickled at a cut is them.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from flexwire.capture.reassembly.assembly import FrameAssembler
from flexwire.capture.reassembly.connections import Brokers
from flexwire.capture.reassembly.course import NOTED_FRAMES
from flexwire.capture.reassembly.frames import FrameColumns
from flexwire.capture.reassembly.framing import CAPTURED_FRAME_LIMIT
from flexwire.capture.reassembly.streams import Standing, Taken, Went
from flexwire.extras import needed_by
from flexwire.kernels.capture import framing_layout as L  # noqa: N812 - a word in front of some thirty
from flexwire.kernels.engine import kernel
from flexwire.schema.catalog import catalog
from flexwire.wire.limits import INT64_MAX

with needed_by("flexwire.capture.reassembly", "columnar"):
    import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flexwire.capture.reassembly.connections import CapturedConnection, CapturedFrame
    from flexwire.capture.reassembly.segments import SegmentColumns
    from flexwire.capture.reassembly.streams import Lent

Array = np.ndarray[Any, np.dtype[Any]]
_NONE_GIVEN = Brokers()
_WORD = 8
_CONNECTION = L.P_NOTES + _WORD * NOTED_FRAMES
_LOW, _HIGH = L.P_SIDES, L.P_SIDES + L.SIDE
# Each column as the kernels read it.
_COLUMNS = (
    (L.C_TIMES, "timestamp_us", np.int64),
    (L.C_SEQUENCES, "sequence", np.int64),
    (L.C_ACKNOWLEDGMENTS, "acknowledgment", np.int64),
    (L.C_FLAGS, "flags", np.uint8),
    (L.C_PAYLOAD_AT, "payload_at", np.int64),
    (L.C_PAYLOAD_SIZES, "payload_size", np.int32),
    (L.C_MISSING, "missing", np.int32),
    (L.C_BEGINS, "begins", np.int8),
    (L.C_IS_HIGH, "is_high", np.uint8),
    (L.C_DATA, "data", np.uint8),
)


# Of so many bytes that are held of a frame, a part is to follow before they are copied again.
_MUCH_HELD = 1 << 20
_PART_BEFORE_LENT = 8


class Flows:
    """Takes the segments of a capture, chunk by chunk, and gives the frames of all connections.

    ``brokers``, ``limit`` and ``endless`` are those of `FrameAssembler`. Can be pickled between two
    chunks, and then goes on elsewhere.
    """

    def __init__(
        self,
        *,
        brokers: Brokers = _NONE_GIVEN,
        limit: int = CAPTURED_FRAME_LIMIT,
        endless: bool = False,
    ) -> None:
        self.brokers = brokers
        self.limit = limit
        self.endless = endless
        self.connections: list[str] = []
        self._numbers: dict[str, int] = {}
        self._assemblers: dict[str, FrameAssembler] = {}
        self._ended: list[CapturedConnection] = []
        self.lent = _LentConnections()
        self._chunk_bytes = 0
        # So many bytes of a key go to its assembler before it is lent again.
        self._rests: dict[str, int] = {}
        self.files: dict[str, str] = {}  # that each key was last seen in

    def __getstate__(self) -> dict[str, Any]:
        self._take_all_back()
        return {**self.__dict__, "lent": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self.lent = _LentConnections()

    def push(self, segments: SegmentColumns, *, in_order: bool = False) -> FrameColumns:
        """Take in the segments of a chunk; give the frames that are now whole, errors too.

        With ``in_order`` they stand in the order in which they ended. Otherwise those of a
        connection do, and kernels may give one connection after the other: of small messages such
        rows make files a quarter smaller, and nothing is sorted.
        """
        self._chunk_bytes = int(segments.payload_size.sum())
        chunk = _Chunk(self, segments)
        frames = chunk.run(in_order=in_order)
        for key in list(self.lent.limited):
            # There was room for all of this chunk.
            self.take_back(key)
        self.lent.carry()
        return frames

    def finish(self) -> list[FrameColumns]:
        """The capture has ended: give out what is incomplete, by the file that each ended in."""
        self._take_all_back()
        found: dict[str, list[CapturedFrame]] = {}
        for key, assembler in self._assemblers.items():
            found.setdefault(self.files[key], []).extend(assembler.finish())
            self.note_ended(assembler)
        self._assemblers.clear()
        return [
            FrameColumns.from_frames(frames, file, self.connections)
            for file, frames in found.items()
        ]

    def ended(self) -> list[CapturedConnection]:
        """The connections that have ended since this was last asked."""
        ended, self._ended = self._ended, []
        return ended

    def note_ended(self, assembler: FrameAssembler) -> None:
        """Take in which connections have ended."""
        self._ended += assembler.ended()

    def number(self, connection: str) -> int:
        """The place of a connection in ``connections``, where it is put if it is new."""
        number = self._numbers.get(connection)
        if number is None:
            number = self._numbers[connection] = len(self.connections)
            self.connections.append(connection)
        return number

    def assembler(self, key: str) -> FrameAssembler:
        """The assembler of a connection key."""
        assembler = self._assemblers.get(key)
        if assembler is None:
            assembler = FrameAssembler(limit=self.limit, brokers=self.brokers, endless=self.endless)
            self._assemblers[key] = assembler
        return assembler

    def has(self, key: str) -> bool:
        """Whether segments of a key were taken in."""
        return key in self._assemblers

    def only(self, keys: Iterable[str]) -> Flows:
        """The same for a part of the capture that shows these keys alone, and does not end it."""
        self._take_all_back()
        some = Flows(brokers=self.brokers, limit=self.limit, endless=self.endless)
        known = self._assemblers
        some._assemblers = {key: known[key] for key in keys if key in known}
        return some

    def adopt(
        self, key: str, assembler: FrameAssembler, ended: Sequence[CapturedConnection]
    ) -> None:
        """Go on with a key as another one did that took in all its segments."""
        self._assemblers[key] = assembler
        self._ended += ended

    def lend(self, key: str) -> int | None:
        """Lend the connection of a key to the kernels, if it goes on in order; give its place."""
        place = self.lent.places.get(key)
        if place is not None:
            return place
        if key in self._rests:
            return None
        lent = self.assembler(key).lend()
        if lent is None:
            return None
        if min(lent.request.room, lent.response.room) < self._chunk_bytes:
            self._rests[key] = self._chunk_bytes
            return None
        return self.lent.add(key, lent, self.number(lent.connection))

    def take_back(self, key: str) -> FrameAssembler:
        """The assembler of a key, knowing all that the kernels did."""
        assembler = self.assembler(key)
        if key in self.lent.places:
            taken = self.lent.remove(key)
            assembler.take_back(taken)
            # It is copied each time, and a frame may be as long as the memory.
            held = len(taken.request.held) + len(taken.response.held)
            if held > _MUCH_HELD:
                self._rests[key] = held // _PART_BEFORE_LENT
        return assembler

    def rest(self, key: str, size: int) -> None:
        """Note that the assembler of a key is given so many bytes."""
        rests = self._rests.get(key)
        if rests is not None and rests > size:
            self._rests[key] = rests - size
        elif rests is not None:
            del self._rests[key]

    def _take_all_back(self) -> None:
        for key in list(self.lent.places):
            self.take_back(key)


class _LentConnections:
    """The connections that the kernels go on with, each in so many words at its place."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}
        self.limited: set[str] = set()  # those that may take some bytes only
        self.words: Array = np.zeros((0, _CONNECTION // _WORD), np.int64)
        self._free: list[int] = []
        # What is held of frames that are not whole, and whatever else the words point into.
        self.kept: list[Any] = []

    def address(self, place: int) -> int:
        return int(self.words.ctypes.data) + _CONNECTION * place

    def add(self, key: str, lent: Lent, number: int) -> int:
        place = self._place()
        self.places[key] = place
        if min(lent.request.room, lent.response.room) < INT64_MAX:
            self.limited.add(key)
        low = key.partition("|")[0]
        low_is_client = lent.client == low
        words = self.words[place]
        words[: _LOW // _WORD] = 0
        words[L.P_NUMBER // _WORD] = number
        words[L.P_LOW_IS_CLIENT // _WORD] = low_is_client
        ends = (lent.request, lent.response) if low_is_client else (lent.response, lent.request)
        for side, standing in zip((_LOW, _HIGH), ends, strict=True):
            self._stand(words[side // _WORD : (side + L.SIDE) // _WORD], standing)
        return place

    def _place(self) -> int:
        if not self._free:
            count = len(self.words)
            more = np.zeros((max(16, count), _CONNECTION // _WORD), np.int64)
            self.words = np.concatenate([self.words, more])
            self._free = list(range(len(self.words) - 1, count - 1, -1))
        return self._free.pop()

    def _stand(self, words: Array, standing: Standing) -> None:
        words[:] = 0
        words[L.D_NEXT // _WORD] = standing.sequence
        words[L.D_INDEX // _WORD] = standing.next_index
        if standing.held:
            held = np.frombuffer(standing.held, np.uint8)
            self.kept.append(held)
            words[L.D_AT // _WORD] = held.ctypes.data
            words[L.D_HAVE // _WORD] = len(held)
        words[L.D_FIRST // _WORD] = standing.first_us
        words[L.D_LAST // _WORD] = standing.last_us
        words[L.D_FIRST_INDEX // _WORD] = standing.next_index
        words[L.D_BEFORE // _WORD] = standing.before
        words[L.D_SEEKS // _WORD] = standing.seeks

    def remove(self, key: str) -> Taken:
        """What became of a connection, which the kernels go on with no more."""
        place = self.places.pop(key)
        self.limited.discard(key)
        self._free.append(place)
        words = self.words[place]
        ends = [self._went(words[side // _WORD :]) for side in (_LOW, _HIGH)]
        request, response = ends if words[L.P_LOW_IS_CLIENT // _WORD] else reversed(ends)
        taken = Taken(
            segments=int(words[L.P_SEGMENTS // _WORD]),
            captured=int(words[L.P_CAPTURED // _WORD]),
            time_us=int(words[L.P_TIME // _WORD]),
            is_marked=bool(words[L.P_MARKED // _WORD]),
            noted=_notes(words),
            request=request,
            response=response,
        )
        for side in (_LOW, _HIGH):
            words[(side + L.D_HAVE) // _WORD] = 0
        return taken

    def _went(self, words: Array) -> Went:
        at, have = int(words[L.D_AT // _WORD]), int(words[L.D_HAVE // _WORD])
        return Went(
            size=int(words[L.D_TAKEN // _WORD]),
            held=ctypes.string_at(at, have) if have else b"",
            first_us=int(words[L.D_FIRST // _WORD]),
            last_us=int(words[L.D_LAST // _WORD]),
            frames=int(words[L.D_INDEX // _WORD] - words[L.D_FIRST_INDEX // _WORD]),
            sizes=int(words[L.D_SIZES // _WORD]),
            length=int(words[L.D_LENGTH // _WORD]),
            repeated=int(words[L.D_REPEATED // _WORD]),
        )

    def carry(self) -> None:
        """Hold what is held in memory of our own, so that no chunk's memory is kept for it."""
        move = kernel("carry_frames")
        if move is None or not len(self.words):
            return
        call = np.zeros(L.CALL // _WORD, np.int64)
        call[L.C_RUNS // _WORD] = self.words.ctypes.data
        call[L.C_RUN_COUNT // _WORD] = len(self.words)
        call[L.C_CONNECTION_SIZE // _WORD] = _CONNECTION
        out = np.empty(move(call.ctypes.data, 0, 0), np.uint8)
        if len(out):
            call[L.C_OUT // _WORD] = out.ctypes.data
            move(call.ctypes.data, 0, 0)
        self.kept = [out]


def _notes(words: Array) -> list[tuple[bool, int]]:
    noted = int(words[L.P_NOTED // _WORD])
    ring = words[L.P_NOTES // _WORD :]
    last = [int(ring[one % NOTED_FRAMES]) for one in range(max(0, noted - NOTED_FRAMES), noted)]
    return [(not one & L.NOTE_RESPONSE, one >> L.NOTE_SHIFT) for one in last]


@dataclass(slots=True)
class _Parts:
    """Frames of a chunk from kernels and assemblers, each with the segment they were whole with."""

    rows: list[Array] = field(default_factory=list)
    outs: list[Array] = field(default_factory=list)
    objects: list[CapturedFrame] = field(default_factory=list)
    segments: list[int] = field(default_factory=list)


class _Chunk:
    """One chunk of segments on its way into frames."""

    def __init__(self, flows: Flows, segments: SegmentColumns) -> None:
        self._flows = flows
        self._segments = segments
        self._parts = _Parts()
        self._plan, self._join = kernel("plan_frames"), kernel("join_frames")
        self._order: Array = np.argsort(segments.key, kind="stable").astype(np.int64)
        self._call = np.zeros(L.CALL // _WORD, np.int64)
        self._kept = [self._order]
        self._put(L.C_ORDER, self._order)
        for word, name, kind in _COLUMNS:
            self._put(word, np.ascontiguousarray(getattr(segments, name), kind))
        self._call[L.C_LIMIT // _WORD] = flows.limit
        self._call[L.C_NOTES // _WORD] = NOTED_FRAMES
        self._call[L.C_HIGHEST_KEY // _WORD] = max(catalog().api_keys(), default=-1)

    def _put(self, word: int, column: Array) -> None:
        self._kept.append(column)
        self._call[word // _WORD] = column.ctypes.data

    def run(self, *, in_order: bool) -> FrameColumns:
        todo = self._runs()
        self._flows.files.update(self._files(todo))
        while todo:
            runs = []
            for key, start, stop in todo:
                first = self._by_objects(key, start, stop)
                if first < stop:
                    runs.append((key, first, stop))
            todo = self._by_kernels(runs)
        return self._frames(in_order=in_order)

    def _files(self, runs: list[tuple[str, int, int]]) -> dict[str, str]:
        """The file of the last segment of each key."""
        origins = self._segments.origins
        if origins is None:
            return dict.fromkeys((key for key, _, _ in runs), self._segments.file)
        last = self._order[[stop - 1 for _, _, stop in runs]]
        files = origins.of_row[last].tolist()
        return {key: origins.files[file] for (key, _, _), file in zip(runs, files, strict=True)}

    def _runs(self) -> list[tuple[str, int, int]]:
        keys = np.asarray(self._segments.key)[self._order]
        bounds = [0, *(np.flatnonzero(np.diff(keys)) + 1).tolist(), len(keys)]
        names = self._segments.keys
        return [
            (names[keys[start]], start, stop) for start, stop in pairwise(bounds) if start < stop
        ]

    def _by_objects(self, key: str, start: int, stop: int) -> int:
        """Give the assembler segments until it lends the connection; give where that is."""
        while start < stop:
            if self._plan is not None and self._flows.lend(key) is not None:
                return start
            start = self._push(key, start)
        return start

    def _push(self, key: str, place: int) -> int:
        flows, parts = self._flows, self._parts
        assembler = flows.take_back(key)
        row = int(self._order[place])
        flows.rest(key, int(self._segments.payload_size[row]))
        found = assembler.push(self._segments.segment(row))
        flows.note_ended(assembler)
        parts.objects += found
        parts.segments += [row] * len(found)
        return place + 1

    def _by_kernels(self, runs: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
        """Let the kernels take what they are sure of; give what they left."""
        plan, join, call, lent = self._plan, self._join, self._call, self._flows.lent
        if not runs or plan is None or join is None:
            return []
        table = np.zeros((len(runs), L.RUN // _WORD), np.int64)
        for one, (key, start, stop) in zip(table, runs, strict=True):
            one[L.R_CONNECTION // _WORD] = lent.address(lent.places[key])
            one[L.R_FROM // _WORD], one[L.R_TO // _WORD] = start, stop
        call[L.C_RUNS // _WORD], call[L.C_RUN_COUNT // _WORD] = table.ctypes.data, len(runs)
        plan(call.ctypes.data, 0, 0)
        out = np.empty(int(call[L.C_OUT_SIZE // _WORD]), np.uint8)
        rows = np.empty((int(call[L.C_FRAME_COUNT // _WORD]), L.FRAME // _WORD), np.int64)
        call[L.C_OUT // _WORD], call[L.C_FRAMES // _WORD] = out.ctypes.data, rows.ctypes.data
        join(call.ctypes.data, 0, 0)
        lent.kept.append(out)
        self._parts.rows.append(rows)
        self._parts.outs.append(out)
        left = []
        for (key, _, stop), place in zip(runs, table[:, L.R_STOP // _WORD].tolist(), strict=True):
            if place < stop:
                # The segment that was not sure is the assembler's.
                left.append((key, self._push(key, place), stop))
        return [one for one in left if one[1] < one[2]]

    def _frames(self, *, in_order: bool) -> FrameColumns:
        flows, parts = self._flows, self._parts
        file = self._segments.file
        made: list[tuple[FrameColumns, Array]] = []
        for rows, out in zip(parts.rows, parts.outs, strict=True):
            made.append(
                (_columns(rows, out, flows.connections, file), rows[:, L.W_SEGMENT // _WORD])
            )
        if parts.objects:
            for one in parts.objects:
                flows.number(one.connection)
            objects = FrameColumns.from_frames(parts.objects, file, flows.connections)
            made.append((objects, np.array(parts.segments, np.int64)))
        frames, rows = joined(made, flows.connections, file, in_order=in_order)
        origins = self._segments.origins
        return frames if origins is None else replace(frames, origins=origins.take(rows))


def _columns(rows: Array, out: Array, connections: list[str], file: str) -> FrameColumns:
    return FrameColumns(
        connection=rows[:, L.W_CONNECTION // _WORD].astype(np.int32),
        is_response=rows[:, L.W_IS_RESPONSE // _WORD].astype(np.bool_),
        index=rows[:, L.W_INDEX // _WORD],
        time_us=rows[:, L.W_TIME // _WORD],
        first_us=rows[:, L.W_FIRST // _WORD],
        size=rows[:, L.W_SIZE // _WORD],
        start=rows[:, L.W_START // _WORD],
        stop=rows[:, L.W_STOP // _WORD],
        connections=connections,
        data=out,
        file=file,
    )


def joined(
    made: list[tuple[FrameColumns, Array]],
    connections: list[str],
    file: str,
    *,
    in_order: bool = False,
) -> tuple[FrameColumns, Array]:
    """Frames as one, and the segment of each.

    Several are put in the order of their segments, and so is one if it is to be ``in_order``.
    """
    made = [one for one in made if len(one[0])]
    if len(made) == 1:
        (frames, segments), *_ = made
        if not in_order or (segments[1:] >= segments[:-1]).all():
            return made[0]
        order = np.argsort(segments, kind="stable")
        return frames.take(order), segments[order]
    if not made:
        return FrameColumns.from_frames([], file, connections), np.zeros(0, np.int64)
    parts = [frames for frames, _ in made]
    segments = np.concatenate([segments for _, segments in made])
    order = np.argsort(segments, kind="stable")
    rows = np.cumsum([0, *map(len, parts)])
    bases = np.cumsum([0, *(len(one.data) for one in parts)])
    error: dict[int, str] = {}
    unplaced: set[int] = set()
    back = np.empty(len(order), np.int64)
    back[order] = np.arange(len(order))
    for one, first in zip(parts, rows[:-1], strict=True):
        error |= {int(back[first + row]): reason for row, reason in one.error.items()}
        unplaced |= {int(back[first + row]) for row in one.unplaced}

    def column(name: str) -> Array:
        return np.concatenate([getattr(one, name) for one in parts])[order]

    def places(name: str) -> Array:
        moved = [getattr(one, name) + base for one, base in zip(parts, bases[:-1], strict=True)]
        return np.concatenate(moved)[order]

    joined = FrameColumns(
        connection=column("connection"),
        is_response=column("is_response"),
        index=column("index"),
        time_us=column("time_us"),
        first_us=column("first_us"),
        size=column("size"),
        start=places("start"),
        stop=places("stop"),
        connections=connections,
        data=np.concatenate([one.data for one in parts]),
        file=file,
        error=error,
        unplaced=unplaced,
    )
    return joined, segments[order]
