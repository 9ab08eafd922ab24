"""Capture files of every kind are read, and errors about hostile files name the position."""

from __future__ import annotations

import gzip
import struct
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from flexwire.capture.files.links import Segment, SegmentCounts, UnreadableBytes, read_segments
from flexwire.errors import CaptureError
from flexwire.wire.packet_layout import MAX_BLOCK_BYTES
from tests.capture.traffic import (
    CLIENT,
    SERVER,
    block,
    enhanced,
    interface,
    option,
    packet,
    pcap,
    section,
)
from tests.searching import TIMED

if TYPE_CHECKING:
    from pathlib import Path

PACKETS = [packet(b"one"), packet(b"two"), packet(b"three")]
PCAPNG = section() + interface() + b"".join(enhanced(one, n) for n, one in enumerate(PACKETS))


def read(tmp_path: Path, data: bytes) -> list[Segment | UnreadableBytes]:
    path = tmp_path / "capture"
    path.write_bytes(data)
    return list(read_segments(path))


def payloads(items: list[Segment | UnreadableBytes]) -> list[bytes]:
    return [item.payload for item in items if isinstance(item, Segment)]


def times(items: list[Segment | UnreadableBytes]) -> list[int | None]:
    return [item.timestamp_us for item in items]


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("nanoseconds", [False, True])
def test_pcap_in_both_byte_orders_and_resolutions(
    tmp_path: Path,
    order: str,
    nanoseconds: bool,  # noqa: FBT001 - pytest names it
) -> None:
    items = read(tmp_path, pcap(PACKETS, order=order, nanoseconds=nanoseconds))
    assert payloads(items) == [b"one", b"two", b"three"]
    assert times(items) == [5, 1_000_005, 2_000_005]
    first = items[0]
    assert isinstance(first, Segment)
    assert (first.source, first.destination) == (CLIENT, SERVER)
    assert (first.sequence, first.acknowledgment, first.missing) == (7, 9, 0)


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("options", "microseconds"),
    [
        (b"", 3_000_000),
        (option(9, b"\x06"), 3_000_000),
        (option(9, b"\x09"), 3_000),
        (option(9, b"\x03"), 3_000_000_000),
        (option(9, b"\x94"), 3_000_000 * 1_000_000 // 2**20),
        (option(2, b"eth0") + option(9, b"\x09") + option(0, b""), 3_000),
    ],
)
def test_pcapng_times_count_in_the_interface_s_resolution(
    tmp_path: Path, order: str, options: bytes, microseconds: int
) -> None:
    swapped = options
    if order == ">":
        swapped = b""
        while options:
            code, size = struct.unpack_from("<HH", options)
            swapped += option(code, options[4 : 4 + size], ">")
            options = options[4 + size + -size % 4 :]
    data = section(order) + interface(options=swapped, order=order)
    items = read(tmp_path, data + enhanced(PACKETS[0], 3_000_000, order=order))
    assert times(items) == [microseconds]


def test_pcapng_time_offset_is_added(tmp_path: Path) -> None:
    data = section() + interface(options=option(14, struct.pack("<q", 60)))
    assert times(read(tmp_path, data + enhanced(PACKETS[0], 1))) == [60_000_001]


def test_pcapng_interfaces_and_sections_have_their_own_facts(tmp_path: Path) -> None:
    ethernet = b"\x00" * 12 + b"\x08\x00" + PACKETS[1]
    data = (
        section()
        + interface()
        + interface(1, option(9, b"\x09"))
        + block(4, b"names that nobody asked for")
        + enhanced(PACKETS[0], 5, 0)
        + block(0x0BAD, b"")
        + enhanced(ethernet, 7000, 1)
        + section(">")
        + interface(101, order=">")
        + enhanced(PACKETS[2], 9, 0, order=">")
    )
    items = read(tmp_path, data)
    assert payloads(items) == [b"one", b"two", b"three"]
    assert times(items) == [5, 7, 9]


