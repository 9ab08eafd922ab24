"""Connections that go on in a part of a capture, read without what came before it.

Where a connection stands at the start of the part is supposed: the next bytes of each end are those
of its first segment, and its frames begin with the first segment that looks like one. The bytes
before that are put into a frame made up, behind a `MARK`. Where it looks like TLS, no frame is
supposed to begin in it. What becomes of the connection is kept, step by step, as what was supposed
and what followed from it; and so it is of one that begins in the part, perhaps on ports that were
used before. Whoever knows where the connection truly stood can then say whether it was so, and take
the steps without the segments.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from flexwire.capture.reassembly.assembly import FrameAssembler, key_of_ends
from flexwire.capture.reassembly.flows import Flows
from flexwire.capture.reassembly.streams import Handoff, SideState
from flexwire.survey.frame_starts import DIRECTIONS, KeySegments
from flexwire.wire.limits import INT64_MAX, INT64_MIN
from flexwire.wire.segment_layout import PREFIX_LENGTH, SYN

if TYPE_CHECKING:
    from flexwire.capture.files.packets import Direction, Segment
    from flexwire.capture.reassembly.connections import (
        BrokerEnds,
        CapturedConnection,
        CapturedFrame,
    )
    from flexwire.capture.reassembly.frames import FrameColumns
    from flexwire.capture.reassembly.segments import SegmentColumns
    from flexwire.capture.reassembly.streams import HandoffResult, SideResult
    from flexwire.columnar.arrays import NumpyArray
    from flexwire.survey.frame_starts import ConnectionGuess


MARK_ID: Final = -0x5EEDED
MARK: Final = struct.pack(">iii", MARK_ID, MARK_ID, MARK_ID)
"""The first bytes of a frame made up; as a request or response its correlation id is `MARK_ID`."""

HEAD_BYTES: Final = PREFIX_LENGTH + len(MARK)
"""So many bytes stand before the tail of a frame that began before the part."""

_LENGTH = struct.Struct(">i")
# Steps that are no runs of a kernel take memory and time: what has too many is left.
_MOST_PUSHED = 4096
_MOST_PUSHED_BYTES = 16 << 20
# Of so many connections that begin in the part it is kept how they do; it takes some kB of each.
_MOST_FRESH = 20_000
# A frame of more bytes is not gone on with.
_MOST_TAIL = 64 << 20
# So many bytes are held in which frames are still looked for: frames that are as long, or those of
# other protocols.
_MOST_HELD = 256 << 20


@dataclass(frozen=True, slots=True)
class FastPathStep:
    """What kernels made of a connection that was lent.

    ``is_crossing`` says of requests and of responses whether the frame that was held is made up.
    """

    lent: Handoff
    taken: HandoffResult
    is_crossing: tuple[bool, bool]

    @property
    def frames(self) -> int:
        """How many frames it gave."""
        return self.taken.request.frames + self.taken.response.frames

    def joined(self, after: FastPathStep) -> FastPathStep:
        """The same with what followed, if this one gave no frame and the other began at its end."""
        own, other = self.taken, after.taken
        taken = replace(
            other,
            segments=own.segments + other.segments,
            captured=own.captured + other.captured,
            is_marked=own.is_marked or other.is_marked,
            request=_joined(own.request, other.request),
            response=_joined(own.response, other.response),
        )
        return replace(self, taken=taken)


@dataclass(frozen=True, slots=True)
class SegmentStep:
    """A segment that was not sure, and how many frames it gave."""

    segment: Segment
    frames: int


@dataclass(slots=True)
class StepLog:
    """What became of a connection, in order; unless it is whole, more segments follow."""

    steps: list[FastPathStep | SegmentStep] = field(default_factory=list)
    is_whole: bool = True

    def add(self, run: FastPathStep) -> None:
        """Add a run, to the one before it if that gave no frame, and so holds part of the same."""
        last = self.steps[-1] if self.steps else None
        if (
            isinstance(last, FastPathStep)
            and not last.frames
            and last.is_crossing == run.is_crossing
        ):
            self.steps[-1] = last.joined(run)
        else:
            self.steps.append(run)


@dataclass(slots=True)
class _GuessedSide:
    """One end: what its first segment in the part begins with, and whether frames were found."""

    first: int
    is_sought: bool = True
    is_made_up: bool = True


class SpeculativeAssembler(FrameAssembler):
    """The assembler of a connection that is supposed to go on, and the log of its steps."""

    def __init__(
        self, key: str, limit: int, brokers: BrokerEnds, *, is_fresh: bool = False
    ) -> None:
        super().__init__(limit=limit, brokers=brokers)
        self.key = key
        self.is_fresh = is_fresh  # it begins in the part, and nothing is supposed of it
        self.log = StepLog()
        self.sides: dict[Direction, _GuessedSide] = {}
        self.client = ""
        self._lent: Handoff | None = None
        self._pushed = self._pushed_bytes = 0

    @property
    def is_over(self) -> bool:
        """Whether nothing more is supposed of it."""
        return not self.log.is_whole and not self.is_fresh

    @property
    def plain(self) -> FrameAssembler:
        """The same without the log, to go on with."""
        plain = FrameAssembler(limit=self.limit, brokers=self.brokers)
        names = vars(plain).keys()
        vars(plain).update({name: it for name, it in vars(self).items() if name in names})
        return plain

    @property
    def name(self) -> str:
        """What its frames are said to be of."""
        return f"?{self.key}"

    def give_up(self) -> None:
        """Suppose nothing more."""
        self.log.is_whole = False

    def begin(self, start: ConnectionGuess) -> None:
        """Suppose who the client is, and the sequence number that each end goes on with."""
        self.client = start.client
        is_open = not start.is_hidden
        self.sides = {
            direction: _GuessedSide(first, is_sought=is_open, is_made_up=is_open)
            for direction, first in start.firsts.items()
        }
        ends = [_standing(first, b"") for first in start.firsts.values()]
        self.resume(Handoff(self.name, start.client, *ends), start.broker)
        if start.is_hidden:
            self.seek()
            return
        for direction in DIRECTIONS:
            # Until it is known where frames begin, all bytes are those of one.
            self._make_up(direction, self.limit, b"")

    def _found(self, direction: Direction, size: int) -> None:
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

    def seek_frames(self, rows: KeySegments) -> int:
        """Look where frames begin in segments, in the directions in which that is not known.

        Return how many bytes are held of those in which it still is not.
        """
        held = 0
        client_is_high = self.client == self.key.split("|")[1]
        for direction in DIRECTIONS:
            side = self.sides[direction]
            if not side.is_sought:
                continue
            least = self._tail(direction)
            size = rows.before_frames(
                direction, client_is_high=client_is_high, first=side.first, least=least
            )
            if size is not None:
                self._found(direction, size)
            elif least > _MOST_TAIL:
                self.give_up()
            else:
                held += least
        return held

    def _tail(self, direction: Direction) -> int:
        """How many bytes are held of a frame that began before the part."""
        standing = self._side_standing(direction)
        return 0 if standing is None else max(0, len(standing.held) - HEAD_BYTES)

    def is_made_up(self, direction: Direction) -> bool:
        """Whether the first frame of a direction is not one."""
        side = self.sides.get(direction)
        return side is not None and side.is_made_up

    def lend(self) -> Handoff | None:
        """See `FrameAssembler.lend`."""
        self._lent = None if self.is_over else super().lend()
        return self._lent

    def take_back(self, taken: HandoffResult) -> None:
        """See `FrameAssembler.take_back`."""
        lent = self._lent
        if taken.segments and lent is not None and self.log.is_whole:
            is_supposed = lent.connection == self.name
            is_crossing = (
                is_supposed and self.is_made_up("request") and not lent.request.next_index,
                is_supposed and self.is_made_up("response") and not lent.response.next_index,
            )
            self.log.add(FastPathStep(lent, taken, is_crossing))
        super().take_back(taken)

    def push(self, segment: Segment) -> list[CapturedFrame]:
        """See `FrameAssembler.push`."""
        self._pushed += 1
        self._pushed_bytes += len(segment.payload)
        is_too_much = self._pushed > _MOST_PUSHED or self._pushed_bytes > _MOST_PUSHED_BYTES
        is_sought = any(side.is_sought for side in self.sides.values())
        if is_too_much or (segment.flags & SYN and is_sought):
            # After a SYN nobody looks for frames of the connection before it.
            self.give_up()
        if self.is_over:
            return []
        frames = super().push(segment)
        if self.log.is_whole:
            self.log.steps.append(SegmentStep(segment, len(frames)))
        return frames

    def _side_standing(self, direction: Direction) -> SideState | None:
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
    return key_of_ends(*connection.partition("#")[0].split(">"))


def _joined(own: SideResult, other: SideResult) -> SideResult:
    first_us, last_us = min(own.first_us, other.first_us), max(own.last_us, other.last_us)
    if other.held or other.frames:
        # Of the frame that is held.
        first_us, last_us = other.first_us, other.last_us
    return other._replace(
        size=own.size + other.size,
        first_us=first_us,
        last_us=last_us,
        repeated=own.repeated + other.repeated,
    )


def _standing(sequence: int, held: bytes) -> SideState:
    return SideState(sequence, held, INT64_MAX, INT64_MIN, 0)


class SpeculativeFlows(Flows):
    """`Flows` of a part of a capture, in which connections go on.

    A key whose first segment is a SYN begins in the part, by all that can be known there; the first
    part of a capture supposes nothing.
    """

    def __init__(self, *, brokers: BrokerEnds, is_first: bool) -> None:
        super().__init__(brokers=brokers)
        self._is_first = is_first
        self.supposed: dict[str, SpeculativeAssembler] = {}
        self.fresh: dict[str, SpeculativeAssembler] = {}
        self.made_up: dict[int, SpeculativeAssembler] = {}  # by the number of its connection
        self.ended_by_key: dict[str, list[CapturedConnection]] = {}
        self.keys: list[str] = []
        self._seen = 0
        self._sought: set[int] = set()
        self._over: set[int] = set()

    def push(self, segments: SegmentColumns, *, in_order: bool = False) -> FrameColumns:
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
        frames = super().push(segments, in_order=in_order)
        self._over |= {one for one in present.tolist() if self._is_over(segments.keys[one])}
        return frames

    def assemblers(self) -> dict[str, FrameAssembler]:
        """Give the assemblers of the keys of which nothing was supposed, as they stand in the end.

        Where more is supposed of a key than its steps, it is in ``supposed``.
        """
        self._take_all_back()
        return {key: one.plain for key, one in self.fresh.items()} | {
            key: one
            for key, one in self._assemblers.items()
            if key not in self.supposed and key not in self.fresh
        }

    def logs(self) -> dict[str, StepLog]:
        """Give the logs of all keys, but for the first part, in which nothing goes on."""
        every = self.supposed | self.fresh
        return {key: one.log for key, one in every.items()}

    def note_ended(self, assembler: FrameAssembler) -> None:
        """Take in which connections have ended."""
        ended = assembler.ended()
        if ended and assembler.key not in self.supposed:
            self.ended_by_key.setdefault(assembler.key, []).extend(ended)

    def _is_over(self, key: str) -> bool:
        return key in self.supposed and self.supposed[key].is_over

    def _without_over(self, segments: SegmentColumns) -> SegmentColumns:
        self._over |= {one for one in self._sought if self._is_over(segments.keys[one])}
        self._sought -= self._over
        if not self._over:
            return segments
        return segments.take(np.flatnonzero(~np.isin(segments.key, list(self._over))))

    def _watch(self, segments: SegmentColumns, watched: NumpyArray) -> None:
        """Look at the segments of keys that are new, or whose frames were not found yet."""
        held = 0
        rows = np.flatnonzero(np.isin(segments.key, watched))
        rows = rows[np.argsort(segments.key[rows], kind="stable")]
        keys = segments.key[rows]
        bounds = np.searchsorted(keys, np.append(watched, watched[-1] + 1))
        for number, start, stop in zip(
            watched.tolist(), bounds[:-1].tolist(), bounds[1:].tolist(), strict=True
        ):
            if start < stop:
                held += self._watch_one(number, KeySegments(segments, rows[start:stop], self.limit))
        if held > _MOST_HELD:
            for number in self._sought:
                self.supposed[segments.keys[number]].give_up()

    def _watch_one(self, number: int, rows: KeySegments) -> int:
        """Look at those of one key; gives how many bytes of it are held until frames are found."""
        key = rows.segments.keys[number]
        one = self.supposed.get(key)
        if one is None:
            if key in self._assemblers:
                return 0
            if rows.flags(0) & SYN:
                self._begin_fresh(key)
                return 0
            one = self.supposed[key] = SpeculativeAssembler(key, self.limit, self.brokers)
            self._assemblers[key] = one
            self._sought.add(number)
            start = rows.start(key, self.brokers)
            if start is None:
                one.give_up()
                return 0
            one.begin(start)
            self.made_up[self.number(one.name)] = one
        if one.is_over:
            return 0
        self.take_back(key)
        held = one.seek_frames(rows)
        if not any(side.is_sought for side in one.sides.values()):
            self._sought.discard(number)
        return held

    def _begin_fresh(self, key: str) -> None:
        one = self.fresh[key] = SpeculativeAssembler(key, self.limit, self.brokers, is_fresh=True)
        self._assemblers[key] = one
        if len(self.fresh) > _MOST_FRESH:
            one.give_up()
