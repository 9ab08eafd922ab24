"""Walks the blocks of a pcapng file, or the records of a pcap file, from one packet to the next."""

from __future__ import annotations

from flexwire.kernels.capture.packets_flows import put_into_slots
from flexwire.kernels.capture.packets_layout import (
    BEGINS_NOTHING,
    BEGINS_REQUEST,
    BEGINS_RESPONSE,
    BLOCK_FRAME,
    BLOCK_HEAD,
    BLOCK_TAIL,
    ENHANCED_PACKET,
    FORMAT_PCAP,
    FULL,
    I_MOST,
    I_NUMBER,
    I_OFFSET_US,
    I_SNAPLEN,
    I_TICKS,
    INTERFACE,
    INTERFACE_ROW,
    MAX_BLOCK_BYTES,
    MAX_TIMESTAMP_US,
    MILLION,
    OLD_PACKET,
    OPTION_COMMENT,
    OPTION_HEAD,
    PACKET_FIELDS,
    RECORD_HEAD,
    REFUSED,
    S_BEGINS,
    S_CAPACITY,
    S_DATA,
    S_END,
    S_FORMAT,
    S_INTERFACE_COUNT,
    S_INTERFACES,
    S_LAST_US,
    S_ORDER,
    S_PACKETS,
    S_POSITION,
    S_REQUEST,
    S_REQUEST_BYTES,
    S_RESPONSE,
    S_RESPONSE_BYTES,
    S_ROW,
    S_TIME,
    S_TO_US,
    SECTION,
    SHORT,
    SIMPLE_FIELDS,
    SIMPLE_PACKET,
    TICKS_DIVIDED,
    TICKS_MULTIPLIED,
    TICKS_SHIFTED,
)
from flexwire.kernels.capture.packets_links import TAKEN, take_packet
from flexwire.kernels.machine import (
    compare_memory,
    kernel,
    load_int32_native,
    load_uint16,
    load_uint32,
    load_word,
    part,
    store_int8,
    store_word,
)
from flexwire.kernels.memory import inlined, load_int16_native
from flexwire.wire.limits import UINT16_MAX, UINT32_MAX

_NO_TIME = -1


@inlined
def _load(address: int, order: int) -> int:
    """Load a number of four bytes in the byte order of the file."""
    return load_uint32(address) if order != 0 else load_int32_native(address) & UINT32_MAX


@inlined
def _load_short(address: int, order: int) -> int:
    return load_uint16(address) if order != 0 else load_int16_native(address) & UINT16_MAX


@inlined
def _time(interface: int, ticks: int) -> int:
    """Give the time that the ticks of an interface say, or _NO_TIME where that is not sure."""
    if ticks < 0 or ticks > load_word(interface + I_MOST):
        return _NO_TIME
    how, number = load_word(interface + I_TICKS), load_word(interface + I_NUMBER)
    time = ticks
    if how == TICKS_DIVIDED:
        if number > 1:
            time = ticks // number
    elif how == TICKS_MULTIPLIED:
        time = ticks * number
    elif how == TICKS_SHIFTED:
        fraction = ticks & ((1 << number) - 1)
        time = (ticks >> number) * MILLION + ((fraction * MILLION) >> number)
    else:
        return _NO_TIME
    time += load_word(interface + I_OFFSET_US)
    return time if 0 <= time < MAX_TIMESTAMP_US else _NO_TIME


@part
def _begins(call: int, at: int, end: int, order: int) -> int:
    """Give what begins with a packet, by the comments among its options."""
    while end - at >= OPTION_HEAD:
        code, size = _load_short(at, order), _load_short(at + 2, order)
        at += OPTION_HEAD
        if code == 0 or size > end - at:
            break
        if code == OPTION_COMMENT:
            if (
                size == load_word(call + S_REQUEST_BYTES)
                and compare_memory(at, load_word(call + S_REQUEST), size) == 0
            ):
                return BEGINS_REQUEST
            if (
                size == load_word(call + S_RESPONSE_BYTES)
                and compare_memory(at, load_word(call + S_RESPONSE), size) == 0
            ):
                return BEGINS_RESPONSE
        size += -size & 3
        if size > end - at:
            break
        at += size
    return BEGINS_NOTHING


@inlined
def _take_record(call: int, at: int, left: int, order: int) -> int:
    """Take a record of a pcap file; gives its size, or what keeps it from being taken, inverted."""
    if left < RECORD_HEAD:
        return ~SHORT
    captured = _load(at + 8, order)
    if captured > MAX_BLOCK_BYTES:
        return ~REFUSED
    if captured > left - RECORD_HEAD:
        return ~SHORT
    fraction = _load(at + 4, order)
    to_us = load_word(call + S_TO_US)
    if to_us > 1:
        fraction = fraction // to_us
    store_word(call + S_TIME, _load(at, order) * MILLION + fraction)
    interface, original = load_word(call + S_INTERFACES), _load(at + 12, order)
    taken = take_packet(call, interface, at + RECORD_HEAD, captured, original)
    return RECORD_HEAD + captured if taken == TAKEN else ~taken