def test_simple_and_old_packet_blocks(tmp_path: Path) -> None:
    one = PACKETS[0]
    simple = block(3, struct.pack("<I", len(one)) + one)
    old = block(2, struct.pack("<HHIIII", 0, 0, 0, 44, len(one), len(one)) + one)
    items = read(tmp_path, section() + interface() + old + simple)
    assert payloads(items) == [b"one", b"one"]
    # A simple packet block has no time, so it gets the time of the previous packet.
    assert times(items) == [44, 44]
    cut_off = block(3, struct.pack("<I", len(one)) + one[:41])
    (item,) = read(tmp_path, section() + interface(snaplen=41) + cut_off)
    assert isinstance(item, Segment)
    assert (item.payload, item.missing) == (b"o", 2)


SAYS_REQUEST = b"flexwire: a request begins here"


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    ("comments", "begins"),
    [
        ([], None),
        ([b"look at this"], None),
        ([SAYS_REQUEST], "request"),
        ([b"look at this", b"flexwire: a response begins here"], "response"),
        ([SAYS_REQUEST + b"!"], None),
    ],
)
def test_a_comment_says_that_a_frame_begins(
    tmp_path: Path, comments: list[bytes], begins: str | None, order: str
) -> None:
    options = b"".join(option(1, comment, order) for comment in comments)
    for data in PACKETS:
        one = enhanced(data, 1, 0, order, options=option(5, bytes(8), order) + options)
        (item,) = read(tmp_path, section(order) + interface(order=order) + one)
        assert isinstance(item, Segment)
        assert item.begins == begins


def test_options_that_are_damaged_cost_the_packet_nothing(tmp_path: Path) -> None:
    damaged = option(1, SAYS_REQUEST)[:-8]
    data = section() + interface() + enhanced(PACKETS[0], options=damaged)
    (item,) = read(tmp_path, data + enhanced(PACKETS[1])[:0])
    assert isinstance(item, Segment)
    assert (item.payload, item.begins) == (b"one", None)


def test_what_a_snaplen_cut_off_is_counted(tmp_path: Path) -> None:
    items = read(tmp_path, pcap([packet(b"x" * 100)], snaplen=60))
    assert [(len(p.payload), p.missing) for p in items if isinstance(p, Segment)] == [(20, 80)]
    (item,) = read(tmp_path, pcap(PACKETS[:1], snaplen=30))
    assert isinstance(item, UnreadableBytes)
    assert item.reason == "incomplete headers: the capture contains 30 of 43 bytes of the packet"
    assert (item.offset, item.data) == (24, PACKETS[0][:30])


def test_gzip_content_is_read(tmp_path: Path) -> None:
    assert read(tmp_path, gzip.compress(PCAPNG)) == read(tmp_path, PCAPNG)
    broken = read(tmp_path, gzip.compress(PCAPNG * 50)[:-40])
    assert isinstance(broken[-1], UnreadableBytes)
    assert "cannot read the rest" in broken[-1].reason


@pytest.mark.parametrize("data", [pcap(PACKETS), PCAPNG], ids=["pcap", "pcapng"])
def test_every_prefix_gives_what_is_before_the_cut_and_tells_where(
    tmp_path: Path, data: bytes
) -> None:
    whole = read(tmp_path, data)
    assert payloads(whole) == [b"one", b"two", b"three"]
    quiet = 0
    for size in range(4, len(data)):
        items = read(tmp_path, data[:size])
        segments = [item for item in items if isinstance(item, Segment)]
        assert segments == whole[: len(segments)]
        assert len(items) - len(segments) <= 1
        if len(items) == len(segments):
            quiet += 1
            continue
        last = items[-1]
        assert isinstance(last, UnreadableBytes)
        assert "the file ends after" in last.reason
        assert last.offset <= size
    # A cut is invisible only between blocks: after the header, each packet, and the interface.
    assert quiet == (3 if data[:4] != PCAPNG[:4] else 4)


