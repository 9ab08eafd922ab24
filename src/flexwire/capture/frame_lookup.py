"""The frames that a packet of a capture carries, by the packet's number.

Numbers count from 1 in one file, as Wireshark numbers its frames. What a response answers, only the
packets before it say, so the connection is read from its start.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from flexwire.capture.files.links import Skipped, UnreadablePacketError, read_segment
from flexwire.capture.files.model import Unreadable
from flexwire.capture.files.reading import read_packets
from flexwire.capture.heard import heard
from flexwire.capture.reassembly.assembly import CapturedFrame, FrameAssembler, connection_key
from flexwire.errors import CaptureError
from flexwire.protocol import Conversation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flexwire.capture.files.model import Segment
    from flexwire.protocol import Turn


class FoundFrame(NamedTuple):
    """A frame of a packet, and what it is in its conversation."""

    frame: CapturedFrame
    turn: Turn


def frames_of_packet(path: Path, number: int) -> list[FoundFrame]:
    """The frames that end in a packet; where none does, the one of which it carries a part.

    ``number`` counts the packets of the file from 1. What was seen in the same microsecond and
    direction of its connection counts as in it. Raises `CaptureError` where the file has no such
    packet, or it carries nothing of a frame.
    """
    wanted = _wanted(path, number)
    when, heard = wanted.timestamp_us, _Heard()
    key, assembler = connection_key(wanted), FrameAssembler()
    for segment in _segments(path):
        if connection_key(segment) == key:
            found = heard.frames(assembler.push(segment), wanted)
            if found:
                break
    else:
        found = heard.frames(assembler.finish(), wanted)
    ended = [one for one in found if one.frame.timestamp_us == when]
    carried = [one for one in found if one.frame.first_us <= when]
    if not ended and not carried:
        raise CaptureError(f"{path}: packet {number} carries no part of a frame")
    return ended or carried[:1]


class _Heard:
    """The conversations of all connections between two ends."""

    def __init__(self) -> None:
        self._conversations: dict[str, Conversation] = {}

    def frames(self, frames: list[CapturedFrame], wanted: Segment) -> list[FoundFrame]:
        """Take in frames; gives those of the wanted segment's direction, and no older."""
        found = []
        for frame in frames:
            turn = self._turn(frame)
            client = frame.connection.partition(">")[0]
            direction = "request" if wanted.source == client else "response"
            if frame.direction == direction and frame.timestamp_us >= wanted.timestamp_us:
                found.append(FoundFrame(frame, turn))
        return found

    def _turn(self, frame: CapturedFrame) -> Turn:
        conversation = self._conversations.setdefault(frame.connection, Conversation())
        return heard(frame, conversation)


def _wanted(path: Path, number: int) -> Segment:
    """The segment of a packet."""
    packets = 0
    for packet in read_packets(path):
        if isinstance(packet, Unreadable):
            raise CaptureError(
                f"{path}: after {packets} packets it cannot be read: {packet.reason}"
            )
        packets += 1
        if packets < number:
            continue
        try:
            segment = read_segment(packet)
        except (Skipped, UnreadablePacketError) as error:
            raise CaptureError(f"{path}: packet {number} has no TCP segment: {error}") from None
        if not segment.payload:
            raise CaptureError(
                f"{path}: packet {number} carries no bytes of a stream{_next(path, number)}"
            )
        return segment
    raise CaptureError(f"{path}: packet {number} was asked for, and it has {packets}")


def _next(path: Path, number: int) -> str:
    """Say which packet after this one carries bytes, as its number is asked for next."""
    packets = (one for one in read_packets(path) if not isinstance(one, Unreadable))
    for other, packet in enumerate(packets, 1):
        if other > number:
            with suppress(Skipped, UnreadablePacketError):
                if read_segment(packet).payload:
                    return f"; packet {other} does"
    return ", nor does any after it"


def _segments(path: Path) -> Iterator[Segment]:
    for packet in read_packets(path):
        if isinstance(packet, Unreadable):
            return
        try:
            yield read_segment(packet)
        except (Skipped, UnreadablePacketError):
            # Asked for is one packet, and what is no segment is of no stream.
            continue
