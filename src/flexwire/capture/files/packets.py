"""Packets and TCP segments: how a capture file stores them and how the tap writes them."""

from __future__ import annotations

import struct
from collections import Counter
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Literal, NamedTuple

import msgspec

from flexwire.wire.segment_layout import MODULUS, SYN

try:
    import numpy as np
except ImportError:  # NumPy is installed by an extra. Without NumPy, checksums are slower.
    np = None  # type: ignore[assignment]  # the only place that knows it may be missing

# The handshake announces the widest possible window, 65,535 << 14 (RFC 7323). A frame of 100 MiB
# fits into this window, so a reader has no reason to report a full window.
_WINDOW = 65535
_SYN_OPTIONS = struct.pack(">BBHBBBB", 2, 4, 65495, 1, 3, 3, 14)

# The formats of an IP header and of the TCP header that follows.
_OVER_IPV4 = struct.Struct(">BBHHHBBH4s4s HHIIBBHHH")
_OVER_IPV6 = struct.Struct(">IHBB16s16s HHIIBBHHH")
_TCP_BYTES = 20
_IPV4_BYTES = 20
_DONT_FRAGMENT = 0x4000
_TTL = 64
_PROTOCOL_TCP = 6
_HIGHEST_PORT = 65535
# At this many bytes or more, numpy is faster. At 32 KiB numpy is 10 times as fast.
_LONG = 1024
_FOLD_BITS = 8192


class SocketAddress(NamedTuple):
    """One end of a connection: a packed IP address (4 or 16 bytes) and a port."""

    address: bytes
    port: int


def endpoints(
    client: tuple[str, int], server: tuple[str, int]
) -> tuple[SocketAddress, SocketAddress]:
    """Return both endpoints of a connection in the same address family, as an IP packet requires.

    Hosts are IP addresses. Raises `ValueError` for a name, or for a port outside 0-65535. If the
    families differ, the IPv4 address is written as an IPv4-mapped address (RFC 4291, section
    2.5.5.2). The families differ if a proxy uses IPv4 on one side and IPv6 on the other.

    >>> [end.address.hex() for end in endpoints(("127.0.0.1", 50000), ("127.0.0.2", 9092))]
    ['7f000001', '7f000002']
    """
    hosts = [ip_address(client[0]), ip_address(server[0])]
    for _, port in (client, server):
        if not 0 <= port <= _HIGHEST_PORT:
            raise ValueError(f"a port must be from 0 to {_HIGHEST_PORT}, got {port}")
    if hosts[0].version != hosts[1].version:
        hosts = [_mapped(host) for host in hosts]
    return SocketAddress(hosts[0].packed, client[1]), SocketAddress(hosts[1].packed, server[1])


def _mapped(host: IPv4Address | IPv6Address) -> IPv6Address:
    if isinstance(host, IPv6Address):
        return host
    return IPv6Address(b"\x00" * 10 + b"\xff\xff" + host.packed)