@pytest.mark.parametrize("data", [b"", b"\x0a", b"\x00" * 100, b"GET / HTTP/1.1\r\n"])
def test_what_is_no_capture_is_an_error(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(CaptureError, match=r"neither pcap nor pcapng|the file ends after"):
        read(tmp_path, data)


def test_what_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(CaptureError, match="cannot open"):
            list(read_segments(path))


def name(value: object) -> str:
    return value if isinstance(value, str) else "bytes"


HUGE = struct.pack("<I", 0xFFFFFFFC)


@pytest.mark.parametrize(
    ("tail", "reason"),
    [
        (struct.pack("<II", 6, 0), "invalid block length: 0"),
        (struct.pack("<II", 6, 13), "invalid block length: 13"),
        (struct.pack("<I", 6) + HUGE + bytes(50), "block length exceeds the limit: 4294967292"),
        # An unknown block may be long and is skipped. Here, the file is too short for the block.
        (struct.pack("<I", 99) + HUGE + bytes(50), "of 4294967280 bytes"),
        (struct.pack("<II", 6, MAX_BLOCK_BYTES) + bytes(50), "of 16777204 bytes"),
        (block(99, b"abcd")[:-4] + b"\x00\x00\x00\x00", "but ends with 0"),
        (struct.pack("<III", 0x0A0D0D0A, 28, 7) + bytes(50), "byte order"),
        (
            block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 2, 0, -1)),
            "pcapng version 1, got version 2",
        ),
        (block(1, b""), "interface description is too short"),
        (interface(options=struct.pack("<HH", 9, 400)), "option 9 extends past"),
    ],
    ids=name,
)
def test_a_damaged_block_ends_the_file_and_is_told(
    tmp_path: Path, tail: bytes, reason: str
) -> None:
    items = read(tmp_path, PCAPNG + tail + enhanced(PACKETS[0]))
    assert payloads(items) == [b"one", b"two", b"three"]
    last = items[-1]
    assert isinstance(last, UnreadableBytes)
    assert reason in last.reason
    assert last.offset == len(PCAPNG)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (enhanced(PACKETS[0], number=1), "no block describes interface 1"),
        (block(6, bytes(16)), "a packet block is too short for its fields"),
        (block(3, b""), "a packet block is too short for its fields"),
        (
            block(6, struct.pack("<IIIII", 0, 0, 0, 99, 99) + bytes(8)),
            "declares 99 bytes, but only 8",
        ),
        (enhanced(PACKETS[0], 2**63), "is out of range"),
    ],
    ids=name,
)
def test_a_bad_packet_block_costs_that_packet_only(tmp_path: Path, bad: bytes, reason: str) -> None:
    items = read(tmp_path, PCAPNG + bad + enhanced(PACKETS[0]))
    assert payloads(items) == [b"one", b"two", b"three", b"one"]
    (unreadable,) = [item for item in items if isinstance(item, UnreadableBytes)]
    assert reason in unreadable.reason
    assert (unreadable.offset, unreadable.size) == (len(PCAPNG), len(bad))


def test_a_pcap_length_that_is_damage_ends_the_file(tmp_path: Path) -> None:
    data = pcap(PACKETS) + struct.pack("<IIII", 0, 0, MAX_BLOCK_BYTES + 1, 60)
    last = read(tmp_path, data)[-1]
    assert isinstance(last, UnreadableBytes)
    assert "the packet length exceeds the limit: 16777217" in last.reason


@settings(suppress_health_check=[*TIMED, HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from([pcap(PACKETS), PCAPNG, gzip.compress(PCAPNG, mtime=0)]),
    st.lists(st.tuples(st.integers(0, 500), st.binary(min_size=1, max_size=8)), max_size=6),
    st.binary(max_size=60),
)
def test_any_damage_gives_items_or_a_capture_error(
    tmp_path: Path, data: bytes, damage: list[tuple[int, bytes]], tail: bytes
) -> None:
    for at, patch in damage:
        data = data[: at % len(data)] + patch + data[at % len(data) + len(patch) :]
    path = tmp_path / "capture"
    path.write_bytes(data + tail)
    counts = SegmentCounts()
    try:
        items = list(read_segments(path, counts))
    except CaptureError:
        return
    segments = [item for item in items if isinstance(item, Segment)]
    assert counts.segments == len(segments)
    assert counts.packets == (
        counts.segments + counts.unreadable_packets + sum(counts.skipped.values())
    )
    assert counts.unreadable_packets <= len(items) - len(segments)
