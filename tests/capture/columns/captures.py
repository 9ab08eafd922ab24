"""Draw valid and invalid test captures with every link type, byte order, block type and clock."""

from __future__ import annotations

import gzip
import struct
from typing import TYPE_CHECKING

from flexwire.capture.files.packets import FRAME_COMMENTS
from tests.capture.traffic import block, enhanced, interface, option, section

if TYPE_CHECKING:
    import random

# Link types that are supported, and two that are not.
LINKS = [0, 1, 1, 12, 14, 101, 101, 108, 113, 228, 229, 276, 9, 147]
_ENDS = [(bytes([10, 0, 0, one]), 9000 + one) for one in range(4)]
_IPV6_ENDS = [
    (bytes(15) + b"\x01", 9092),
    (bytes(10) + b"\xff\xff\x0a\x00\x00\x01", 9001),
    (b"\xfe\x80" + bytes(13) + b"\x07", 50000),
]
_MAGICS = {("<", 6): 0xA1B2C3D4, ("<", 9): 0xA1B23C4D, (">", 6): 0xA1B2C3D4, (">", 9): 0xA1B23C4D}
MOST_DAMAGE = 4


def tcp_segment(source: random.Random, ports: tuple[int, int], payload: bytes) -> bytes:
    """Return a TCP header, which is usually valid, followed by a payload."""
    words = source.choice([5] * 9 + [8, 15, 4, 0])
    head = struct.pack(
        ">HHIIBBHHH",
        *ports,
        source.getrandbits(32),
        source.getrandbits(32),
        words << 4,
        source.getrandbits(8),
        1,
        2,
        3,
    )
    return head + bytes(max(0, words - 5) * 4) + payload


def ip_packet(source: random.Random, payload: bytes) -> tuple[int, bytes]:
    """Return the network protocol and the bytes of a packet, usually with a TCP segment."""
    protocol = source.choice([6] * 12 + [17, 1, 255])
    if source.random() < 0.6:
        (near, near_port), (far, far_port) = source.choices(_ENDS, k=2)
        segment = tcp_segment(source, (near_port, far_port), payload)
        options = source.choice([0, 0, 0, 1, 10])
        first = source.choice([0x45 + options] * 15 + [0x44, 0x65])
        total = source.choice([20 + 4 * options + len(segment)] * 9 + [0, 30, 65535])
        fragment = source.choice([0x4000] * 12 + [0x2000, 0x0003, 0x8000])
        head = struct.pack(
            ">BBHHHBBH4s4s", first, 0, total, 7, fragment, 64, protocol, 0, near, far
        )
        return 0x0800, head + bytes(4 * options) + segment
    (near, near_port), (far, far_port) = source.choices(_IPV6_ENDS, k=2)
    segment = tcp_segment(source, (near_port, far_port), payload)
    extension = b""
    if source.random() < 0.3:
        kind = source.choice([0, 43, 44, 51, 60, 135, 139])
        extension = bytes([protocol, 0]) + source.choice([bytes(6), b"\x00\x09" + bytes(4)])
        extension, protocol = extension + (b"\x00" * 4 if kind == 51 else b""), kind
    length = source.choice([len(extension) + len(segment)] * 9 + [0, 25])
    first = source.choice([0x60] * 15 + [0x45])
    head = struct.pack(">BxxxHBB16s16s", first, length, protocol, 64, near, far)
    return 0x86DD, head + extension + segment


def packet_on(source: random.Random, linktype: int, payload: bytes) -> bytes:
    """Return a packet in the form in which the link carries it."""
    network, data = ip_packet(source, payload)
    network = source.choice([network] * 12 + [0x0806, 0x88CC])
    tags = b""
    if source.random() < 0.2:
        kinds = source.choices([0x8100, 0x88A8, 0x9100], k=source.choice([1, 2]))
        tags = struct.pack(">H", kinds[0]) + b"".join(
            struct.pack(">HH", 5, after) for after in [*kinds[1:], network]
        )
    if linktype == 1:
        data = bytes(12) + (tags or struct.pack(">H", network)) + data
    elif linktype == 113:
        data = bytes(14) + (tags or struct.pack(">H", network)) + data
    elif linktype == 276:
        if tags:
            data = tags[:2] + bytes(20) + tags + data
        else:
            data = struct.pack(">H", network) + bytes(18) + data
    elif linktype in {0, 108}:
        family = {0x0800: [2], 0x86DD: [10, 24, 28, 30]}.get(network, [7, 0x12345, 0x01000002])
        order = source.choice("<>")
        data = struct.pack(f"{order}I", source.choice(family)) + data
    # The bytes that the link adds after the packet, or that a snaplen cuts off.
    if source.random() < 0.1:
        data += bytes(source.randrange(8))
    if source.random() < 0.15:
        data = data[: source.randrange(len(data) + 1)]
    return data


def _payload(source: random.Random) -> bytes:
    return source.randbytes(source.choice([0, 0, 1, 5, 20, 60, 300]))


