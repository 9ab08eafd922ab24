"""Read the messages in capture files one after another, without Spark.

Files are read one after another, in the order of their first segments. Only the open connections
are held in memory. The version of a response is taken from its request.

The frames of a connection are held back until the connection is recognized as Kafka or ends. A
connection that is not Kafka, or that would require too many bytes to be held, yields bytes and no
messages.

Packet numbers start at 1 in each file, as in Wireshark. Earlier packets are needed to find the
request that a response answers, so a connection is read from its start.
"""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from flexwire.arguments import to_kind, to_list
from flexwire.capture.files.links import (
    SegmentCounts,
    Skipped,
    UnreadablePacketError,
    read_segment,
    read_segments,
)
from flexwire.capture.files.packets import UnreadableBytes
from flexwire.capture.files.reading import read_packets
from flexwire.capture.reassembly.assembly import FrameAssembler, connection_key
from flexwire.capture.reassembly.connections import hear
from flexwire.errors import CaptureError, CodecError, FrameError, UnknownMessageError
from flexwire.protocol import Conversation, parse_response
from flexwire.schema.spec import MessageType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from flexwire.capture.files.packets import Segment
    from flexwire.capture.reassembly.connections import CapturedFrame
    from flexwire.codec import Message
    from flexwire.protocol import RequestFrame, Turn


OPEN_CONNECTIONS = 4096
"""The largest number of connections that are assembled at once. If another connection begins, the
connection that has been silent the longest is ended.
"""


HELD_FRAMES = 1000
HELD_BYTES = 256 * 1024
"""The largest number of bytes that are held for a connection that is not yet known to be Kafka. If
there are more bytes, the connection counts as not Kafka.
"""

_UNPROVEN = "no request on the connection reads as Kafka"
# The kind and the reason of `UnusedBytes`, for each kind of turn that contains no message.
_WITHOUT_REQUEST = {
    "token": ("token", "a SASL token is not a Kafka message"),
    "response": ("unpaired", "no unanswered request on the connection has this correlation id"),
}


class CapturedMessage(NamedTuple):
    """A message that a frame contains. The body of the message is not decoded.

    ``name`` is the newest name that the catalog lists for the api key at this version. A response
    may have version 0 although its request has another version (KIP-511).
    """

    name: str
    api_key: int
    type: MessageType
    version: int
    header: Message
    header_version: int
    body: bytes


class UnusedBytes(NamedTuple):
    """Bytes that are not part of a message: their kind, the reason, and their number on the wire.

    The kinds are "packet" (a packet without a TCP segment, or cut off by the end of the file),
    "frame" (an incomplete frame), "header" (a header that does not decode), "unpaired" (a response
    without its request), "token" (part of a SASL exchange) and "not Kafka" (bytes on a connection
    that is not Kafka).
    """

    kind: str
    reason: str
    size: int


class PacketFrame(NamedTuple):
    """A frame that is completed by a packet, and the frame's role in the conversation."""

    frame: CapturedFrame
    turn: Turn


_Item = TypeVar("_Item", "CapturedMessage | UnusedBytes", "PacketFrame | UnusedBytes")


def read_messages(paths: Iterable[Path]) -> Iterator[CapturedMessage | UnusedBytes]:
    """Read capture files and yield the message in each frame, or the reason why there is none.

    Raises `CaptureError` for a file that is not a capture.
    """
    yield from _read_items(paths, _message)


def read_frames(paths: Iterable[Path]) -> Iterator[PacketFrame | UnusedBytes]:
    """Read capture files and yield every frame on Kafka connections, and all other bytes.

    Raises `CaptureError` for a file that is not a capture.
    """
    yield from _read_items(paths, PacketFrame)


def _read_items(
    paths: Iterable[Path], read: Callable[[CapturedFrame, Turn], _Item]
) -> Iterator[_Item | UnusedBytes]:
    open_: OrderedDict[str, _PortPair[_Item]] = OrderedDict()
    given = to_list(paths, "paths", "a list of paths")
    for path in given:
        to_kind(path, "paths", Path)
    for path in sorted(given, key=_first_us):
        counts = SegmentCounts()
        for item in read_segments(path, counts):
            if isinstance(item, UnreadableBytes):
                yield UnusedBytes("packet", item.reason, item.size)
                continue
            key = connection_key(item)
            connection = open_.pop(key, None) or _PortPair(read)
            open_[key] = connection
            yield from connection.push(item)
            if len(open_) > OPEN_CONNECTIONS:
                yield from open_.popitem(last=False)[1].finish()
        for reason, packets in counts.skipped.items():
            yield from repeat(UnusedBytes("packet", reason, 0), packets)
    while open_:
        yield from open_.popitem(last=False)[1].finish()


