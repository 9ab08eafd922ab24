"""What a connection was: its ends, its bytes, how it ended, and whether it is Kafka.

Where the caller has named brokers, they alone say which connections are Kafka. Otherwise the
content of the frames does (see `flexwire.capture.reassembly.evidence`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from flexwire.capture.reassembly.evidence import Evidence
from flexwire.capture.reassembly.resemblance import HEAD_BYTES, looks_like
from flexwire.wire.segment_layout import FIN, RST, SYN

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Literal

    from flexwire.capture.files.model import Direction, Segment
    from flexwire.capture.reassembly.brokers import Brokers
    from flexwire.capture.reassembly.framing import Found
    from flexwire.capture.reassembly.lent import Taken, Went
    from flexwire.capture.reassembly.streams import Piece, Stream

KAFKA = "Kafka"
"""The ``looks_like`` of a connection that reads as Kafka, but has no end that was given."""


class CapturedConnection(msgspec.Struct, frozen=True, gc=False):
    """A connection, when it has ended or the capture has.

    ``client`` and ``broker`` are its ends, as "10.0.0.9:50000"; if it is not Kafka, ``client`` is
    the end that sent what would be requests. ``seen_from_start``: its SYN was captured.
    ``closed_by`` is the end whose FIN, or RST (``reset``), was seen first.

    ``request_bytes`` and ``response_bytes`` are the sizes of its frames, those with an error too.
    Of these, ``lost_bytes`` are missing from the capture, ``early_bytes`` come from before the
    first segment of their direction, and ``unreadable_bytes`` are other bytes of frames with an
    error. In no frame are ``repeated_bytes``, which came again, and ``late_bytes``, which came
    after their place had been given up as lost. So every byte of its segments is counted:
    ``captured_bytes`` is the sum of the frames' bytes without the lost ones, the repeated and the
    late ones.

    ``evidence`` says why it is Kafka, or is not. ``reads_as_kafka``: something in it reads as
    Kafka, so its headers can be believed. ``looks_like`` names another protocol whose bytes these
    seem to be, or Kafka where only its ends speak against it.
    """

    connection: str
    client: str
    broker: str
    first_us: int
    last_us: int
    seen_from_start: bool
    closed_by: Literal["client", "broker"] | None
    reset: bool
    request_frames: int
    response_frames: int
    request_bytes: int
    response_bytes: int
    lost_bytes: int
    captured_bytes: int
    repeated_bytes: int
    late_bytes: int
    early_bytes: int
    unreadable_bytes: int
    is_kafka: bool
    reads_as_kafka: bool
    evidence: str
    looks_like: str | None


class _Judgement(NamedTuple):
    reads: bool
    is_kafka: bool
    reason: str
    resembles: str | None


class Account:
    """Takes in the segments and frames of one connection; `close` says what it was."""

    def __init__(self, brokers: Brokers) -> None:
        self.evidence = Evidence()
        self._brokers = brokers
        self._first_us: int | None = None
        self._last_us = 0
        self.has_syn = self._is_marked = self._reset = False
        self._ended_by: str | None = None
        self._heads: dict[Direction, bytes] = {"request": b"", "response": b""}
        self._frames: dict[Direction, int] = {"request": 0, "response": 0}
        self._bytes: dict[Direction, int] = {"request": 0, "response": 0}
        self._lost = self._captured = 0
        self._repeated = self._late = self._early = self._unreadable = 0

    def note_segment(self, segment: Segment) -> None:
        """Take in a segment, in the order of capture."""
        flags = segment.flags
        if self._first_us is None:
            self._first_us = segment.timestamp_us
        self._last_us = segment.timestamp_us
        self._captured += len(segment.payload)
        if flags & SYN:
            self.has_syn = True
        if segment.begins is not None:
            self._is_marked = True
        if flags & (FIN | RST) and self._ended_by is None:
            self._ended_by = segment.source
            self._reset = bool(flags & RST)

    def note_taken(self, taken: Taken) -> None:
        """Take in segments, and the whole frames in them, that were counted elsewhere."""
        if not taken.segments:
            return
        self._last_us = taken.time_us
        self._captured += taken.captured
        self._is_marked = self._is_marked or taken.is_marked
        went: dict[Direction, Went] = {"request": taken.request, "response": taken.response}
        for direction, one in went.items():
            self._frames[direction] += one.frames
            self._bytes[direction] += one.sizes

    def note_pieces(self, direction: Direction, pieces: Iterable[Piece]) -> None:
        """Take in what comes next in a stream."""
        head = self._heads[direction]
        for piece in pieces:
            if len(head) < HEAD_BYTES:
                head += piece.data[:HEAD_BYTES]
        self._heads[direction] = head

    def note_frame(self, direction: Direction, found: Found) -> None:
        """Take in a frame, or bytes that are not a whole one."""
        self._frames[direction] += 1
        self._bytes[direction] += found.size
        self._lost += found.lost
        if found.error is not None:
            self._unreadable += found.size - found.lost
        if found.is_placed and self.evidence.found is None:
            self.evidence.see(direction, found.payload, is_whole=found.error is None)

    def note_stream(self, stream: Stream) -> None:
        """Take in, when a direction has ended, which of its bytes are in no frame."""
        self._repeated += stream.repeated
        self._late += stream.late
        # They have been noted as a frame that has an error.
        self._early += stream.early
        self._unreadable -= stream.early

    def close(self, connection: str, client: str, broker: str) -> CapturedConnection:
        """Say what the connection was."""
        judged = self._judge(client, broker)
        ended_by: Literal["client", "broker"] | None = None
        if self._ended_by is not None:
            ended_by = "client" if self._ended_by == client else "broker"
        return CapturedConnection(
            connection=connection,
            client=client,
            broker=broker,
            first_us=self._first_us or 0,
            last_us=self._last_us,
            seen_from_start=self.has_syn,
            closed_by=ended_by,
            reset=self._reset,
            request_frames=self._frames["request"],
            response_frames=self._frames["response"],
            request_bytes=self._bytes["request"],
            response_bytes=self._bytes["response"],
            lost_bytes=self._lost,
            captured_bytes=self._captured,
            repeated_bytes=self._repeated,
            late_bytes=self._late,
            early_bytes=self._early,
            unreadable_bytes=self._unreadable,
            is_kafka=judged.is_kafka,
            reads_as_kafka=judged.reads,
            evidence=judged.reason,
            looks_like=judged.resembles,
        )

    def _judge(self, client: str, broker: str) -> _Judgement:
        found = self.evidence.found
        given = [end for end in (broker, client) if self._brokers.has(end)]
        if found is None and (given or self._is_marked):
            # Less will do where an end is known for a broker: the tap stands before one.
            found = self.evidence.hint
        resembles = looks_like(*self._heads.values()) if found is None else None
        if given:
            return _judge_given(given[0], found, resembles)
        if self._brokers:
            reason = "neither end was given as a broker"
            if found is None:
                return _Judgement(False, False, reason, resembles)
            return _Judgement(True, False, f"{reason}, though it reads as Kafka: {found}", KAFKA)
        if found is not None:
            return _Judgement(True, True, found, None)
        return self._judge_unread(resembles)

    def _judge_unread(self, resembles: str | None) -> _Judgement:
        if self._bytes["request"]:
            return _Judgement(False, False, "no request on it reads as Kafka", resembles)
        if not self._bytes["response"]:
            return _Judgement(False, False, "nothing was sent", None)
        if self._is_marked:
            return _Judgement(False, True, "the tap captured it, and only responses of it", None)
        return _Judgement(False, False, "no request of it was captured", resembles)


def _judge_given(end: str, found: str | None, resembles: str | None) -> _Judgement:
    reason = f"{end} was given as a broker"
    if found is not None:
        return _Judgement(True, True, f"{reason}, and {found}", None)
    nothing = "nothing on it reads as Kafka"
    if resembles is not None:
        return _Judgement(False, False, f"{reason}, but {nothing}", resembles)
    return _Judgement(False, True, f"{reason}; {nothing}", None)
