"""The state of a connection: which segments belong to it, and which responses are expected.

A SYN begins a connection. If the SYN is missing, or if several connections are open at the same
time, sequence numbers decide: each end's sequence numbers, and the numbers that it acknowledges,
must be near the last known ones. A connection that has been closed does not continue.

If it is unknown where frames begin in a direction, a response is recognized by its correlation id,
which must be that of a pending request. Frames are not yet decoded when segments are assembled
(`flexwire.protocol.conversation` does this later), so every request counts here, even one that is
never answered.

Clients have few pending requests at a time, so the last frames of a connection are enough to find
them. Only these frames are kept, because most connections never need them.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import TYPE_CHECKING, Final, Literal

from flexwire.capture.reassembly.streams import REORDER_SEGMENTS, unwrap
from flexwire.protocol.conversation import InFlight
from flexwire.wire.segment_layout import ACK, CORRELATION_ID_IN_REQUEST, FIN, MODULUS, RST, SYN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexwire.capture.files.packets import Segment
    from flexwire.capture.reassembly.connections import CapturedFrame


WIDEST_GAP = 64 * 1024 * 1024
"""The widest gap. A segment that is further ahead than this belongs to another connection.

A capture that drops packets may lose megabytes of a connection. Windows can be as large as 1 GiB
(RFC 7323), but half of all sequence numbers lie within that distance. The numbers of another
connection would then be mistaken for a gap.
"""

NEAR_BYTES = 1024 * 1024
"""A segment may begin at most this many bytes before the first captured segment of its direction.
"""

FAR_BYTES = 256 * 1024
"""If both directions jump by more than this at once, another connection has begun.

If a capture drops packets, one direction may jump: either the responses are long and the requests
short, or the other way round.
"""


class _Reach:
    """The bytes sent by one end that have been seen so far."""

    def __init__(self) -> None:
        self.low = self.high = 0
        self.is_seen = False
        self.is_told = False  # Known only from the other endpoint's acknowledgment.
        self.is_anchored = False
        # the position at which the bytes end, according to a FIN or RST
        self.end: int | None = None

    def see(self, sequence: int, size: int) -> int:
        """Process a segment, and return the position of its end."""
        position = unwrap(sequence, self.high) if self.is_told else sequence
        if not self.is_seen:
            self.is_seen = self.is_told = True
            self.low = self.high = position
        elif position < self.low and not self.is_anchored:
            self.low = position
        self.high = max(self.high, position + size)
        return position + size

    def anchor(self, sequence: int) -> None:
        """Set the first sequence number, the one after a SYN."""
        position = unwrap(sequence, self.high) if self.is_told else sequence
        self.low = position
        self.high = max(self.high, position) if self.is_seen else position
        self.is_seen = self.is_told = self.is_anchored = True

    def acknowledge(self, sequence: int) -> None:
        """Record how many of this endpoint's bytes the other endpoint has acknowledged."""
        if not self.is_told:
            self.is_told = True
            self.low = self.high = sequence
            return
        ahead = unwrap(sequence, self.high) - self.high
        if 0 < ahead <= WIDEST_GAP:
            self.high += ahead

    def may_begin(self, sequence: int) -> bool:
        """Return whether the first byte may have this number, as far as the segments show."""
        return not self.is_told or (self.low - sequence) % MODULUS < NEAR_BYTES

    def outside(self, position: int) -> int:
        """Return how far a position is from the bytes that were seen."""
        return max(self.low - position, position - self.high, 0)


