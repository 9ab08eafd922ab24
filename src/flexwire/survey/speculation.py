"""Connections that continue in a part of a capture, read without the bytes from before the part.

The state of such a connection at the start of the part is a guess. The next bytes of each end are
assumed to be those of the end's first segment in the part. The frames of the connection are
assumed to begin with the first segment that looks like the start of a frame. The bytes before this
segment become a made-up frame, which begins with `MARK`. If the bytes look like TLS, no frames are
expected in them.

A log keeps each step: the guess and the results. Connections that begin in the part have logs too,
because their ports may have been used before. A reader that knows the true state of a connection
can check the guesses, and use the steps without reading the segments.
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
"""The first bytes of a made-up frame. The frame's correlation id is `MARK_ID`, both as a request
and as a response.
"""

HEAD_BYTES: Final = PREFIX_LENGTH + len(MARK)
"""The number of bytes before the rest of a frame that began before the part."""

_LENGTH = struct.Struct(">i")
# The largest number of steps that no kernel processed. Steps without a kernel take memory and time,
# so a connection with more such steps is given up.
_MOST_PUSHED = 4096
_MOST_PUSHED_BYTES = 16 << 20
# The largest number of connections that begin in the part and have logs. Each log takes a few kB.
_MOST_FRESH = 20_000
# The longest frame from before the part. A connection with a longer frame is given up.
_MOST_TAIL = 64 << 20
# The largest number of bytes that are held while it is unknown where frames begin. These bytes can
# be one long frame, or bytes of another protocol.
_MOST_HELD = 256 << 20


@dataclass(frozen=True, slots=True)
class FastPathStep:
    """The result of handing a connection to the kernels.

    ``is_crossing`` tells, for requests and for responses, whether the held frame is made up.
    """

    handoff: Handoff
    result: HandoffResult
    is_crossing: tuple[bool, bool]

    @property
    def frames(self) -> int:
        """The number of frames that the step completed."""
        return self.result.request.frames + self.result.response.frames

    def joined(self, later: FastPathStep) -> FastPathStep:
        """Return this step joined with ``later``, which began where this step ended.

        This step must not have completed a frame.
        """
        mine, next_result = self.result, later.result
        result = replace(
            next_result,
            segments=mine.segments + next_result.segments,
            captured=mine.captured + next_result.captured,
            is_marked=mine.is_marked or next_result.is_marked,
            request=_join_sides(mine.request, next_result.request),
            response=_join_sides(mine.response, next_result.response),
        )
        return replace(self, result=result)


@dataclass(frozen=True, slots=True)
class SegmentStep:
    """A segment that the kernels refused, and the number of frames that it completed."""

    segment: Segment
    frames: int


@dataclass(slots=True)
class StepLog:
    """The history of a connection, step by step. More segments follow unless ``is_whole``."""

    steps: list[FastPathStep | SegmentStep] = field(default_factory=list)
    is_whole: bool = True

    def add(self, step: FastPathStep) -> None:
        """Add a step. If the previous step completed no frame, the two steps are joined.

        Two steps are joined because they contain parts of one frame.
        """
        last = self.steps[-1] if self.steps else None
        if (
            isinstance(last, FastPathStep)
            and not last.frames
            and last.is_crossing == step.is_crossing
        ):
            self.steps[-1] = last.joined(step)
        else:
            self.steps.append(step)


@dataclass(slots=True)
class _GuessedSide:
    """One end: where its bytes begin in the part, and whether its frame starts are unknown."""

    first: int
    is_seeking: bool = True
    is_made_up: bool = True


class SpeculativeAssembler(FrameAssembler):
    """The assembler of a connection that is guessed to continue, and the log of its steps."""

    def __init__(
        self, key: str, limit: int, brokers: BrokerEnds, *, is_fresh: bool = False
    ) -> None:
        super().__init__(limit=limit, brokers=brokers)
        self.key = key
        self.is_fresh = is_fresh  # The connection begins in the part, and nothing is guessed.
        self.log = StepLog()
        self.sides: dict[Direction, _GuessedSide] = {}
        self.client = ""
        self._handoff: Handoff | None = None
        self._pushed = self._pushed_bytes = 0

    @property
    def has_given_up(self) -> bool:
        """True if the guesses about this connection were abandoned."""
        return not self.log.is_whole and not self.is_fresh

    @property
    def plain(self) -> FrameAssembler:
        """The same assembler without its log, for later segments."""
        plain = FrameAssembler(limit=self.limit, brokers=self.brokers)
        attributes = vars(plain).keys()
        vars(plain).update(
            {name: value for name, value in vars(self).items() if name in attributes}
        )
        return plain

    @property
    def name(self) -> str:
        """The name of the connection in its frames."""
        return f"?{self.key}"

    def give_up(self) -> None:
        """Abandon all guesses about this connection."""
        self.log.is_whole = False

    def begin(self, start: ConnectionGuess) -> None:
        """Guess which end is the client, and the next sequence number of each end."""
        self.client = start.client
        is_open = not start.shows_tls
        self.sides = {
            direction: _GuessedSide(first, is_seeking=is_open, is_made_up=is_open)
            for direction, first in start.firsts.items()
        }
        ends = [_start_side(first, b"") for first in start.firsts.values()]
        self.resume(Handoff(self.name, start.client, *ends), start.broker)
        if start.shows_tls:
            self.seek()
            return
        for direction in DIRECTIONS:
            # Until the start of a frame is known, all bytes count as one frame.
            self._make_up(direction, self.limit, b"")

    def _place_first_frame(self, direction: Direction, size: int) -> None:
        """Record that the first frame begins ``size`` bytes after the start."""
        side = self.sides[direction]
        side.is_seeking = False
        state = self._side_state(direction)
        tail = b"" if state is None else state.held[HEAD_BYTES:]
        if state is None or state.next_index or (tail and size <= len(tail)):
            self.give_up()
        elif size:
            self._make_up(direction, size, tail, state.first_us, state.last_us)
        else:
            side.is_made_up = False
            self.hold(direction, b"", 0, 0)

    def seek_frames(self, rows: KeySegments) -> int:
        """Search segments for the start of a frame, in each direction that has no known start.

        Returns how many bytes are held in the directions without a known start.
        """
        held = 0
        client_is_high = self.client == self.key.split("|")[1]
        for direction in DIRECTIONS:
            side = self.sides[direction]
            if not side.is_seeking:
                continue
            least = self._tail(direction)
            size = rows.before_frames(
                direction, client_is_high=client_is_high, first=side.first, least=least
            )
            if size is not None:
                self._place_first_frame(direction, size)
            elif least > _MOST_TAIL:
                self.give_up()
            else:
                held += least
        return held

    def _tail(self, direction: Direction) -> int:
        """Return the number of held bytes of a frame that began before the part."""
        state = self._side_state(direction)
        return 0 if state is None else max(0, len(state.held) - HEAD_BYTES)

    def is_made_up(self, direction: Direction) -> bool:
        """Return whether the first frame of a direction is made up."""
        side = self.sides.get(direction)
        return side is not None and side.is_made_up

    def hand_off(self) -> Handoff | None:
        """Hand the connection to the kernels, as `FrameAssembler.hand_off` does."""
        self._handoff = None if self.has_given_up else super().hand_off()
        return self._handoff

    def take_back(self, result: HandoffResult) -> None:
        """Take the connection back from the kernels, as `FrameAssembler.take_back` does."""
        handoff = self._handoff
        if result.segments and handoff is not None and self.log.is_whole:
            is_guessed = handoff.connection == self.name
            is_crossing = (
                is_guessed and self.is_made_up("request") and not handoff.request.next_index,
                is_guessed and self.is_made_up("response") and not handoff.response.next_index,
            )
            self.log.add(FastPathStep(handoff, result, is_crossing))
        super().take_back(result)

    def push(self, segment: Segment) -> list[CapturedFrame]:
        """Add a segment, as `FrameAssembler.push` does."""
        self._pushed += 1
        self._pushed_bytes += len(segment.payload)
        is_too_much = self._pushed > _MOST_PUSHED or self._pushed_bytes > _MOST_PUSHED_BYTES
        is_seeking = any(side.is_seeking for side in self.sides.values())
        if is_too_much or (segment.flags & SYN and is_seeking):
            # After a SYN, the search for frames of the old connection ends.
            self.give_up()
        if self.has_given_up:
            return []
        frames = super().push(segment)
        if self.log.is_whole:
            self.log.steps.append(SegmentStep(segment, len(frames)))
        return frames

    def _side_state(self, direction: Direction) -> SideState | None:
        handoff = super().hand_off()
        return None if handoff is None else getattr(handoff, direction)

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
    """Return the key of a connection, from its name."""
    if connection.startswith("?"):
        return connection[1:]
    return key_of_ends(*connection.partition("#")[0].split(">"))


def _join_sides(mine: SideResult, later: SideResult) -> SideResult:
    first_us, last_us = min(mine.first_us, later.first_us), max(mine.last_us, later.last_us)
    if later.held or later.frames:
        # These are the times of the bytes of the held frame.
        first_us, last_us = later.first_us, later.last_us
    return later._replace(
        size=mine.size + later.size,
        first_us=first_us,
        last_us=last_us,
        repeated=mine.repeated + later.repeated,
    )


def _start_side(sequence: int, held: bytes) -> SideState:
    return SideState(sequence, held, INT64_MAX, INT64_MIN, 0)


class SpeculativeFlows(Flows):
    """`Flows` of a part of a capture, in which connections continue.

    If the first segment of a key is a SYN, the connection counts as beginning in the part. In the
    first part of a capture nothing is guessed.
    """

    def __init__(self, *, brokers: BrokerEnds, is_first: bool) -> None:
        super().__init__(brokers=brokers)
        self._is_first = is_first
        self.guessed: dict[str, SpeculativeAssembler] = {}
        self.fresh: dict[str, SpeculativeAssembler] = {}
        self.by_number: dict[int, SpeculativeAssembler] = {}  # The keys are connection numbers.
        self.ended_by_key: dict[str, list[CapturedConnection]] = {}
        self.keys: list[str] = []
        self._seen = 0
        self._seeking: set[int] = set()
        self._given_up: set[int] = set()

    def push(self, segments: SegmentColumns, *, in_order: bool = False) -> FrameColumns:
        """Add segments, as `Flows.push` does."""
        self.keys = segments.keys
        present = np.unique(segments.key)
        names = [segments.keys[number] for number in present.tolist()]
        self.files.update(dict.fromkeys(names, segments.file))
        if not self._is_first:
            watched = present[(present >= self._seen) | np.isin(present, list(self._seeking))]
            self._seen = max(self._seen, len(segments.keys))
            if len(watched):
                self._watch(segments, watched)
        segments = self._without_over(segments)
        frames = super().push(segments, in_order=in_order)
        self._given_up |= {
            number for number in present.tolist() if self._has_given_up(segments.keys[number])
        }
        return frames

    def assemblers(self) -> dict[str, FrameAssembler]:
        """Return the assemblers of keys without guesses, in their state at the end.

        The keys with guesses are in ``guessed``. Only the logs of these keys are used.
        """
        self._take_all_back()
        return {key: assembler.plain for key, assembler in self.fresh.items()} | {
            key: assembler
            for key, assembler in self._assemblers.items()
            if key not in self.guessed and key not in self.fresh
        }

    def logs(self) -> dict[str, StepLog]:
        """Return the logs of all keys.

        The first part has no logs, because no connection continues in it.
        """
        assemblers = self.guessed | self.fresh
        return {key: assembler.log for key, assembler in assemblers.items()}

    def note_ended(self, assembler: FrameAssembler) -> None:
        """Record which connections have ended."""
        ended = assembler.ended()
        if ended and assembler.key not in self.guessed:
            self.ended_by_key.setdefault(assembler.key, []).extend(ended)

    def _has_given_up(self, key: str) -> bool:
        return key in self.guessed and self.guessed[key].has_given_up

    def _without_over(self, segments: SegmentColumns) -> SegmentColumns:
        self._given_up |= {
            number for number in self._seeking if self._has_given_up(segments.keys[number])
        }
        self._seeking -= self._given_up
        if not self._given_up:
            return segments
        return segments.take(np.flatnonzero(~np.isin(segments.key, list(self._given_up))))

    def _watch(self, segments: SegmentColumns, numbers: NumpyArray) -> None:
        """Examine the segments of keys that are new, or in which no frame was found yet."""
        held = 0
        rows = np.flatnonzero(np.isin(segments.key, numbers))
        rows = rows[np.argsort(segments.key[rows], kind="stable")]
        keys = segments.key[rows]
        bounds = np.searchsorted(keys, np.append(numbers, numbers[-1] + 1))
        for number, start, stop in zip(
            numbers.tolist(), bounds[:-1].tolist(), bounds[1:].tolist(), strict=True
        ):
            if start < stop:
                held += self._watch_one(number, KeySegments(segments, rows[start:stop], self.limit))
        if held > _MOST_HELD:
            for number in self._seeking:
                self.guessed[segments.keys[number]].give_up()

    def _watch_one(self, number: int, rows: KeySegments) -> int:
        """Examine the segments of one key. Return how many bytes are held without a frame start."""
        key = rows.segments.keys[number]
        assembler = self.guessed.get(key)
        if assembler is None:
            if key in self._assemblers:
                return 0
            if rows.flags(0) & SYN:
                self._begin_fresh(key)
                return 0
            assembler = self.guessed[key] = SpeculativeAssembler(key, self.limit, self.brokers)
            self._assemblers[key] = assembler
            self._seeking.add(number)
            start = rows.start(key, self.brokers)
            if start is None:
                assembler.give_up()
                return 0
            assembler.begin(start)
            self.by_number[self.number(assembler.name)] = assembler
        if assembler.has_given_up:
            return 0
        self.take_back(key)
        held = assembler.seek_frames(rows)
        if not any(side.is_seeking for side in assembler.sides.values()):
            self._seeking.discard(number)
        return held

    def _begin_fresh(self, key: str) -> None:
        assembler = self.fresh[key] = SpeculativeAssembler(
            key, self.limit, self.brokers, is_fresh=True
        )
        self._assemblers[key] = assembler
        if len(self.fresh) > _MOST_FRESH:
            assembler.give_up()
