"""The constants in capture files and in packet headers.

Python objects (`flexwire.capture.files`) use these numbers. `kernels/packets.pyx` contains a copy,
and a test compares the two.
"""

from __future__ import annotations

# The type of a pcapng block, which is its first word.
INTERFACE, OLD_PACKET, SIMPLE_PACKET, ENHANCED_PACKET = 1, 2, 3, 6
SECTION = 0x0A0D0D0A
# A block consists of its type and length, a body, and the length again.
BLOCK_HEAD, BLOCK_TAIL = 8, 4
BLOCK_FRAME = BLOCK_HEAD + BLOCK_TAIL
# The size of the fields before the packet in the body of an enhanced or an old block.
PACKET_FIELDS, SIMPLE_FIELDS = 20, 4
OPTION_HEAD = 4
OPTION_COMMENT, OPTION_TSRESOL, OPTION_TSOFFSET = 1, 9, 14
# The header before each packet in a pcap file.
RECORD_HEAD = 16

MAX_BLOCK_BYTES = 16 * 1024 * 1024
"""The largest packet or block. A longer packet or block counts as damage. The limit of libpcap for
a packet is 256 KiB.
"""

MAX_INTERFACES = 65536
MILLION = 1_000_000
MAX_TIMESTAMP_US = 253_402_300_800_000_000  # The year 10000 is beyond the range of datetime.

# Network protocols as Ethernet numbers them, and the tags that may precede a protocol.
IPV4, IPV6 = 0x0800, 0x86DD
VLAN_TAGS = VLAN, VLAN_OUTER, VLAN_OLD = 0x8100, 0x88A8, 0x9100
VLAN_TAG_BYTES = 4
# Address families in loopback captures, as operating systems number them (BSDs differ).
FAMILY_IPV4 = 2
FAMILIES_IPV6 = FAMILY_LINUX, FAMILY_NETBSD, FAMILY_FREEBSD, FAMILY_DARWIN = 10, 24, 28, 30
FAMILY_BYTES = 4
# The place of the network protocol in link headers. In version 2, any VLAN tags follow the cooked
# header.
ETHERNET_PROTOCOL_AT, COOKED_PROTOCOL_AT = 12, 14
COOKED_2_BYTES, COOKED_2_TAGS_AT = 20, 22

TCP = 6
FRAGMENT_HEADER, AUTHENTICATION_HEADER = 44, 51
EXTENSION_HEADERS = (0, 43, FRAGMENT_HEADER, AUTHENTICATION_HEADER, 60, 135, 139, 140)
IPV4_BYTES, IPV6_BYTES, TCP_BYTES = 20, 40, 20
# How many bytes of a TCP header are read. These bytes include the flags.
TCP_READ_BYTES = 14
# These bits mean that more fragments follow, or that this fragment is not the first.
FRAGMENT_BITS = 0x3FFF

# The ways in which a link states its protocol.
(LINK_UNKNOWN, LINK_NULL, LINK_ETHERNET, LINK_RAW, LINK_COOKED, LINK_COOKED_2) = range(6)
LINKS = {
    0: LINK_NULL,  # This is BSD loopback.
    1: LINK_ETHERNET,
    12: LINK_RAW,  # This is raw IP, as some systems number it.
    14: LINK_RAW,  # This is raw IP, as OpenBSD numbers it.
    101: LINK_RAW,
    108: LINK_NULL,  # This is OpenBSD loopback.
    113: LINK_COOKED,
    228: LINK_RAW,  # This link has only IPv4.
    229: LINK_RAW,  # This link has only IPv6.
    276: LINK_COOKED_2,
}

# In a file, a TCP segment takes at least this many bytes.
LEAST_BYTES = RECORD_HEAD + IPV4_BYTES + TCP_READ_BYTES
