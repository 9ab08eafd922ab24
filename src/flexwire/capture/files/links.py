"""The TCP segments in a capture file of any supported link type."""

from __future__ import annotations

import struct
from functools import lru_cache
from ipaddress import IPv6Address
from pathlib import Path
from typing import TYPE_CHECKING

from flexwire.capture.files.packets import SAMPLE_BYTES, Segment, SegmentCounts, UnreadableBytes
from flexwire.capture.files.reading import read_packets
from flexwire.wire.packet_layout import (
    AUTHENTICATION_HEADER,
    COOKED_2_BYTES,
    COOKED_2_TAGS_AT,
    COOKED_PROTOCOL_AT,
    ETHERNET_PROTOCOL_AT,
    EXTENSION_HEADERS,
    FAMILIES_IPV6,
    FAMILY_BYTES,
    FAMILY_IPV4,
    FRAGMENT_BITS,
    FRAGMENT_HEADER,
    IPV4,
    IPV4_BYTES,
    IPV6,
    IPV6_BYTES,
    LINK_COOKED,
    LINK_COOKED_2,
    LINK_ETHERNET,
    LINK_NULL,
    LINK_RAW,
    LINKS,
    TCP,
    TCP_BYTES,
    VLAN_TAG_BYTES,
    VLAN_TAGS,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from flexwire.capture.files.packets import CapturedPacket


_VLAN_TAGS = frozenset(VLAN_TAGS)
_FAMILIES = {FAMILY_IPV4: IPV4, **dict.fromkeys(FAMILIES_IPV6, IPV6)}
_EXTENSION_HEADERS = frozenset(EXTENSION_HEADERS)

_IPV4_HEADER = struct.Struct(">BxHxxHxB2x4s4s")
_IPV6_HEADER = struct.Struct(">BxxxHBx16s16s")
_TCP_HEADER = struct.Struct(">HHIIBB")


class Skipped(Exception):  # noqa: N818 - this is not an error: the packet uses another protocol
    """Raised for a packet without a TCP segment, with the kind of the packet's content."""


class UnreadablePacketError(Exception):
    """Raised for a packet with an unreadable TCP segment; the error contains the reason."""


def read_segment(packet: CapturedPacket) -> Segment:
    """Return a packet's TCP segment. Raises `Skipped` or `UnreadablePacketError`."""
    find = _LINKS.get(packet.linktype)
    if find is None:
        raise Skipped(other_link(packet.linktype))
    try:
        network, start = find(packet.data)
        if network == IPV4:
            return _read_ipv4(packet, start)
        if network == IPV6:
            return _read_ipv6(packet, start)
    except struct.error:
        kept = f"{len(packet.data)} of {packet.original_length} bytes"
        raise UnreadablePacketError(
            f"incomplete headers: the capture contains {kept} of the packet"
        ) from None
    raise Skipped(other_network(network))


# The reason why a packet has no TCP segment.


def other_link(linktype: int) -> str:
    """Return the reason for skipping a packet with an unsupported link type."""
    return f"link type {linktype} is not supported"


def other_network(protocol: int) -> str:
    """Return the reason for skipping a packet with a network protocol other than IP."""
    return f"network protocol 0x{protocol:04x}"


def other_transport(protocol: int) -> str:
    """Return the reason for skipping an IP packet with a protocol other than TCP."""
    return f"IP protocol {protocol}"


@lru_cache(maxsize=65536)
def endpoint_name(address: bytes, port: int) -> str:
    r"""Return an endpoint as a string, in the usual notation.

    >>> endpoint_name(bytes([10, 0, 0, 1]), 9092), endpoint_name(bytes(15) + b"\x01", 9092)
    ('10.0.0.1:9092', '[::1]:9092')
    """
    if len(address) == 4:  # noqa: PLR2004 - the number of bytes in an IPv4 address
        return f"{address[0]}.{address[1]}.{address[2]}.{address[3]}:{port}"
    host = IPv6Address(address)
    # Python's notation for an IPv4-mapped address depends on the Python release.
    mapped = host.ipv4_mapped
    return f"[{host}]:{port}" if mapped is None else f"[::ffff:{mapped}]:{port}"


# Each of these functions returns the number of the network protocol (as in Ethernet) and the offset
# of the protocol's header.


def _ethernet(data: bytes) -> tuple[int, int]:
    return _behind_tags(data, ETHERNET_PROTOCOL_AT)


def _cooked(data: bytes) -> tuple[int, int]:
    return _behind_tags(data, COOKED_PROTOCOL_AT)


def _cooked_2(data: bytes) -> tuple[int, int]:
    (protocol,) = struct.unpack_from(">H", data, 0)
    if protocol in _VLAN_TAGS:
        return _behind_tags(data, COOKED_2_TAGS_AT)
    return protocol, COOKED_2_BYTES


def _behind_tags(data: bytes, position: int) -> tuple[int, int]:
    (protocol,) = struct.unpack_from(">H", data, position)
    while protocol in _VLAN_TAGS:
        position += VLAN_TAG_BYTES
        (protocol,) = struct.unpack_from(">H", data, position)
    return protocol, position + 2


def _raw(data: bytes) -> tuple[int, int]:
    version = struct.unpack_from(">B", data)[0] >> 4
    return {4: IPV4, 6: IPV6}.get(version, version), 0


def _null(data: bytes) -> tuple[int, int]:
    # The address family is written in the byte order of the machine that captured the packet.
    # Families are small numbers.
    family = min(struct.unpack_from("<I", data)[0], struct.unpack_from(">I", data)[0])
    return _FAMILIES.get(family, family), FAMILY_BYTES


_FINDERS: dict[int, Callable[[bytes], tuple[int, int]]] = {
    LINK_NULL: _null,
    LINK_ETHERNET: _ethernet,
    LINK_RAW: _raw,
    LINK_COOKED: _cooked,
    LINK_COOKED_2: _cooked_2,
}
_LINKS = {linktype: _FINDERS[link] for linktype, link in LINKS.items()}


def _read_ipv4(packet: CapturedPacket, start: int) -> Segment:
    first, total, fragment, protocol, source, destination = _IPV4_HEADER.unpack_from(
        packet.data, start
    )
    if protocol != TCP:
        raise Skipped(other_transport(protocol))
    header = (first & 0x0F) * 4
    if first >> 4 != 4 or header < IPV4_BYTES:  # noqa: PLR2004 - version 4
        raise UnreadablePacketError(f"invalid IPv4 header: the first byte is 0x{first:02x}")
    if fragment & FRAGMENT_BITS:
        raise UnreadablePacketError(
            f"the packet is an IP fragment, at offset {(fragment & 0x1FFF) * 8}"
        )
    # Network cards that segment packets themselves leave the length at 0.
    end = start + total if total else packet.original_length
    return _read_tcp(packet, source, destination, start + header, end)


def _read_ipv6(packet: CapturedPacket, start: int) -> Segment:
    data = packet.data
    first, length, protocol, source, destination = _IPV6_HEADER.unpack_from(data, start)
    if first >> 4 != 6:  # noqa: PLR2004 - version 6
        raise UnreadablePacketError(f"invalid IPv6 header: the first byte is 0x{first:02x}")
    position = start + IPV6_BYTES
    end = position + length if length else packet.original_length
    fragment = 0
    while protocol in _EXTENSION_HEADERS:
        following, size, offset = struct.unpack_from(">BBH", data, position)
        if protocol == FRAGMENT_HEADER:
            # A complete packet may also contain a fragment header (RFC 6946).
            fragment |= offset & 0xFFF9
            position += 8
        elif protocol == AUTHENTICATION_HEADER:
            position += (size + 2) * 4
        else:
            position += (size + 1) * 8
        protocol = following
        if fragment:
            break
    if protocol != TCP:
        raise Skipped(other_transport(protocol))
    if fragment:
        raise UnreadablePacketError(f"the packet is an IP fragment, at offset {fragment & 0xFFF8}")
    return _read_tcp(packet, source, destination, position, end)


def _read_tcp(
    packet: CapturedPacket, source: bytes, destination: bytes, start: int, end: int
) -> Segment:
    data = packet.data
    source_port, destination_port, sequence, acknowledgment, length, flags = (
        _TCP_HEADER.unpack_from(data, start)
    )
    payload = start + (length >> 4) * 4
    if payload < start + TCP_BYTES or payload > end:
        raise UnreadablePacketError(
            f"the TCP header declares {payload - start} bytes: expected at least {TCP_BYTES}, and "
            f"at most the {end - start} bytes left in the IP packet"
        )
    # Bytes after the end of the IP packet are link-layer padding. Payload bytes that were not
    # captured count as missing, but TCP options that were not captured do not.
    missing = max(0, end - max(len(data), payload))
    return Segment(
        packet.timestamp_us,
        endpoint_name(source, source_port),
        endpoint_name(destination, destination_port),
        sequence,
        acknowledgment,
        flags,
        data[payload:end],
        missing,
        packet.begins,
    )


__all__ = ["Segment", "SegmentCounts", "UnreadableBytes", "read_segments"]


def read_segments(
    path: str | os.PathLike[str], counts: SegmentCounts | None = None
) -> Iterator[Segment | UnreadableBytes]:
    """Yield the TCP segments of a pcap or pcapng file, gzip-compressed or not, in file order.

    Packets without a TCP segment are counted in ``counts.skipped``, by their content. A packet
    whose segment cannot be read is yielded as `UnreadableBytes`. If a damaged file ends early, the
    place of the damage is also yielded as `UnreadableBytes`. Raises `CaptureError` if the file
    cannot be opened or is not a capture file.
    """
    counts = SegmentCounts() if counts is None else counts
    source = str(path)
    for item in read_packets(Path(path)):
        if isinstance(item, UnreadableBytes):
            yield item
            continue
        counts.packets += 1
        try:
            segment = read_segment(item)
        except Skipped as skipped:
            counts.skipped[str(skipped)] += 1
        except UnreadablePacketError as error:
            counts.unreadable_packets += 1
            yield unreadable_packet(source, item, error)
        else:
            counts.segments += 1
            yield segment


def unreadable_packet(
    source: str, packet: CapturedPacket, error: UnreadablePacketError
) -> UnreadableBytes:
    """Return the note on a packet whose TCP segment is missing or unreadable."""
    sample = packet.data[:SAMPLE_BYTES]
    return UnreadableBytes(
        source, packet.offset, str(error), packet.timestamp_us, sample, len(packet.data)
    )