class Course:
    """The state of a connection, as derived from the segments seen so far."""

    def __init__(self, segment: Segment) -> None:
        self.is_reset = False
        self._reach = {segment.source: _Reach(), segment.destination: _Reach()}
        self._initial: dict[str, int] = {}  # The sequence number of each endpoint's SYN.
        self._segments = 0

    @property
    def is_closed(self) -> bool:
        """True if both ends have finished sending, or if one end has reset the connection."""
        return self.is_reset or all(reach.end is not None for reach in self._reach.values())

    def goes_on(self, segment: Segment) -> bool:
        """Return whether a segment contains its sender's next bytes; if so, record the segment."""
        # Nearly all segments continue their stream, so this is tested first.
        sends = self._reach[segment.source]
        if sends.high % MODULUS != segment.sequence or not sends.is_seen or sends.end is not None:
            return False
        self._segments += 1
        sends.high += len(segment.payload) + segment.missing
        if segment.flags & ACK and segment.acknowledgment:
            self._reach[segment.destination].acknowledge(segment.acknowledgment)
        return True

    def next_of(self, source: str) -> int | None:
        """Return an end's next sequence number, or None if the end has not begun or has ended."""
        reach = self._reach[source]
        is_going = reach.is_seen and reach.end is None and not self.is_reset
        return reach.high % MODULUS if is_going else None

    def passed(self, source: str) -> int:
        """Return how many bytes before an end's next byte certainly belong to the connection."""
        reach = self._reach[source]
        return reach.high - reach.low

    def resume(self, source: str, sequence: int) -> None:
        """Continue an endpoint at a sequence number."""
        reach = self._reach[source]
        reach.low = reach.high = sequence
        reach.is_seen = reach.is_told = True

    def skip(self, source: str, size: int, segments: int) -> None:
        """Count ``segments`` segments that contain ``size`` consecutive bytes from an end."""
        self._segments += segments
        self._reach[source].high += size

    def note(self, segment: Segment) -> None:
        """Process a segment of the connection."""
        source, flags, sequence = segment.source, segment.flags, segment.sequence
        sends, receives = self._reach[source], self._reach[segment.destination]
        self._segments += 1
        if flags & SYN:
            self._initial[source] = sequence
            sequence += 1
            sends.anchor(sequence)
            if flags & ACK:
                self._initial[segment.destination] = (segment.acknowledgment - 1) % MODULUS
                receives.anchor(segment.acknowledgment)
        size = len(segment.payload) + segment.missing
        if size or not flags & RST:
            end = sends.see(sequence, size)
            # A FIN counts as a byte, which may already be acknowledged.
            if flags & FIN and end >= sends.high - 1:
                sends.end = end
        if flags & RST:
            self.is_reset = True
            ahead = unwrap(sequence, sends.high) - sends.high
            sends.end = sends.high + (ahead if 0 < ahead <= FAR_BYTES else 0)
        if flags & ACK and segment.acknowledgment:
            receives.acknowledge(segment.acknowledgment)

    def refuses_syn(self, segment: Segment) -> bool:
        """Return whether a SYN begins a different connection."""
        source, other, sequence = segment.source, segment.destination, segment.sequence
        is_answer = bool(segment.flags & ACK)
        if is_answer and other in self._initial:
            if self._initial[other] != (segment.acknowledgment - 1) % MODULUS:
                return True
            if source not in self._initial:
                return False
        if source in self._initial:
            return self._initial[source] != sequence
        # A capture may show the SYN of either endpoint after later segments.
        if not self._segments:
            return False
        sends, receives = self._reach[source], self._reach[other]
        is_known = sends.is_told or (is_answer and receives.is_told)
        fits = sends.may_begin(sequence + 1)
        if is_answer:
            fits = fits and receives.may_begin(segment.acknowledgment)
        return not (is_known and fits and self._is_young)

    @property
    def _is_young(self) -> bool:
        """Return whether earlier segments may still appear in the capture."""
        return self._segments < REORDER_SEGMENTS

    def room(self, source: str, sequence: int) -> int:
        """Return how many bytes a new connection can send before its numbers reach this one's.

        The result is 0 if this is unknown because this connection is not over.
        """
        reach = self._reach[source]
        end = reach.high if reach.end is None and self.is_reset else reach.end
        if not reach.is_seen or end is None:
            return 0
        # The space includes the keep-alive before the bytes, and the FIN: see `_is_impossible`.
        first, last = reach.low - 1, end + 1
        is_within = (sequence - first) % MODULUS <= last - first
        return 0 if is_within else (first - sequence) % MODULUS

    def is_replaced(self, segment: Segment) -> bool:
        """Return whether another connection's SYN has a number that this connection used.

        The segments of two such connections could not be told apart.
        """
        sends = self._reach[segment.source]
        position = unwrap(segment.sequence, sends.high)
        return sends.is_seen and sends.low - 1 <= position <= sends.high

    def distance(self, segment: Segment) -> int | None:
        """Return a segment's distance from the connection, or None for another connection."""
        sends, receives = self._reach[segment.source], self._reach[segment.destination]
        ahead, strays = NEAR_BYTES, 0
        is_early = False  # The acknowledged bytes will still appear in the capture.
        if segment.flags & ACK and receives.is_told:
            acknowledged = unwrap(segment.acknowledgment, receives.high)
            strays = receives.outside(acknowledged)
            is_early = self._may_precede(receives, acknowledged)
            if strays and not segment.acknowledgment:
                # Tools that synthesize segments set the acknowledgment to 0, which has no meaning.
                strays = 0
            else:
                ahead = abs(acknowledged - receives.high)
            if receives.end is not None and acknowledged <= receives.end + 1:
                strays = max(0, strays - 1)
        if not sends.is_told:
            return None if self.is_reset or strays > WIDEST_GAP else NEAR_BYTES + ahead
        position = unwrap(segment.sequence, sends.high)
        outside = sends.outside(position)
        if outside:
            if strays > FAR_BYTES and outside > FAR_BYTES:
                return None
            if strays and receives.end is not None and not is_early:
                return None
        if self._is_impossible(sends, position, len(segment.payload) + segment.missing):
            return None
        return abs(position - sends.high) + ahead

    def _may_precede(self, reach: _Reach, position: int) -> bool:
        """Return whether a position before all seen bytes of an end may be the end's first byte."""
        is_before = position < reach.low and reach.low - position <= NEAR_BYTES
        return is_before and not reach.is_anchored and self._is_young

    def _is_impossible(self, sends: _Reach, position: int, size: int) -> bool:
        """Return whether an end cannot have sent these bytes, judging by its last known number."""
        if not sends.is_seen:
            return self.is_reset and position > sends.high
        if position < sends.low:
            if position == sends.low - 1 and size <= 1:
                return False  # The segment is a keep-alive.
            is_over = sends.is_anchored or sends.end is not None or self.is_reset
            is_far = sends.low - position > NEAR_BYTES
            return (is_over or is_far) and not self._may_precede(sends, position)
        if sends.end is not None:
            return position + size > sends.end + (not size)
        if self.is_reset:
            # Data that is still in transit continues without a gap.
            return position > sends.high
        return position - sends.high > WIDEST_GAP


