"""Decrypt the TLS connections between two endpoints, and count them by result.

```
packets ─▶ held until one says what it is ─▶ not TLS, no secret: copied as they are
                     └─▶ tried, and held, until a record opens ─▶ opened: written anew, plain
```
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import TYPE_CHECKING, Final, Protocol

from flexwire.capture.reassembly.assembly import FrameAssembler
from flexwire.capture.reassembly.connections import BrokerEnds
from flexwire.capture.reassembly.framing import FramedBytes, Framer
from flexwire.capture.tls.decryption import NO_SECRET, TlsConnection
from flexwire.capture.tls.keys import begins_client_hello, looks_encrypted, read_random
from flexwire.wire.segment_layout import ACK, FIN, MODULUS, RST, SYN

if TYPE_CHECKING:
    from flexwire.capture.files.packets import CapturedPacket, Segment, UnreadableBytes
    from flexwire.capture.files.pcapng import TappedConnection
    from flexwire.capture.reassembly.connections import CapturedFrame
    from flexwire.capture.reassembly.streams import StreamPiece
    from flexwire.capture.tls.decryption import Plaintext
    from flexwire.capture.tls.keylog import KeyLog


NO_HANDSHAKE: Final = "the connection began before the capture"
NOT_AT_ONCE: Final = "too much data arrived before a record could be decrypted"
UNFINISHED: Final = "the connection's last record is incomplete in the capture"
MOST_HELD_PACKETS: Final = 4096
MOST_HELD_BYTES: Final = 2 * 1024 * 1024
"""The largest number of bytes that are held for a connection until one of its records is decrypted.
"""
_UNDECIDED_PACKETS: Final = 64
_LOST: Final = "lost"


class _UncutFramer(Framer):
    """A framer that returns a stream's pieces unchanged, and lost bytes as an error."""

    def feed(self, pieces: list[StreamPiece]) -> list[FramedBytes]:
        return [
            FramedBytes(
                piece.timestamp_us,
                piece.timestamp_us,
                len(piece.data) + piece.lost,
                piece.data,
                _LOST if piece.lost else None,
                is_placed=False,
                lost=piece.lost,
            )
            for piece in pieces
        ]

    def finish(self) -> list[FramedBytes]:
        return []


class PacketSink(Protocol):
    """The destination of packets: copied packets, and the packets of decrypted connections."""

    counts: TlsCounts

    def copy(self, packet: CapturedPacket) -> None:
        """Write a packet as it was captured."""

    def begin(self, client: str, server: str, timestamp_us: int) -> TappedConnection:
        """Begin a connection that is decrypted."""


class _TlsState(Enum):
    UNDECIDED = 1
    PASSING = 2
    TRYING = 3
    OPENED = 4
    OVER = 5


