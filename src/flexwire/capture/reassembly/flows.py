"""Convert segments to frames, for all connections of a capture at once.

Each connection key has a `FrameAssembler`, which processes the beginning of a connection and every
unusual segment. As long as segments follow one another, the assembler hands the connection to the
kernels. The kernels process the segments of all connections in one call, and stop before any
segment that they cannot process with certainty. The frames are therefore the same as if assemblers
had processed every segment. Only the assemblers are pickled at a cut, because they hold the whole
state.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from flexwire.capture.reassembly.assembly import FrameAssembler
from flexwire.capture.reassembly.connections import BrokerEnds
from flexwire.capture.reassembly.course import NOTED_FRAMES
from flexwire.capture.reassembly.frames import FrameColumns, join_frames
from flexwire.capture.reassembly.framing import CAPTURED_FRAME_LIMIT
from flexwire.capture.reassembly.idling import keys_over
from flexwire.capture.reassembly.streams import HandoffResult, SideResult, SideState
from flexwire.extras import needed_by
from flexwire.kernels import load_kernel
from flexwire.schema.catalog import catalog
from flexwire.wire.limits import INT64_MAX

with needed_by("flexwire.capture.reassembly", "columnar"):
    import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from flexwire.capture.reassembly.connections import CapturedConnection, CapturedFrame
    from flexwire.capture.reassembly.segments import SegmentColumns
    from flexwire.capture.reassembly.streams import Handoff
    from flexwire.columnar.arrays import NumpyArray

_NONE_GIVEN = BrokerEnds()

# The memory layout of the kernels' struct. Pointers are given as addresses. `kernels/frames.pyx`
# has the same layout, and explains each field.
_SIDE = np.dtype(
    [
        (name, np.int64)
        for name in (
            *("next", "taken", "at", "have", "first_us", "last_us", "index", "sizes", "length"),
            *("need", "prefix", "prefix_size"),
            *("planned_next", "planned_bytes", "planned_frames"),
            *("first_index", "before", "repeated", "seeks"),
        )
    ]
)
_CONNECTION = np.dtype(
    [
        *(
            (name, np.int64)
            for name in ("number", "low_is_client", "segments", "captured", "time_us")
        ),
        *((name, np.int64) for name in ("is_marked", "noted")),
        ("sides", _SIDE, 2),
        ("notes", np.int64, NOTED_FRAMES),
    ]
)
_RUN = np.dtype([(name, np.int64) for name in ("connection", "first", "last", "stop")])
_FRAME = np.dtype(
    [
        (name, np.int64)
        for name in (
            *("connection", "is_response", "index", "first_us", "time_us"),
            *("size", "start", "stop", "segment"),
        )
    ]
)
# The columns of segments, with the types that the kernels expect.
_COLUMNS = {
    "timestamp_us": np.int64,
    "sequence": np.int64,
    "acknowledgment": np.int64,
    "flags": np.uint8,
    "payload_at": np.int64,
    "payload_size": np.int32,
    "missing": np.int32,
    "begins": np.int8,
    "is_high": np.uint8,
    "data": np.uint8,
}


class _FramingWords(ctypes.Structure):
    """A chunk of segments for the kernels: its columns, and the memory for output."""

    _fields_ = tuple(
        (name, ctypes.c_int64)
        for name in (
            *(*_COLUMNS, "order", "runs", "run_count"),
            *("out", "out_size", "frames", "frame_count", "limit", "highest_key"),
        )
    )


# If at least `_MUCH_HELD` bytes of a frame are held, they are copied again only after one eighth of
# that many bytes has followed.
_MUCH_HELD = 1 << 20
_PART_BEFORE_LENT = 8


class Flows:
    """Convert the segments of a capture, chunk by chunk, to the frames of all connections.

    ``brokers``, ``limit`` and ``endless`` are passed to `FrameAssembler`. The object can be pickled
    between two chunks and continued elsewhere.
    """

    def __init__(
        self,
        *,
        brokers: BrokerEnds = _NONE_GIVEN,
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
        self.fast_path = _FastPath()
        self._chunk_bytes = 0
        # After an unusual segment, this many bytes of its key go to the assembler before the
        # kernels get the connection again.
        self._rests: dict[str, int] = {}
        self.files: dict[str, str] = {}  # The file in which each key was seen last.

    def __getstate__(self) -> dict[str, Any]:
        self._take_all_back()
        return {**self.__dict__, "fast_path": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ |= state
        self.fast_path = _FastPath()

    def push(self, segments: SegmentColumns, *, in_order: bool = False) -> FrameColumns:
        """Process the segments of a chunk. Return the frames that are now complete, and any errors.

        With ``in_order``, the rows are in the order in which their frames ended. Otherwise only the
        rows of the same connection are in this order, and kernels may return one connection after
        another. With small messages, rows in such an order make files a quarter smaller, and they
        do not have to be sorted.
        """
        # This number is the same for all shares, so that the kernels get a connection at the same
        # moment as without shares.
        self._chunk_bytes = segments.totals.payload_bytes
        chunk = _ChunkAssembly(self, segments)
        frames = chunk.run(in_order=in_order)
        for key in list(self.fast_path.limited):
            # The output had enough room for the frames of the whole chunk.
            self.take_back(key)
        self.fast_path.carry()
        return frames

    def finish(self) -> list[FrameColumns]:
        """End the capture.

        Return the incomplete frames, grouped by the file in which each frame ended.
        """
        self._take_all_back()
        frames_of: dict[str, list[CapturedFrame]] = {}
        for key, assembler in self._assemblers.items():
            frames_of.setdefault(self.files[key], []).extend(assembler.finish())
            self.note_ended(assembler)
        self._assemblers.clear()
        return [
            FrameColumns.from_frames(frames, file, self.connections)
            for file, frames in frames_of.items()
        ]

    def pause(self) -> tuple[list[FrameColumns], list[CapturedConnection]]:
        """Prepare to continue elsewhere, and drop connections that are over or idle.

        Returns the incomplete frames of the dropped connections, grouped by file, and the facts
        gathered about all other connections since the last pause.
        """
        self._take_all_back()
        over = keys_over({key: one.activity() for key, one in self._assemblers.items()})
        frames_of: dict[str, list[CapturedFrame]] = {}
        paused: list[CapturedConnection] = []
        for key, assembler in list(self._assemblers.items()):
            if key not in over:
                paused += assembler.pause()
                continue
            frames_of.setdefault(self.files.pop(key, ""), []).extend(assembler.finish())
            self.note_ended(assembler)
            del self._assemblers[key]
        frames = [
            FrameColumns.from_frames(some, file, self.connections)
            for file, some in frames_of.items()
        ]
        return frames, paused

    def assemblers(self) -> dict[str, FrameAssembler]:
        """Return the assembler of each key."""
        self._take_all_back()
        return dict(self._assemblers)

    def ends(self) -> dict[str, int]:
        """Return the time of the last segment of each open key."""
        return {key: one.activity().last_us for key, one in self.assemblers().items()}

    def open_names(self) -> list[str]:
        """Return the names of the open connections that have a known name."""
        return [name for one in self.assemblers().values() for name in one.open_names()]

    def ended(self) -> list[CapturedConnection]:
        """Return the connections that have ended since the last call."""
        ended, self._ended = self._ended, []
        return ended

    def note_ended(self, assembler: FrameAssembler) -> None:
        """Record which connections have ended."""
        self._ended += assembler.ended()

    def number(self, connection: str) -> int:
        """Return a connection's index in ``connections``. New connections are appended."""
        number = self._numbers.get(connection)
        if number is None:
            number = self._numbers[connection] = len(self.connections)
            self.connections.append(connection)
        return number

    def assembler(self, key: str) -> FrameAssembler:
        """Return the assembler for a connection key."""
        assembler = self._assemblers.get(key)
        if assembler is None:
            assembler = FrameAssembler(limit=self.limit, brokers=self.brokers, endless=self.endless)
            self._assemblers[key] = assembler
        return assembler

    def has(self, key: str) -> bool:
        """Return whether any segments with this key were processed."""
        return key in self._assemblers

    def only(self, keys: Iterable[str]) -> Flows:
        """Return the flows for the part of the capture that contains only these keys."""
        self._take_all_back()
        some = Flows(brokers=self.brokers, limit=self.limit, endless=self.endless)
        for key in keys:
            if key in self._assemblers:
                some._take_over(key, self)
        return some

    @classmethod
    def joined(cls, parts: Sequence[Flows], keys: Iterable[str]) -> Flows:
        """Return the flows for these ``keys``, in order.

        Each key is in exactly one of the parts.
        """
        first = parts[0]
        whole = cls(brokers=first.brokers, limit=first.limit, endless=first.endless)
        owners = {key: part for part in parts for key in part.assemblers()}
        for key in keys:
            whole._take_over(key, owners[key])
        return whole

    def _take_over(self, key: str, other: Flows) -> None:
        self._assemblers[key] = other._assemblers[key]
        if key in other.files:
            self.files[key] = other.files[key]
        if key in other._rests:
            self._rests[key] = other._rests[key]

    def adopt(
        self, key: str, assembler: FrameAssembler, ended: Sequence[CapturedConnection]
    ) -> None:
        """Continue a key from the state of another object that processed all of its segments."""
        self._assemblers[key] = assembler
        self._ended += ended

    def hand_off(self, key: str) -> int | None:
        """Hand the connection of a key to the kernels if it is in order. Return its place."""
        place = self.fast_path.places.get(key)
        if place is not None:
            return place
        if key in self._rests:
            return None
        lent = self.assembler(key).hand_off()
        if lent is None:
            return None
        if min(lent.request.room, lent.response.room) < self._chunk_bytes:
            self._rests[key] = self._chunk_bytes
            return None
        return self.fast_path.add(key, lent, self.number(lent.connection))

    def take_back(self, key: str) -> FrameAssembler:
        """Return the assembler for a key, after adding the kernels' results to it."""
        assembler = self.assembler(key)
        if key in self.fast_path.places:
            taken = self.fast_path.remove(key)
            assembler.take_back(taken)
            # The held bytes are copied each time, and a frame may be as large as the memory.
            held = len(taken.request.held) + len(taken.response.held)
            if held > _MUCH_HELD:
                self._rests[key] = held // _PART_BEFORE_LENT
        return assembler

    def rest(self, key: str, size: int) -> None:
        """Set how many bytes of a key go to the assembler before the kernels get the key back."""
        rests = self._rests.get(key)
        if rests is not None and rests > size:
            self._rests[key] = rests - size
        elif rests is not None:
            del self._rests[key]

    def _take_all_back(self) -> None:
        for key in list(self.fast_path.places):
            self.take_back(key)


