"""Make connections for tests: their frames, their segments, and files with them."""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import TYPE_CHECKING

from flexwire.capture.files.links import Segment
from flexwire.capture.files.packets import SocketAddress, tcp_packet
from flexwire.capture.reassembly.assembly import FrameAssembler
from flexwire.wire.segment_layout import ACK, FIN, SYN

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexwire.capture.files.packets import Direction
    from flexwire.capture.reassembly.connections import CapturedFrame

CLIENT, SERVER = "10.0.0.9:50000", "10.0.0.1:9092"
NEAR, FAR = SocketAddress(bytes([10, 0, 0, 9]), 50000), SocketAddress(bytes([10, 0, 0, 1]), 9092)
CONNECTION = f"{CLIENT}>{SERVER}"
API_VERSIONS = 18


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


# A body of 0xFF bytes reads neither as a length nor as a header, so it never looks like a frame.
def request(correlation_id: int, body: int = 0, api_key: int = API_VERSIONS) -> bytes:
    head = struct.pack(">hhih", api_key, 0, correlation_id, 4)
    return framed(head + b"test" + b"\xff" * body)


def response(correlation_id: int, body: int = 0) -> bytes:
    return framed(struct.pack(">i", correlation_id) + b"\xff" * body)


def tcp(  # noqa: PLR0913 - the fields of a segment
    source: str,
    sequence: int,
    payload: bytes = b"",
    *,
    flags: int = ACK,
    acknowledgment: int = 0,
    missing: int = 0,
    at: int = 0,
    begins: Direction | None = None,
) -> Segment:
    destination = SERVER if source == CLIENT else CLIENT
    return Segment(
        at,
        source,
        destination,
        sequence % 2**32,
        acknowledgment % 2**32,
        flags,
        payload,
        missing,
        begins,
    )


def handshake(client: int = 999, server: int = 4999) -> list[Segment]:
    return [
        tcp(CLIENT, client, flags=SYN),
        tcp(SERVER, server, flags=SYN | ACK, acknowledgment=client + 1),
        tcp(CLIENT, client + 1, acknowledgment=server + 1),
    ]


def cut(stream: bytes, cuts: Iterable[int]) -> list[tuple[int, bytes]]:
    """Return the parts of a stream between cuts, each with its start."""
    edges = sorted({0, len(stream), *(at for at in cuts if 0 < at < len(stream))})
    return [(a, stream[a:b]) for a, b in pairwise(edges)]


def farewell(client: int, server: int) -> list[Segment]:
    return [
        tcp(CLIENT, client, flags=FIN | ACK, acknowledgment=server),
        tcp(SERVER, server, flags=FIN | ACK, acknowledgment=client + 1),
    ]


def assemble(segments: Iterable[Segment], *, limit: int = 1 << 20) -> list[CapturedFrame]:
    assembler = FrameAssembler(limit=limit)
    frames = [frame for segment in segments for frame in assembler.push(segment)]
    return frames + assembler.finish()


def of(frames: Iterable[CapturedFrame], direction: str) -> list[CapturedFrame]:
    return [frame for frame in frames if frame.direction == direction]


def payloads(stream: bytes) -> list[bytes]:
    """Return the payloads of a stream that consists of whole frames."""
    found = []
    while stream:
        (length,) = struct.unpack_from(">i", stream)
        found.append(stream[4 : 4 + length])
        stream = stream[4 + length :]
    return found


def packet(payload: bytes = b"hello", *, sequence: int = 7, flags: int = ACK) -> bytes:
    return tcp_packet(NEAR, FAR, sequence=sequence, acknowledgment=9, flags=flags, payload=payload)


def pcap(
    packets: Iterable[bytes],
    *,
    order: str = "<",
    nanoseconds: bool = False,
    linktype: int = 101,
    snaplen: int = 65535,
) -> bytes:
    """Return a capture whose packet n was captured at n seconds and 5 microseconds."""
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    head = struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, snaplen, linktype)
    fraction = 5000 if nanoseconds else 5
    records = (
        struct.pack(f"{order}IIII", n, fraction, min(len(one), snaplen), len(one)) + one[:snaplen]
        for n, one in enumerate(packets)
    )
    return head + b"".join(records)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    body += b"\x00" * (-len(body) % 4)
    length = struct.pack(f"{order}I", len(body) + 12)
    return struct.pack(f"{order}I", kind) + length + body + length


def section(order: str = "<") -> bytes:
    return block(0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def option(code: int, value: bytes, order: str = "<") -> bytes:
    return struct.pack(f"{order}HH", code, len(value)) + value + b"\x00" * (-len(value) % 4)


def interface(
    linktype: int = 101, options: bytes = b"", order: str = "<", snaplen: int = 0
) -> bytes:
    return block(1, struct.pack(f"{order}HHI", linktype, 0, snaplen) + options, order)


def enhanced(
    data: bytes,
    ticks: int = 0,
    number: int = 0,
    order: str = "<",
    original: int | None = None,
    options: bytes = b"",
) -> bytes:
    head = struct.pack(
        f"{order}IIIII",
        number,
        ticks >> 32,
        ticks & 0xFFFFFFFF,
        len(data),
        len(data) if original is None else original,
    )
    return block(6, head + data + bytes(-len(data) % 4) + options, order)
