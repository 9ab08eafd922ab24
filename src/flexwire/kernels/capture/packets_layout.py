"""The numbers of capture files and of the headers in packets, and the words of one run over them.

Objects (`flexwire.capture.files.reading` and `links`) and kernels both have them from here.
"""

from __future__ import annotations

# Of pcapng: what a block is, by its first word.
INTERFACE, OLD_PACKET, SIMPLE_PACKET, ENHANCED_PACKET = 1, 2, 3, 6
SECTION = 0x0A0D0D0A
# A block is its type and length, a body, and the length again.
BLOCK_HEAD, BLOCK_TAIL = 8, 4
BLOCK_FRAME = BLOCK_HEAD + BLOCK_TAIL
# What stands before the packet in a block's body: enhanced and old blocks have as much.
PACKET_FIELDS, SIMPLE_FIELDS = 20, 4
OPTION_HEAD = 4
OPTION_COMMENT, OPTION_TSRESOL, OPTION_TSOFFSET = 1, 9, 14
# Of pcap: what stands before each packet.
RECORD_HEAD = 16

MAX_BLOCK_BYTES = 16 * 1024 * 1024
"""A longer packet or block is damage; libpcap's own limit for a packet is 256 KiB."""

MAX_INTERFACES = 65536
MILLION = 1_000_000
MAX_TIMESTAMP_US = 253_402_300_800_000_000  # the year 10000, where datetime ends

# Network protocols, as Ethernet numbers them, and the tags that may stand before one.
IPV4, IPV6 = 0x0800, 0x86DD
VLAN_TAGS = VLAN, VLAN_OUTER, VLAN_OLD = 0x8100, 0x88A8, 0x9100
VLAN_TAG_BYTES = 4
# Address families of loopback captures, as the operating systems number them (BSDs differ).
FAMILY_IPV4 = 2
FAMILIES_IPV6 = FAMILY_LINUX, FAMILY_NETBSD, FAMILY_FREEBSD, FAMILY_DARWIN = 10, 24, 28, 30
FAMILY_BYTES = 4
# Where links say the network protocol; in a cooked header of version 2 a tag stands at its end.
ETHERNET_PROTOCOL_AT, COOKED_PROTOCOL_AT = 12, 14
COOKED_2_BYTES, COOKED_2_TAGS_AT = 20, 22

TCP = 6
FRAGMENT_HEADER, AUTHENTICATION_HEADER = 44, 51
EXTENSION_HEADERS = (0, 43, FRAGMENT_HEADER, AUTHENTICATION_HEADER, 60, 135, 139, 140)
IPV4_BYTES, IPV6_BYTES, TCP_BYTES = 20, 40, 20
# So much of a TCP header is read: up to its flags.
TCP_READ_BYTES = 14
# More fragments follow, or this is one that does not begin the packet.
FRAGMENT_BITS = 0x3FFF

# How a link says its protocol.
(LINK_UNKNOWN, LINK_NULL, LINK_ETHERNET, LINK_RAW, LINK_COOKED, LINK_COOKED_2) = range(6)
LINKS = {
    0: LINK_NULL,  # BSD loopback
    1: LINK_ETHERNET,
    12: LINK_RAW,  # raw IP as some systems number it
    14: LINK_RAW,  # and as OpenBSD does
    101: LINK_RAW,
    108: LINK_NULL,  # OpenBSD loopback
    113: LINK_COOKED,
    228: LINK_RAW,  # IPv4 only
    229: LINK_RAW,  # IPv6 only
    276: LINK_COOKED_2,
}

# An interface, as the kernel knows it: its link, and how its ticks become microseconds. They are
# divided by I_NUMBER, multiplied by it, or are fractions with so many bits; where they are refused,
# or are more than I_MOST, objects do it. A pcap file is one interface, whose records say the time
# in another way.
INTERFACE_ROW = 56
(I_LINKTYPE, I_LINK, I_SNAPLEN, I_TICKS, I_NUMBER, I_MOST, I_OFFSET_US) = range(0, INTERFACE_ROW, 8)
(TICKS_REFUSED, TICKS_DIVIDED, TICKS_MULTIPLIED, TICKS_SHIFTED) = range(4)
# Of ticks with more bits the product with a million would pass the end of a word.
MOST_SHIFTED = 40
# No time and no offset beyond this is added: the year 10000 is well before it.
MOST_US = 1 << 60

# A flow: the addresses and ports of a packet, in one direction. An IPv4 flow has both addresses in
# the first word; the ports stand as in the packet, and the IP version above them.
FLOW = 48
(W_FIRST, W_SECOND, W_THIRD, W_FOURTH, W_PORTS, W_HASH) = range(0, FLOW, 8)
VERSION_BIT = 32

# Packets that hold no TCP segment are counted by what they hold instead: a network protocol, an IP
# protocol, or a link type.
SKIPPED_PROTOCOL = 1 << 16
SKIPPED_LINK = SKIPPED_PROTOCOL + (1 << 8)
SKIPPED = SKIPPED_LINK + (1 << 16)

# One run goes from S_POSITION, which counts from S_DATA, up to S_END. A row is put into each of the
# columns for every segment, and S_ROW moves on. S_ORDER is 1 where the file is big-endian. The
# comments that say that a frame begins stand at S_REQUEST and S_RESPONSE. S_TIME is the packet's.
SCAN = 288
(
    S_DATA,
    S_POSITION,
    S_END,
    S_FORMAT,
    S_ORDER,
    S_INTERFACES,
    S_INTERFACE_COUNT,
    S_TO_US,
    S_LAST_US,
    S_TIME,
    S_PACKETS,
    S_ROW,
    S_CAPACITY,
    S_TIMES,
    S_FLOW,
    S_SEQUENCES,
    S_ACKNOWLEDGMENTS,
    S_FLAGS,
    S_PAYLOADS,
    S_SIZES,
    S_MISSING,
    S_BEGINS,
    S_FLOWS,
    S_FLOW_COUNT,
    S_FLOW_CAPACITY,
    S_SLOTS,
    S_SLOT_MASK,
    S_SLOTTED,
    S_SEED,
    S_SKIPPED,
    S_NEW_SKIPPED,
    S_NEW_COUNT,
    S_REQUEST,
    S_REQUEST_BYTES,
    S_RESPONSE,
    S_RESPONSE_BYTES,
) = range(0, SCAN, 8)
FORMAT_PCAP, FORMAT_PCAPNG = range(2)
BEGINS_NOTHING, BEGINS_REQUEST, BEGINS_RESPONSE = range(3)
# How it ended: before a block that S_END does not hold whole, before one for objects, with all rows
# taken, or with room for no more flows.
(SHORT, REFUSED, FULL, CROWDED) = range(4)
# No TCP segment is in fewer bytes of a file.
LEAST_BYTES = RECORD_HEAD + IPV4_BYTES + TCP_READ_BYTES
