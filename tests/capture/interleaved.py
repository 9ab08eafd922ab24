"""Random captures of concurrent connections, whose segments interleave as in real traffic.

A connection sends messages (`tests.capture.exchanges`), and TCP cuts its streams into segments. The
network and the capture lose, repeat and reorder packets. The remaining packets are written to
files. A seed and a `Shape` determine everything. Packets and files have separate random sources, so
shapes that differ only in their files contain the same packets.
"""

from __future__ import annotations

import gzip
import random
import struct
from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from flexwire.capture.files.packets import FRAME_COMMENTS, SocketAddress, endpoints, tcp_packet
from flexwire.errors import CodecError, FrameError
from flexwire.protocol.headers import read_request
from flexwire.wire.segment_layout import ACK, FIN, PREFIX_LENGTH, PSH, RESPONSE_HEAD, RST, SYN
from tests.capture.exchanges import Step, Talk, conversation
from tests.capture.traffic import block, enhanced, interface, option, section

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from flexwire.capture.files.packets import Direction

START_US = 1_700_000_000_000_000
_COMMENTS = {direction: comment for comment, direction in FRAME_COMMENTS.items()}
_OTHER: dict[Direction, Direction] = {"request": "response", "response": "request"}
_COMMENT, _RESOLUTION, _NAME_RESOLUTION = 1, 9, 4
_NANOSECONDS = 9
_MACS = bytes(range(12))
# The bytes before an IPv4 or IPv6 packet, by link type.
_LINKS = {
    0: (b"\x02\0\0\0", b"\x1e\0\0\0"),
    1: (_MACS + b"\x08\x00", _MACS + b"\x86\xdd"),
    101: (b"", b""),
    113: (bytes(14) + b"\x08\x00", bytes(14) + b"\x86\xdd"),
    276: (b"\x08\x00" + bytes(18), b"\x86\xdd" + bytes(18)),
}
ALL_LINKS = tuple(_LINKS)
_VLAN = b"\x81\x00\x00\x05"
_ETHERNET_LEAST = 60
_ACKS_WITHIN = 16
_TIMESTAMPS = b"\x01\x01\x08\x0a" + bytes(8)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The properties of a capture: numbers, and shares from 0 to 1."""

    connections: int = 8
    talk: Talk = field(default_factory=Talk)
    # The network.
    ip: tuple[int, ...] = (4,)
    segment: tuple[int, int] = (200, 1448)  # the range of a connection's largest segment size
    joined: float = 0.5  # frames that share a segment with the next frame
    acks: float = 0.3  # segments that are acknowledged by a separate packet
    options: float = 0.0  # connections whose packets carry TCP options
    reuse: float = 0.0  # connections that reuse the ports of an earlier connection
    reset: float = 0.0
    unended: float = 0.0  # connections that continue after the capture
    begun: float = 0.0  # connections that began before the capture
    # The events that happened to packets on the way to the capture.
    loss: float = 0.0
    body_loss: float = 0.0  # packets that carry only bytes of frames' bodies
    body_cut: float = 0.0  # packets that are cut off, but lack only bytes of frames' bodies
    repeats: float = 0.0
    retransmissions: float = 0.0  # with other boundaries
    reorder: float = 0.0
    window: int = 8  # the maximum number of places by which a packet is late
    noise: float = 0.0  # packets of other protocols, and malformed packets
    same_time: float = 0.0
    backwards: float = 0.0  # packets with an earlier time than the previous packet
    # The files.
    links: tuple[int, ...] = (101,)
    formats: tuple[str, ...] = ("pcapng",)
    files: int = 1
    taps: int = 1  # each packet is in the files of exactly one tap
    hosts: int = 0  # like `taps`, but a connection may be in the files of two hosts
    shared: float = 0.0  # connections that are in the files of two hosts
    unseen: float = 0.0  # packets that one of the hosts misses
    skew: int = 0  # the maximum number of microseconds by which a clock is ahead
    snaplen: int = 0
    marks: bool = False  # flexwire's own comments, as in captures of the tap
    false_marks: float = 0.0
    compressed: float = 0.0
    torn: float = 0.0  # files that end within their last packet
    blocks: float = 0.0  # blocks and sections between packets


CLEAN = Shape(marks=True, files=2)
LOSSY = Shape(
    loss=0.05, repeats=0.05, retransmissions=0.1, reorder=0.2, same_time=0.3, reuse=0.2, files=3,
    talk=Talk(sasl=0.2, large=0.1),
)  # fmt: skip
MID_STREAM = Shape(begun=0.6, unended=0.6, files=3, formats=("pcap",), loss=0.01, links=(1,))
STRANGE = Shape(
    talk=Talk(others=0.15, sasl=0.3, any_api=0.3, strange=0.4), reset=0.3, reuse=0.3, options=0.3,
    noise=0.05, blocks=0.02, files=2, marks=True,
)  # fmt: skip
EVERYTHING = Shape(
    connections=14, talk=Talk(others=0.15, sasl=0.5, any_api=0.2, strange=0.25, large=0.05),
    ip=(4, 4, 6), segment=(1, 3000), options=0.3, reuse=0.3, reset=0.2, unended=0.2, begun=0.2,
    loss=0.01, repeats=0.03, retransmissions=0.03, reorder=0.05, noise=0.03, same_time=0.3,
    links=ALL_LINKS, formats=("pcapng", "pcapng", "pcap", "nanoseconds"), files=4, snaplen=1600,
    marks=True, false_marks=0.01, compressed=0.2, torn=0.2, blocks=0.02, body_loss=0.03,
    body_cut=0.03,
)  # fmt: skip
ONE_CONNECTION = Shape(
    connections=1, talk=Talk(exchanges=150, depth=10, large=0.1), segment=(1448, 1448), files=3
)
# Some times go back, and two simultaneous captures each contain a part of every connection.
UNORDERED = replace(LOSSY, loss=0.0, backwards=0.05, taps=2)
# Three hosts capture at the same time, with connections between them and to other hosts.
HOSTS = Shape(
    connections=10, talk=Talk(large=0.05, sasl=0.2, hidden=0.3), segment=(500, 4000), hosts=3,
    shared=0.6, unseen=0.002, skew=30_000, files=3, same_time=0.3, backwards=0.02, compressed=0.2,
    reuse=0.1, unended=0.3, begun=0.2, formats=("pcapng", "pcap"), links=(1,), noise=0.01,
)  # fmt: skip
TLS = Shape(
    connections=10, talk=Talk(exchanges=40, hidden=0.6, others=0.05), segment=(1, 1448), acks=0.8,
    begun=0.4, unended=0.4, loss=0.002, reorder=0.01, files=2,
)  # fmt: skip
SHAPES = {
    "CLEAN": CLEAN,
    "LOSSY": LOSSY,
    "MID_STREAM": MID_STREAM,
    "STRANGE": STRANGE,
    "EVERYTHING": EVERYTHING,
    "ONE_CONNECTION": ONE_CONNECTION,
    "UNORDERED": UNORDERED,
    "HOSTS": HOSTS,
}
OVERLAPPING = ("UNORDERED", "HOSTS")
"""Names of the shapes whose files overlap in time and show the same connections."""


def write_capture(directory: Path, seed: int, shape: Shape) -> list[Path]:
    """Write the capture of this seed and shape. Return its files, in order."""
    directory.mkdir(parents=True, exist_ok=True)
    packets = captured_packets(seed, shape)
    files = _Files(random.Random(f"files {seed}"), shape)
    paths = []
    for number, (tap, part) in enumerate(files.parts(packets), 1):
        data, suffix = files.file(part)
        paths.append(directory / f"tap{tap}-{number:05}.{suffix}")
        paths[-1].write_bytes(data)
    return paths


@dataclass(slots=True)
class Packet:
    """A packet and the host that captured it. ``begins`` is true if its payload begins a frame."""

    lane: int
    sends: Direction
    ends: tuple[SocketAddress, SocketAddress]
    sequence: int = 0
    acknowledgment: int = 0
    flags: int = ACK
    payload: bytes = b""
    begins: bool = False
    stream: tuple[int, str] = (0, "")
    options: bytes = b""
    plain_from: int = 0  # from this offset, the payload contains only bytes of frames' bodies
    kept: int | None = None  # the number of payload bytes in the capture
    raw: bytes = b""  # packets that are not TCP segments, unchanged
    time_us: int = 0

    def data(self) -> bytes:
        """Return the IP packet."""
        if self.raw:
            return self.raw
        packet = tcp_packet(
            *self.ends,
            sequence=self.sequence,
            acknowledgment=self.acknowledgment,
            flags=self.flags,
            payload=self.payload,
        )
        return _with_options(packet, self.options)


def _with_options(packet: bytes, options: bytes) -> bytes:
    """Return the packet with TCP options. This makes its checksums invalid."""
    if not options:
        return packet
    changed = bytearray(packet)
    is_4 = changed[0] >> 4 == 4
    tcp, length_at = (20, 2) if is_4 else (40, 4)
    (length,) = struct.unpack_from(">H", changed, length_at)
    struct.pack_into(">H", changed, length_at, length + len(options))
    header = (changed[tcp + 12] >> 4) * 4
    changed[tcp + 12] = (header + len(options)) << 2
    changed[tcp + header : tcp + header] = options
    return bytes(changed)


def captured_packets(seed: int, shape: Shape) -> list[Packet]:
    """Return the captured packets, in the order of the capture."""
    source = random.Random(f"packets {seed}")
    lanes: list[list[Packet]] = []
    for number in range(shape.connections):
        steps = conversation(source, shape.talk, number)
        at = len(lanes)
        if lanes and source.random() < shape.reuse:
            at = source.randrange(len(lanes))
        else:
            lanes.append([])
        ends = lanes[at][0].ends if lanes[at] else _ends(source, shape, number)
        if lanes[at] and lanes[at][0].sends == "response":
            ends = ends[::-1]
        lanes[at] += _Wire(source, shape, (at, number), ends).packets(steps)
    packets = list(_mangled(source, shape, list(_interleaved(source, lanes))))
    now = START_US
    for packet in packets:
        if source.random() >= shape.same_time:
            now += source.choice([1, 20, 300, 5000])
        packet.time_us = now
        if source.random() < shape.backwards:
            packet.time_us -= source.randrange(2000)
    return list(_without_bodies(random.Random(f"bodies {seed}"), shape, packets))


def _without_bodies(source: random.Random, shape: Shape, packets: list[Packet]) -> Iterator[Packet]:
    """Yield the packets without some bytes of frames' bodies. All other bytes remain."""
    for packet in packets:
        size = len(packet.payload)
        if size and not packet.plain_from and source.random() < shape.body_loss:
            continue
        if packet.plain_from < size and source.random() < shape.body_cut:
            packet.kept = source.randrange(packet.plain_from, size)
        yield packet