NOTED_FRAMES: Final = 512
"""The largest number of a connection's frames that are remembered, for both directions together."""

_CORRELATION_ID = struct.Struct(">i")
_IN_RESPONSE_HEAD = 4  # Counted from the end of the length prefix.
_IDS_APART = 1000


class PendingRequests:
    """The correlation ids of requests on one connection that still have no response."""

    def __init__(self) -> None:
        self._noted: deque[tuple[bool, int]] = deque(maxlen=NOTED_FRAMES)
        self._any_request = False
        self._known: InFlight[int] | None = None

    @property
    def any_request(self) -> bool:
        """True if any request was seen."""
        return self._any_request

    def note(self, direction: Literal["request", "response"], payload: bytes) -> None:
        """Record a frame."""
        is_request = direction == "request"
        start = CORRELATION_ID_IN_REQUEST if is_request else 0
        if len(payload) >= start + _CORRELATION_ID.size:
            self.note_ids([(is_request, _CORRELATION_ID.unpack_from(payload, start)[0])])

    def note_ids(self, frames: Iterable[tuple[bool, int]]) -> None:
        """Record several frames in order, each with a flag for requests and a correlation id."""
        self._known = None
        for frame in frames:
            self._any_request = self._any_request or frame[0]
            self._noted.append(frame)

    def expects(self, head: bytes) -> bool:
        """Return whether a request is waiting for the response frame that begins with ``head``."""
        return self._in_flight().first(_id_in(head)) is not None

    def follows(self, head: bytes) -> bool:
        """Return whether the response may answer a request sent before the first request seen.

        Clients increase the correlation id with each request, so the id of such a response is a
        little lower. If no request was seen at all, any id is possible.
        """
        if not self._any_request:
            return True
        oldest = self._in_flight().oldest_id
        return oldest is not None and 0 < oldest - _id_in(head) <= _IDS_APART

    def _in_flight(self) -> InFlight[int]:
        if self._known is None:
            self._known = InFlight()
            for is_request, correlation_id in self._noted:
                if is_request:
                    self._known.add(correlation_id, correlation_id)
                else:
                    self._known.take(correlation_id)
        return self._known


def _id_in(head: bytes) -> int:
    correlation_id: int = _CORRELATION_ID.unpack_from(head, _IN_RESPONSE_HEAD)[0]
    return correlation_id


BEGINNING_US: Final = 1_000_000
BEGINNING_BYTES: Final = 1024 * 1024
"""A connection's first segments wait for its handshake for at most this time, and up to this many
bytes.
"""

MOST_HELD_BACK: Final = 1024
MOST_HELD_BACK_BYTES: Final = 1024 * 1024
"""Responses wait for a request with a gap, until more than this many bytes of responses are
waiting.
"""


class FirstSegments:
    """A connection's first segments, which may precede the handshake in a capture."""

    def __init__(self) -> None:
        self._segments: list[Segment] = []
        self._bytes = 0

    def add(self, segment: Segment) -> bool:
        """Add a segment. Return whether the first segments are complete."""
        self._segments.append(segment)
        self._bytes += len(segment.payload)
        if segment.begins is not None or (segment.flags & SYN and segment.flags & ACK):
            # flexwire's own captures continue a connection, or mark where both streams begin.
            return True
        span_us = abs(segment.timestamp_us - self._segments[0].timestamp_us)
        is_full = len(self._segments) >= REORDER_SEGMENTS or self._bytes >= BEGINNING_BYTES
        return is_full or span_us >= BEGINNING_US

    def segments(self) -> list[Segment]:
        """Return the segments so far. A SYN comes first, even if it was captured late."""
        return sorted(self._segments, key=lambda segment: not segment.flags & SYN)


class DelayedResponses:
    """Responses that wait until the requests before them have been returned."""

    def __init__(self) -> None:
        self._frames: list[CapturedFrame] = []
        self._bytes = 0

    def in_turn(self, frames: list[CapturedFrame], *, is_cut: bool) -> list[CapturedFrame]:
        """Return the frames that are due now.

        ``is_cut`` is true if an earlier request is incomplete.
        """
        if not self._frames and not (frames and is_cut):
            return frames
        responses = [frame for frame in frames if frame.direction == "response"]
        self._frames += responses
        self._bytes += sum(len(frame.payload) for frame in responses)
        requests = [frame for frame in frames if frame.direction == "request"]
        is_much = len(self._frames) > MOST_HELD_BACK or self._bytes > MOST_HELD_BACK_BYTES
        return requests if is_cut and not is_much else requests + self.release()

    def release(self) -> list[CapturedFrame]:
        """Return the waiting frames, and stop holding them."""
        frames, self._frames, self._bytes = self._frames, [], 0
        return frames
