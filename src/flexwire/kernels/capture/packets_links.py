"""Finds the TCP segment in a packet, and puts it into a row of the columns."""

from __future__ import annotations

from flexwire.kernels.capture.packets_flows import NO_ROOM, find_flow
from flexwire.kernels.capture.packets_layout import (
    BEGINS_NOTHING,
    COOKED_2_BYTES,
    COOKED_2_TAGS_AT,
    COOKED_PROTOCOL_AT,
    CROWDED,
    ETHERNET_PROTOCOL_AT,
    EXTENSION_HEADERS,
    FAMILY_BYTES,
    FAMILY_DARWIN,
    FAMILY_FREEBSD,
    FAMILY_IPV4,
    FAMILY_LINUX,
    FAMILY_NETBSD,
    FRAGMENT_BITS,
    I_LINK,
    I_LINKTYPE,
    IPV4,
    IPV4_BYTES,
    IPV6,
    IPV6_BYTES,
    LINK_COOKED,
    LINK_COOKED_2,
    LINK_ETHERNET,
    LINK_RAW,
    LINK_UNKNOWN,
    REFUSED,
    S_ACKNOWLEDGMENTS,
    S_BEGINS,
    S_DATA,
    S_FLAGS,
    S_FLOW,
    S_MISSING,
    S_NEW_COUNT,
    S_NEW_SKIPPED,
    S_PAYLOADS,
    S_ROW,
    S_SEQUENCES,
    S_SIZES,
    S_SKIPPED,
    S_TIME,
    S_TIMES,
    SKIPPED_LINK,
    SKIPPED_PROTOCOL,
    TCP,
    TCP_BYTES,
    TCP_READ_BYTES,
    VERSION_BIT,
    VLAN,
    VLAN_OLD,
    VLAN_OUTER,
    VLAN_TAG_BYTES,
)
from flexwire.kernels.machine import (
    load_int32_native,
    load_uint8,
    load_uint16,
    load_uint32,
    load_word,
    part,
    store_int8,
    store_word,
)
from flexwire.kernels.memory import inlined, store_int32_native
from flexwire.wire.limits import UINT16_MAX, UINT32_MAX

TAKEN = -1
"""The packet is a row, or counted; REFUSED and CROWDED leave everything as it was."""

_CUT_OFF = -1
# Where a link says its protocol, the protocol stands above the place where its header begins.
_PROTOCOL_BIT = 32


@inlined
def _is_tag(protocol: int) -> bool:
    return protocol == VLAN or protocol == VLAN_OUTER or protocol == VLAN_OLD


@part
def _behind_tags(packet: int, size: int, position: int) -> int:
    while size - position >= 2:
        protocol = load_uint16(packet + position)
        if not _is_tag(protocol):
            return (protocol << _PROTOCOL_BIT) | (position + 2)
        position += VLAN_TAG_BYTES
    return _CUT_OFF


@part
def _of_family(packet: int) -> int:
    # The family stands in the byte order of the machine that captured; families are small.
    family = min(load_int32_native(packet) & UINT32_MAX, load_uint32(packet))
    if family == FAMILY_IPV4:
        return IPV4
    if (
        family == FAMILY_LINUX
        or family == FAMILY_NETBSD
        or family == FAMILY_FREEBSD
        or family == FAMILY_DARWIN
    ):
        return IPV6
    return family


@part
def _find_network(link: int, packet: int, size: int) -> int:
    """Give the network protocol and where its header begins, or _CUT_OFF."""
    if link == LINK_ETHERNET:
        return _behind_tags(packet, size, ETHERNET_PROTOCOL_AT)
    if link == LINK_RAW:
        if size < 1:
            return _CUT_OFF
        version = load_uint8(packet) >> 4
        if version == 4:
            return IPV4 << _PROTOCOL_BIT
        return (IPV6 if version == 6 else version) << _PROTOCOL_BIT
    if link == LINK_COOKED:
        return _behind_tags(packet, size, COOKED_PROTOCOL_AT)
    if link == LINK_COOKED_2:
        if size < 2:
            return _CUT_OFF
        protocol = load_uint16(packet)
        if _is_tag(protocol):
            return _behind_tags(packet, size, COOKED_2_TAGS_AT)
        return (protocol << _PROTOCOL_BIT) | COOKED_2_BYTES
    if size < FAMILY_BYTES:
        return _CUT_OFF
    return (_of_family(packet) << _PROTOCOL_BIT) | FAMILY_BYTES


@part
def _skip(call: int, what: int) -> int:
    """Count a packet that holds no segment, and remember what is counted for the first time."""
    counter = load_word(call + S_SKIPPED) + 8 * what
    count = load_word(counter)
    if count == 0:
        known = load_word(call + S_NEW_COUNT)
        store_word(load_word(call + S_NEW_SKIPPED) + 8 * known, what)
        store_word(call + S_NEW_COUNT, known + 1)
    store_word(counter, count + 1)
    return TAKEN