class _FastPath:
    """The connections that the kernels process, each stored in a fixed number of words."""

    def __init__(self) -> None:
        self.places: dict[str, int] = {}
        # The connections of which no more than a limited number of bytes may be processed.
        self.limited: set[str] = set()
        self.connections: NumpyArray = np.zeros(0, _CONNECTION)
        self._free: list[int] = []
        # The held bytes of incomplete frames, and all other memory that the words point to.
        self.kept: list[Any] = []

    def address(self, place: int) -> int:
        return int(self.connections.ctypes.data) + _CONNECTION.itemsize * place

    def add(self, key: str, lent: Handoff, number: int) -> int:
        place = self._place()
        self.places[key] = place
        if min(lent.request.room, lent.response.room) < INT64_MAX:
            self.limited.add(key)
        low = key.partition("|")[0]
        low_is_client = lent.client == low
        connection = self.connections[place]
        for name in ("segments", "captured", "time_us", "is_marked", "noted"):
            connection[name] = 0
        connection["number"], connection["low_is_client"] = number, low_is_client
        ends = (lent.request, lent.response) if low_is_client else (lent.response, lent.request)
        for side, standing in zip(connection["sides"], ends, strict=True):
            self._stand(side, standing)
        return place

    def _place(self) -> int:
        if not self._free:
            count = len(self.connections)
            more = np.zeros(max(16, count), _CONNECTION)
            self.connections = np.concatenate([self.connections, more])
            self._free = list(range(len(self.connections) - 1, count - 1, -1))
        return self._free.pop()

    def _stand(self, side: np.void, standing: SideState) -> None:
        at = have = 0
        if standing.held:
            held = np.frombuffer(standing.held, np.uint8)
            self.kept.append(held)
            at, have = held.ctypes.data, len(held)
        values = {
            "next": standing.sequence,
            "at": at,
            "have": have,
            "first_us": standing.first_us,
            "last_us": standing.last_us,
            "index": standing.next_index,
            "first_index": standing.next_index,
            "before": standing.before,
            "seeks": standing.seeks,
        }
        for name in _SIDE.names or ():
            side[name] = values.get(name, 0)

    def remove(self, key: str) -> HandoffResult:
        """Take a connection back from the kernels, and return its result."""
        place = self.places.pop(key)
        self.limited.discard(key)
        self._free.append(place)
        connection = self.connections[place]
        ends = [_went(side) for side in connection["sides"]]
        request, response = ends if connection["low_is_client"] else reversed(ends)
        taken = HandoffResult(
            segments=int(connection["segments"]),
            captured=int(connection["captured"]),
            time_us=int(connection["time_us"]),
            is_marked=bool(connection["is_marked"]),
            noted=_notes(connection),
            request=request,
            response=response,
        )
        connection["sides"]["have"] = 0
        return taken

    def carry(self) -> None:
        """Copy the held bytes to separate memory, so that no chunk's memory stays in use."""
        frames = load_kernel("frames")
        count = len(self.connections)
        if frames is None or not count:
            return
        at = int(self.connections.ctypes.data)
        out = np.empty(frames.carry(at, count, 0), np.uint8)
        if len(out):
            frames.carry(at, count, out.ctypes.data)
        self.kept = [out]


