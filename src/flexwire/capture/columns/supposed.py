"""Connections that go on in a part of a capture, taken in without what came before it.

Where a connection stands at the start of the part is supposed: the next bytes of each end are those
of its first segment, and its frames begin with the first segment that looks like one. The bytes
before that are put into a frame made up, behind a `MARK`. What becomes of the connection is kept,
step by step, as what was supposed and what followed from it. Whoever knows where the connection
truly stood can then say whether it was so, and take the steps without the segments.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from flexwire.capture.assembly import FrameAssembler
from flexwire.capture.columns.flows import Flows
from flexwire.capture.lent import Lent, Standing
from flexwire.capture.plausible import (
    REQUEST_HEAD_BYTES,
    SHORTEST_HEAD,
    correlation_ids,
    looks_like_request,
    looks_like_response,
)
from flexwire.wire.limits import INT64_MAX, INT64_MIN
from flexwire.wire.segment_layout import ACK, HALF_MODULUS, MODULUS, PREFIX_LENGTH, SYN

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.capture.assembly import CapturedFrame
    from flexwire.capture.brokers import Brokers
    from flexwire.capture.columns.frames import FrameColumns
    from flexwire.capture.columns.segments import SegmentColumns
    from flexwire.capture.connections import CapturedConnection
    from flexwire.capture.lent import Taken
    from flexwire.capture.model import Direction, Segment

    Array = np.ndarray[Any, np.dtype[Any]]

MARK_ID: Final = -0x5EEDED
MARK: Final = struct.pack(">iii", MARK_ID, MARK_ID, MARK_ID)
"""The first bytes of a frame made up; as a request or response its correlation id is `MARK_ID`."""

HEAD_BYTES: Final = PREFIX_LENGTH + len(MARK)
"""So many bytes stand before the tail of a frame that began before the part."""

_LENGTH = struct.Struct(">i")
_DIRECTIONS: tuple[Direction, Direction] = ("request", "response")
# Steps that are no runs of a kernel take memory and time: what has too many is left.
_MOST_PUSHED = 4096
_MOST_PUSHED_BYTES = 16 << 20
_MOST_TAIL = 256 << 20
# So many requests may have been under way; so many frames have to follow one another.
_IDS_APART, _CHAIN = 64, 4
_MOST_IDS = 256
_MOST_ROWS = 64
# So much is looked through for a frame that begins within a segment: after the bytes from before
# the part, and in them before the first one that begins a segment.
_SEARCHED, _BEFORE = 1 << 20, 1 << 16
# Below any acknowledgment that a segment can bring.
_NEVER_ACKNOWLEDGED = -(1 << 40)


@dataclass(frozen=True, slots=True)
class Run:
    """What kernels made of a connection that was lent.

    ``is_crossing`` says of requests and of responses whether the frame that was held is made up.
    """

    lent: Lent
    taken: Taken
    is_crossing: tuple[bool, bool]

    @property
    def frames(self) -> int:
        """How many frames it gave."""
        return self.taken.request.frames + self.taken.response.frames


@dataclass(frozen=True, slots=True)
class Push:
    """A segment that was not sure, and how many frames it gave."""

    segment: Segment
    frames: int


@dataclass(slots=True)
class Log:
    """What became of a connection, in order; unless it is whole, more segments follow."""

    steps: list[Run | Push] = field(default_factory=list)
    is_whole: bool = True


@dataclass(slots=True)
class _Side:
    """One end: what its first segment in the part begins with, and whether frames were found."""

    first: int
    is_sought: bool = True
    is_made_up: bool = True


class Supposed(FrameAssembler):
    """The assembler of a connection that is supposed to go on, and the log of its steps."""

    def __init__(self, key: str, limit: int, brokers: Brokers) -> None:
        super().__init__(limit=limit, brokers=brokers)
        self.key = key
        self.log = Log()
        self.sides: dict[Direction, _Side] = {}
        self.client = ""
        self._lent: Lent | None = None
        self._pushed = self._pushed_bytes = 0

    @property
    def is_over(self) -> bool:
        """Whether nothing more is supposed of it."""
        return not self.log.is_whole

    @property
    def name(self) -> str:
        """What its frames are said to be of."""
        return f"?{self.key}"

    def give_up(self) -> None:
        """Suppose nothing more."""
        self.log.is_whole = False

    def begin(self, client: str, broker: str, firsts: dict[Direction, int]) -> None:
        """Suppose who the client is, and the sequence number that each end goes on with."""
        self.client = client
        self.sides = {direction: _Side(first) for direction, first in firsts.items()}
        ends = [_standing(one.first, b"") for one in self.sides.values()]
        self.resume(Lent(self.name, client, *ends), broker)
        for direction in _DIRECTIONS:
            # Until it is known where frames begin, all bytes are those of one.
            self._make_up(direction, self.limit, b"")

    def found(self, direction: Direction, size: int) -> None:
        """Take in how many bytes from the first on are before the first frame."""
        side = self.sides[direction]
        side.is_sought = False
        standing = self._side_standing(direction)
        tail = b"" if standing is None else standing.held[HEAD_BYTES:]
        if standing is None or standing.next_index or (tail and size <= len(tail)):
            self.give_up()
        elif size:
            self._make_up(direction, size, tail, standing.first_us, standing.last_us)
        else:
            side.is_made_up = False
            self.hold(direction, b"", 0, 0)

    def tail(self, direction: Direction) -> int:
        """How many bytes are held of a frame that began before the part."""
        standing = self._side_standing(direction)
        return 0 if standing is None else len(standing.held)

    def is_made_up(self, direction: Direction) -> bool:
        """Whether the first frame of a direction is not one."""
        side = self.sides.get(direction)
        return side is not None and side.is_made_up

    def lend(self) -> Lent | None:
        """See `FrameAssembler.lend`."""
        self._lent = None if self.is_over else super().lend()
        if self._lent is not None and self._lent.connection != self.name:
            # It was another connection's, by the numbers of its bytes.
            self.give_up()
            self._lent = None
        return self._lent

    def take_back(self, taken: Taken) -> None:
        """See `FrameAssembler.take_back`."""
        lent = self._lent
        if taken.segments and lent is not None:
            is_crossing = (
                self.is_made_up("request") and not lent.request.next_index,
                self.is_made_up("response") and not lent.response.next_index,
            )
            self.log.steps.append(Run(lent, taken, is_crossing))
        super().take_back(taken)

    def push(self, segment: Segment) -> list[CapturedFrame]:
        """See `FrameAssembler.push`."""
        self._pushed += 1
        self._pushed_bytes += len(segment.payload)
        is_too_much = self._pushed > _MOST_PUSHED or self._pushed_bytes > _MOST_PUSHED_BYTES
        if is_too_much or segment.flags & SYN or not self.sides:
            # After a SYN it may be another connection.
            self.give_up()
        if self.is_over:
            return []
        frames = super().push(segment)
        self.log.steps.append(Push(segment, len(frames)))
        return frames

    def _side_standing(self, direction: Direction) -> Standing | None:
        lent = super().lend()
        return None if lent is None else getattr(lent, direction)

    def _make_up(
        self,
        direction: Direction,
        size: int,
        tail: bytes,
        first_us: int = INT64_MAX,
        last_us: int = INT64_MIN,
    ) -> None:
        held = _LENGTH.pack(min(size + len(MARK), self.limit)) + MARK + tail
        self.hold(direction, held, first_us, last_us)


def key_of(connection: str) -> str:
    """The key of a connection, by its name."""
    if connection.startswith("?"):
        return connection[1:]
    ends = connection.partition("#")[0].split(">")
    return "|".join(sorted(ends))


def _standing(sequence: int, held: bytes) -> Standing:
    return Standing(sequence, _NEVER_ACKNOWLEDGED, held, INT64_MAX, INT64_MIN, 0)


class SupposedFlows(Flows):
    """`Flows` of a part of a capture, in which connections go on.

    A key whose first segment is a SYN begins in the part, by all that can be known there; the first
    part of a capture supposes nothing.
    """

    def __init__(self, *, brokers: Brokers, is_first: bool) -> None:
        super().__init__(brokers=brokers)
        self._is_first = is_first
        self.supposed: dict[str, Supposed] = {}
        self.made_up: dict[int, Supposed] = {}  # by the number of its connection
        self.ended_by_key: dict[str, list[CapturedConnection]] = {}
        self.keys: list[str] = []
        self._seen = 0
        self._sought: set[int] = set()
        self._over: set[int] = set()

    def push(self, segments: SegmentColumns) -> FrameColumns:
        """See `Flows.push`."""
        self.keys = segments.keys
        present = np.unique(segments.key)
        names = [segments.keys[one] for one in present.tolist()]
        self.files.update(dict.fromkeys(names, segments.file))
        if not self._is_first:
            watched = present[(present >= self._seen) | np.isin(present, list(self._sought))]
            self._seen = max(self._seen, len(segments.keys))
            if len(watched):
                self._watch(segments, watched)
        segments = self._without_over(segments)
        frames = super().push(segments)
        self._over |= {one for one in present.tolist() if self._is_over(segments.keys[one])}
        return frames

    def assemblers(self) -> dict[str, FrameAssembler]:
        """Give the assemblers of the keys of which nothing was supposed, as they stand in the end.

        Where more is supposed of a key than its steps, it is in ``supposed``.
        """
        self._take_all_back()
        return {one: it for one, it in self._assemblers.items() if one not in self.supposed}

    def note_ended(self, assembler: FrameAssembler) -> None:
        """Take in which connections have ended."""
        ended = assembler.ended()
        if ended and not isinstance(assembler, Supposed):
            self.ended_by_key.setdefault(assembler.key, []).extend(ended)

    def _is_over(self, key: str) -> bool:
        return key in self.supposed and self.supposed[key].is_over

    def _without_over(self, segments: SegmentColumns) -> SegmentColumns:
        self._over |= {one for one in self._sought if self._is_over(segments.keys[one])}
        self._sought -= self._over
        if not self._over:
            return segments
        return segments.take(np.flatnonzero(~np.isin(segments.key, list(self._over))))

    def _watch(self, segments: SegmentColumns, watched: Array) -> None:
        """Look at the segments of keys that are new, or whose frames were not found yet."""
        rows = np.flatnonzero(np.isin(segments.key, watched))
        rows = rows[np.argsort(segments.key[rows], kind="stable")]
        keys = segments.key[rows]
        bounds = np.searchsorted(keys, np.append(watched, watched[-1] + 1))
        for number, start, stop in zip(
            watched.tolist(), bounds[:-1].tolist(), bounds[1:].tolist(), strict=True
        ):
            if start < stop:
                self._watch_one(number, _Rows(segments, rows[start:stop], self.limit))

    def _watch_one(self, number: int, rows: _Rows) -> None:
        key = rows.segments.keys[number]
        one = self.supposed.get(key)
        if one is None:
            if key in self._assemblers or rows.flags(0) & SYN:
                return
            one = self.supposed[key] = Supposed(key, self.limit, self.brokers)
            self._assemblers[key] = one
            self._sought.add(number)
            if not rows.begin(one):
                one.give_up()
                return
            self.made_up[self.number(one.name)] = one
        if one.is_over:
            return
        self.take_back(key)
        rows.seek(one)
        if not any(side.is_sought for side in one.sides.values()):
            self._sought.discard(number)


class _Rows:
    """The segments of one key in a chunk."""

    def __init__(self, segments: SegmentColumns, rows: Array, limit: int) -> None:
        self.segments = segments
        self._limit = limit
        self._rows = rows
        self._is_high = segments.is_high[rows].astype(np.bool_)
        self._sizes = segments.payload_size[rows]

    def flags(self, place: int) -> int:
        return int(self.segments.flags[self._rows[place]])

    def begin(self, one: Supposed) -> bool:
        """Suppose where a connection stands; False if nothing can be."""
        low, high = one.key.split("|")
        first_low, first_high = self._first(of_high=False), self._first(of_high=True)
        if first_low is None or first_high is None:
            return False
        is_high = self._client_is_high(one)
        client, broker = (high, low) if is_high else (low, high)
        sequences = (first_high, first_low) if is_high else (first_low, first_high)
        one.begin(client, broker, dict(zip(_DIRECTIONS, sequences, strict=True)))
        return True

    def seek(self, one: Supposed) -> None:
        """Look where frames begin, in the directions in which that is not known."""
        client_is_high = one.client == one.key.split("|")[1]
        ids: list[int] = []
        for direction in _DIRECTIONS:
            is_request = direction == "request"
            side = one.sides[direction]
            if is_request:
                ids = self._request_ids(of_high=client_is_high)
            if not side.is_sought:
                continue
            stream = _Stream(self, of_high=client_is_high == is_request, first=side.first)
            is_frame = self._asks if is_request else partial(self._answers, ids=ids)
            size = stream.first_frame(is_frame, max(0, one.tail(direction) - HEAD_BYTES))
            if size is not None:
                one.found(direction, size)
            elif one.tail(direction) > _MOST_TAIL:
                one.give_up()

    def _first(self, *, of_high: bool) -> int | None:
        """The sequence number that an end goes on with."""
        its = np.flatnonzero(self._is_high == of_high)
        if len(its):
            return int(self.segments.sequence[self._rows[its[0]]])
        # What the other end has acknowledged is all that it sent, if nothing is under way.
        first = self._rows[0]
        acknowledged = int(self.segments.acknowledgment[first])
        return acknowledged if self.segments.flags[first] & ACK and acknowledged else None

    def _client_is_high(self, one: Supposed) -> bool:
        segment = self.segments.segment(int(self._rows[0]))
        given = one.brokers.client(segment)
        low, high = one.key.split("|")
        if given is not None:
            return given == high
        asking = [
            sum(
                self._asks(self.head(row, REQUEST_HEAD_BYTES))
                for row in self.with_payload(of_high=of_high)[:_MOST_ROWS]
            )
            for of_high in (False, True)
        ]
        # The first responses of a connection may look like requests.
        if asking[0] != asking[1]:
            return asking[1] > asking[0]
        high_port, low_port = (int(end.rpartition(":")[2]) for end in (high, low))
        return high_port > low_port

    def with_payload(self, *, of_high: bool) -> list[int]:
        found: list[int] = self._rows[(self._is_high == of_high) & (self._sizes > 0)].tolist()
        return found

    def head(self, row: int, size: int) -> bytes:
        at = int(self.segments.payload_at[row])
        head = self.segments.data[at : at + min(size, int(self.segments.payload_size[row]))]
        return head.tobytes()

    def _asks(self, head: bytes) -> bool:
        return bool(looks_like_request(head, self._limit))

    def _request_ids(self, *, of_high: bool) -> list[int]:
        """Correlation ids of some requests, the lowest and the highest of them."""
        found = []
        for row in self.with_payload(of_high=of_high):
            head = self.head(row, REQUEST_HEAD_BYTES)
            if len(head) >= SHORTEST_HEAD and looks_like_request(head, self._limit):
                found.append(correlation_ids(head)[0])
                if len(found) == _MOST_IDS:
                    break
        return [min(found), max(found)] if found else []

    def _answers(self, head: bytes, ids: list[int]) -> bool:
        if not ids or not looks_like_response(head, self._limit):
            return False
        (answers,) = _LENGTH.unpack_from(head, PREFIX_LENGTH)
        return bool(ids[0] - _IDS_APART <= answers <= ids[1])


class _Stream:
    """What one end sent in a chunk, by the distance from its first byte there."""

    def __init__(self, rows: _Rows, *, of_high: bool, first: int) -> None:
        self.rows = rows.with_payload(of_high=of_high)
        self._whole = rows
        positions = (rows.segments.sequence[self.rows] - first) % MODULUS
        self._position: dict[int, int] = dict(zip(self.rows, positions.tolist(), strict=True))
        order = np.argsort(positions, kind="stable")
        self._starts: list[int] = positions[order].tolist()
        self._in_order = [self.rows[one] for one in order.tolist()]

    def first_frame(self, is_frame: Callable[[bytes], bool], least: int) -> int | None:
        """Where the first frame begins that does so not before ``least``, as far as it is known."""
        for row in self.rows:
            at = self._position[row]
            if least <= at < HALF_MODULUS and self._leads_on(at, is_frame, sure=True):
                return self._earliest(at, is_frame, least)
        data = np.frombuffer(self._peek(least, _SEARCHED), np.uint8)
        for place in _lengths(data)[0].tolist():
            if self._leads_on(least + place, is_frame, sure=False):
                return least + int(place)
        return None

    def _leads_on(self, at: int, is_frame: Callable[[bytes], bool], *, sure: bool) -> bool:
        """Whether a frame begins at a place, and others where it leads to.

        Where it leads out of what was seen, it does unless that is not ``sure``.
        """
        for number in range(_CHAIN):
            head = self._peek(at, REQUEST_HEAD_BYTES)
            if len(head) < SHORTEST_HEAD:
                # As far as was seen.
                return number > 1 or (number == 1 and sure)
            if not is_frame(head):
                return False
            at += PREFIX_LENGTH + _LENGTH.unpack_from(head)[0]
        return True

    def _earliest(self, at: int, is_frame: Callable[[bytes], bool], least: int) -> int:
        """Where the first of some frames begins that end where another begins: in a segment."""
        begin = max(least, at - _BEFORE)
        data = self._peek(begin, at - begin)
        if len(data) < at - begin:
            return at
        places, lengths = _lengths(np.frombuffer(data, np.uint8))
        ends = {at}
        inside = places + PREFIX_LENGTH + lengths <= at - begin
        for place, length in zip(
            places[inside][::-1].tolist(), lengths[inside][::-1].tolist(), strict=True
        ):
            if begin + place + PREFIX_LENGTH + length in ends:
                head = self._peek(begin + place, REQUEST_HEAD_BYTES)
                if is_frame(head):
                    ends.add(begin + place)
        return min(ends)

    def _peek(self, at: int, size: int) -> bytes:
        found = b""
        place = bisect_right(self._starts, at) - 1
        while len(found) < size and 0 <= place < len(self._starts):
            inside = at + len(found) - self._starts[place]
            if inside < 0:
                break
            part = self._whole.head(self._in_order[place], inside + size - len(found))[inside:]
            if not part:
                break
            found += part
            place += 1
        return found


def _lengths(data: Array) -> tuple[Array, Array]:
    """The places at which a length may stand that a frame can have, and these lengths."""
    if len(data) < SHORTEST_HEAD:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    # A frame of 16 MiB and more is not looked for.
    first = np.flatnonzero(data[:-3] == 0)
    words = data[first[:, None] + np.arange(1, 4)].astype(np.int64)
    lengths = words[:, 0] << 16 | words[:, 1] << 8 | words[:, 2]
    likely = lengths >= PREFIX_LENGTH
    return first[likely], lengths[likely]