@part
def _take_simple(call: int, at: int, length: int, order: int) -> int:
    """Take a simple packet block: one of interface 0, without a time of its own."""
    room = length - BLOCK_FRAME - SIMPLE_FIELDS
    if room < 0 or load_word(call + S_INTERFACE_COUNT) == 0:
        return REFUSED
    interface = load_word(call + S_INTERFACES)
    original = _load(at + BLOCK_HEAD, order)
    snaplen = load_word(interface + I_SNAPLEN)
    captured = min(original, room)
    if snaplen != 0:
        captured = min(captured, snaplen)
    packet = at + BLOCK_HEAD + SIMPLE_FIELDS
    store_word(call + S_TIME, load_word(call + S_LAST_US))
    return take_packet(call, interface, packet, captured, original)


@inlined
def _take_enhanced(call: int, at: int, length: int, order: int, kind: int) -> int:
    """Take an enhanced packet block, or an old one, whose interface has fewer bits."""
    room = length - BLOCK_FRAME - PACKET_FIELDS
    if room < 0:
        return REFUSED
    fields = at + BLOCK_HEAD
    number = _load(fields, order) if kind == ENHANCED_PACKET else _load_short(fields, order)
    captured = _load(fields + 12, order)
    if number >= load_word(call + S_INTERFACE_COUNT) or captured > room:
        return REFUSED
    interface = load_word(call + S_INTERFACES) + INTERFACE_ROW * number
    time = _time(interface, (_load(fields + 4, order) << 32) | _load(fields + 8, order))
    if time == _NO_TIME:
        return REFUSED
    packet = fields + PACKET_FIELDS
    row = load_word(call + S_ROW)
    store_word(call + S_TIME, time)
    taken = take_packet(call, interface, packet, captured, _load(fields + 16, order))
    if taken == TAKEN:
        store_word(call + S_LAST_US, time)
        options = captured + (-captured & 3)
        if room - options >= OPTION_HEAD and load_word(call + S_ROW) > row:
            begins = _begins(call, packet + options, packet + room, order)
            store_int8(load_word(call + S_BEGINS) + row, begins)
    return taken


@inlined
def _take_block(call: int, at: int, left: int, order: int) -> int:
    """Take a block of a pcapng file; gives its size, or what keeps it from being taken, inverted.

    Blocks that describe a section or an interface are for objects; those of other kinds are passed
    over.
    """
    if left < BLOCK_HEAD:
        return ~SHORT
    kind, length = _load(at, order), _load(at + 4, order)
    is_packet = kind == ENHANCED_PACKET or kind == OLD_PACKET or kind == SIMPLE_PACKET
    if (
        kind == SECTION
        or kind == INTERFACE
        or length < BLOCK_FRAME
        or length & 3 != 0
        or (is_packet and length > MAX_BLOCK_BYTES)
    ):
        return ~REFUSED
    if length > left:
        return ~SHORT
    if _load(at + length - BLOCK_TAIL, order) != length:
        return ~REFUSED
    if not is_packet:
        return length
    if kind == SIMPLE_PACKET:
        taken = _take_simple(call, at, length, order)
    else:
        taken = _take_enhanced(call, at, length, order, kind)
    return length if taken == TAKEN else ~taken


@kernel
def scan(call: int, _unused: int, _also_unused: int) -> int:
    """Take packets from S_POSITION on, and move it on: a row for each segment, the others counted.

    SHORT where no whole block is left before S_END, REFUSED before one that objects must read, FULL
    where all rows are taken, CROWDED where all flows are.
    """
    put_into_slots(call)
    end, order = load_word(call + S_END), load_word(call + S_ORDER)
    position = load_word(call + S_POSITION)
    while load_word(call + S_ROW) < load_word(call + S_CAPACITY):
        at, left = load_word(call + S_DATA) + position, end - position
        packets = 1
        if load_word(call + S_FORMAT) == FORMAT_PCAP:
            size = _take_record(call, at, left, order)
        else:
            size = _take_block(call, at, left, order)
            if size > 0:
                kind = _load(at, order)
                packets = int(
                    kind == ENHANCED_PACKET or kind == OLD_PACKET or kind == SIMPLE_PACKET
                )
        if size < 0:
            return ~size
        position += size
        store_word(call + S_POSITION, position)
        store_word(call + S_PACKETS, load_word(call + S_PACKETS) + packets)
    return FULL
