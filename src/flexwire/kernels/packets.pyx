"""Walks through the blocks of a pcapng file, or the records of a pcap file, and finds TCP segments.

The input is the address of a `Run`: bytes of a capture, its interfaces, and columns with room. A
packet becomes a row, or is counted by what it contains if it has no segment. The kernel stops
before a block that it is not sure of (a section or an interface, fragments, extension headers,
unusual times), and changes nothing for that block. Objects of `flexwire.capture.files` then read
this block, and the kernel continues.
"""

from libc.stdint cimport int8_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy

from flexwire.kernels.cursor cimport load_uint16, load_uint32

cdef enum:
    # For pcapng: the kinds of blocks, and the sizes of a block and of an option without a body.
    INTERFACE = 1
    OLD_PACKET = 2
    SIMPLE_PACKET = 3
    ENHANCED_PACKET = 6
    SECTION = 0x0A0D0D0A
    BLOCK_HEAD = 8
    BLOCK_TAIL = 4
    BLOCK_FRAME = 12
    PACKET_FIELDS = 20
    SIMPLE_FIELDS = 4
    OPTION_HEAD = 4
    OPTION_COMMENT = 1
    RECORD_HEAD = 16       # for pcap: the size of the header before each packet
    MAX_BLOCK_BYTES = 16 * 1024 * 1024
    MILLION = 1_000_000

    # Network protocols, and the tags that may come before one.
    IPV4 = 0x0800
    IPV6 = 0x86DD
    VLAN = 0x8100
    VLAN_OUTER = 0x88A8
    VLAN_OLD = 0x9100
    VLAN_TAG_BYTES = 4

    # Address families in loopback captures, and the place of the network protocol in link headers.
    FAMILY_IPV4 = 2
    FAMILY_LINUX = 10
    FAMILY_NETBSD = 24
    FAMILY_FREEBSD = 28
    FAMILY_DARWIN = 30
    FAMILY_BYTES = 4
    ETHERNET_PROTOCOL_AT = 12
    COOKED_PROTOCOL_AT = 14
    COOKED_2_BYTES = 20
    COOKED_2_TAGS_AT = 22

    TCP = 6
    IPV4_BYTES = 20
    IPV6_BYTES = 40
    TCP_BYTES = 20
    TCP_READ_BYTES = 14
    FRAGMENT_BITS = 0x3FFF

    SKIPPED_PROTOCOL = 1 << 16  # counters for networks, then for IP protocols, then for links
    SKIPPED_LINK = SKIPPED_PROTOCOL + (1 << 8)
    VERSION_BIT = 32

cdef extern from *:
    """
    #define MAX_TIMESTAMP_US 253402300800000000LL
    /* Odd, with as many ones as zeros and no pattern. */
    #define FACTOR 0x2545F4914F6CDD1DULL
    #define LAST_FACTOR 0x369DEA0F31A53F85ULL
    /* The extension headers of IPv6, by the bits of two words. */
    #define IS_EXTENSION(number) ((number) < 64 ? 0x1008180000000001ULL >> (number) & 1 \\
        : (number) == 135 || (number) == 139 || (number) == 140)
    """
    const int64_t MAX_TIMESTAMP_US
    const uint64_t FACTOR, LAST_FACTOR
    bint IS_EXTENSION(int number) nogil

# How a link states its protocol. `flexwire.wire.packet_layout.LINKS` has the numbers.
cdef enum Link:
    LINK_UNKNOWN, LINK_NULL, LINK_ETHERNET, LINK_RAW, LINK_COOKED, LINK_COOKED_2

# How ticks are converted to microseconds. Python objects convert ticks that the kernel refuses, and
# numbers of ticks that are too large for the kernel.
cdef enum Ticks:
    TICKS_REFUSED, TICKS_DIVIDED, TICKS_MULTIPLIED, TICKS_SHIFTED

cdef enum Format:
    FORMAT_PCAP, FORMAT_PCAPNG

cdef enum Begins:
    BEGINS_NOTHING, BEGINS_REQUEST, BEGINS_RESPONSE

# How a run ended: before an incomplete block, before a block for Python objects, with all rows
# used, or without room for more flows. TAKEN means that it continues.
cdef enum Ending:
    SHORT, REFUSED, FULL, CROWDED, TAKEN

# An interface of a file. A pcap file has exactly one.
cdef struct Interface:
    int64_t linktype
    int64_t link
    int64_t snaplen
    int64_t ticks          # ticks, and the number by which they are divided
    int64_t number
    int64_t most           # the largest number of ticks
    int64_t offset_us

