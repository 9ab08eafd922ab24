"""Put the bytes of one direction of a TCP connection into the order in which they were sent.

Sequence numbers show where the bytes of each segment belong. Missing bytes may still arrive. Later
bytes therefore wait until the gap is filled, or until that becomes unlikely. The gap is then
reported as lost, and stays lost.

While no bytes are missing or out of order, an assembler only counts each segment and cuts its new
bytes into frames. A fast path can do the same: `FrameAssembler.hand_off` returns the state of both
ends as a `Handoff`. The fast path may then process only segments that contain the next bytes of
their sender, or no bytes. The fast path must return a `HandoffResult` before the assembler gets its
next segment.
"""

from __future__ import annotations

from bisect import bisect_left
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from flexwire.wire.limits import INT64_MAX
from flexwire.wire.segment_layout import HALF_MODULUS, MODULUS

if TYPE_CHECKING:
    from collections.abc import Sequence


REORDER_SEGMENTS = 64
"""If the receiver has acknowledged the bytes in a gap, the gap is given up after this many more
segments.

The gap is not given up immediately, because network cards with several queues may capture an
acknowledgment before the acknowledged segment.
"""

MAX_PENDING_BYTES = 4 * 1024 * 1024
MAX_PENDING_PIECES = 4096
"""If more than this many pieces wait for a gap, the gap is reported as lost."""

MOST_GAPS = 4096
"""The largest number of lost ranges that are remembered for a stream, so that bytes that arrive too
late are recognized.
"""

_WIDEST_WINDOW = 1 << 30


def unwrap(sequence: int, near: int) -> int:
    """Return the position with this sequence number that is closest to another position."""
    return near + (sequence - near + HALF_MODULUS) % MODULUS - HALF_MODULUS


class StreamPiece(NamedTuple):
    """Bytes of a stream or, if ``data`` is empty, ``lost`` bytes.

    ``position`` counts bytes as sequence numbers do, but never wraps around. ``begins_frame`` is
    true if the capture marks these bytes as the beginning of a frame. Lost bytes are ``seen`` if a
    captured packet contained them but was truncated. If no packet contained the lost bytes, nothing
    shows when they were sent, and ``timestamp_us`` is only the time at which the gap was noticed.
    """

    position: int
    data: bytes
    lost: int
    timestamp_us: int
    begins_frame: bool = False
    seen: bool = True

    @property
    def end(self) -> int:
        """The position after the last byte."""
        return self.position + len(self.data) + self.lost


