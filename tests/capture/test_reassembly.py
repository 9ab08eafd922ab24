"""The reader finds the frames, however the network and the capture changed the segments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.capture.files.links import Segment
from flexwire.capture.reassembly.assembly import FrameAssembler, connection_key
from flexwire.capture.reassembly.streams import MAX_PENDING_BYTES, REORDER_SEGMENTS
from flexwire.errors import CaptureError
from flexwire.wire.segment_layout import ACK, RST, SYN
from tests.capture.traffic import (
    CLIENT,
    CONNECTION,
    SERVER,
    assemble,
    cut,
    farewell,
    framed,
    handshake,
    of,
    payloads,
    request,
    response,
    tcp,
)

if TYPE_CHECKING:
    from flexwire.capture.reassembly.connections import CapturedFrame

SIZES = st.lists(st.integers(0, 60), min_size=1, max_size=12)
SEQUENCES = st.integers(0, 2**32 - 1) | st.integers(2**32 - 300, 2**32 - 1)
WINDOW = 8


@st.composite
def conversations(draw: st.DrawFn) -> tuple[bytes, bytes, list[Segment], list[Segment]]:
    """Return a connection's streams, its handshake, and its data segments as a capture shows them.

    The segments are cut anywhere, and some are repeated or have other boundaries. Each segment is
    at most `WINDOW` places away from its place in the sent order.
    """
    sizes = draw(SIZES)
    streams = {
        CLIENT: b"".join(request(n, size) for n, size in enumerate(sizes)),
        SERVER: b"".join(response(n, size) for n, size in enumerate(sizes)),
    }
    first = {CLIENT: draw(SEQUENCES), SERVER: draw(SEQUENCES)}
    # Neither side acknowledges anything, so every gap may still be filled.
    known = {CLIENT: first[SERVER] + 1, SERVER: first[CLIENT] + 1}
    sent: list[Segment] = []
    for side, stream in streams.items():
        edges = st.integers(1, len(stream) - 1)
        for start, data in cut(stream, draw(st.lists(edges, max_size=20))):
            at, sequence = len(sent), first[side] + 1 + start
            sent.append(tcp(side, sequence, data, acknowledgment=known[side], at=at))
        for start in draw(st.lists(st.integers(0, len(stream) - 1), max_size=4)):
            data = stream[start : start + draw(st.integers(1, 80))]
            at, sequence = len(sent), first[side] + 1 + start
            sent.append(tcp(side, sequence, data, acknowledgment=known[side], at=at))
    order = [(n + draw(st.integers(0, WINDOW)), n) for n in range(len(sent))]
    shuffled = [sent[n] for _, n in sorted(order)]
    opening = handshake(first[CLIENT], first[SERVER])
    return streams[CLIENT], streams[SERVER], opening, shuffled


@given(conversations())
def test_any_cuts_order_and_repetition_give_the_same_frames(
    case: tuple[bytes, bytes, list[Segment], list[Segment]],
) -> None:
    requests, responses, opening, data = case
    frames = assemble(opening + data)
    assert [one.error for one in frames if one.error] == []
    assert [one.payload for one in of(frames, "request")] == payloads(requests)
    assert [one.payload for one in of(frames, "response")] == payloads(responses)
    for direction in ("request", "response"):
        assert [one.index for one in of(frames, direction)] == list(
            range(len(of(frames, direction)))
        )
    assert {one.connection for one in frames} == {CONNECTION}


@pytest.mark.slow
@given(conversations(), st.data())
def test_every_byte_is_in_exactly_one_frame_whatever_is_lost(
    case: tuple[bytes, bytes, list[Segment], list[Segment]], data: st.DataObject
) -> None:
    requests, responses, opening, segments = case
    kept = data.draw(st.lists(st.booleans(), min_size=len(segments), max_size=len(segments)))
    cut_off = data.draw(
        st.lists(st.integers(0, 200), min_size=len(segments), max_size=len(segments))
    )
    client, server = opening[2].sequence, opening[2].acknowledgment
    captured = [
        tcp(
            one.source,
            one.sequence,
            one.payload[:snaplen],
            acknowledgment=one.acknowledgment,
            missing=max(0, len(one.payload) - snaplen),
        )
        for one, keep, snaplen in zip(segments, kept, cut_off, strict=True)
        if keep
    ]
    end = farewell(client + len(requests), server + len(responses))
    frames = assemble(opening + captured + end)
    for direction, stream in (("request", requests), ("response", responses)):
        found = of(frames, direction)
        assert sum(one.size for one in found) == len(stream)
        whole = [one.payload for one in found if one.error is None]
        # All returned frames are real frames, in the sent order.
        rest = iter(payloads(stream))
        assert all(payload in rest for payload in whole)


@given(
    st.lists(
        st.builds(
            tcp,
            st.sampled_from([CLIENT, SERVER]),
            st.integers(0, 400) | st.integers(0, 2**32 - 1),
            st.binary(max_size=60) | st.builds(request, st.integers(0, 5), st.integers(0, 30)),
            flags=st.integers(0, 255),
            acknowledgment=st.integers(0, 400) | st.integers(0, 2**32 - 1),
            missing=st.integers(0, 40),
            at=st.integers(0, 2**40),
            begins=st.sampled_from([None, None, "request", "response"]),
        ),
        max_size=90,
    )
)
def test_hostile_segments_give_frames_and_no_exception(segments: list[Segment]) -> None:
    for frame in assemble(segments):
        assert frame.size > 0
        assert frame.first_us <= frame.timestamp_us
        assert frame.error is not None or len(frame.payload) + 4 == frame.size


def test_times_are_those_of_the_first_and_last_byte_seen() -> None:
    data = request(1, 10)
    segments = [
        tcp(CLIENT, 1004, data[4:9], at=20),
        tcp(CLIENT, 1000, data[:4], at=30),
        tcp(CLIENT, 1009, data[9:], at=25),
    ]
    (frame,) = assemble(handshake() + segments)
    assert (frame.first_us, frame.timestamp_us, frame.size) == (20, 30, len(data))


def test_a_keep_alive_is_no_data() -> None:
    keep_alive = tcp(CLIENT, 1000 + len(request(1)) - 1, b"\x00")
    frames = assemble([*handshake(), tcp(CLIENT, 1000, request(1)), keep_alive])
    assert [(one.payload, one.error) for one in frames] == [(request(1)[4:], None)]


def test_both_directions_have_one_key_and_other_connections_another() -> None:
    assert connection_key(tcp(CLIENT, 0)) == connection_key(tcp(SERVER, 0))
    other = Segment(0, "10.0.0.9:50001", SERVER, 0, 0, ACK, b"")
    assert connection_key(other) != connection_key(tcp(CLIENT, 0))
    assembler = FrameAssembler()
    assembler.push(tcp(CLIENT, 0))
    with pytest.raises(CaptureError, match="passed to the assembler"):
        assembler.push(other)


def test_a_port_used_again_is_another_connection() -> None:
    one = [*handshake(), tcp(CLIENT, 1000, request(1)), tcp(SERVER, 5000, response(1)[:6])]
    two = [*handshake(70_000, 80_000), tcp(CLIENT, 70_001, request(2))]
    # The first connection may continue during the second one, so it ends last.
    frames = sorted(assemble(one + two), key=lambda one: one.connection)
    assert [(f.connection, f.direction, f.index, f.error) for f in frames] == [
        (CONNECTION, "request", 0, None),
        (CONNECTION, "response", 0, "the connection ended after 6 of a frame's 8 bytes"),
        (f"{CONNECTION}#2", "request", 0, None),
    ]


def test_a_syn_sent_again_is_the_same_connection() -> None:
    opening = handshake()
    frames = assemble([opening[0], *opening, opening[1], tcp(CLIENT, 1000, request(1))])
    assert [(one.connection, one.error) for one in frames] == [(CONNECTION, None)]


def test_a_handshake_captured_late_is_the_same_connection() -> None:
    syn, syn_ack, _ = handshake()
    data = [tcp(CLIENT, 1000, request(1)), tcp(SERVER, 5000, response(1))]
    for opening in ([data[0], syn, syn_ack, data[1]], [syn_ack, syn, *data], [*data, syn, syn_ack]):
        frames = assemble(opening)
        assert [(one.connection, one.error) for one in frames] == [(CONNECTION, None)] * 2


def test_a_syn_long_after_data_is_another_connection() -> None:
    syn = handshake()[0]
    for count, ordinals in ((REORDER_SEGMENTS - 1, {""}), (REORDER_SEGMENTS, {"", "#2"})):
        old = [tcp(CLIENT, 1000 + 18 * n, request(n)) for n in range(count)]
        new = [syn, tcp(CLIENT, 1000 + 18 * count, request(count))]
        frames = assemble(old + new)
        assert {one.connection for one in frames} == {CONNECTION + one for one in ordinals}


def ends(frames: list[CapturedFrame]) -> list[tuple[str, str, str | None]]:
    return [(one.connection, one.direction, one.error) for one in frames]


def test_without_a_handshake_the_one_who_asks_is_the_client() -> None:
    # The ports are reversed on purpose: the reader trusts the response more than the ports.
    answered = [tcp(SERVER, 500, request(77)), tcp(CLIENT, 900, response(77))]
    expected = [(f"{SERVER}>{CLIENT}", "request", None), (f"{SERVER}>{CLIENT}", "response", None)]
    assert ends(assemble(answered)) == expected
    assert ends(assemble(answered[:1])) == expected[:1]


def test_without_any_sign_the_lower_port_is_the_server() -> None:
    # A first response looks like a Produce request: correlation id 3 reads as api key 0, version 3.
    lonely = framed(bytes([0, 0, 0, 3]) + bytes(20))
    assert ends(assemble([tcp(SERVER, 900, lonely)])) == [(CONNECTION, "response", None)]


def test_one_sided_captures_give_that_side_and_count_the_other() -> None:
    segments = [
        tcp(SERVER, 900 + 8 * n, response(n), acknowledgment=100 + 18 * n) for n in range(5)
    ]
    frames = assemble(segments)
    assert [one.error for one in of(frames, "response")] == [None] * 5
    (lost,) = of(frames, "request")
    assert lost.size == 4 * 18
    assert "missing from the capture" in str(lost.error)


def test_frames_begin_where_a_request_does_when_the_capture_starts_late() -> None:
    segments = [
        tcp(CLIENT, 100, b"\xff" * 30),
        tcp(CLIENT, 130, request(8)[:6]),
        tcp(CLIENT, 136, request(8)[6:] + request(9)),
        tcp(SERVER, 700, response(8)),
        tcp(SERVER, 708, response(9)),
    ]
    frames = assemble(segments)
    assert [one.payload for one in frames if one.error is None] == [
        request(8)[4:],
        request(9)[4:],
        response(8)[4:],
        response(9)[4:],
    ]
    (skipped,) = [one for one in frames if one.error]
    assert (skipped.size, skipped.payload) == (30, b"\xff" * 30)
    assert "the capture starts in the middle of the connection" in str(skipped.error)


def test_bytes_from_before_the_first_segment_are_told() -> None:
    segments = [
        tcp(CLIENT, 100, request(1)),
        tcp(SERVER, 900, response(1)),
        tcp(CLIENT, 60, b"\xff" * 40),
    ]
    (early,) = [one for one in assemble(segments) if one.error]
    assert (early.direction, early.size) == ("request", 40)
    assert "precede the first captured segment" in str(early.error)


def test_a_gap_is_given_up_only_when_the_receiver_has_its_bytes() -> None:
    stream = request(1) + request(2) + request(3)
    width = len(request(1))
    assembler = FrameAssembler()
    for segment in handshake():
        assembler.push(segment)
    assert assembler.push(tcp(CLIENT, 1000 + width, stream[width:])) == []
    for _ in range(3 * REORDER_SEGMENTS):
        assert assembler.push(tcp(SERVER, 5000, acknowledgment=1000)) == []
    frames: list[CapturedFrame] = []
    for _ in range(REORDER_SEGMENTS + 1):
        assert frames == []
        frames = assembler.push(tcp(SERVER, 5000, acknowledgment=1000 + 3 * width))
    assert [one.error is None for one in frames] == [False, True, True]
    assert frames[0].size == width


def test_what_waits_behind_a_gap_is_bounded() -> None:
    assembler = FrameAssembler()
    for segment in handshake():
        assembler.push(segment)
    frames: list[CapturedFrame] = []
    pushed = 0
    while not frames:
        assert pushed <= MAX_PENDING_BYTES
        frames = assembler.push(tcp(CLIENT, 2000 + pushed, b"\xff" * 60_000))
        pushed += 60_000
        # The gap becomes a frame with an error when the next real frame arrives.
        if pushed > MAX_PENDING_BYTES:
            frames = assembler.push(tcp(CLIENT, 2000 + pushed, request(5)))
    assert [one.error is None for one in frames] == [False, True]
    assert frames[0].size == 1000 + pushed


def test_a_reset_or_a_handshake_alone_gives_no_frame() -> None:
    assert assemble([*handshake(), tcp(SERVER, 5000, flags=RST | ACK, acknowledgment=1000)]) == []
    assert assemble([tcp(CLIENT, 5, flags=SYN)]) == []
    assert assemble([]) == []