# The addresses and ports of a packet, in one direction. An IPv4 flow has both addresses in the
# first word. The ports are in the byte order of the packet, with the IP version above them.
cdef struct Flow:
    uint64_t addresses[4]
    uint64_t ports
    uint64_t code          # the hash of the other fields

# The words of a run. In Python, they are `flexwire.capture.reassembly.packet_scan.ScanWords`.
cdef struct Run:
    const uint8_t *data
    int64_t position
    int64_t end
    int64_t format
    int64_t is_big_endian
    Interface *interfaces
    int64_t interface_count
    int64_t to_us          # the number by which the fraction of a pcap time is divided
    int64_t last_us
    int64_t packets
    int64_t row
    int64_t capacity
    int64_t *times
    int32_t *flow
    int64_t *sequences
    int64_t *acknowledgments
    uint8_t *flags
    int64_t *payloads
    int32_t *sizes
    uint32_t *missing
    int8_t *begins
    Flow *flows
    int64_t flow_count
    int64_t flow_capacity
    int32_t *slots         # flows by their hashes: 0 means an empty slot, 1 the first flow
    int64_t slot_mask
    int64_t slotted        # the number of flows that are in slots
    # a secret, so that nobody can make a capture whose flows are all in one slot
    uint64_t seed
    int64_t *skipped
    int64_t *new_skipped   # what was skipped, in the order in which it first occurred
    int64_t new_count
    const uint8_t *request  # the comments which say that a frame begins
    int64_t request_bytes
    const uint8_t *response
    int64_t response_bytes


# Flows, numbered from 0 in the order of their first appearance.

cdef inline uint64_t mix(uint64_t code, uint64_t word, uint64_t factor) noexcept nogil:
    code = (code ^ word) * factor
    return code ^ code >> 32


cdef inline int64_t slot_of(const Run *run, uint64_t code) noexcept nogil:
    """Return the slot for a hash; a difference anywhere in the hash changes its low bits."""
    return <int64_t> (mix(mix(code, 0, LAST_FACTOR), 0, FACTOR) & <uint64_t> run.slot_mask)


cdef void put_into_slots(Run *run) noexcept nogil:
    """Put the flows that are not in slots yet into a new table."""
    cdef int64_t slot
    while run.slotted < run.flow_count:
        slot = slot_of(run, run.flows[run.slotted].code)
        while run.slots[slot] != 0:
            slot = (slot + 1) & run.slot_mask
        run.slotted += 1
        run.slots[slot] = run.slotted


cdef inline int64_t find_flow(Run *run, const Flow *flow) noexcept nogil:
    """Return the number of a flow, which is new for a new flow; -1 if there is no room."""
    cdef const Flow *other
    cdef int64_t number
    cdef int64_t slot = slot_of(run, flow.code)
    while run.slots[slot] != 0:
        number = run.slots[slot] - 1
        other = &run.flows[number]
        if other.code == flow.code and memcmp(other, flow, sizeof(Flow)) == 0:
            return number
        slot = (slot + 1) & run.slot_mask
    number = run.flow_count
    if number == run.flow_capacity:
        return -1
    run.flows[number] = flow[0]
    run.flow_count = run.slotted = number + 1
    run.slots[slot] = run.flow_count
    return number


cdef inline int64_t flow_of(Run *run, const uint8_t *header, const uint8_t *segment) noexcept nogil:
    """Return the number of a packet's flow, from the addresses in its IP header and its ports."""
    cdef Flow flow
    cdef uint32_t ports
    cdef int version = header[0] >> 4
    cdef int index
    memcpy(&ports, segment, 4)
    flow.ports = ports | <uint64_t> version << VERSION_BIT
    flow.addresses[1] = flow.addresses[2] = flow.addresses[3] = 0
    if version == 4:
        memcpy(flow.addresses, header + 12, 8)
    else:
        memcpy(flow.addresses, header + 8, 32)
    flow.code = mix(run.seed, flow.addresses[0], FACTOR)
    if version != 4:
        for index in range(1, 4):
            flow.code = mix(flow.code, flow.addresses[index], FACTOR)
    flow.code = mix(flow.code, flow.ports, FACTOR)
    return find_flow(run, &flow)


# Finding the segment of a packet.

# The network protocol of a packet and the start of its header, which is -1 if it is cut off.
cdef struct Network:
    int64_t protocol
    int64_t start