def _first_us(path: Path) -> int:
    segments = (
        segment for segment in read_segments(path) if not isinstance(segment, UnreadableBytes)
    )
    return next((one.timestamp_us for one in segments), 0)


class _PortPair(Generic[_Item]):
    """The frames between two ports, one connection after another, as ``read`` returns them."""

    def __init__(self, read: Callable[[CapturedFrame, Turn], _Item]) -> None:
        self._read: Callable[[CapturedFrame, Turn], _Item] = read
        self._assembler = FrameAssembler()
        # The frames are grouped by connection, because several connections in a capture may use the
        # same ports at the same time.
        self._conversations: dict[str, Conversation] = {}
        self._held: dict[str, list[tuple[_Item, int]]] = {}
        self._held_frames = self._held_bytes = 0

    def push(self, segment: Segment) -> Iterator[_Item | UnusedBytes]:
        return self._proven(self._assembler.push(segment))

    def finish(self) -> Iterator[_Item | UnusedBytes]:
        return self._proven(self._assembler.finish())

    def _proven(self, frames: list[CapturedFrame]) -> Iterator[_Item | UnusedBytes]:
        """Yield the messages in new and held frames once it is known whether this is Kafka."""
        for frame in frames:
            conversation = self._conversations.setdefault(frame.connection, Conversation())
            item = self._read(frame, hear(frame, conversation))
            self._held.setdefault(frame.connection, []).append((item, frame.size))
            self._hold(item, 1)
        for ended in self._assembler.ended():
            why = ended.evidence
            if ended.looks_like is not None:
                why += f"; the data looks like {ended.looks_like}"
            yield from self._release(ended.connection, None if ended.is_kafka else why)
            self._conversations.pop(ended.connection, None)
        for name in list(self._held):
            if self._assembler.reads_as_kafka(name):
                yield from self._release(name, None)
        while self._held_frames > HELD_FRAMES or self._held_bytes > HELD_BYTES:
            yield from self._release(next(iter(self._held)), _UNPROVEN)

    def _hold(self, item: _Item, frames: int) -> None:
        self._held_frames += frames
        self._held_bytes += frames * _held_size(item)

    def _release(self, connection: str, why_not: str | None) -> Iterator[_Item | UnusedBytes]:
        for item, size in self._held.pop(connection, []):
            self._hold(item, -1)
            yield item if why_not is None else UnusedBytes("not Kafka", why_not, size)


def _held_size(item: CapturedMessage | PacketFrame | UnusedBytes) -> int:
    if isinstance(item, PacketFrame):
        return len(item.frame.payload)
    return 0 if isinstance(item, UnusedBytes) else len(item.body)


def _message(frame: CapturedFrame, turn: Turn) -> CapturedMessage | UnusedBytes:
    if frame.error is not None:
        return UnusedBytes("frame", frame.error, frame.size)
    if turn.error is not None:
        return UnusedBytes("header", turn.error, frame.size)
    if turn.request is None:
        return UnusedBytes(*_WITHOUT_REQUEST[turn.kind], frame.size)
    try:
        return (_request if turn.kind == "request" else _response)(turn.request, frame.payload)
    except (CodecError, FrameError, UnknownMessageError) as error:
        return UnusedBytes("header", str(error), frame.size)


def _request(request: RequestFrame, payload: bytes) -> CapturedMessage:
    return CapturedMessage(
        request.message_name,
        request.api_key,
        MessageType.REQUEST,
        request.api_version,
        request.header,
        request.header_version,
        payload[request.body_offset :],
    )


def _response(request: RequestFrame, payload: bytes) -> CapturedMessage:
    response = parse_response(payload, request.api_key, request.api_version)
    return CapturedMessage(
        response.message_name,
        request.api_key,
        MessageType.RESPONSE,
        response.body_version,
        response.header,
        response.header_version,
        payload[response.body_offset :],
    )


