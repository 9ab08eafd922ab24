"""Finds the TCP segment in a captured packet, whatever link it was captured on."""

from __future__ import annotations

import struct
from functools import lru_cache
from ipaddress import IPv6Address
from typing import TYPE_CHECKING

from flexwire.capture.model import Segment

if TYPE_CHECKING:
    from collections.abc import Callable

    from flexwire.capture.model import CapturedPacket

_TCP_PROTOCOL = 6
_IPV4, _IPV6 = 0x0800, 0x86DD
_VLAN_TAGS = frozenset({0x8100, 0x88A8, 0x9100})
# Address families of loopback captures, as the operating systems number them (BSDs differ).
_FAMILIES = {2: _IPV4, 10: _IPV6, 24: _IPV6, 28: _IPV6, 30: _IPV6}
_FRAGMENT_HEADER, _AUTHENTICATION_HEADER = 44, 51
_EXTENSION_HEADERS = frozenset({0, 43, _FRAGMENT_HEADER, _AUTHENTICATION_HEADER, 60, 135, 139, 140})

_IPV4_HEADER = struct.Struct(">BxHxxHxB2x4s4s")
_IPV6_HEADER = struct.Struct(">BxxxHBx16s16s")
_TCP_HEADER = struct.Struct(">HHIIBB")
_TCP_BYTES = 20


class Skipped(Exception):  # noqa: N818 - not an error: the packet is of another protocol
    """A packet that holds no TCP segment, and what it holds instead."""


class UnreadablePacketError(Exception):
    """A packet that should hold a TCP segment and does not give one, and why."""


def read_segment(packet: CapturedPacket) -> Segment:
    """The TCP segment of a packet; raises `Skipped` or `UnreadablePacketError`."""
    find = _LINKS.get(packet.linktype)
    if find is None:
        raise Skipped(f"link type {packet.linktype} is not supported")
    try:
        network, start = find(packet.data)
        if network == _IPV4:
            return _read_ipv4(packet, start)
        if network == _IPV6:
            return _read_ipv6(packet, start)
    except struct.error:
        kept = f"{len(packet.data)} of {packet.original_length} bytes"
        raise UnreadablePacketError(f"cut off after {kept}, within its headers") from None
    raise Skipped(f"network protocol 0x{network:04x}")


@lru_cache(maxsize=65536)
def endpoint_name(address: bytes, port: int) -> str:
    r"""An endpoint as a person writes it.

    >>> endpoint_name(bytes([10, 0, 0, 1]), 9092), endpoint_name(bytes(15) + b"\x01", 9092)
    ('10.0.0.1:9092', '[::1]:9092')
    """
    if len(address) == 4:  # noqa: PLR2004 - bytes of an IPv4 address
        return f"{address[0]}.{address[1]}.{address[2]}.{address[3]}:{port}"
    host = IPv6Address(address)
    # Python prints an IPv4-mapped address in two ways, depending on its release.
    mapped = host.ipv4_mapped
    return f"[{host}]:{port}" if mapped is None else f"[::ffff:{mapped}]:{port}"


# Each of these gives the network protocol, as Ethernet numbers it, and where its header begins.


def _ethernet(data: bytes) -> tuple[int, int]:
    return _behind_tags(data, 12)


def _cooked(data: bytes) -> tuple[int, int]:
    return _behind_tags(data, 14)


def _cooked_2(data: bytes) -> tuple[int, int]:
    (protocol,) = struct.unpack_from(">H", data, 0)
    if protocol in _VLAN_TAGS:
        return _behind_tags(data, 22)
    return protocol, 20


def _behind_tags(data: bytes, position: int) -> tuple[int, int]:
    (protocol,) = struct.unpack_from(">H", data, position)
    while protocol in _VLAN_TAGS:
        position += 4
        (protocol,) = struct.unpack_from(">H", data, position)
    return protocol, position + 2


def _raw(data: bytes) -> tuple[int, int]:
    version = struct.unpack_from(">B", data)[0] >> 4
    return {4: _IPV4, 6: _IPV6}.get(version, version), 0


def _null(data: bytes) -> tuple[int, int]:
    # The family stands in the byte order of the machine that captured; families are small.
    family = min(struct.unpack_from("<I", data)[0], struct.unpack_from(">I", data)[0])
    return _FAMILIES.get(family, family), 4


_LINKS: dict[int, Callable[[bytes], tuple[int, int]]] = {
    0: _null,  # BSD loopback
    1: _ethernet,
    12: _raw,  # raw IP as some systems number it
    14: _raw,  # and as OpenBSD does
    101: _raw,
    108: _null,  # OpenBSD loopback
    113: _cooked,
    228: _raw,  # IPv4 only
    229: _raw,  # IPv6 only
    276: _cooked_2,
}


def _read_ipv4(packet: CapturedPacket, start: int) -> Segment:
    first, total, fragment, protocol, source, destination = _IPV4_HEADER.unpack_from(
        packet.data, start
    )
    if protocol != _TCP_PROTOCOL:
        raise Skipped(f"IP protocol {protocol}")
    header = (first & 0x0F) * 4
    if first >> 4 != 4 or header < 20:  # noqa: PLR2004 - version 4, and the shortest header
        raise UnreadablePacketError(f"an IPv4 header that begins with 0x{first:02x}")
    if fragment & 0x3FFF:
        raise UnreadablePacketError(f"an IP fragment, at {(fragment & 0x1FFF) * 8}")
    # Network cards that segment on their own leave the length at 0.
    end = start + total if total else packet.original_length
    return _read_tcp(packet, source, destination, start + header, end)


def _read_ipv6(packet: CapturedPacket, start: int) -> Segment:
    data = packet.data
    first, length, protocol, source, destination = _IPV6_HEADER.unpack_from(data, start)
    if first >> 4 != 6:  # noqa: PLR2004 - version 6
        raise UnreadablePacketError(f"an IPv6 header that begins with 0x{first:02x}")
    position = start + 40
    end = position + length if length else packet.original_length
    fragment = 0
    while protocol in _EXTENSION_HEADERS:
        following, size, offset = struct.unpack_from(">BBH", data, position)
        if protocol == _FRAGMENT_HEADER:
            # A fragment header may stand in a packet that is whole (RFC 6946).
            fragment |= offset & 0xFFF9
            position += 8
        elif protocol == _AUTHENTICATION_HEADER:
            position += (size + 2) * 4
        else:
            position += (size + 1) * 8
        protocol = following
        if fragment:
            break
    if protocol != _TCP_PROTOCOL:
        raise Skipped(f"IP protocol {protocol}")
    if fragment:
        raise UnreadablePacketError(f"an IP fragment, at {fragment & 0xFFF8}")
    return _read_tcp(packet, source, destination, position, end)


def _read_tcp(
    packet: CapturedPacket, source: bytes, destination: bytes, start: int, end: int
) -> Segment:
    data = packet.data
    source_port, destination_port, sequence, acknowledgment, length, flags = (
        _TCP_HEADER.unpack_from(data, start)
    )
    payload = start + (length >> 4) * 4
    if payload < start + _TCP_BYTES or payload > end:
        raise UnreadablePacketError(f"a TCP header of {payload - start} bytes in {end - start}")
    # What follows the IP packet is the link's own padding; what lies before its end and was
    # not captured is missing, be it part of the TCP options.
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