cdef inline bint is_tag(int protocol) noexcept nogil:
    return protocol == VLAN or protocol == VLAN_OUTER or protocol == VLAN_OLD


cdef Network behind_tags(const uint8_t *packet, int64_t size, int64_t position) noexcept nogil:
    """Find the network protocol after any tags."""
    cdef Network network
    network.protocol, network.start = 0, -1
    while size - position >= 2:
        network.protocol = load_uint16(packet + position)
        if not is_tag(network.protocol):
            network.start = position + 2
            return network
        position += VLAN_TAG_BYTES
    return network


cdef int64_t of_family(const uint8_t *packet) noexcept nogil:
    """Return the network protocol of an address family."""
    cdef uint32_t family, swapped
    # The family is in the byte order of the machine that captured. Families are small numbers.
    memcpy(&family, packet, 4)
    swapped = load_uint32(packet)
    family = min(family, swapped)
    if family == FAMILY_IPV4:
        return IPV4
    if (
        family == FAMILY_LINUX or family == FAMILY_NETBSD
        or family == FAMILY_FREEBSD or family == FAMILY_DARWIN
    ):
        return IPV6
    return family


cdef Network find_network(int64_t link, const uint8_t *packet, int64_t size) noexcept nogil:
    """Find the network protocol in the way that a link type states it."""
    cdef Network network
    cdef int version
    network.protocol, network.start = 0, -1
    if link == LINK_ETHERNET:
        return behind_tags(packet, size, ETHERNET_PROTOCOL_AT)
    if link == LINK_COOKED:
        return behind_tags(packet, size, COOKED_PROTOCOL_AT)
    if link == LINK_RAW:
        if size >= 1:
            version = packet[0] >> 4
            network.protocol = IPV4 if version == 4 else IPV6 if version == 6 else version
            network.start = 0
    elif link == LINK_COOKED_2:
        if size >= 2:
            network.protocol, network.start = load_uint16(packet), COOKED_2_BYTES
            if is_tag(network.protocol):
                return behind_tags(packet, size, COOKED_2_TAGS_AT)
    elif size >= FAMILY_BYTES:
        network.protocol, network.start = of_family(packet), FAMILY_BYTES
    return network


cdef Ending skip(Run *run, int64_t what) noexcept nogil:
    """Count a packet without a segment, and remember a reason that occurs for the first time."""
    if run.skipped[what] == 0:
        run.new_skipped[run.new_count] = what
        run.new_count += 1
    run.skipped[what] += 1
    return TAKEN


cdef Ending take_segment(
    Run *run, const uint8_t *packet, int64_t size, int64_t start, int64_t segment, int64_t end,
    int64_t time
) noexcept nogil:
    """Put a segment into the next row.

    Its IP header begins at ``start``, the IP packet ends at ``end``.

    The bytes that exist may end before or after that.
    """
    cdef const uint8_t *head = packet + segment
    cdef int64_t payload, begin, flow, row
    if size - segment < TCP_READ_BYTES:
        return REFUSED
    payload = segment + (head[12] >> 4) * 4
    if payload - segment < TCP_BYTES or payload > end:
        return REFUSED
    flow = flow_of(run, packet + start, head)
    if flow < 0:
        return CROWDED
    row = run.row
    run.times[row], run.flow[row] = time, flow
    run.sequences[row], run.acknowledgments[row] = load_uint32(head + 4), load_uint32(head + 8)
    run.flags[row] = head[13]
    # Bytes after the IP packet are padding of the link layer. Bytes before its end that were not
    # captured count as missing, even if they are TCP options.
    begin = min(payload, size)
    run.payloads[row] = packet + begin - run.data
    run.sizes[row] = max(<int64_t> 0, min(end, size) - begin)
    run.missing[row] = max(<int64_t> 0, end - max(size, payload))
    run.begins[row] = BEGINS_NOTHING
    run.row = row + 1
    return TAKEN


cdef inline Ending take_ipv4(
    Run *run, const uint8_t *packet, int64_t size, int64_t start, int64_t original, int64_t time
) noexcept nogil:
    """Process a packet with an IPv4 header at ``start``."""
    cdef const uint8_t *header = packet + start
    cdef int64_t head, length
    if size - start < IPV4_BYTES:
        return REFUSED
    if header[9] != TCP:
        return skip(run, SKIPPED_PROTOCOL + header[9])
    head = (header[0] & 15) * 4
    if header[0] >> 4 != 4 or head < IPV4_BYTES or load_uint16(header + 6) & FRAGMENT_BITS:
        return REFUSED
    length = load_uint16(header + 2)
    # Network cards that cut segments themselves leave the length at 0.
    return take_segment(
        run, packet, size, start, start + head, start + length if length else original, time
    )


