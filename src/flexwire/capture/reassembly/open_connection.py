"""One connection in a capture: its streams, its frames, and the counts of both.

This module puts the steps together. Other modules decide which end is the client, in which order
the bytes were sent, and where frames begin. This module passes segments from one step to the next,
and counts the results for the connection.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from flexwire.capture.reassembly.connections import (
    Account,
    BrokerEnds,
    CapturedConnection,
    CapturedFrame,
    Roles,
)
from flexwire.capture.reassembly.course import (
    Course,
    DelayedResponses,
    FirstSegments,
    PendingRequests,
)
from flexwire.capture.reassembly.framing import (
    REQUEST_HEAD_BYTES,
    RESPONSE_HEAD_BYTES,
    FramedBytes,
    Framer,
    leads_to_a_response,
    looks_like_request,
    looks_like_response,
)
from flexwire.capture.reassembly.streams import (
    FRAMES,
    PASSES,
    SEEKS_REQUEST,
    SEEKS_RESPONSE,
    Handoff,
    SideResult,
    SideState,
    Stream,
)
from flexwire.wire.limits import INT64_MAX, INT64_MIN
from flexwire.wire.segment_layout import ACK, FIN, RST, SYN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flexwire.capture.files.packets import Direction, Segment
    from flexwire.capture.reassembly.framing import PieceBuffer
    from flexwire.capture.reassembly.streams import HandoffResult, StreamPiece


class _DirectionState:
    """One direction of a connection."""

    def __init__(self) -> None:
        self.stream = Stream()
        self.framer: Framer | None = None
        self.count = 0


class _OrderedSide(NamedTuple):
    """An endpoint whose bytes are in order: a `SideState`, and the endpoint's framer."""

    sequence: int
    framer: Framer
    before: int
    room: int


