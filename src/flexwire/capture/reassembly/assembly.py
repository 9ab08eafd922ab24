"""Assemble the segments of a connection into the frames that were sent over it.

This module finds the connection that a segment belongs to.
`flexwire.capture.reassembly.open_connection` does the rest.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from flexwire.capture.files.packets import Direction, Segment
from flexwire.capture.reassembly.connections import (
    BrokerEnds,
    CapturedConnection,
    CapturedFrame,
    Roles,
)
from flexwire.capture.reassembly.framing import (
    CAPTURED_FRAME_LIMIT,
    Framer,
)
from flexwire.capture.reassembly.open_connection import OpenConnection
from flexwire.errors import CaptureError
from flexwire.wire.segment_layout import ACK, FIN, MODULUS, RST, SYN

if TYPE_CHECKING:
    from flexwire.capture.reassembly.streams import (
        Handoff,
        HandoffResult,
    )

OPEN_CONNECTIONS = 4
"""The largest number of connections between two ports that can be open at once. If another
connection begins, the connection that has been idle the longest is ended.
"""

_TURNS = SYN | FIN | RST
_NONE_GIVEN = BrokerEnds()


def connection_key(segment: Segment) -> str:
    """Return a string that identifies two ports, whatever the direction and the connection.

    One `FrameAssembler` processes all segments with the same key.
    """
    return key_of_ends(segment.source, segment.destination)


def key_of_ends(end: str, other: str) -> str:
    """Return the key of all connections between two endpoints, in either order."""
    return f"{end}|{other}" if end <= other else f"{other}|{end}"


class ConnectionShare(NamedTuple):
    """One of ``of`` parts that together contain all connections; no key belongs to two parts.

    A connection may continue from one file to the next, and its bytes must be read in order. If
    tasks cannot divide the files among themselves, they therefore divide the connections, and each
    task reads all packets.
    """

    number: int
    of: int

    @property
    def has_others(self) -> bool:
        """True if this part also includes packets without a connection, and counts all packets."""
        return self.number == 0

    @property
    def is_whole(self) -> bool:
        """True if there is only one part."""
        return self.of == 1

    def has(self, key: str) -> bool:
        """Return whether the connections with a key belong to this part."""
        return self.is_whole or crc32(key.encode()) % self.of == self.number


WHOLE: Final = ConnectionShare(0, 1)
"""The only part, which contains all connections."""


class KeyActivity(NamedTuple):
    """The number of connections that an assembler has begun, and whether the last ones are open.

    ``last_us`` is the time of the last segment of an open connection. ``is_over`` is true if all
    these connections were closed.
    """

    ordinal: int
    last_us: int
    is_over: bool


class FrameAssembler:
    """Convert the segments between two endpoints, in the order of the capture, to frames.

    Segments may be missing, out of order, retransmitted with different boundaries, or truncated by
    the snaplen. Missing bytes, and bytes outside frames, become a `CapturedFrame` with an error.
    Call `finish` at the end.

    A SYN with a new sequence number begins a new connection on the same ports. Bytes that no known
    connection can have sent also mean that a new connection has begun (see
    `flexwire.capture.reassembly.course`). At most `OPEN_CONNECTIONS` connections are open at the
    same time. The frames of one connection may then come between the frames of another.

    It is known where a frame begins at the start of a stream, and at a segment that flexwire's own
    captures mark as the beginning of a frame. In other captures, if the capture starts within a
    connection, or after a gap that hides a length, flexwire guesses where the next frame begins
    (`flexwire.capture.reassembly.framing` explains when this guess may be wrong).

    A gap in a request delays this request. Complete responses wait for the delayed request, so that
    each response follows its request in the output too.

    If exactly one end is among the ``brokers``, the other end is the client. The class ``framer``
    splits a stream into frames. An ``endless`` capture is never finished, so responses wait only
    while their connection is open.
    """

    def __init__(
        self,
        *,
        limit: int = CAPTURED_FRAME_LIMIT,
        brokers: BrokerEnds = _NONE_GIVEN,
        framer: type[Framer] = Framer,
        endless: bool = False,
    ) -> None:
        self.limit = limit
        self._framer = framer
        self._endless = endless
        self.brokers = brokers
        self._ended: list[CapturedConnection] = []
        self.key = ""  # The key of the connections whose segments this assembler processes.
        self._ordinal = 0
        self._client: str | None = None  # The client of the last connection whose SYN was captured.
        # The connection with the latest segment is the last one.
        self._open: list[OpenConnection] = []

    def push(self, segment: Segment) -> list[CapturedFrame]:
        """Process a segment. Return the frames that are now complete, and any errors."""
        key = connection_key(segment)
        if not self.key:
            self.key = key
        elif self.key != key:
            raise CaptureError(f"a segment of {key} was passed to the assembler for {self.key}")
        opened = self._open
        if len(opened) == 1 and not segment.flags & _TURNS and opened[0].course.goes_on(segment):
            return opened[0].push(segment)
        if segment.flags & SYN:
            is_answer = segment.flags & ACK
            self._client = segment.destination if is_answer else segment.source
        connection = self._connection_of(segment)
        if connection is not None:
            if connection is not self._open[-1]:
                self._open.remove(connection)
                self._open.append(connection)
            connection.course.note(segment)
            return connection.push(segment)
        if self._open and not (segment.payload or segment.missing or segment.flags & SYN):
            # The segment is empty and belongs to no known connection.
            return []
        return self._begin(segment)

    def _begin(self, segment: Segment) -> list[CapturedFrame]:
        """Open the connection that begins with this captured segment."""
        frames: list[CapturedFrame] = []
        if segment.flags & SYN:
            for candidate in [
                candidate for candidate in self._open if candidate.course.is_replaced(segment)
            ]:
                frames += self._close(candidate)
        if len(self._open) == OPEN_CONNECTIONS:
            frames += self._close(self._open[0])
        self._ordinal += 1
        roles = Roles(self.limit, self.brokers, self._client)
        connection = OpenConnection(segment, self._ordinal, self.limit, self.brokers, roles)
        connection.cuts, connection.endless = self._framer, self._endless
        self._open.append(connection)
        connection.course.note(segment)
        return frames + connection.push(segment)

    def finish(self) -> list[CapturedFrame]:
        """End the connections and return their incomplete frames. New connections may follow."""
        frames: list[CapturedFrame] = []
        for connection in sorted(self._open, key=attrgetter("ordinal")):
            frames += self._close(connection)
        return frames

    def pause(self) -> list[CapturedConnection]:
        """Return the facts about open connections that were gathered since the last pause.

        The connections remain open. Connections for which no segment was captured since then are
        left out. Connections whose client is unknown are also left out.
        """
        paused = [
            connection.pause() for connection in sorted(self._open, key=attrgetter("ordinal"))
        ]
        return [connection for connection in paused if connection is not None]

    def open_names(self) -> list[str]:
        """Return the names of the open connections whose names are known."""
        return [connection.name for connection in self._open if connection.name]

    def ended(self) -> list[CapturedConnection]:
        """Return the connections that have ended since the last call, in order.

        All frames of each of these connections have already been returned.
        """
        ended, self._ended = self._ended, []
        return ended

    def reads_as_kafka(self, connection: str) -> bool:
        """Return whether the frames of an open connection already show that it is Kafka."""
        return any(
            candidate.name == connection and candidate.reads_as_kafka for candidate in self._open
        )

    def seen_from_start(self, connection: str) -> bool:
        """Return whether the SYN of an open connection was captured."""
        return any(
            candidate.name == connection and candidate.seen_from_start for candidate in self._open
        )

    def cut_requests(self, connection: str) -> list[CapturedFrame]:
        """Return an open connection's requests that wait for a gap, as if the connection ended."""
        connections = (candidate for candidate in self._open if candidate.name == connection)
        return [frame for candidate in connections for frame in candidate.cut_requests()]

    def activity(self) -> KeyActivity:
        """Return the activity that decides whether connections are forgotten. See `KeyActivity`."""
        last_us = max((candidate.last_us for candidate in self._open), default=0)
        return KeyActivity(
            self._ordinal,
            last_us,
            all(candidate.course.is_closed for candidate in self._open),
        )

    def go_on_after(self, ordinal: int) -> None:
        """In a new assembler, continue the numbering after connections that were forgotten."""
        self._ordinal = ordinal

    def hand_off(self) -> Handoff | None:
        """Return the connection's state for the fast path, if the connection's bytes are in order.

        Returns None if the connection has frames but is not Kafka, or if other connections are
        open. See `flexwire.capture.reassembly.streams`.
        """
        if not self._open:
            return None
        *others, last = self._open
        return last.hand_off([other.course for other in others])

    def resume(self, lent: Handoff, broker: str) -> None:
        """Continue a connection in a new assembler, from only the state of its endpoints."""
        self._ordinal = 1
        self.open_again(key_of_ends(lent.client, broker), self._ordinal).resume(lent, broker)

    def open_again(self, key: str, ordinal: int) -> OpenConnection:
        """Open a connection with this key in a new assembler, without any facts about it."""
        self.key = key
        low, _, high = key.partition("|")
        first = Segment(0, low, high, 0, 0, 0, b"")
        roles = Roles(self.limit, self.brokers, self._client)
        connection = OpenConnection(first, ordinal, self.limit, self.brokers, roles)
        connection.cuts, connection.endless = self._framer, self._endless
        self._open.append(connection)
        return connection

    def hold(self, direction: Direction, held: bytes, first_us: int, last_us: int) -> None:
        """Set the bytes of an incomplete frame that are held for the open connection."""
        self._open[0].hold(direction, held, first_us, last_us)

    def seek(self) -> None:
        """Record that it is not known where frames begin on the open connection."""
        self._open[0].seek()

    def take_back(self, taken: HandoffResult) -> None:
        """Apply the result of the fast path to the connection that was handed to it."""
        self._open[-1].take_back(taken)

    def _connection_of(self, segment: Segment) -> OpenConnection | None:
        if segment.flags & SYN:
            candidates = (
                connection
                for connection in reversed(self._open)
                if not connection.course.refuses_syn(segment)
            )
            return next(candidates, None)
        nearest, nearest_connection = MODULUS * 2, None
        for connection in reversed(self._open):
            distance = connection.course.distance(segment)
            if distance is not None and distance < nearest:
                nearest, nearest_connection = distance, connection
        return nearest_connection

    def _close(self, connection: OpenConnection) -> list[CapturedFrame]:
        self._open.remove(connection)
        frames = connection.finish()
        if (ended := connection.close()) is not None:
            self._ended.append(ended)
        return frames
