"""Bytes that are not a whole frame are reported with size and reason, and later frames are read."""

from __future__ import annotations

import random
import struct
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.capture.files.packets import SAMPLE_BYTES
from flexwire.capture.reassembly.framing import PieceBuffer
from flexwire.capture.reassembly.streams import StreamPiece
from flexwire.wire.segment_layout import SYN
from tests.capture.traffic import (
    CLIENT,
    SERVER,
    assemble,
    farewell,
    framed,
    handshake,
    of,
    request,
    response,
    tcp,
)

if TYPE_CHECKING:
    from flexwire.capture.files.packets import Direction


def told(stream: bytes, *, limit: int = 1 << 20) -> list[tuple[int, str | None]]:
    """Return the size and error of each frame in one segment of bytes from a client."""
    frames = assemble([*handshake(), tcp(CLIENT, 1000, stream)], limit=limit)
    return [(one.size, one.error) for one in frames]


def test_every_prefix_of_a_stream_gives_its_frames_and_what_broke_off() -> None:
    stream = request(1) + request(2, 7)
    first, both = len(request(1)), len(stream)
    for size in range(both + 1):
        found = told(stream[:size])
        assert sum(bytes_ for bytes_, _ in found) == size
        whole = (size >= first) + (size == both)
        assert [error for _, error in found[:whole]] == [None] * whole
        rest = size - (0, first, both)[whole]
        length = len(request(1)) if size < first else len(request(2, 7))
        of_what = "the 4 bytes of a frame length" if rest < 4 else f"a frame's {length} bytes"
        expected = [f"the connection ended after {rest} of {of_what}"] if rest else []
        assert [error for _, error in found[whole:]] == expected


@pytest.mark.parametrize("length", [-1, -(2**31), 101, 2**31 - 1])
def test_a_length_that_is_none_is_told_with_the_bytes(length: int) -> None:
    garbage = struct.pack(">i", length) + b"x" * 5000
    frames = assemble([*handshake(), tcp(CLIENT, 1000, request(1) + garbage)], limit=100)
    good, bad = frames
    assert good.error is None
    assert bad.size == len(garbage)
    assert bad.payload == garbage[:SAMPLE_BYTES] or bad.payload[:1000] == garbage[:1000]
    assert len(bad.payload) <= SAMPLE_BYTES
    assert f"{length} is not a valid frame length" in str(bad.error)


def test_lengths_up_to_the_limit_are_frames() -> None:
    assert told(framed(bytes(100)), limit=100) == [(104, None)]
    ((size, error),) = told(framed(bytes(101)), limit=100)
    assert (size, error is None) == (105, False)


def test_an_empty_sasl_token_is_a_frame_and_a_run_of_zeros_is_none() -> None:
    empty = framed(b"")
    assert told(request(1) + empty + request(2)) == [(18, None), (4, None), (18, None)]
    (_, first), (size, second) = told(bytes(1000))
    assert (first, size) == (None, 996)
    assert ": 0 is not a valid frame length" in str(second)


@pytest.mark.parametrize(
    ("stream", "resembles"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "the data looks like TLS"),
        (b"GET / HTTP/1.1\r\n\r\n", "the data looks like HTTP"),
    ],
)
def test_other_protocols_are_named(stream: bytes, resembles: str) -> None:
    ((size, error),) = told(stream)
    assert size == len(stream)
    assert resembles in str(error)


def test_requests_go_on_behind_garbage() -> None:
    garbage = b"\xff" * 50
    segments = [
        tcp(CLIENT, 1000, request(1) + garbage),
        tcp(CLIENT, 1068, b"\xff" * 10),
        tcp(CLIENT, 1078, request(2)),
    ]
    frames = assemble(handshake() + segments)
    assert [(one.size, one.error is None) for one in frames] == [
        (18, True),
        (60, False),
        (18, True),
    ]


