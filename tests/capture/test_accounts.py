"""Every byte of a segment is counted, even if connections share addresses and ports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.capture.reassembly.assembly import OPEN_CONNECTIONS, FrameAssembler
from flexwire.capture.reassembly.course import FAR_BYTES, NEAR_BYTES, WIDEST_GAP
from flexwire.capture.reassembly.streams import Stream, StreamPiece
from flexwire.wire.segment_layout import ACK, FIN, MODULUS, RST, SYN
from tests.capture.traffic import (
    CLIENT,
    CONNECTION,
    SERVER,
    cut,
    farewell,
    handshake,
    payloads,
    request,
    response,
    tcp,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from hypothesis.strategies import SearchStrategy

    from flexwire.capture.files.packets import Segment
    from flexwire.capture.reassembly.connections import CapturedConnection, CapturedFrame

FRAMES = 5


def assembled(
    segments: Iterable[Segment],
) -> tuple[list[CapturedFrame], dict[str, CapturedConnection]]:
    """Return the frames and the connections after checking their counts."""
    segments = list(segments)
    assembler = FrameAssembler(limit=1 << 20)
    frames: list[CapturedFrame] = []
    ended: list[CapturedConnection] = []
    for segment in segments:
        frames += assembler.push(segment)
        ended += assembler.ended()
    frames += assembler.finish()
    ended += assembler.ended()
    assert sum(one.captured_bytes for one in ended) == sum(len(one.payload) for one in segments)
    connections = {one.connection: one for one in ended}
    assert len(connections) == len(ended)
    assert {one.connection for one in frames} <= set(connections)
    for name, one in connections.items():
        own = [frame for frame in frames if frame.connection == name]
        hold_account(one, own)
    return frames, connections


def hold_account(one: CapturedConnection, frames: list[CapturedFrame]) -> None:
    size = one.request_bytes + one.response_bytes
    assert size == sum(frame.size for frame in frames)
    assert one.captured_bytes == size - one.lost_bytes + one.repeated_bytes + one.late_bytes
    whole = sum(frame.size for frame in frames if frame.error is None)
    assert size == whole + one.unreadable_bytes + one.early_bytes + one.lost_bytes
    counts = (one.lost_bytes, one.repeated_bytes, one.late_bytes)
    assert min(*counts, one.early_bytes, one.unreadable_bytes) >= 0


def talk(first: int, client: int, server: int) -> list[Segment]:
    """Return requests and responses with acknowledgments, starting at these sequence numbers."""
    sent = []
    for number in range(first, first + FRAMES):
        asked, answered = request(number), response(number)
        sent.append(tcp(CLIENT, client, asked, acknowledgment=server))
        client += len(asked)
        sent.append(tcp(SERVER, server, answered, acknowledgment=client))
        server += len(answered)
    return sent


CLIENT_BYTES, SERVER_BYTES = FRAMES * len(request(0)), FRAMES * len(response(0))
BASE_CLIENT, BASE_SERVER = 5_000_000, 8_000_000
END_CLIENT, END_SERVER = BASE_CLIENT + CLIENT_BYTES, BASE_SERVER + SERVER_BYTES
CLOSINGS = {
    "both FIN": farewell(END_CLIENT, END_SERVER),
    "the broker's FIN first": [
        tcp(SERVER, END_SERVER, flags=FIN | ACK, acknowledgment=END_CLIENT),
        tcp(CLIENT, END_CLIENT, flags=FIN | ACK, acknowledgment=END_SERVER + 1),
    ],
    "one FIN, of the client": farewell(END_CLIENT, END_SERVER)[:1],
    "the client's RST": [tcp(CLIENT, END_CLIENT, flags=RST | ACK, acknowledgment=END_SERVER)],
    "the broker's RST": [tcp(SERVER, END_SERVER, flags=RST | ACK, acknowledgment=END_CLIENT)],
    "FIN and RST": [
        *farewell(END_CLIENT, END_SERVER),
        tcp(CLIENT, END_CLIENT + 1, flags=RST),
    ],
}
SHIFTS = {
    "lower": -999_910,
    "a little lower": -3_000,
    "a little higher": 3_000,
    "higher": 999_910,
    "far": 2_000_000_000,
    "farthest": MODULUS // 2,
}


@pytest.mark.parametrize("shift", SHIFTS)
@pytest.mark.parametrize("closing", CLOSINGS)
def test_after_its_end_what_a_connection_cannot_have_sent_is_another(
    closing: str, shift: str
) -> None:
    first = [*handshake(BASE_CLIENT - 1, BASE_SERVER - 1), *talk(0, BASE_CLIENT, BASE_SERVER)]
    client, server = BASE_CLIENT + SHIFTS[shift], BASE_SERVER - SHIFTS[shift]
    again = talk(50, client, server)
    for second in (again, [*again[1::2], *again[::2]]):
        frames, connections = assembled([*first, *CLOSINGS[closing], *second])
        assert [one.error for one in frames if one.error] == []
        assert len(frames) == 4 * FRAMES
        assert set(connections) == {CONNECTION, f"{CONNECTION}#2"}
        assert sum(one.lost_bytes for one in connections.values()) == 0


@pytest.mark.parametrize("shift", ["lower", "higher", "far", "farthest"])
@pytest.mark.parametrize("opened", [0, 1, 2])
def test_connections_that_a_capture_shows_at_once_are_told_apart(opened: int, shift: str) -> None:
    client, server = BASE_CLIENT + SHIFTS[shift], BASE_SERVER - SHIFTS[shift]
    openings = [handshake(BASE_CLIENT - 1, BASE_SERVER - 1), handshake(client - 1, server - 1)]
    both = zip(talk(0, BASE_CLIENT, BASE_SERVER), talk(50, client, server), strict=True)
    segments = [one for opening in openings[:opened] for one in opening]
    frames, connections = assembled([*segments, *(one for pair in both for one in pair)])
    assert [one.error for one in frames if one.error] == []
    assert len(frames) == 4 * FRAMES
    assert {one.lost_bytes for one in connections.values()} == {0}
    assert len(connections) == 2


def test_the_client_of_these_ports_stays_the_client() -> None:
    # The first response of a connection does not look like a request. Alone, this response does
    # not show which end is the broker.
    again = [tcp(SERVER, 3_000_000, response(3)), tcp(SERVER, 3_000_008, response(4))]
    swapped = [
        tcp(SERVER, BASE_CLIENT - 1, flags=SYN),
        tcp(CLIENT, BASE_SERVER - 1, flags=SYN | ACK, acknowledgment=BASE_CLIENT),
        tcp(SERVER, BASE_CLIENT, flags=FIN | ACK, acknowledgment=BASE_SERVER),
        tcp(CLIENT, BASE_SERVER, flags=FIN | ACK, acknowledgment=BASE_CLIENT + 1),
    ]
    _, connections = assembled([*swapped, *again])
    assert set(connections) == {f"{SERVER}>{CLIENT}", f"{SERVER}>{CLIENT}#2"}


def test_what_was_under_way_when_a_connection_ended_is_of_it() -> None:
    talked = [*handshake(BASE_CLIENT - 1, BASE_SERVER - 1), *talk(0, BASE_CLIENT, BASE_SERVER)]
    for closing in ("both FIN", "the client's RST"):
        ended = [*talked[:-3], *CLOSINGS[closing], *talked[-3:]]
        frames, connections = assembled(ended)
        assert set(connections) == {CONNECTION}
        assert [one.error for one in frames if one.error] == []
        assert len(frames) == 2 * FRAMES


def test_after_a_reset_nothing_is_missing() -> None:
    talked = [*handshake(BASE_CLIENT - 1, BASE_SERVER - 1), *talk(0, BASE_CLIENT, BASE_SERVER)]
    later = tcp(CLIENT, END_CLIENT + 3000, request(9), acknowledgment=END_SERVER)
    _, connections = assembled([*talked, *CLOSINGS["the broker's RST"], later])
    assert [one.lost_bytes for one in connections.values()] == [0, 0]


def jumped(by: int, *, answered_by: int = 0) -> int:
    """Return the number of connections if both directions skip this many bytes."""
    client, server = BASE_CLIENT + CLIENT_BYTES + by, BASE_SERVER + SERVER_BYTES + answered_by
    first = talk(0, BASE_CLIENT, BASE_SERVER)
    return len(assembled([*first, *talk(50, client, server)])[1])


def test_a_gap_is_one_up_to_a_bound() -> None:
    assert [jumped(WIDEST_GAP + one) for one in (0, 1)] == [1, 2]
    assert [jumped(FAR_BYTES + one, answered_by=FAR_BYTES + one) for one in (0, 1)] == [1, 2]
    first = tcp(CLIENT, BASE_CLIENT, request(1))
    for before, count in ((NEAR_BYTES, 1), (NEAR_BYTES + 1, 2)):
        early = tcp(CLIENT, BASE_CLIENT - before, request(2))
        _, connections = assembled([first, early])
        assert len(connections) == count
        assert sum(one.early_bytes for one in connections.values()) == (18 if count == 1 else 0)


def test_one_connection_more_than_may_be_open_ends_the_idlest() -> None:
    def opening(number: int) -> list[Segment]:
        return handshake(number * (WIDEST_GAP + 7), number * (WIDEST_GAP + 11))

    opened = [one for number in range(OPEN_CONNECTIONS) for one in opening(number)]
    again = tcp(CLIENT, 1, request(1), acknowledgment=1)
    assembler = FrameAssembler()
    for segment in [*opened, again, *opening(OPEN_CONNECTIONS)]:
        assembler.push(segment)
    assert [one.connection for one in assembler.ended()] == [f"{CONNECTION}#2"]


def test_bytes_are_counted_by_what_became_of_them() -> None:
    stream = b"".join(request(number) for number in range(200))
    segments = [tcp(CLIENT, 1000 + at, stream[at : at + 18]) for at in range(0, len(stream), 18)]
    lost = segments[3]
    acknowledged = tcp(SERVER, 5000, acknowledgment=1000 + len(stream))
    captured = [*handshake(), acknowledged, *segments[:3], *segments[4:], lost, segments[7], lost]
    _, connections = assembled(captured)
    (one,) = connections.values()
    assert (one.lost_bytes, one.late_bytes, one.repeated_bytes) == (18, 36, 18)
    _, connections = assembled([tcp(CLIENT, 1000, b"\xff" * 30), tcp(CLIENT, 990, b"\xff" * 12)])
    (one,) = connections.values()
    assert (one.early_bytes, one.repeated_bytes, one.unreadable_bytes) == (10, 2, 30)


@given(
    st.booleans(),
    st.integers(0, MODULUS - 1) | st.integers(MODULUS - 200, MODULUS - 1),
    st.lists(
        st.tuples(
            st.integers(-60, 300),
            st.integers(0, 60),
            st.integers(0, 30),
            st.integers(0, 400),
        ),
        max_size=120,
    ),
)
def test_of_a_stream_every_byte_is_in_one_piece_or_counted(
    is_anchored: bool,  # noqa: FBT001 - drawn by hypothesis
    first: int,
    pushed: list[tuple[int, int, int, int]],
) -> None:
    stream = Stream()
    stream.start(first, anchored=is_anchored)
    pieces = []
    for at, size, missing, acknowledged in pushed:
        stream.acknowledge((first + acknowledged) % MODULUS)
        sequence = (first + at) % MODULUS
        pieces += stream.push(sequence, bytes(size), missing, 0)
        pieces += stream.age()
    pieces += stream.finish(0)
    given_out = sum(len(piece.data) for piece in pieces)
    counted = stream.repeated + stream.late + stream.early
    assert given_out + counted == sum(size for _, size, _, _ in pushed)
    position = first
    for piece in pieces:
        assert piece.position == position
        position = piece.end


@given(
    st.lists(
        st.tuples(st.integers(0, 300), st.integers(0, 60), st.integers(0, 9), st.integers(0, 400)),
        max_size=60,
    ),
)
def test_a_stream_goes_on_from_where_it_stands_whatever_was_acknowledged_before(
    pushed: list[tuple[int, int, int, int]],
) -> None:
    def take(one: Stream, at: int, size: int, missing: int, acknowledged: int) -> list[StreamPiece]:
        # At every third segment, the other end has sent nothing yet.
        if acknowledged % 3:
            one.acknowledge(1000 + acknowledged)
        return one.push(1000 + at, bytes(size), missing, 0) + one.age()

    stream = Stream()
    stream.start(1000, anchored=True)
    found, standings = [], list[int | None]()
    for segment in pushed:
        standings.append(stream.standing())
        found.append(take(stream, *segment))
    found.append(stream.finish(0))
    for first, standing in enumerate(standings):
        if standing is not None:
            other = Stream()
            other.resume(standing)
            assert [take(other, *one) for one in pushed[first:]] == found[first:-1]
            assert other.finish(0) == found[-1]


SEQUENCES = st.one_of(
    st.integers(0, MODULUS - 1),
    st.integers(MODULUS - 300, MODULUS - 1),
    st.integers(5000, 5600),
    st.sampled_from([1000, 1_000_000, FAR_BYTES * 3, WIDEST_GAP + 5]),
)
ENDINGS = st.sampled_from(["none", "both", "client", "server", "reset", "refused"])


@st.composite
def connections(draw: st.DrawFn, number: int) -> list[Segment]:
    """Return a connection as a capture may contain it: cut off, with losses or with repeats."""
    client, server = draw(SEQUENCES), draw(SEQUENCES)
    segments = handshake(client - 1, server - 1)[: draw(st.integers(0, 3))]
    numbers = range(100 * number, 100 * number + draw(st.integers(0, 6)))
    streams = {
        CLIENT: b"".join(request(one, draw(st.integers(0, 40))) for one in numbers),
        SERVER: b"".join(response(one, draw(st.integers(0, 40))) for one in numbers),
    }
    data = []
    for side, stream in streams.items():
        start, other = (client, server) if side == CLIENT else (server, client)
        acknowledged = other + draw(st.integers(0, len(stream) + 1))
        for at, part in cut(stream, draw(st.lists(st.integers(1, 400), max_size=8))):
            missing = draw(st.integers(0, len(part))) if draw(st.booleans()) else 0
            kept = part[: len(part) - missing]
            begun = start + at
            data.append(tcp(side, begun, kept, acknowledgment=acknowledged, missing=missing))
    data = draw(
        st.permutations(
            data + draw(st.lists(st.sampled_from(data or segments or [tcp(CLIENT, 1)]), max_size=4))
        )
    )
    ends = {CLIENT: client + len(streams[CLIENT]), SERVER: server + len(streams[SERVER])}
    fins = farewell(ends[CLIENT], ends[SERVER])
    closing = {
        "none": [],
        "both": fins,
        "client": fins[:1],
        "server": fins[1:],
        "reset": [tcp(CLIENT, ends[CLIENT], flags=RST)],
        "refused": [tcp(SERVER, 0, flags=RST | ACK, acknowledgment=client)],
    }[draw(ENDINGS)]
    kept_closing = draw(st.integers(0, len(data)))
    whole = [*segments, *data[:kept_closing], *closing, *data[kept_closing:]]
    lost = draw(st.sets(st.integers(0, len(whole)), max_size=4))
    return [one for at, one in enumerate(whole) if at not in lost]


def merged(draw: Callable[[SearchStrategy[Any]], Any], parts: list[list[Segment]]) -> list[Segment]:
    """Return the segments one connection after another, or mixed. Each keeps its own order."""
    if draw(st.booleans()):
        return [one for part in parts for one in part]
    turns = draw(st.permutations([at for at, part in enumerate(parts) for _ in part]))
    rest = [iter(part) for part in parts]
    return [next(rest[at]) for at in turns]


@st.composite
def captures(draw: st.DrawFn) -> list[Segment]:
    parts = [draw(connections(number)) for number in range(draw(st.integers(1, 6)))]
    return merged(draw, parts)


@pytest.mark.long
@pytest.mark.slow
@given(captures())
def test_every_byte_of_any_connections_at_once_is_in_a_frame_or_counted(
    segments: list[Segment],
) -> None:
    assembled(segments)


@st.composite
def whole_connections(
    draw: st.DrawFn, number: int, place: int
) -> tuple[list[Segment], list[bytes]]:
    """Return a connection from SYN to FIN without losses, and its frames."""
    # Their sequence numbers are so far apart that a segment can belong to only one of them.
    client = (place * (MODULUS // 8) + draw(st.integers(0, 10_000))) % MODULUS
    server = draw(SEQUENCES)
    numbers = range(100 * number, 100 * number + draw(st.integers(1, 6)))
    asked = [request(one, draw(st.integers(0, 40))) for one in numbers]
    answered = [response(one, draw(st.integers(0, 40))) for one in numbers]
    data = []
    for side, frames, start, other in (
        (CLIENT, asked, client, server),
        (SERVER, answered, server, client),
    ):
        for at, part in cut(b"".join(frames), draw(st.lists(st.integers(1, 400), max_size=8))):
            data.append(tcp(side, start + at, part, acknowledgment=other))
    data = draw(st.permutations(data + draw(st.lists(st.sampled_from(data), max_size=4))))
    closing = farewell(client + sum(map(len, asked)), server + sum(map(len, answered)))
    segments = [*handshake(client - 1, server - 1), *data, *closing]
    found = payloads(b"".join(asked)) + payloads(b"".join(answered))
    return segments, found


@pytest.mark.long
@pytest.mark.slow
@given(st.data())
def test_of_whole_connections_at_once_every_frame_is_found(data: st.DataObject) -> None:
    places = data.draw(st.permutations(range(8)))[: data.draw(st.integers(1, OPEN_CONNECTIONS))]
    drawn = [data.draw(whole_connections(*one)) for one in enumerate(places)]
    segments = merged(data.draw, [part for part, _ in drawn])
    frames, connections = assembled(segments)
    assert [one.error for one in frames if one.error] == []
    expected = sorted(payload for _, payloads_ in drawn for payload in payloads_)
    assert sorted(one.payload for one in frames) == expected
    assert len(connections) == len(drawn)
