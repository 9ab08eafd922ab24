"""What of a connection waits for something before it: its first segments, and its responses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from flexwire.capture.reassembly.streams import REORDER_SEGMENTS
from flexwire.wire.segment_layout import ACK, SYN

if TYPE_CHECKING:
    from flexwire.capture.files.model import Segment
    from flexwire.capture.reassembly.assembly import CapturedFrame

BEGINNING_US: Final = 1_000_000
BEGINNING_BYTES: Final = 1024 * 1024
"""A connection's first segments wait for its handshake: no longer than this, and no more bytes."""

MOST_HELD_BACK: Final = 1024
MOST_HELD_BACK_BYTES: Final = 1024 * 1024
"""Responses wait for a request that is cut only until more of them wait than this."""


class Beginning:
    """A connection's first segments, which a capture may show before the handshake."""

    def __init__(self) -> None:
        self._segments: list[Segment] = []
        self._bytes = 0

    def add(self, segment: Segment) -> bool:
        """Take in a segment; return whether the first ones are all there."""
        self._segments.append(segment)
        self._bytes += len(segment.payload)
        if segment.begins is not None or (segment.flags & SYN and segment.flags & ACK):
            # A capture of flexwire's own goes on, or it says where both streams begin.
            return True
        span_us = abs(segment.timestamp_us - self._segments[0].timestamp_us)
        is_full = len(self._segments) >= REORDER_SEGMENTS or self._bytes >= BEGINNING_BYTES
        return is_full or span_us >= BEGINNING_US

    def segments(self) -> list[Segment]:
        """Return those there are: a SYN that was captured late still comes first."""
        return sorted(self._segments, key=lambda one: not one.flags & SYN)


class HeldBack:
    """Responses that wait until the requests before them are given out."""

    def __init__(self) -> None:
        self._frames: list[CapturedFrame] = []
        self._bytes = 0

    def in_turn(self, frames: list[CapturedFrame], *, is_cut: bool) -> list[CapturedFrame]:
        """Return the frames that may be given out now; ``is_cut``: a request before them is not."""
        if not self._frames and not (frames and is_cut):
            return frames
        responses = [one for one in frames if one.direction == "response"]
        self._frames += responses
        self._bytes += sum(len(one.payload) for one in responses)
        requests = [one for one in frames if one.direction == "request"]
        is_much = len(self._frames) > MOST_HELD_BACK or self._bytes > MOST_HELD_BACK_BYTES
        return requests if is_cut and not is_much else requests + self.release()

    def release(self) -> list[CapturedFrame]:
        """Return those that wait, which then wait no more."""
        frames, self._frames, self._bytes = self._frames, [], 0
        return frames