def test_responses_go_on_with_one_that_a_request_awaits() -> None:
    segments = [
        tcp(CLIENT, 1000, request(7) + request(8)),
        tcp(SERVER, 5000, b"\xff" * 50),
        # The frame looks like a response, but the client sent no request.
        tcp(SERVER, 5050, response(9)),
        tcp(SERVER, 5058, response(8)),
    ]
    frames = of(assemble(handshake() + segments), "response")
    assert [(one.size, one.error is None) for one in frames] == [(58, False), (8, True)]


def test_a_gap_within_a_frame_costs_that_frame_only() -> None:
    stream = request(1, 100) + request(2)
    segments = [tcp(CLIENT, 1000, stream[:40]), tcp(CLIENT, 1090, stream[90:])]
    damaged, good = assemble(handshake() + segments)
    assert damaged.error == "50 of 118 bytes are missing from the capture"
    assert (damaged.size, damaged.payload) == (118, stream[4:40])
    assert (good.error, good.payload) == (None, request(2)[4:])


def test_a_gap_over_a_length_loses_what_follows_in_the_segment() -> None:
    stream = request(1, 100) + request(2) + request(3)
    segments = [
        tcp(CLIENT, 1000, stream[:40]),
        tcp(CLIENT, 1120, stream[120:]),
        tcp(CLIENT, 1000 + len(stream), request(4)),
    ]
    damaged, lost, good = assemble(handshake() + segments)
    assert damaged.error == "78 of 118 bytes are missing from the capture"
    assert (lost.size, good.payload) == (36, request(4)[4:])
    assert "2 of these bytes are missing from the capture" in str(lost.error)


def test_a_snaplen_that_cuts_every_segment_costs_those_frames_only() -> None:
    segments = [
        tcp(CLIENT, 1000, request(1, 100)[:60], missing=58),
        tcp(CLIENT, 1118, request(2)),
        tcp(CLIENT, 1136, request(3, 100)[:60], missing=58),
    ]
    frames = assemble(handshake() + segments)
    assert [(one.size, one.error is None) for one in frames] == [
        (118, False),
        (18, True),
        (118, False),
    ]


def test_what_is_missing_at_the_end_is_told() -> None:
    ends = farewell(1000 + 18 + 30, 5000)
    frames = assemble([*handshake(), tcp(CLIENT, 1000, request(1)), *ends])
    assert [(one.size, one.error is None) for one in frames] == [(18, True), (30, False)]
    acknowledged = tcp(SERVER, 5000, acknowledgment=1000 + 18 + 30)
    assert assemble([*handshake(), tcp(CLIENT, 1000, request(1)), acknowledged]) == frames


def test_a_fin_that_was_not_captured_is_no_missing_byte() -> None:
    data = tcp(CLIENT, 1000, request(1))
    for beyond, errors in ((1, 0), (2, 1)):
        acknowledged = tcp(SERVER, 5000, acknowledgment=1018 + beyond)
        frames = assemble([*handshake(), data, acknowledged])
        assert sum(one.error is not None for one in frames) == errors


def test_an_acknowledgment_beyond_any_window_is_not_believed() -> None:
    data = tcp(CLIENT, 1000, request(1))
    for beyond, errors in ((1 << 30, 1), ((1 << 30) + 1, 0)):
        acknowledged = tcp(SERVER, 5000, acknowledgment=1018 + beyond)
        frames = assemble([*handshake(), data, acknowledged])
        assert [one.size for one in frames if one.error] == [beyond] * errors


def test_responses_from_before_the_capture_are_taken_only_where_it_begins() -> None:
    asked = tcp(CLIENT, 100, request(50))
    old, garbage = response(49), b"\xff" * 8
    begins = [asked, tcp(SERVER, 700, old), tcp(SERVER, 708, response(50))]
    assert [one.error for one in assemble(begins)] == [None] * 3
    later = [
        asked,
        tcp(SERVER, 700, response(50) + garbage),
        tcp(CLIENT, 118, request(51)),
        tcp(SERVER, 716, old),
        tcp(SERVER, 724, response(51)),
    ]
    frames = of(assemble(later), "response")
    assert [(one.size, one.error is None) for one in frames] == [(8, True), (16, False), (8, True)]


