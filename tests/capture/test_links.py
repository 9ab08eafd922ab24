"""The same segment is found on every link, in IPv4 and IPv6. Everything else is counted."""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.capture.files.links import (
    SegmentCounts,
    Skipped,
    UnreadablePacketError,
    read_segment,
    read_segments,
)
from flexwire.capture.files.packets import CapturedPacket, Segment, endpoints, tcp_packet
from flexwire.wire.segment_layout import ACK
from tests.capture.traffic import packet, pcap

if TYPE_CHECKING:
    from pathlib import Path

V4 = packet(b"hello")
V6 = tcp_packet(
    *endpoints(("fe80::1", 50000), ("fe80::2", 9092)),
    sequence=7,
    acknowledgment=9,
    flags=ACK,
    payload=b"hello",
)
MACS = bytes(12)


def captured(data: bytes, linktype: int = 101, original: int | None = None) -> CapturedPacket:
    return CapturedPacket(0, linktype, data, len(data) if original is None else original, 0)


def ethertype(number: int) -> bytes:
    return struct.pack(">H", number)


@pytest.mark.parametrize(
    ("linktype", "head4", "head6"),
    [
        (101, b"", b""),
        (12, b"", b""),
        (14, b"", b""),
        (228, b"", None),
        (229, None, b""),
        (1, MACS + b"\x08\x00", MACS + b"\x86\xdd"),
        (1, MACS + b"\x81\x00\x00\x05\x08\x00", MACS + b"\x81\x00\x00\x05\x86\xdd"),
        (1, MACS + b"\x88\xa8\x00\x01\x81\x00\x00\x05\x08\x00", None),
        (113, bytes(14) + b"\x08\x00", bytes(14) + b"\x86\xdd"),
        (276, b"\x08\x00" + bytes(18), b"\x86\xdd" + bytes(18)),
        (276, b"\x81\x00" + bytes(18) + b"\x00\x05\x08\x00", None),
        (0, b"\x02\x00\x00\x00", b"\x1e\x00\x00\x00"),
        (0, b"\x00\x00\x00\x02", b"\x00\x00\x00\x18"),
        (108, b"\x00\x00\x00\x02", b"\x00\x00\x00\x1c"),
    ],
)
def test_the_segment_is_found_on_every_link(
    linktype: int, head4: bytes | None, head6: bytes | None
) -> None:
    for head, body, source in ((head4, V4, "10.0.0.9:50000"), (head6, V6, "[fe80::1]:50000")):
        if head is None:
            continue
        segment = read_segment(captured(head + body, linktype))
        assert (segment.source, segment.payload, segment.missing) == (source, b"hello", 0)
        padded = read_segment(captured(head + body + bytes(6), linktype))
        assert padded == segment


@pytest.mark.parametrize("body", [V4, V6], ids=["IPv4", "IPv6"])
def test_every_prefix_is_a_segment_with_bytes_missing_or_told(body: bytes) -> None:
    # Window, checksum and urgent pointer end a TCP header. These tests do not need them.
    needed = len(body) - 5 - 6
    for size in range(needed):
        with pytest.raises(UnreadablePacketError, match=f"contains {size} of {len(body)}"):
            read_segment(captured(body[:size], 101, len(body)))
    for size in range(needed, len(body)):
        segment = read_segment(captured(body[:size], 101, len(body)))
        assert len(segment.payload) + segment.missing == 5


def test_ipv4_options_are_passed_over() -> None:
    longer = bytes([0x46]) + V4[1:2] + struct.pack(">H", len(V4) + 4) + V4[4:20] + bytes(4)
    assert read_segment(captured(longer + V4[20:])).payload == b"hello"


def with_extensions(*headers: tuple[int, bytes]) -> bytes:
    """Return an IPv6 packet with extension headers, given by number and content."""
    kinds = [kind for kind, _ in headers] + [6]
    chain = b"".join(
        bytes([following]) + rest for (_, rest), following in zip(headers, kinds[1:], strict=True)
    )
    length = struct.pack(">H", len(V6) - 40 + len(chain))
    return V6[:4] + length + bytes([kinds[0]]) + V6[7:40] + chain + V6[40:]