class EndPair:
    """Process the packets between two endpoints in the order of the capture.

    Call `finish` at the end.
    """

    def __init__(self, keys: KeyLog, writer: PacketSink) -> None:
        self._keys, self._writer = keys, writer
        self._begin()

    def _begin(self) -> None:
        self._state = _TlsState.UNDECIDED
        self._held: list[tuple[CapturedPacket, Segment]] = []
        self._held_bytes = 0
        # The sequence number at which each endpoint's stream begins, if a SYN has shown it.
        self._starts: dict[str, int] = {}
        self._client = self._server = self._name = ""
        self._last_us = 0
        self._ended_us: int | None = None  # The time of the first FIN or RST.
        self._assembler = FrameAssembler()
        self._tls = TlsConnection(self._keys)
        self._plain: TappedConnection | None = None

    def take(self, packet: CapturedPacket, segment: Segment) -> None:
        """Process a packet and its segment."""
        if segment.flags & SYN:
            start = (segment.sequence + 1) % MODULUS
            is_other = self._starts.get(segment.source, start) != start
            if not segment.flags & ACK and is_other:
                # A SYN with a new number begins another connection on the same ports. If the number
                # were the same, the packet would simply have been captured twice.
                self.finish()
                self._begin()
            self._starts[segment.source] = start
        self._last_us = packet.timestamp_us
        if segment.flags & (FIN | RST) and self._ended_us is None:
            self._ended_us = packet.timestamp_us
        if self._state is _TlsState.PASSING:
            self._writer.copy(packet)
        elif self._state is _TlsState.OVER:
            self._writer.counts.stray_packets += 1
        else:
            self._hold(packet, segment)
            if self._state is _TlsState.UNDECIDED:
                self._decide(segment)
            else:
                self._push(segment)

    def finish(self) -> None:
        """End the connection, or the capture."""
        if self._state in {_TlsState.TRYING, _TlsState.OPENED}:
            self._take_frames(self._assembler.finish())
        if self._state is _TlsState.TRYING:
            self._give_up(self._tls.why_not())
        elif self._state is _TlsState.OPENED:
            self._end()
        elif self._state is _TlsState.UNDECIDED:
            self._pass()

    def _hold(self, packet: CapturedPacket, segment: Segment) -> None:
        if self._state is not _TlsState.OPENED:
            self._held.append((packet, segment))
            self._held_bytes += len(packet.data)

    def _decide(self, segment: Segment) -> None:
        start = self._starts.get(segment.source)
        is_late = start is not None and start != segment.sequence
        is_long = len(self._held) > _UNDECIDED_PACKETS
        if (is_late or not segment.payload) and not is_long:
            return
        payload = segment.payload
        if not begins_client_hello(payload):
            if looks_encrypted(payload):
                self._writer.counts.unopened[NO_HANDSHAKE] += 1
            self._pass()
            return
        random = read_random(payload)
        if random is not None and not self._keys.may_open(random):
            self._give_up(NO_SECRET)
            return
        self._state = _TlsState.TRYING
        self._client, self._server = segment.source, segment.destination
        brokers = BrokerEnds.parse([], [self._server])
        self._assembler = FrameAssembler(brokers=brokers, framer=_UncutFramer)
        for _, record in self._held.copy():
            self._push(record)
            if self._state is _TlsState.PASSING:
                return

    def _push(self, segment: Segment) -> None:
        self._take_frames(self._assembler.push(segment))
        is_much = len(self._held) > MOST_HELD_PACKETS or self._held_bytes > MOST_HELD_BYTES
        if self._state is _TlsState.TRYING and is_much:
            self._give_up(NOT_AT_ONCE)
        if self._state is not _TlsState.PASSING and self._assembler.activity().is_over:
            self.finish()

    def _take_frames(self, frames: list[CapturedFrame]) -> None:
        counts = self._writer.counts
        for frame in frames:
            self._name = self._name or frame.connection
            if frame.connection != self._name:
                counts.stray_packets += 1
            elif frame.error == _LOST:
                self._tls.miss(frame.direction, frame.size)
            elif frame.error is None:
                for plaintext in self._tls.feed(frame.direction, frame.payload, frame.timestamp_us):
                    self._give(plaintext)
        if self._state is not _TlsState.TRYING:
            return
        if self._tls.has_opened:
            self._open()
        elif self._tls.reason is not None:
            self._give_up(self._tls.reason)

    def _open(self) -> TappedConnection:
        if self._plain is None:
            first = self._held[0][0].timestamp_us
            self._plain = self._writer.begin(self._client, self._server, first)
            self._state = _TlsState.OPENED
            self._held.clear()
        return self._plain

    def _give(self, plaintext: Plaintext) -> None:
        plain, counts = self._open(), self._writer.counts
        if plaintext.lost:
            plain.miss(plaintext.end, plaintext.lost)
        plain.send(plaintext.end, plaintext.data, plaintext.timestamp_us)
        counts.lost_bytes += plaintext.lost
        counts.plain_bytes += len(plaintext.data)

    def _end(self) -> None:
        counts, reason = self._writer.counts, self._tls.reason
        if reason is None and self._tls.unread:
            reason = UNFINISHED
        if reason is None:
            counts.opened += 1
        else:
            counts.partly[reason] += 1
            counts.unread_bytes += self._tls.unread
        if self._plain is not None:
            self._close(self._plain)
        self._state = _TlsState.OVER

    def _close(self, plain: TappedConnection) -> None:
        """Write the end of the connection, in TLS or TCP, sent by the side that closed it first."""
        ended = next(
            (
                connection
                for connection in self._assembler.ended()
                if connection.connection == self._name
            ),
            None,
        )
        by_tcp = None if ended is None else ended.closed_by
        ending, ended_us = self._tls.ending, self._ended_us
        if ending is not None and (ended_us is None or ending.timestamp_us <= ended_us):
            is_reset = not ending.is_clean and ended is not None and ended.reset
            by_broker = ending.end == "response"
        elif ended is not None and by_tcp is not None:
            is_reset, by_broker = ended.reset, by_tcp == "broker"
        else:
            return
        plain.close(reset=is_reset, by_broker=by_broker, timestamp_us=self._last_us)

    def _give_up(self, reason: str) -> None:
        self._writer.counts.unopened[reason] += 1
        self._pass()

    def _pass(self) -> None:
        self._state = _TlsState.PASSING
        for packet, _ in self._held:
            self._writer.copy(packet)
        self._held.clear()


@dataclass(slots=True)
class TlsCounts:
    """The number of TLS connections for each result.

    Each connection is in exactly one of three groups.

    ``opened`` is the number of connections that were decrypted completely. ``partly`` counts the
    connections that were decrypted up to some record, by the reason for stopping there.
    ``unopened`` counts the connections that were not decrypted and are left as they were captured,
    by the reason. ``lost_bytes`` is the number of data bytes, on decrypted connections, that are
    missing from the capture. ``unread_bytes`` is the number of TLS bytes that follow the last
    decrypted record of a connection. ``stray_packets`` is the number of packets that are left out
    because their connection had already ended or because they belong to no connection.
    """

    opened: int = 0
    partly: Counter[str] = field(default_factory=Counter)
    unopened: Counter[str] = field(default_factory=Counter)
    plain_bytes: int = 0
    lost_bytes: int = 0
    unread_bytes: int = 0
    stray_packets: int = 0
    packets: int = 0
    damaged: list[UnreadableBytes] = field(default_factory=list)
    """The places where files are truncated or contain unreadable bytes."""

    def add(self, other: TlsCounts) -> None:
        """Add the counts of other connections."""
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))

    @property
    def connections(self) -> int:
        """The number of TLS connections."""
        return self.opened + self.partly.total() + self.unopened.total()

    def lines(self) -> list[str]:
        """Return the results for the connections as lines of text for a terminal."""
        others = f"{self.partly.total():,} in part, {self.unopened.total():,} not"
        sent = f"{self.plain_bytes:,} bytes of data were decrypted"
        lines = [f"TLS connections: {self.opened:,} opened, {others}; {sent}"]
        for how, reasons in (("opened in part", self.partly), ("not opened", self.unopened)):
            lines += [f"  {count:,} {how}: {reason}" for reason, count in reasons.most_common(20)]
        if self.damaged:
            first = self.damaged[0]
            lines.append(
                f"  {len(self.damaged):,} places in the captures cannot be read, the first at byte "
                f"{first.offset:,} of {first.source}: {first.reason}"
            )
        return lines