cdef inline Ending take_ipv6(
    Run *run, const uint8_t *packet, int64_t size, int64_t start, int64_t original, int64_t time
) noexcept nogil:
    """Process a packet with an IPv6 header at ``start``."""
    cdef const uint8_t *header = packet + start
    cdef int64_t segment = start + IPV6_BYTES
    cdef int64_t length
    if size - start < IPV6_BYTES or header[0] >> 4 != 6 or IS_EXTENSION(header[6]):
        return REFUSED
    if header[6] != TCP:
        return skip(run, SKIPPED_PROTOCOL + header[6])
    length = load_uint16(header + 4)
    return take_segment(
        run, packet, size, start, segment, segment + length if length else original, time
    )


cdef inline Ending take_packet(
    Run *run, const Interface *interface, const uint8_t *packet, int64_t size, int64_t original,
    int64_t time
) noexcept nogil:
    """Put the segment of a packet into the next row, or count a packet without a segment.

    The caller sets which frame begins with the payload.
    """
    cdef Network network
    if interface.link == LINK_UNKNOWN:
        return skip(run, SKIPPED_LINK + interface.linktype)
    network = find_network(interface.link, packet, size)
    if network.start < 0:
        return REFUSED
    if network.protocol == IPV4:
        return take_ipv4(run, packet, size, network.start, original, time)
    if network.protocol == IPV6:
        return take_ipv6(run, packet, size, network.start, original, time)
    return REFUSED if network.protocol > 0xFFFF else skip(run, network.protocol)


# Blocks and records. Numbers have the byte order of the file.

cdef inline int64_t load(const Run *run, const uint8_t *at) noexcept nogil:
    """Return a number of four bytes."""
    cdef uint32_t number
    if run.is_big_endian:
        return load_uint32(at)
    memcpy(&number, at, 4)
    return number


cdef inline int64_t load_short(const Run *run, const uint8_t *at) noexcept nogil:
    """Return a number of two bytes."""
    cdef uint16_t number
    if run.is_big_endian:
        return load_uint16(at)
    memcpy(&number, at, 2)
    return number


cdef inline int64_t time_of(const Interface *interface, int64_t ticks) noexcept nogil:
    """Return the time that the ticks of an interface mean, or -1 if this is uncertain."""
    cdef int64_t time = ticks
    cdef int64_t fraction
    if not 0 <= ticks <= interface.most or interface.ticks == TICKS_REFUSED:
        return -1
    if interface.ticks == TICKS_DIVIDED:
        if interface.number > 1:
            time = ticks // interface.number
    elif interface.ticks == TICKS_MULTIPLIED:
        time = ticks * interface.number
    else:
        fraction = ticks & ((<int64_t> 1 << interface.number) - 1)
        time = (ticks >> interface.number) * MILLION
        time += fraction * MILLION >> interface.number
    time += interface.offset_us
    return time if 0 <= time < MAX_TIMESTAMP_US else -1


cdef Begins find_begin(const Run *run, const uint8_t *at, const uint8_t *end) noexcept nogil:
    """Return which frame begins with a packet, from the comments in its options."""
    cdef int64_t code, size
    while end - at >= OPTION_HEAD:
        code, size = load_short(run, at), load_short(run, at + 2)
        at += OPTION_HEAD
        if code == 0 or size > end - at:
            break
        if code == OPTION_COMMENT:
            if size == run.request_bytes and memcmp(at, run.request, size) == 0:
                return BEGINS_REQUEST
            if size == run.response_bytes and memcmp(at, run.response, size) == 0:
                return BEGINS_RESPONSE
        size += -size & 3
        if size > end - at:
            break
        at += size
    return BEGINS_NOTHING


cdef inline Ending take_record(
    Run *run, const uint8_t *at, int64_t left, int64_t *size
) noexcept nogil:
    """Process a record of a pcap file, and return its length."""
    cdef int64_t captured, fraction
    if left < RECORD_HEAD:
        return SHORT
    captured = load(run, at + 8)
    if captured > MAX_BLOCK_BYTES:
        return REFUSED
    if captured > left - RECORD_HEAD:
        return SHORT
    fraction = load(run, at + 4)
    if run.to_us > 1:
        fraction = fraction // run.to_us
    size[0] = RECORD_HEAD + captured
    return take_packet(
        run, run.interfaces, at + RECORD_HEAD, captured, load(run, at + 12),
        load(run, at) * MILLION + fraction
    )