def _went(side: np.void) -> SideResult:
    at, have = int(side["at"]), int(side["have"])
    return SideResult(
        size=int(side["taken"]),
        held=ctypes.string_at(at, have) if have else b"",
        first_us=int(side["first_us"]),
        last_us=int(side["last_us"]),
        frames=int(side["index"] - side["first_index"]),
        sizes=int(side["sizes"]),
        length=int(side["length"]),
        repeated=int(side["repeated"]),
    )


def _notes(connection: np.void) -> list[tuple[bool, int]]:
    noted, ring = int(connection["noted"]), connection["notes"]
    last = [
        int(ring[number % NOTED_FRAMES]) for number in range(max(0, noted - NOTED_FRAMES), noted)
    ]
    return [(not noted_frame & 1, noted_frame >> 1) for noted_frame in last]


@dataclass(slots=True)
class _ChunkFrames:
    """Frames of a chunk from kernels and assemblers, each with the segment that completed it."""

    rows: list[NumpyArray] = field(default_factory=list)
    outs: list[NumpyArray] = field(default_factory=list)
    objects: list[CapturedFrame] = field(default_factory=list)
    segments: list[int] = field(default_factory=list)


class _ChunkAssembly:
    """Convert one chunk of segments to frames."""

    def __init__(self, flows: Flows, segments: SegmentColumns) -> None:
        self._flows = flows
        self._segments = segments
        self._parts = _ChunkFrames()
        self._kernels = load_kernel("frames")
        self._order: NumpyArray = np.argsort(segments.key, kind="stable").astype(np.int64)
        self._words = _FramingWords(
            limit=flows.limit, highest_key=max(catalog().api_keys(), default=-1)
        )
        self._kept: list[NumpyArray] = []
        self._put("order", self._order)
        for name, kind in _COLUMNS.items():
            self._put(name, np.ascontiguousarray(getattr(segments, name), kind))

    def _put(self, name: str, column: NumpyArray) -> None:
        self._kept.append(column)
        setattr(self._words, name, column.ctypes.data)

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
        """Return the file that contains the last segment of each key."""
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
        """Pass segments to the assembler until the kernels can continue. Return that place."""
        while start < stop:
            if self._kernels is not None and self._flows.hand_off(key) is not None:
                return start
            start = self._push(key, start)
        return start

    def _push(self, key: str, place: int) -> int:
        flows, parts = self._flows, self._parts
        assembler = flows.take_back(key)
        row = int(self._order[place])
        flows.rest(key, int(self._segments.payload_size[row]))
        frames = assembler.push(self._segments.segment(row))
        flows.note_ended(assembler)
        parts.objects += frames
        parts.segments += [row] * len(frames)
        return place + 1

    def _by_kernels(self, runs: list[tuple[str, int, int]]) -> list[tuple[str, int, int]]:
        """Have the kernels process the segments they are sure of, and return the other segments."""
        kernels, words, lent = self._kernels, self._words, self._flows.fast_path
        if not runs or kernels is None:
            return []
        table = np.array(
            [(lent.address(lent.places[key]), start, stop, 0) for key, start, stop in runs], _RUN
        )
        words.runs, words.run_count = table.ctypes.data, len(runs)
        kernels.plan(ctypes.addressof(words))
        out = np.empty(words.out_size, np.uint8)
        rows = np.empty(words.frame_count, _FRAME)
        words.out, words.frames = out.ctypes.data, rows.ctypes.data
        kernels.join(ctypes.addressof(words))
        lent.kept.append(out)
        self._parts.rows.append(rows)
        self._parts.outs.append(out)
        left = []
        for (key, _, stop), place in zip(runs, table["stop"].tolist(), strict=True):
            if place < stop:
                # The segment that stopped the kernels goes to the assembler.
                left.append((key, self._push(key, place), stop))
        return [span for span in left if span[1] < span[2]]

    def _frames(self, *, in_order: bool) -> FrameColumns:
        flows, parts = self._flows, self._parts
        file = self._segments.file
        columns: list[tuple[FrameColumns, NumpyArray]] = []
        for rows, out in zip(parts.rows, parts.outs, strict=True):
            columns.append((_columns(rows, out, flows.connections, file), rows["segment"]))
        if parts.objects:
            for frame in parts.objects:
                flows.number(frame.connection)
            objects = FrameColumns.from_frames(parts.objects, file, flows.connections)
            columns.append((objects, np.array(parts.segments, np.int64)))
        frames, rows = join_frames(columns, flows.connections, file, in_order=in_order)
        origins = self._segments.origins
        return frames if origins is None else replace(frames, origins=origins.take(rows))


def _columns(rows: NumpyArray, out: NumpyArray, connections: list[str], file: str) -> FrameColumns:
    return FrameColumns(
        connection=rows["connection"].astype(np.int32),
        is_response=rows["is_response"].astype(np.bool_),
        index=rows["index"],
        time_us=rows["time_us"],
        first_us=rows["first_us"],
        size=rows["size"],
        start=rows["start"],
        stop=rows["stop"],
        connections=connections,
        data=out,
        file=file,
    )