def find_packet_frames(path: Path, number: int) -> list[PacketFrame]:
    """Return the frames that end in a packet or, if there are none, the frame that crosses it.

    The file's packets are numbered from 1. Other packets with the same microsecond, connection and
    direction are treated as the same packet. Raises `CaptureError` if the file contains no such
    packet, or if the packet contains no part of a frame.
    """
    wanted = _wanted(path, number)
    when, conversations = wanted.timestamp_us, _Conversations()
    key, assembler = connection_key(wanted), FrameAssembler()
    for segment in _segments(path):
        if connection_key(segment) == key:
            frames = conversations.frames(assembler.push(segment), wanted)
            if frames:
                break
    else:
        frames = conversations.frames(assembler.finish(), wanted)
    ended = [part for part in frames if part.frame.timestamp_us == when]
    carried = [part for part in frames if part.frame.first_us <= when]
    if not ended and not carried:
        raise CaptureError(f"{path}: packet {number} contains no part of a frame")
    return ended or carried[:1]


def find_packets(path: Path, ends: Sequence[tuple[str, str, int]]) -> list[int | None]:
    """Return the number of the packet in which each frame ends, as `find_packet_frames` expects it.

    An end consists of a frame's connection, its direction and its ``timestamp_us``. The result is
    None for an end that is not in the file.
    """
    wanted: dict[tuple[int, str, str], int] = {}
    keys = []
    for connection, direction, timestamp_us in ends:
        client, _, broker = connection.partition("#")[0].partition(">")
        between = (client, broker) if direction == "request" else (broker, client)
        keys.append((timestamp_us, *between))
    times = {timestamp_us for timestamp_us, *_ in keys}
    missing = {*keys}
    for number, packet in enumerate(read_packets(path), 1):
        if not missing or isinstance(packet, UnreadableBytes):
            break
        if packet.timestamp_us not in times:
            continue
        with suppress(Skipped, UnreadablePacketError):
            segment = read_segment(packet)
            key = (segment.timestamp_us, segment.source, segment.destination)
            if segment.payload and key in missing:
                missing.remove(key)
                wanted[key] = number
    return [wanted.get(key) for key in keys]


class _Conversations:
    """The conversations of all connections between two endpoints."""

    def __init__(self) -> None:
        self._conversations: dict[str, Conversation] = {}

    def frames(self, frames: list[CapturedFrame], wanted: Segment) -> list[PacketFrame]:
        """Process frames, and return the later ones in the same direction as the wanted segment."""
        messages = []
        for frame in frames:
            turn = self._turn(frame)
            client = frame.connection.partition(">")[0]
            direction = "request" if wanted.source == client else "response"
            if frame.direction == direction and frame.timestamp_us >= wanted.timestamp_us:
                messages.append(PacketFrame(frame, turn))
        return messages

    def _turn(self, frame: CapturedFrame) -> Turn:
        conversation = self._conversations.setdefault(frame.connection, Conversation())
        return hear(frame, conversation)


def _wanted(path: Path, number: int) -> Segment:
    """Return the segment in a packet."""
    packets = 0
    for packet in read_packets(path):
        if isinstance(packet, UnreadableBytes):
            raise CaptureError(f"{path}: cannot read beyond packet {packets}: {packet.reason}")
        packets += 1
        if packets < number:
            continue
        try:
            segment = read_segment(packet)
        except (Skipped, UnreadablePacketError) as error:
            raise CaptureError(
                f"{path}: packet {number} contains no TCP segment: {error}"
            ) from None
        if not segment.payload:
            raise CaptureError(
                f"{path}: packet {number} contains no TCP payload{_next(path, number)}"
            )
        return segment
    raise CaptureError(f"{path}: there is no packet {number}; the last packet is {packets}")


def _next(path: Path, number: int) -> str:
    """Return the end of an error message, which names the next packet with a payload."""
    packets = (packet for packet in read_packets(path) if not isinstance(packet, UnreadableBytes))
    for other, packet in enumerate(packets, 1):
        if other > number:
            with suppress(Skipped, UnreadablePacketError):
                if read_segment(packet).payload:
                    return f"; packet {other} does"
    return ", nor does any later packet"


def _segments(path: Path) -> Iterator[Segment]:
    for packet in read_packets(path):
        if isinstance(packet, UnreadableBytes):
            return
        try:
            yield read_segment(packet)
        except (Skipped, UnreadablePacketError):
            # The user asked for one packet. Packets that contain no segment do not belong to a
            # stream.
            continue
