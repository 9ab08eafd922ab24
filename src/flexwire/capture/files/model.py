"""What a capture file holds: packets, the TCP segments in them, and what cannot be read."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import msgspec

Direction = Literal["request", "response"]

FRAME_COMMENTS: dict[bytes, Direction] = {
    b"flexwire: a request begins here": "request",
    b"flexwire: a response begins here": "response",
}
"""What a comment on a packet says of the packet's payload.

It stands on the packet and not on the file, so it stays true when the files are cut, filtered or
merged, and Wireshark's tools carry it along.
"""

SAMPLE_BYTES = 1024
"""So many of the bytes at fault go into an `Unreadable` or an error frame."""


class CapturedPacket(NamedTuple):
    """A packet as the file holds it; ``offset`` is where it stands there.

    ``original_length`` is its length on the network, ``data`` may be shorter (the snaplen).
    ``begins`` is what the file says of the packet's payload: that a frame begins with it.
    ``comments`` are all that stand on the packet.
    """

    timestamp_us: int
    linktype: int
    data: bytes
    original_length: int
    offset: int
    begins: Direction | None = None
    comments: tuple[bytes, ...] = ()


class Segment(msgspec.Struct, frozen=True, gc=False):
    """A TCP segment.

    ``source`` and ``destination`` read "10.0.0.1:9092" or "[::1]:9092". ``missing`` is how many
    bytes of the payload the capture cut off after those that it kept. ``begins`` is the direction
    of the frame that begins with the payload, where the capture says that one does: flexwire's own
    say it of the first payload that each file holds of each stream.
    """

    timestamp_us: int
    source: str
    destination: str
    sequence: int
    acknowledgment: int
    flags: int
    payload: bytes
    missing: int = 0
    begins: Direction | None = None


class Unreadable(msgspec.Struct, frozen=True, gc=False):
    """Bytes of a capture file that should hold a segment and do not give one.

    ``offset`` counts from the start of the file, uncompressed; ``size`` is how many bytes of the
    file are concerned where that is known, and ``data`` the first of them.
    """

    source: str
    offset: int
    reason: str
    timestamp_us: int | None = None
    data: bytes = b""
    size: int = 0


@dataclass(slots=True)
class SegmentCounts:
    """How many packets a file held and what became of them; ``skipped`` is by reason.

    Once a file is read to its end, ``packets == segments + unreadable_packets +
    sum(skipped.values())``.
    """

    packets: int = 0
    segments: int = 0
    unreadable_packets: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