class Stream:
    """Put the captured segments of one direction of a connection in order, and return pieces.

    If bytes arrive twice, the bytes that arrived first are used. `MAX_PENDING_BYTES` and
    `MAX_PENDING_PIECES` limit the memory for bytes after a gap.

    Once the stream is finished, every byte that was pushed is in exactly one piece or is counted:
    as ``repeated`` (its place was already taken), ``late`` (its place had been given up as lost) or
    ``early`` (it precedes the start). ``early_missing`` is the number of bytes before the start
    that were cut off in the capture.
    """

    def __init__(self) -> None:
        self.started = False
        self.anchored = False  # True if the start is known from a SYN.
        self.repeated = self.late = self.early = self.early_missing = 0
        self._base = 0
        self._next = 0
        self._pending: list[StreamPiece] = []
        self._pending_bytes = 0
        self._acknowledged: int | None = None
        self._fin: int | None = None
        self._segments_since_acknowledged = 0
        self._gaps: list[tuple[int, int]] = []  # The ranges of bytes that were reported as lost.

    def start(self, sequence: int, *, anchored: bool) -> None:
        """Set the sequence number at which the stream begins. Only the first call has an effect."""
        if self.started:
            return
        self.started = True
        self.anchored = anchored
        if self._acknowledged is not None:
            # Acknowledgments arrived before any data, so positions are counted from the first
            # acknowledgment.
            sequence = self._unwrap(sequence)
        self._base = self._next = sequence

    def acknowledge(self, sequence: int) -> None:
        """Record the position up to which the receiver has acknowledged the stream."""
        if not self.started and self._acknowledged is None:
            self._base = self._next = sequence
        acknowledged = self._next if self._acknowledged is None else self._acknowledged
        position = self._unwrap(sequence)
        # A receiver never acknowledges more than a window after its last acknowledgment (RFC 7323).
        # A number beyond that is damaged. If it were used, everything up to this number would
        # be considered missing.
        if position - max(acknowledged, self._next) <= _WIDEST_WINDOW:
            self._acknowledged = max(acknowledged, position)

    def standing(self) -> int | None:
        """Return the sequence number of the next byte.

        Returns None if the stream has not begun, is waiting for bytes, or has ended. The
        acknowledged position before that number is never needed again.
        """
        acknowledged = self._acknowledged
        is_open = self.started and not self._pending and self._fin is None
        if not is_open or (acknowledged is not None and acknowledged > self._next):
            return None
        return self._next % MODULUS

    @property
    def is_behind(self) -> bool:
        """True if the receiver has acknowledged bytes that have not been captured yet."""
        return self.started and self._acknowledged is not None and self._acknowledged > self._next

    @property
    def waits(self) -> bool:
        """True if captured bytes are waiting because of a gap."""
        return bool(self._pending)

    def passed(self) -> int:
        """Return how many bytes before the next byte were returned without any loss."""
        return self._next - max(self._base, self._gaps[-1][1] if self._gaps else self._base)

    def resume(self, sequence: int) -> None:
        """Continue in a new stream, at the position that another stream's `standing` returned."""
        self.started = self.anchored = True
        self._base = self._next = sequence

    def skip(self, size: int, repeated: int) -> None:
        """Record that ``size`` more bytes arrived in order, and how many bytes were repeated."""
        self.repeated += repeated
        self._next += size

    def finish_at(self, sequence: int) -> None:
        """Set the end of the stream, as shown by a FIN."""
        self._fin = self._unwrap(sequence)

    def push(
        self,
        sequence: int,
        data: bytes,
        missing: int,
        timestamp_us: int,
        *,
        begins_frame: bool = False,
    ) -> list[StreamPiece]:
        """Process a segment's payload. Return the pieces that are now in order."""
        position = self._unwrap(sequence)
        if position == self._next and not self._pending and not missing:
            self._next += len(data)
            return [StreamPiece(position, data, 0, timestamp_us, begins_frame)] if data else []
        if position < self._next:
            self._count_passed(position, len(data), missing)
        self._add(StreamPiece(position, data, 0, timestamp_us, begins_frame))
        self._add(StreamPiece(position + len(data), b"", missing, timestamp_us))
        pieces = self._in_order()
        while self._pending_bytes > MAX_PENDING_BYTES or len(self._pending) > MAX_PENDING_PIECES:
            pieces += self._give_up()
        return pieces

    def age(self) -> list[StreamPiece]:
        """Count a segment of the connection. Give up a gap that is unlikely to be filled."""
        if not self._pending or (self._acknowledged or 0) < self._pending[0].position:
            self._segments_since_acknowledged = 0
            return []
        self._segments_since_acknowledged += 1
        return self._give_up() if self._segments_since_acknowledged > REORDER_SEGMENTS else []

    def finish(self, timestamp_us: int) -> list[StreamPiece]:
        """Give up every gap.

        Return the remaining pieces, and the number of bytes that are missing at the end.
        """
        pieces: list[StreamPiece] = []
        while self._pending:
            pieces += self._give_up()
        end = self._next
        if self._fin is not None:
            end = self._fin
        elif self._acknowledged is not None and self._acknowledged > self._next + 1:
            # If one more byte is acknowledged than was captured, the extra byte may be a FIN that
            # was not captured.
            end = self._acknowledged
        if end > self._next:
            pieces.append(self._gap(end, timestamp_us))
        return pieces

    def rest(self, timestamp_us: int) -> list[StreamPiece]:
        """Return the pieces that `finish` would return, without changing the stream."""
        same = copy(self)
        vars(same).update(_pending=self._pending.copy(), _gaps=self._gaps.copy())
        return same.finish(timestamp_us)

    def _unwrap(self, sequence: int) -> int:
        return unwrap(sequence, self._next)

    def _count_passed(self, position: int, size: int, missing: int) -> None:
        """Count the bytes of a segment that lie before the stream's position."""
        end = position + size
        if position < self._base:
            before = min(end, self._base) - position
            # A single byte before the first one is a keep-alive, which repeats a byte to get an
            # acknowledgment.
            if size + missing == 1 and position == self._base - 1:
                self.repeated += size
                return
            self.early += before
            self.early_missing += max(0, min(end + missing, self._base) - end)
            position += before
        stop = min(end, self._next)
        if position < stop:
            late = self._in_gaps(position, stop)
            self.late += late
            self.repeated += stop - position - late

    def _in_gaps(self, start: int, stop: int) -> int:
        """Return how many bytes from ``start`` to ``stop`` were reported as lost."""
        gaps = self._gaps
        index = max(0, bisect_left(gaps, (start,)) - 1)
        lost = 0
        while index < len(gaps) and gaps[index][0] < stop:
            lost += max(0, min(gaps[index][1], stop) - max(gaps[index][0], start))
            index += 1
        return lost

    def _add(self, piece: StreamPiece) -> None:
        """Insert the parts of a piece that are new among the waiting pieces."""
        pending = self._pending
        start = max(piece.position, self._next)
        index = bisect_left(pending, (start,))
        if index and pending[index - 1].end > start:
            start = self._count_taken(piece, start, pending[index - 1])
        while start < piece.end:
            stop = min(piece.end, pending[index].position) if index < len(pending) else piece.end
            if start < stop:
                part = _part(piece, start, stop)
                pending.insert(index, part)
                self._pending_bytes += len(part.data)
                index += 1
            if index == len(pending):
                return
            start = self._count_taken(piece, max(start, stop), pending[index])
            index += 1

    def _count_taken(self, piece: StreamPiece, start: int, taken: StreamPiece) -> int:
        """Count the bytes of a piece whose places are already taken.

        Return where these bytes end.
        """
        count = min(piece.end, taken.end) - start
        if count > 0 and not piece.lost:
            if taken.lost:
                self.late += count
            else:
                self.repeated += count
        return max(start, taken.end)

    def _in_order(self) -> list[StreamPiece]:
        pending = self._pending
        count = 0
        while count < len(pending) and pending[count].position == self._next:
            self._next = pending[count].end
            self._pending_bytes -= len(pending[count].data)
            if pending[count].lost:
                self._note_gap(pending[count])
            count += 1
        pieces = pending[:count]
        del pending[:count]
        return pieces

    def _give_up(self) -> list[StreamPiece]:
        first = self._pending[0]
        self._segments_since_acknowledged = 0
        return [self._gap(first.position, first.timestamp_us), *self._in_order()]

    def _gap(self, end: int, timestamp_us: int) -> StreamPiece:
        """Continue at ``end``. The bytes before ``end`` are lost."""
        gap = StreamPiece(self._next, b"", end - self._next, timestamp_us, seen=False)
        self._next = end
        self._note_gap(gap)
        return gap

    def _note_gap(self, gap: StreamPiece) -> None:
        if len(self._gaps) == MOST_GAPS:
            # Late bytes that belong to the oldest gaps now count as repeated.
            del self._gaps[: MOST_GAPS // 2]
        self._gaps.append((gap.position, gap.end))


def _part(piece: StreamPiece, start: int, stop: int) -> StreamPiece:
    if (start, stop) == (piece.position, piece.end):
        return piece
    if piece.lost:
        return StreamPiece(start, b"", stop - start, piece.timestamp_us)
    data = piece.data[start - piece.position : stop - piece.position]
    begins_frame = piece.begins_frame and start == piece.position
    return StreamPiece(start, data, 0, piece.timestamp_us, begins_frame)


FRAMES, SEEKS_REQUEST, SEEKS_RESPONSE, PASSES = range(4)
"""What is known about the bytes of one end. FRAMES means that the frames of the end are known.

Otherwise it is unknown where frames begin, and payloads that begin no frame are skipped. Frames
are then found by the beginnings of requests (SEEKS_REQUEST) or of responses (SEEKS_RESPONSE), or
all payloads are skipped (PASSES).
"""


class SideState(NamedTuple):
    """The state of one end of a connection for the fast path.

    ``sequence`` is the number of the next byte. No byte beyond that one was acknowledged. ``held``
    contains an incomplete frame's length and bytes, which were captured from ``first_us`` to
    ``last_us``. ``next_index`` is the index of the end's next frame. If any of the ``before`` bytes
    before the next byte arrive again, they count as repeated. Only the assembler can decide about
    earlier bytes.

    If it is unknown where frames begin, nothing is held, and ``seeks`` says which payloads
    certainly begin no frame (SEEKS_REQUEST, SEEKS_RESPONSE or PASSES). Only such payloads may be
    processed.

    At most ``room`` bytes are processed, because later bytes might belong to an earlier connection
    on the same ports.
    """

    sequence: int
    held: bytes
    first_us: int
    last_us: int
    next_index: int
    before: int = 0
    seeks: int = FRAMES
    room: int = INT64_MAX


@dataclass(frozen=True, slots=True)
class Handoff:
    """A connection on the fast path: the state of the requesting and of the responding end."""

    connection: str
    client: str
    request: SideState
    response: SideState


class SideResult(NamedTuple):
    """The progress of one end on the fast path.

    ``size`` is the number of processed bytes. These bytes contain ``frames`` frames with the total
    size ``sizes``, and ``length`` is the length of the latest frame. ``held`` contains the bytes
    after the frames, as in `SideState`. ``repeated`` is the number of bytes that had arrived
    before. During the search for a frame, ``first_us`` and ``last_us`` are the times of the first
    and the last of these bytes.
    """

    size: int
    held: bytes
    first_us: int
    last_us: int
    frames: int
    sizes: int
    length: int
    repeated: int = 0


@dataclass(frozen=True, slots=True)
class HandoffResult:
    """The result of the fast path for a connection.

    ``segments`` segments with ``captured`` bytes were processed, the last of them at ``time_us``.
    If ``is_marked`` is true, the capture marked one of these segments as the beginning of a frame.
    For each of the last frames, ``noted`` contains a flag for requests, and the correlation id.
    """

    segments: int
    captured: int
    time_us: int
    is_marked: bool
    noted: Sequence[tuple[bool, int]]
    request: SideResult
    response: SideResult