@inlined
def _find_flow(call: int, header: int, version: int, ports: int) -> int:
    """Find the flow of a packet, by the addresses of its IP header."""
    ports |= version << VERSION_BIT
    if version == 4:
        return find_flow(call, load_word(header + 12), 0, 0, 0, ports)
    return find_flow(
        call,
        load_word(header + 8),
        load_word(header + 16),
        load_word(header + 24),
        load_word(header + 32),
        ports,
    )


@part
def _take_segment(call: int, packet: int, size: int, start: int, segment: int, end: int) -> int:
    """Put a segment into the next row; its IP header is at ``start``, and ends at ``end``.

    The bytes that there are may end before that or after it.
    """
    if size - segment < TCP_READ_BYTES:
        return REFUSED
    head = packet + segment
    payload = segment + (load_uint8(head + 12) >> 4) * 4
    if payload - segment < TCP_BYTES or payload > end:
        return REFUSED
    header = packet + start
    ports = load_int32_native(head) & UINT32_MAX
    flow = _find_flow(call, header, load_uint8(header) >> 4, ports)
    if flow == NO_ROOM:
        return CROWDED
    row = load_word(call + S_ROW)
    store_word(load_word(call + S_TIMES) + 8 * row, load_word(call + S_TIME))
    store_int32_native(load_word(call + S_FLOW) + 4 * row, flow)
    store_word(load_word(call + S_SEQUENCES) + 8 * row, load_uint32(head + 4))
    store_word(load_word(call + S_ACKNOWLEDGMENTS) + 8 * row, load_uint32(head + 8))
    store_int8(load_word(call + S_FLAGS) + row, load_uint8(head + 13))
    # What follows the IP packet is the link's own padding; what lies before its end and was not
    # captured is missing, be it part of the TCP options.
    begin = min(payload, size)
    store_word(load_word(call + S_PAYLOADS) + 8 * row, packet + begin - load_word(call + S_DATA))
    store_int32_native(load_word(call + S_SIZES) + 4 * row, max(0, min(end, size) - begin))
    store_int32_native(load_word(call + S_MISSING) + 4 * row, max(0, end - max(size, payload)))
    store_int8(load_word(call + S_BEGINS) + row, BEGINS_NOTHING)
    store_word(call + S_ROW, row + 1)
    return TAKEN


@inlined
def _take_ipv4(call: int, packet: int, size: int, start: int, original: int) -> int:
    if size - start < IPV4_BYTES:
        return REFUSED
    header = packet + start
    protocol = load_uint8(header + 9)
    if protocol != TCP:
        return _skip(call, SKIPPED_PROTOCOL + protocol)
    first = load_uint8(header)
    head = (first & 15) * 4
    if first >> 4 != 4 or head < IPV4_BYTES or load_uint16(header + 6) & FRAGMENT_BITS != 0:
        return REFUSED
    length = load_uint16(header + 2)
    # Network cards that segment on their own leave the length at 0.
    end = start + length if length != 0 else original
    return _take_segment(call, packet, size, start, start + head, end)


@inlined
def _take_ipv6(call: int, packet: int, size: int, start: int, original: int) -> int:
    header = packet + start
    if size - start < IPV6_BYTES or load_uint8(header) >> 4 != 6:
        return REFUSED
    protocol = load_uint8(header + 6)
    if protocol in EXTENSION_HEADERS:
        return REFUSED
    if protocol != TCP:
        return _skip(call, SKIPPED_PROTOCOL + protocol)
    length = load_uint16(header + 4)
    segment = start + IPV6_BYTES
    end = segment + length if length != 0 else original
    return _take_segment(call, packet, size, start, segment, end)


@part
def take_packet(call: int, interface: int, packet: int, size: int, original: int) -> int:
    """Put the segment of a packet into the next row, or count what the packet holds instead.

    REFUSED where neither is sure, CROWDED where it is of a new flow, and there is no room for one.
    Its time is S_TIME; what begins with the payload is the caller's to say.
    """
    link = load_word(interface + I_LINK)
    if link == LINK_UNKNOWN:
        return _skip(call, SKIPPED_LINK + load_word(interface + I_LINKTYPE))
    found = _find_network(link, packet, size)
    if found < 0:
        return REFUSED
    network, start = found >> _PROTOCOL_BIT, found & UINT32_MAX
    if network == IPV4:
        return _take_ipv4(call, packet, size, start, original)
    if network == IPV6:
        return _take_ipv6(call, packet, size, start, original)
    return REFUSED if network > UINT16_MAX else _skip(call, network)