cdef Ending take_simple(Run *run, const uint8_t *at, int64_t length) noexcept nogil:
    """Process a simple packet block, which is of interface 0 and has no time."""
    cdef int64_t room = length - BLOCK_FRAME - SIMPLE_FIELDS
    cdef int64_t original, captured
    if room < 0 or run.interface_count == 0:
        return REFUSED
    original = load(run, at + BLOCK_HEAD)
    captured = min(original, room)
    if run.interfaces.snaplen != 0:
        captured = min(captured, run.interfaces.snaplen)
    at += BLOCK_HEAD + SIMPLE_FIELDS
    return take_packet(run, run.interfaces, at, captured, original, run.last_us)


cdef inline Ending take_enhanced(
    Run *run, const uint8_t *at, int64_t length, int64_t kind
) noexcept nogil:
    """Process an enhanced packet block, or an old one, whose interface number has fewer bits."""
    cdef const uint8_t *fields = at + BLOCK_HEAD
    cdef const uint8_t *packet = fields + PACKET_FIELDS
    cdef const Interface *interface
    cdef int64_t room = length - BLOCK_FRAME - PACKET_FIELDS
    cdef int64_t row = run.row
    cdef int64_t number, captured, time, options
    cdef Ending taken
    if room < 0:
        return REFUSED
    number = load(run, fields) if kind == ENHANCED_PACKET else load_short(run, fields)
    captured = load(run, fields + 12)
    if number >= run.interface_count or captured > room:
        return REFUSED
    interface = &run.interfaces[number]
    time = time_of(
        interface, <int64_t> (<uint64_t> load(run, fields + 4) << 32) | load(run, fields + 8)
    )
    if time < 0:
        return REFUSED
    taken = take_packet(run, interface, packet, captured, load(run, fields + 16), time)
    if taken == TAKEN:
        run.last_us = time
        options = captured + (-captured & 3)
        if room - options >= OPTION_HEAD and run.row > row:
            run.begins[row] = find_begin(run, packet + options, packet + room)
    return taken


cdef inline Ending take_block(
    Run *run, const uint8_t *at, int64_t left, int64_t *size, int64_t *packets
) noexcept nogil:
    """Process a block of a pcapng file, and return its length and whether it is a packet.

    Python objects process blocks that describe a section or an interface. Blocks of other kinds are
    skipped.
    """
    cdef int64_t kind, length
    cdef bint is_packet
    if left < BLOCK_HEAD:
        return SHORT
    kind, length = load(run, at), load(run, at + 4)
    is_packet = kind == ENHANCED_PACKET or kind == OLD_PACKET or kind == SIMPLE_PACKET
    if (
        kind == SECTION or kind == INTERFACE
        or length < BLOCK_FRAME or length & 3
        or (is_packet and length > MAX_BLOCK_BYTES)
    ):
        return REFUSED
    if length > left:
        return SHORT
    if load(run, at + length - BLOCK_TAIL) != length:
        return REFUSED
    size[0], packets[0] = length, is_packet
    if not is_packet:
        return TAKEN
    if kind == SIMPLE_PACKET:
        return take_simple(run, at, length)
    return take_enhanced(run, at, length, kind)


cdef Ending scan_packets(Run *run) noexcept nogil:
    """Process packets until the run ends: segments become rows, other packets are counted."""
    cdef const uint8_t *at
    cdef int64_t size = 0
    cdef int64_t packets = 1
    cdef Ending taken
    put_into_slots(run)
    while run.row < run.capacity:
        at = run.data + run.position
        if run.format == FORMAT_PCAP:
            taken = take_record(run, at, run.end - run.position, &size)
        else:
            taken = take_block(run, at, run.end - run.position, &size, &packets)
        if taken != TAKEN:
            return taken
        run.position += size
        run.packets += packets
    return FULL


def scan(size_t run):
    """Process packets as the words of a run say, without the GIL; return how it ended.

    Its ``endings`` have the same order as in `flexwire.capture.reassembly.packet_scan`.
    """
    cdef Ending ending
    with nogil:
        ending = scan_packets(<Run *> run)
    return <int> ending