def _ends(source: random.Random, shape: Shape, number: int) -> tuple[SocketAddress, SocketAddress]:
    """Return a client and a broker. Either may have the lower address."""
    hosts = ["10.0.0.9", "10.2.0.7"] if source.choice(shape.ip) == 4 else ["fd00::9", "fd00::7"]
    source.shuffle(hosts)
    return endpoints((hosts[0], 40000 + number), (hosts[1], 9092 + number % 3))


class _Wire:
    """Make one TCP connection: its bytes as packets, in the order in which they were sent."""

    def __init__(
        self,
        source: random.Random,
        shape: Shape,
        place: tuple[int, int],
        ends: tuple[SocketAddress, SocketAddress],
    ) -> None:
        self._source, self._shape = source, shape
        self._lane, self._number = place
        self._ends: dict[Direction, tuple[SocketAddress, SocketAddress]] = {
            "request": (ends[0], ends[1]),
            "response": (ends[1], ends[0]),
        }
        # Some sequence numbers are so high that they wrap around.
        self._next: dict[Direction, int] = {
            way: source.choice([source.getrandbits(32), 2**32 - source.randrange(2000)])
            for way in self._ends
        }
        self._first = dict(self._next)
        self._size = source.randint(*shape.segment)
        self._waits: dict[Direction, bytearray] = {way: bytearray() for way in self._ends}
        self._begin: dict[Direction, set[int]] = {way: set() for way in self._ends}
        self._heads: dict[Direction, list[tuple[int, int]]] = {way: [] for way in self._ends}
        self._stream: dict[Direction, bytearray] = {way: bytearray() for way in self._ends}
        self._options = _TIMESTAMPS if source.random() < shape.options else b""
        self._made: list[Packet] = []

    def packets(self, steps: Iterable[Step]) -> list[Packet]:
        source, shape = self._source, self._shape
        self._handshake()
        for way, data in steps:
            if way == "response":
                # The request of this response was sent earlier.
                self._flush("request")
            at = len(self._stream[way]) + len(self._waits[way])
            self._begin[way].add(at)
            self._heads[way].append((at, at + head_size(way, data)))
            self._waits[way] += data
            if source.random() >= shape.joined:
                self._flush(way)
        for way in self._ends:
            self._flush(way)
        if source.random() >= shape.unended:
            self._farewell()
        if source.random() < shape.begun:
            del self._made[: source.randrange(2, max(3, len(self._made) * 2 // 3))]
        return self._made

    def _handshake(self) -> None:
        self._add("request", SYN, acknowledgment=0)
        self._next["request"] += 1
        self._add("response", SYN | ACK)
        self._next["response"] += 1
        self._add("request", ACK)

    def _farewell(self) -> None:
        first: Direction = self._source.choice(["request", "response"])
        if self._source.random() < self._shape.reset:
            self._add(first, self._source.choice([RST, RST | ACK]))
            return
        for way in (first, _OTHER[first]):
            self._add(way, FIN | ACK)
            self._next[way] += 1
        self._add(first, ACK)

    def _flush(self, way: Direction) -> None:
        source, shape = self._source, self._shape
        data = bytes(self._waits[way])
        self._waits[way].clear()
        for start in range(0, len(data), self._size):
            part = data[start : start + self._size]
            at = len(self._stream[way])
            is_last = start + self._size >= len(data)
            begins = at in self._begin[way]
            self._add(way, ACK | PSH if is_last else ACK, part, begins=begins, at=at)
            self._stream[way] += part
            self._next[way] += len(part)
            if source.random() < shape.acks:
                self._add(_OTHER[way], ACK)
            if source.random() < shape.retransmissions:
                self._again(way)

    def _again(self, way: Direction) -> None:
        """Send earlier bytes again, with other boundaries. A single byte is a keep-alive."""
        stream, source = self._stream[way], self._source
        start = max(0, len(stream) - source.randrange(1, 2 * self._size + 1))
        part = bytes(stream[start : start + source.randrange(1, 2 * self._size + 1)])
        sequence = self._first[way] + 1 + start
        self._add(way, ACK, part, sequence=sequence, at=start)

    def _add(
        self,
        way: Direction,
        flags: int,
        payload: bytes = b"",
        *,
        begins: bool = False,
        at: int = 0,
        sequence: int | None = None,
        acknowledgment: int | None = None,
    ) -> None:
        end = at + len(payload)
        heads = [stop - at for start, stop in self._heads[way] if start < end and stop > at]
        back = self._next[_OTHER[way]] if acknowledgment is None else acknowledgment
        self._made.append(
            Packet(
                self._lane,
                way,
                self._ends[way],
                (self._next[way] if sequence is None else sequence) % 2**32,
                back % 2**32,
                flags,
                payload,
                begins,
                (self._number, way),
                b"" if flags & SYN else self._options,
                min(max(heads, default=0), len(payload)),
            )
        )


def head_size(way: Direction, data: bytes) -> int:
    """Return the total size of a frame's length, its header, and the field that asks for a
    response.
    """
    if way == "response":
        return RESPONSE_HEAD
    try:
        return PREFIX_LENGTH + read_request(data[PREFIX_LENGTH:]).body_offset + _ACKS_WITHIN
    except (FrameError, CodecError):
        return len(data)


def _interleaved(source: random.Random, lanes: list[list[Packet]]) -> Iterator[Packet]:
    """Yield a few packets of each lane in turn, so that all lanes progress together."""
    waiting = [deque(lane) for lane in lanes]
    while any(waiting):
        (lane,) = source.choices(waiting, [len(one) for one in waiting])
        for _ in range(min(len(lane), source.choice([1, 1, 1, 2, 4]))):
            yield lane.popleft()


def _mangled(source: random.Random, shape: Shape, sent: list[Packet]) -> list[Packet]:
    """Return the captured packets, in order."""
    kept: list[tuple[float, int, Packet]] = []
    for place, packet in enumerate(sent):
        if source.random() < shape.noise:
            kept.append((place, len(kept), _noise(source, packet)))
        if source.random() < shape.loss:
            continue
        late = source.uniform(0, shape.window) if source.random() < shape.reorder else 0.0
        kept.append((place + late, len(kept), packet))
        if source.random() < shape.repeats:
            again = place + source.uniform(0, shape.window)
            kept.append((again, len(kept), replace(packet, begins=False)))
    return [packet for *_, packet in sorted(kept, key=lambda one: one[:2])]


def _noise(source: random.Random, near: Packet) -> Packet:
    """Return a packet without a TCP segment."""
    data = bytearray(replace(near, payload=b"", flags=ACK).data())
    is_4 = data[0] >> 4 == 4
    kind = source.choice(["udp", "fragment", "header", "short", "bytes"])
    if kind == "udp":
        data[9 if is_4 else 6] = 17
    elif kind == "fragment" and is_4:
        data[6:8] = b"\x20\x00"
    elif kind == "header":
        data[32 if is_4 else 52] = 0x10
    elif kind == "short":
        del data[source.randrange(1, 30) :]
    else:
        data[0] = source.choice([0x00, 0x70])
    return replace(near, raw=bytes(data), begins=False, payload=b"")


class _Files:
    """Divide packets among files, and write the files."""

    def __init__(self, source: random.Random, shape: Shape) -> None:
        self._source, self._shape = source, shape

    def parts(self, packets: list[Packet]) -> Iterator[tuple[int, list[Packet]]]:
        """Divide each tap's packets among the tap's files."""
        taps: list[list[Packet]] = [[] for _ in range(self._shape.taps)]
        if self._shape.hosts:
            taps = self._hosts(packets)
        else:
            for packet in packets:
                taps[self._source.randrange(len(taps)) if len(taps) > 1 else 0].append(packet)
        for tap, seen in enumerate(taps, 1):
            cuts = sorted(
                self._source.randrange(len(seen) + 1) for _ in range(self._shape.files - 1)
            )
            for start, stop in zip([0, *cuts], [*cuts, len(seen)], strict=True):
                yield tap, seen[start:stop]

    def _hosts(self, packets: list[Packet]) -> list[list[Packet]]:
        """Return the capture of each host, with the host's own clock."""
        source, shape = self._source, self._shape
        seen: list[list[Packet]] = [[] for _ in range(shape.hosts)]
        clocks = [source.randrange(shape.skew + 1) for _ in seen]
        ends: dict[int, list[int]] = {}
        for packet in packets:
            if packet.lane not in ends:
                first = source.randrange(shape.hosts)
                count = 2 if source.random() < shape.shared else 1
                ends[packet.lane] = [(first + more) % shape.hosts for more in range(count)]
            for host in ends[packet.lane]:
                if source.random() >= shape.unseen:
                    seen[host].append(replace(packet, time_us=packet.time_us + clocks[host]))
        return seen

    def file(self, packets: list[Packet]) -> tuple[bytes, str]:
        """Return the content of a file, and the suffix of its name."""
        kind = self._source.choice(self._shape.formats)
        order = self._source.choice("<>")
        parts = list(
            self._pcapng(packets, order)
            if kind == "pcapng"
            else self._pcap(packets, order, nanoseconds=kind == "nanoseconds")
        )
        if packets and self._source.random() < self._shape.torn:
            parts[-1] = parts[-1][: self._source.randrange(1, len(parts[-1]))]
        data, suffix = b"".join(parts), "pcapng" if kind == "pcapng" else "pcap"
        if self._source.random() < self._shape.compressed:
            return gzip.compress(data, 1, mtime=0), f"{suffix}.gz"
        return data, suffix

    def _pcap(self, packets: list[Packet], order: str, *, nanoseconds: bool) -> Iterator[bytes]:
        link = self._shape.links[0]
        magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
        yield struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, self._shape.snaplen or 65535, link)
        for packet in packets:
            data, kept = self._kept(packet, link)
            seconds, fraction = divmod(packet.time_us, 1_000_000)
            fraction *= 1000 if nanoseconds else 1
            yield struct.pack(f"{order}IIII", seconds, fraction, len(kept), len(data)) + kept

    def _pcapng(self, packets: list[Packet], order: str) -> Iterator[bytes]:
        nanoseconds = self._source.random() < 0.3
        yield self._head(order, nanoseconds=nanoseconds)
        told: set[tuple[int, str]] = set()
        for packet in packets:
            if self._source.random() < self._shape.blocks:
                yield block(_NAME_RESOLUTION, bytes(self._source.randrange(40)), order)
                order = self._source.choice("<>")
                yield self._head(order, nanoseconds=nanoseconds)
            number = packet.lane % len(self._shape.links)
            data, kept = self._kept(packet, self._shape.links[number])
            ticks = packet.time_us * (1000 if nanoseconds else 1)
            options = self._mark(packet, told, order)
            yield enhanced(kept, ticks, number, order, len(data), options)

    def _head(self, order: str, *, nanoseconds: bool) -> bytes:
        options = option(_RESOLUTION, bytes([_NANOSECONDS]), order) if nanoseconds else b""
        described = [
            interface(link, options, order, self._shape.snaplen) for link in self._shape.links
        ]
        return section(order) + b"".join(described)

    def _mark(self, packet: Packet, told: set[tuple[int, str]], order: str) -> bytes:
        """Return the comment for a stream's first packet in this file that begins with a frame."""
        is_first = packet.begins and packet.stream not in told
        is_false = bool(packet.payload) and self._source.random() < self._shape.false_marks
        if not self._shape.marks or not (is_first or is_false):
            return b""
        told.add(packet.stream)
        return option(_COMMENT, _COMMENTS[packet.sends], order) + option(0, b"", order)

    def _kept(self, packet: Packet, link: int) -> tuple[bytes, bytes]:
        """Put a packet on its link. Return all bytes, and the captured ones."""
        data = packet.data()
        head = _LINKS[link][data[0] >> 4 == 6]
        if link == 1:
            if packet.lane % 3 == 1:
                head = head[:12] + _VLAN + head[12:]
            data = (head + data).ljust(_ETHERNET_LEAST, b"\0")
        else:
            data = head + data
        kept = data[: self._shape.snaplen or None]
        if packet.kept is not None:
            kept = kept[: len(data) - len(packet.payload) + packet.kept]
        return data, kept