def test_ipv6_extension_headers_are_passed_over() -> None:
    hop_by_hop = (0, b"\x00" + bytes(6))
    longer = (60, b"\x01" + bytes(14))
    authentication = (51, b"\x04" + bytes(22))
    whole_fragment = (44, bytes(7))
    data = with_extensions(hop_by_hop, longer, authentication, whole_fragment)
    assert read_segment(captured(data)).payload == b"hello"


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (V4[:6] + b"\x20\x00" + V4[8:], "an IP fragment, at offset 0"),
        (V4[:6] + b"\x00\x10" + V4[8:], "an IP fragment, at offset 128"),
        (with_extensions((44, b"\x00\x00\x01" + bytes(4))), "an IP fragment, at offset 0"),
        (with_extensions((44, b"\x00\x00\x80" + bytes(4))), "an IP fragment, at offset 128"),
        (b"\x44" + V4[1:], "invalid IPv4 header: the first byte is 0x44"),
        (
            V4[:32] + b"\x40" + V4[33:],
            "the TCP header declares 16 bytes: expected at least 20, and at most the 25 bytes left",
        ),
        (
            V4[:32] + b"\xf0" + V4[33:],
            "the TCP header declares 60 bytes: expected at least 20, and at most the 25 bytes left",
        ),
        (
            V4[:2] + b"\x00\x14" + V4[4:],
            "the TCP header declares 20 bytes: expected at least 20, and at most the 0 bytes left",
        ),
        (b"\x40\x00", "contains 2 of 2 bytes"),
    ],
)
def test_what_gives_no_segment_is_told(data: bytes, reason: str) -> None:
    with pytest.raises(UnreadablePacketError, match=reason):
        read_segment(captured(data))


@pytest.mark.parametrize(
    ("linktype", "data", "reason"),
    [
        (101, V4[:9] + b"\x11" + V4[10:], "IP protocol 17"),
        (101, V6[:6] + b"\x3a" + V6[7:], "IP protocol 58"),
        (1, MACS + b"\x08\x06" + bytes(28), "network protocol 0x0806"),
        (101, b"\x00", "network protocol 0x0000"),
        (147, V4, "link type 147 is not supported"),
    ],
)
def test_other_packets_are_counted_by_what_they_are(
    tmp_path: Path, linktype: int, data: bytes, reason: str
) -> None:
    with pytest.raises(Skipped, match=reason):
        read_segment(captured(data, linktype))
    path = tmp_path / "capture.pcap"
    path.write_bytes(pcap([data, data], linktype=linktype))
    counts = SegmentCounts()
    assert list(read_segments(path, counts)) == []
    assert counts.skipped == {reason: 2}
    assert counts.packets == 2


@pytest.mark.parametrize("body", [V4, V6], ids=["IPv4", "IPv6"])
def test_a_length_of_0_means_the_packet_as_captured(body: bytes) -> None:
    # Network cards that split a stream themselves deliver longer packets, without a length.
    at = 2 if body is V4 else 4
    unsized = body[:at] + bytes(2) + body[at + 2 :] + b" world"
    assert read_segment(captured(unsized)).payload == b"hello world"


@given(
    st.sampled_from([0, 1, 12, 101, 108, 113, 228, 229, 276, 9]),
    st.binary(max_size=120) | st.binary(max_size=60).map(lambda tail: V6[:40] + tail),
    st.integers(0, 2**32 - 1),
)
def test_any_bytes_are_a_segment_told_or_counted(linktype: int, data: bytes, original: int) -> None:
    with suppress(Skipped, UnreadablePacketError):
        segment = read_segment(captured(data, linktype, original))
        assert isinstance(segment, Segment)
        assert len(segment.payload) <= len(data)
        assert segment.missing >= 0