def _original(source: random.Random, data: bytes) -> int:
    size = len(data)
    return source.choice([size] * 8 + [size + 40, max(0, size - 9), 0, 0xFFFFFFFF])


def made_pcap(source: random.Random) -> bytes:
    order, digits = source.choice("<>"), source.choice([6, 9])
    linktype = source.choice(LINKS)
    head = struct.pack(
        f"{order}IHHiIII", _MAGICS[order, digits], 2, 4, 0, 0, 65535, linktype | 0x10000000
    )
    parts = [head]
    for _ in range(source.randrange(12)):
        data = packet_on(source, linktype, _payload(source))
        time = source.choice([source.randrange(2**31), 2**32 - 1])
        fraction = source.choice([5, 999_999, 2**32 - 1])
        parts += (
            struct.pack(f"{order}IIII", time, fraction, len(data), _original(source, data)),
            data,
        )
    return b"".join(parts)


def _clock(source: random.Random, order: str) -> bytes:
    """Return the interface options that define the interface's clock."""
    resolutions = [b"", b"", b"\x06", b"\x06", b"\x09", b"\x09", b"\x08", b"\x94", b"\xa8", b"\xa9"]
    resolutions += [b"\x05", b"\x00", b"\x80", b"\xff", bytes([source.randrange(256)])]
    resolution = source.choice(resolutions)
    options = option(2, b"eth0", order)
    if resolution:
        options += option(9, resolution, order)
    if source.random() < 0.2:
        offset = source.choice([60, -60, 2**40, -(2**63), 1_700_000_000])
        options += option(14, struct.pack(f"{order}q", offset), order)
    return options + source.choice([b"", option(0, b"", order)])


def _comments(source: random.Random, order: str) -> bytes:
    texts = [*FRAME_COMMENTS, *FRAME_COMMENTS, b"odd", next(iter(FRAME_COMMENTS)) + b"!", b""]
    options = option(5, bytes(8), order) if source.random() < 0.2 else b""
    for _ in range(source.choice([0, 1, 2, 3])):
        options += option(source.choice([1, 1, 1, 0, 2]), source.choice(texts), order)
    return options[: len(options) - 4 * source.choice([0, 0, 0, 0, 1, 2])]


def made_pcapng(source: random.Random) -> bytes:
    parts: list[bytes] = []
    for _ in range(source.choice([1, 1, 1, 2, 3])):
        order = source.choice("<>")
        parts.append(section(order))
        links: list[int] = []
        for _ in range(source.randrange(14)):
            kind = source.choice(["packet"] * 9 + ["old", "simple", "interface", "other"])
            if kind == "interface" or (not links and source.random() < 0.95):
                links.append(source.choice(LINKS))
                snaplen = source.choice([0, 0, 50, 65535])
                parts.append(interface(links[-1], _clock(source, order), order, snaplen))
            if kind in {"interface", "other"}:
                parts.append(block(source.choice([4, 5, 10, 0x0BAD]), source.randbytes(8), order))
                continue
            number = source.randrange(len(links)) if links else 3
            linktype = links[0 if kind == "simple" else number] if links else 101
            data = packet_on(source, linktype, _payload(source))
            original = _original(source, data)
            ticks = source.choice([source.randrange(2**50)] * 5 + [5, 0, 2**63 + 1, 2**64 - 1])
            if kind == "packet":
                options = _comments(source, order)
                parts.append(enhanced(data, ticks, number, order, original, options))
            elif kind == "old":
                head = struct.pack(
                    f"{order}HHIIII",
                    number,
                    9,
                    ticks >> 32,
                    ticks & 0xFFFFFFFF,
                    len(data),
                    original,
                )
                body = head + data + bytes(-len(data) % 4) + _comments(source, order)
                parts.append(block(2, body, order))
            else:
                parts.append(block(3, struct.pack(f"{order}I", original) + data, order))
    return b"".join(parts)


def made_capture(source: random.Random) -> bytes:
    return source.choice([made_pcap, made_pcapng, made_pcapng])(source)


def damaged(source: random.Random, data: bytes) -> bytes:
    """Return the same data with some bytes flipped, cut out or inserted."""
    for _ in range(source.randrange(1, MOST_DAMAGE)):
        at = source.randrange(len(data) + 1)
        size = source.choice([1, 1, 2, 4, 8])
        patch = source.choice([source.randbytes(size), bytes(size), b"\xff" * size, b""])
        data = data[:at] + patch + data[at + source.choice([size, size, size, 0]) :]
    return data


def any_capture(source: random.Random) -> bytes:
    """Return a valid, damaged or cut-off capture, with or without gzip compression."""
    data = made_capture(source)
    if source.random() < 0.4:
        data = damaged(source, data)
    if source.random() < 0.1:
        data = data[: source.randrange(len(data) + 1)]
    if source.random() < 0.15:
        data = gzip.compress(data, mtime=0)
        if source.random() < 0.5:
            data = damaged(source, data)
    return data