def test_bytes_that_are_no_frames_are_not_taken_for_some_where_a_capture_begins() -> None:
    noise = random.Random(11)
    # The capture of each connection begins within a long response, which contains no frame.
    invented = 0
    for _ in range(40):
        segments = [tcp(SERVER, 700 + 100 * n, noise.randbytes(100)) for n in range(100)]
        invented += sum(one.error is None for one in assemble(segments, limit=1 << 28))
    assert invented == 0


@pytest.mark.parametrize("number", [">q", "<q", ">d", "<i"])
@pytest.mark.parametrize("phase", range(8))
def test_numbers_in_records_are_not_taken_for_responses_from_before_the_capture(
    number: str, phase: int
) -> None:
    numbers = b"".join(struct.pack(number, n) for n in range(2000))[phase:]
    segments = [tcp(CLIENT, 100, request(950))]
    segments += [tcp(SERVER, 700 + n, numbers[n : n + 1000]) for n in range(0, len(numbers), 1000)]
    segments.append(tcp(SERVER, 700 + len(numbers), response(950)))
    found = of(assemble(segments), "response")
    assert [(one.size, one.error is None) for one in found] == [(len(numbers), False), (8, True)]


@pytest.mark.parametrize("size", [17 << 20, 100 << 20])
def test_an_awaited_response_may_be_of_any_length(size: int) -> None:
    segments = [
        tcp(CLIENT, 100, request(7)),
        tcp(SERVER, 700, b"\xff" * 100),
        tcp(SERVER, 800, struct.pack(">ii", size, 7)),
        tcp(SERVER, 808, missing=size - 4),
        tcp(CLIENT, 118, request(8)),
        tcp(SERVER, 804 + size, response(8)),
    ]
    found = of(assemble(segments, limit=128 << 20), "response")
    assert [one.size for one in found] == [100, 4 + size, 8]
    assert found[2].error is None


def test_a_long_response_from_before_the_capture_is_found_by_the_one_behind_it() -> None:
    old = response(40, 3_000_000)
    stream = b"\xff" * 10 + old + response(41)
    edges = [0, *range(10, 10 + len(old), 1460), len(stream)]
    segments = [tcp(SERVER, 700 + a, stream[a:b]) for a, b in pairwise(edges)]
    sizes = [(one.size, one.error is None) for one in assemble(segments, limit=1 << 28)]
    assert sizes == [(10, False), (len(old), True), (8, True)]


@pytest.mark.parametrize(
    ("side", "begins", "undecided"),
    [(CLIENT, "request", request(1)[:13]), (SERVER, "response", response(1, 40)[:20])],
)
def test_where_the_capture_says_so_a_frame_begins_whatever_it_looks_like(
    side: str, begins: Direction, undecided: bytes
) -> None:
    odd = framed(b"\xff" * 20)
    sequence = 700 + len(undecided)
    segments = [
        tcp(side, 700, undecided),
        tcp(side, sequence, odd, begins=begins),
        tcp(side, sequence + 24, odd),
    ]
    skipped, *found = assemble(segments)
    assert (skipped.size, skipped.direction) == (len(undecided), begins)
    assert [(one.payload, one.error) for one in found] == [(odd[4:], None)] * 2
    # A comment in the middle of a frame adds no information.
    middle = [tcp(side, 999, flags=SYN), tcp(side, 1000, odd[:9])]
    middle.append(tcp(side, 1009, odd[9:], begins=begins))
    assert [one.payload for one in assemble(middle)] == [odd[4:]]


@given(
    st.lists(st.binary(min_size=1, max_size=9), max_size=9), st.integers(0, 99), st.integers(0, 99)
)
def test_what_is_held_can_be_looked_at_anywhere(parts: list[bytes], start: int, count: int) -> None:
    held, position = PieceBuffer(), 1 << 33
    for part in parts:
        held.pieces.append(StreamPiece(position, part, 0, 0))
        position += len(part)
    whole = b"".join(parts)
    assert held.size == len(whole)
    assert held.peek(start, count) == whole[start : start + count]