def word_sum(data: bytes | bytearray | memoryview) -> int:
    """Return the sum of the big-endian 16-bit words, modulo 65535. An odd last byte is a high byte.

    The checksum of IP and TCP is the ones' complement of this sum (RFC 1071).

    >>> hex(word_sum(bytes.fromhex("0001f203f4f5f6f7")))
    '0xddf2'
    """
    # 2**16 is 1 modulo 65535. Words may therefore be added in groups of any size, and swapping the
    # two bytes is a multiplication by 256.
    if np is not None and len(data) >= _LONG:
        whole = len(data) & -4
        words = np.frombuffer(data, "<u4", whole // 4)
        total = int(np.add.reduce(words, dtype=np.uint64))
        total += int.from_bytes(data[whole:], "little")
        return total * 256 % 0xFFFF
    total = int.from_bytes(data, "little")
    bits = len(data) * 8
    # Up to a certain size, adding the two halves of a number is faster than dividing the whole
    # number.
    while bits > _FOLD_BITS:
        half = (bits + 31) // 32 * 16
        total = (total >> half) + (total & ((1 << half) - 1))
        bits = half + 1
    return total * 256 % 0xFFFF


class SegmentHeaders:
    """The IP and TCP headers of the segments that one endpoint sends to the other.

    Both checksums are correct. A checksum is a sum, so the part that all segments share is summed
    only once.
    """

    __slots__ = ("_ip_sum", "_is_ipv4", "_source", "_target", "_tcp_sum")

    def __init__(self, source: SocketAddress, destination: SocketAddress) -> None:
        self._source = source
        self._target = destination
        self._is_ipv4 = len(source.address) == 4  # noqa: PLR2004 - the number of bytes of an IPv4 address
        addresses = word_sum(source.address + destination.address)
        self._tcp_sum = addresses + _PROTOCOL_TCP + source.port + destination.port + _WINDOW
        self._ip_sum = addresses + 0x4500 + _DONT_FRAGMENT + (_TTL << 8 | _PROTOCOL_TCP)

    def make(
        self,
        sequence: int,
        acknowledgment: int,
        flags: int,
        payload: bytes | memoryview = b"",
        identification: int = 0,
        missing: int = 0,
    ) -> bytes:
        """Return the IPv4 or IPv6 header and the TCP header of one segment.

        ``sequence`` and ``acknowledgment`` are taken modulo 2**32. ``missing`` is the number of
        unknown bytes after the payload. The checksum counts the missing bytes as zeros. Together,
        the payload and the missing bytes can be at most 65,495 bytes, the maximum that the 16-bit
        length of an IPv4 packet allows.
        """
        sequence %= MODULUS
        acknowledgment %= MODULUS
        options = _SYN_OPTIONS if flags & SYN else b""
        size = _TCP_BYTES + len(options) + len(payload) + missing
        offset = (_TCP_BYTES + len(options)) << 2
        total = self._tcp_sum + size + (offset << 8 | flags)
        # 2**16 is 1 modulo 65535, so the two halves of a number can be added as one number.
        total += sequence + acknowledgment + word_sum(payload)
        if options:
            total += word_sum(options)
        (source, near), (target, far) = self._source, self._target
        tcp = near, far, sequence, acknowledgment, offset, flags, _WINDOW, -total % 0xFFFF, 0
        if not self._is_ipv4:
            head = _OVER_IPV6.pack(6 << 28, size, _PROTOCOL_TCP, _TTL, source, target, *tcp)
            return head + options
        length, identification = _IPV4_BYTES + size, identification & 0xFFFF
        checksum = -(self._ip_sum + length + identification) % 0xFFFF
        head = _OVER_IPV4.pack(
            0x45,
            0,
            length,
            identification,
            _DONT_FRAGMENT,
            _TTL,
            _PROTOCOL_TCP,
            checksum,
            source,
            target,
            *tcp,
        )
        return head + options


def tcp_packet(
    source: SocketAddress,
    destination: SocketAddress,
    *,
    sequence: int,
    acknowledgment: int,
    flags: int,
    payload: bytes = b"",
    identification: int = 0,
) -> bytes:
    """Return an IPv4 or IPv6 packet with one TCP segment: `SegmentHeaders` and the payload."""
    headers = SegmentHeaders(source, destination)
    return headers.make(sequence, acknowledgment, flags, payload, identification) + payload


Direction = Literal["request", "response"]

FRAME_COMMENTS: dict[bytes, Direction] = {
    b"flexwire: a request begins here": "request",
    b"flexwire: a response begins here": "response",
}
"""The comment on a packet whose payload begins with a frame, by the frame's direction.

The comment is attached to the packet, not to the file. It therefore remains true if files are cut,
filtered or merged. Wireshark's tools copy the comment.
"""

SAMPLE_BYTES = 1024
"""An `UnreadableBytes`, or a frame with an error, contains at most this many of the faulty bytes.
"""


class CapturedPacket(NamedTuple):
    """A packet in a capture file. ``offset`` is the packet's position in the file.

    ``original_length`` is the packet's length on the network. ``data`` may be shorter, because of
    the snaplen. ``begins`` is the direction of the frame that begins with the packet's payload, if
    the file marks such a frame. ``comments`` contains all comments on the packet.
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

    ``source`` and ``destination`` have the form "10.0.0.1:9092" or "[::1]:9092". ``missing`` is the
    number of bytes at the end of the payload that were not captured. ``begins`` is the direction of
    the frame that begins with the payload, if the capture marks such a frame. flexwire's own
    captures mark the first payload of each stream in each file.
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


class UnreadableBytes(msgspec.Struct, frozen=True, gc=False):
    """Bytes of a capture file that should be a segment but cannot be read as one.

    ``offset`` is counted from the start of the uncompressed file. ``size`` is the number of
    affected bytes in the file, if known, and ``data`` contains the first of them.
    """

    source: str
    offset: int
    reason: str
    timestamp_us: int | None = None
    data: bytes = b""
    size: int = 0


@dataclass(slots=True)
class SegmentCounts:
    """The numbers of a file's packets by outcome. ``skipped`` contains the number for each reason.

    Once a file has been read to its end, ``packets == segments + unreadable_packets +
    sum(skipped.values())``.
    """

    packets: int = 0
    segments: int = 0
    unreadable_packets: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