class OpenConnection:
    """One connection of a `FrameAssembler`: its frames, and the facts about the connection."""

    def __init__(
        self, first: Segment, ordinal: int, limit: int, brokers: BrokerEnds, roles: Roles
    ) -> None:
        self.ordinal = ordinal
        self.course = Course(first)
        self.name = ""
        self.cuts = Framer
        self.endless = False
        self.limit = limit
        self.last_us = 0
        self._client: str | None = None
        self._broker = ""
        self._account = Account(brokers)
        self._roles = roles
        self._halves: dict[Direction, _DirectionState] = {
            "request": _DirectionState(),
            "response": _DirectionState(),
        }
        self._waiting = PendingRequests()
        # None once the first segments are complete.
        self._beginning: FirstSegments | None = FirstSegments()
        self._held_back = DelayedResponses()

    def push(self, segment: Segment) -> list[CapturedFrame]:
        """Process a segment of the connection. Return the frames that are now complete."""
        self.last_us = segment.timestamp_us
        self._account.note_segment(segment)
        if self._beginning is None:
            return self._go_on(segment)
        return self._begin() if self._beginning.add(segment) else []

    def _begin(self) -> list[CapturedFrame]:
        """Process the first segments."""
        beginning, self._beginning = self._beginning, None
        first = [] if beginning is None else beginning.segments()
        return [frame for segment in first for frame in self._go_on(segment)]

    def _go_on(self, segment: Segment) -> list[CapturedFrame]:
        if self._client is not None:
            return self._take(segment)
        client = self._roles.client(segment)
        return [] if client is None else self._settle(client)

    def finish(self) -> list[CapturedFrame]:
        """End the connection, and return its incomplete frames."""
        frames = self._begin()
        if self._client is None and self._roles.held:
            frames += self._settle(self._roles.guess())
        for direction, half in self._halves.items():
            stream = half.stream
            frames += self._emit(direction, stream.finish(self.last_us))
            if half.framer is not None:
                frames += self._label(direction, half.framer.finish())
            frames += self._held_back.release()
            if early := stream.early + stream.early_missing:
                reason = f"{early} bytes precede the first captured segment"
                framed = FramedBytes(
                    *(self.last_us, self.last_us, early, b"", reason),
                    is_placed=False,
                    lost=stream.early_missing,
                )
                frames += self._label(direction, [framed])
            self._account.note_stream(stream)
        return frames

    def cut_requests(self) -> list[CapturedFrame]:
        """Return the requests that wait for a gap to be filled, as if the connection ended now."""
        half = self._halves["request"]
        if half.framer is None or not self._request_is_cut:
            return []
        rest = half.framer.rest(half.stream.rest(self.last_us))
        return [
            self._frame("request", number, framed) for number, framed in enumerate(rest, half.count)
        ]

    def pause(self) -> CapturedConnection | None:
        """Return the facts since the last pause, or None if there are none."""
        if self._client is None:
            return None
        return self._account.pause(self.name, self._client, self._broker)

    def close(self) -> CapturedConnection | None:
        """Return the facts about the connection, after `finish`."""
        if self._client is None:
            return None
        return self._account.close(self.name, self._client, self._broker)

    @property
    def reads_as_kafka(self) -> bool:
        """True if the frames so far show that the connection is Kafka."""
        return self._account.evidence.found is not None

    @property
    def seen_from_start(self) -> bool:
        """True if the SYN of the connection was captured."""
        return self._account.has_syn

    def hand_off(self, others: Sequence[Course]) -> Handoff | None:
        """Return the state for the fast path, or None: see `FrameAssembler.hand_off`."""
        # Frames are examined until one of them reveals the protocol. The held bytes of a frame are
        # copied last, because copying them for each segment would be wasted work.
        if self._client is None or not (self.reads_as_kafka or self._has_no_frames):
            return None
        if self._account.is_paused:
            # The kernels do not report when the first segment was captured.
            return None
        request = self._end("request", self._client, others)
        response = self._end("response", self._broker, others)
        if request is None or response is None:
            return None
        ends = self._standing("request", request), self._standing("response", response)
        return Handoff(self.name, self._client, *ends)

    @property
    def _has_no_frames(self) -> bool:
        framers = (half.framer for half in self._halves.values())
        return all(framer is not None and framer.is_seeking for framer in framers)

    def _end(
        self, direction: Direction, source: str, others: Sequence[Course]
    ) -> _OrderedSide | None:
        """Return the state of an end that is certainly in order apart from ``others``, or None."""
        half = self._halves[direction]
        stands, follows = half.stream.standing(), self.course.next_of(source)
        if stands is None or stands != follows:
            return None
        if half.framer is None:
            if not half.stream.anchored:
                return None
            half.framer = self.new_framer(direction)
        framer = half.framer
        if framer.is_seeking:
            goes_on = framer.has_sample and not self._may_answer_earlier
        else:
            goes_on = framer.is_framing
        room = min((other.room(source, stands) for other in others), default=INT64_MAX)
        # If bytes are repeated, they may belong to one of the other connections.
        before = 0 if others else min(half.stream.passed(), self.course.passed(source))
        return _OrderedSide(stands, framer, before, room) if goes_on and room > 0 else None

    def _standing(self, direction: Direction, end: _OrderedSide) -> SideState:
        framer, count = end.framer, self._halves[direction].count
        if framer.is_seeking:
            held, seeks = (b"", INT64_MAX, INT64_MIN), self._seeks(direction)
        else:
            held, seeks = framer.held(), FRAMES
        return SideState(end.sequence, *held, count, end.before, seeks, end.room)

    def _seeks(self, direction: Direction) -> int:
        """Return the test that shows that a payload does not begin a frame."""
        if direction == "request":
            return SEEKS_REQUEST
        if self._waiting.any_request:
            return SEEKS_RESPONSE
        # No response is expected, now or later.
        asks = self._halves["request"].framer
        return PASSES if asks is not None and asks.is_seeking else SEEKS_RESPONSE

    @property
    def _may_answer_earlier(self) -> bool:
        """True if this may be a response to a request that was sent before the capture."""
        answers = self._halves["response"].framer
        is_known = answers is not None and answers.ever_synchronized
        return not (is_known or self._waiting.any_request or self._is_tls)

    @property
    def _is_tls(self) -> bool:
        framers = (half.framer for half in self._halves.values())
        return any(framer is not None and framer.is_tls for framer in framers)

    def seek(self) -> None:
        """Record that it is unknown where frames begin."""
        for half in self._halves.values():
            if half.framer is not None:
                half.framer.seek()

    def resume(self, lent: Handoff, broker: str) -> None:
        """Continue, as a new connection, from another object's state."""
        self._beginning = None
        self.name, self._client, self._broker = lent.connection, lent.client, broker
        self._account.evidence.found = "it was lent"
        ends: tuple[tuple[Direction, str, SideState], ...] = (
            ("request", lent.client, lent.request),
            ("response", broker, lent.response),
        )
        for direction, source, standing in ends:
            half = self._halves[direction]
            self.course.resume(source, standing.sequence)
            half.stream.resume(standing.sequence)
            half.count = standing.next_index
            self.hold(direction, standing.held, standing.first_us, standing.last_us)

    def hold(self, direction: Direction, held: bytes, first_us: int, last_us: int) -> None:
        """Set the held bytes of an incomplete frame."""
        half = self._halves[direction]
        if half.framer is None:
            half.framer = self.new_framer(direction)
        half.framer.skip(SideResult(0, held, first_us, last_us, 0, 0, 0))

    def take_back(self, taken: HandoffResult) -> None:
        """Apply the result of the fast path to the connection that was handed to it."""
        if not taken.segments:
            return
        self.last_us = taken.time_us
        self._account.note_result(taken)
        self._waiting.note_ids(taken.noted)
        client = self._client or ""
        segments = taken.segments
        ends: tuple[tuple[Direction, str, SideResult], ...] = (
            ("request", client, taken.request),
            ("response", self._broker, taken.response),
        )
        for direction, source, went in ends:
            half = self._halves[direction]
            self.course.skip(source, went.size, segments)
            segments = 0
            half.stream.skip(went.size, went.repeated)
            half.count += went.frames
            if half.framer is not None and half.framer.is_seeking:
                half.framer.pass_over(went)
            elif half.framer is not None:
                half.framer.skip(went)

    def _settle(self, client: str) -> list[CapturedFrame]:
        held, self._roles.held = self._roles.held, []
        self._client = client
        self._broker = held[0].source if held[0].source != client else held[0].destination
        ordinal = f"#{self.ordinal}" if self.ordinal > 1 else ""
        self.name = f"{client}>{self._broker}{ordinal}"
        frames: list[CapturedFrame] = []
        # A SYN comes first even if it was captured late.
        for segment in sorted(held, key=lambda held_segment: not held_segment.flags & SYN):
            frames += self._take(segment)
        return frames

    def _take(self, segment: Segment) -> list[CapturedFrame]:
        sends: Direction = "request" if segment.source == self._client else "response"
        receives: Direction = "response" if sends == "request" else "request"
        stream, back = self._halves[sends].stream, self._halves[receives].stream
        sequence, flags = segment.sequence, segment.flags
        if flags & SYN:
            sequence += 1
            stream.start(sequence, anchored=True)
            if flags & ACK:
                back.start(segment.acknowledgment, anchored=True)
        elif not flags & RST or segment.payload or segment.missing:
            stream.start(sequence, anchored=False)
        if flags & ACK:
            back.acknowledge(segment.acknowledgment)
        if flags & FIN:
            stream.finish_at(sequence + len(segment.payload) + segment.missing)
        frames: list[CapturedFrame] = []
        if segment.payload or segment.missing:
            pieces = stream.push(
                sequence,
                segment.payload,
                segment.missing,
                segment.timestamp_us,
                begins_frame=segment.begins == sends,
            )
            frames += self._emit(sends, pieces)
        frames += self._emit(sends, stream.age())
        frames += self._emit(receives, back.age())
        is_over = self.endless and self.course.is_closed
        return self._held_back.in_turn(frames, is_cut=self._request_is_cut and not is_over)

    @property
    def _request_is_cut(self) -> bool:
        """True if request bytes wait for a gap, or the broker has acknowledged missing bytes."""
        half = self._halves["request"]
        if half.stream.waits:
            return True
        return half.stream.is_behind and half.framer is not None and half.framer.is_within

    def _emit(self, direction: Direction, pieces: list[StreamPiece]) -> list[CapturedFrame]:
        if not pieces:
            return []
        half = self._halves[direction]
        self._account.note_pieces(direction, pieces)
        if half.framer is None:
            half.framer = self.new_framer(direction)
        return self._label(direction, half.framer.feed(pieces))

    def new_framer(self, direction: Direction) -> Framer:
        """Return a new framer for a direction."""
        begins = self._begins_request if direction == "request" else self._begins_response
        anchored = self._halves[direction].stream.anchored
        return self.cuts(begins, synchronized=anchored, limit=self.limit)

    def _label(self, direction: Direction, framed_bytes: list[FramedBytes]) -> list[CapturedFrame]:
        half = self._halves[direction]
        frames = []
        for framed in framed_bytes:
            self._account.note_frame(direction, framed)
            if framed.is_placed:
                self._waiting.note(direction, framed.payload)
            frames.append(self._frame(direction, half.count, framed))
            half.count += 1
        return frames

    def _frame(self, direction: Direction, index: int, framed: FramedBytes) -> CapturedFrame:
        return CapturedFrame(
            self.name,
            direction,
            framed.timestamp_us,
            framed.first_us,
            index,
            framed.size,
            framed.payload,
            framed.error,
            framed.is_placed,
        )

    def _begins_request(self, held: PieceBuffer) -> bool | None:
        return looks_like_request(held.peek(0, REQUEST_HEAD_BYTES), self.limit)

    def _begins_response(self, held: PieceBuffer) -> bool | None:
        head = held.peek(0, RESPONSE_HEAD_BYTES)
        first = looks_like_response(head, self.limit)
        if not first or self._waiting.expects(head):
            return first
        framer = self._halves["response"].framer
        if framer is None or framer.ever_synchronized or not self._waiting.follows(head):
            return False
        if not self._waiting.any_request and self._is_tls:
            return False
        # A capture may begin with responses to requests that were sent before it.
        return leads_to_a_response(held.peek, held.size)
