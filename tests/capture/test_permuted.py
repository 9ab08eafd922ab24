"""A capture without loss yields the same connections, whatever the order of its segments."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec
import pytest

from flexwire.capture.reassembly.connections import BrokerEnds
from flexwire.capture.reassembly.course import NEAR_BYTES
from flexwire.capture.reassembly.streams import REORDER_SEGMENTS
from flexwire.wire.segment_layout import ACK, FIN, MODULUS, SYN
from tests.capture.columns.test_flows import by_columns
from tests.capture.test_accounts import assembled
from tests.capture.traffic import CLIENT, CONNECTION, SERVER, request, response, tcp
from tests.searching import in_make_long

if TYPE_CHECKING:
    from flexwire.capture.files.packets import Segment
    from flexwire.capture.reassembly.connections import CapturedFrame

NONE = BrokerEnds()
# Fewer segments than the reader waits for at a gap.
WINDOWS = (2, 5, 15, REORDER_SEGMENTS // 2)


@dataclass
class Sent:
    """The data of one connection, in order, as segments and as streams."""

    segments: list[Segment] = field(default_factory=list)
    streams: dict[str, bytes] = field(default_factory=lambda: {CLIENT: b"", SERVER: b""})


def sent(source: random.Random, exchanges: int, first: int, *, closes: bool = True) -> Sent:
    """Return a connection that is captured from its handshake to its end."""
    made = Sent()
    at = {CLIENT: source.randrange(MODULUS), SERVER: source.randrange(MODULUS)}
    most = source.choice([9, 200, 1448])

    def send(end: str, data: bytes = b"", flags: int = ACK) -> None:
        other = SERVER if end == CLIENT else CLIENT
        known = at[other] if flags & ACK else 0
        made.segments.append(tcp(end, at[end], data, flags=flags, acknowledgment=known))
        made.streams[end] += data
        at[end] += len(data) + bool(flags & (SYN | FIN))

    send(CLIENT, flags=SYN)
    send(SERVER, flags=SYN | ACK)
    send(CLIENT)
    for number in range(first, first + exchanges):
        for end, data in (
            (CLIENT, request(number, source.choice([0, 30, 3000]))),
            (SERVER, response(number, source.choice([0, 30, 3000]))),
        ):
            for start in range(0, len(data), most):
                send(end, data[start : start + most])
            if source.random() < 0.5:
                send(SERVER if end == CLIENT else CLIENT)
    if closes:
        ends = source.choice([(CLIENT, SERVER), (SERVER, CLIENT)])
        for end in ends:
            send(end, flags=FIN | ACK)
        send(ends[0])
    return made


def permuted(source: random.Random, segments: list[Segment], window: float) -> list[Segment]:
    """Return the segments, each up to ``window`` places late, with times in the new order."""
    places = [place + source.uniform(0, window) for place in range(len(segments))]
    order = sorted(range(len(segments)), key=places.__getitem__)
    return [
        msgspec.structs.replace(segments[one], timestamp_us=1_000_000 + 10 * place)
        for place, one in enumerate(order)
    ]


def assert_whole(
    captured: list[Segment], expected: dict[str, Sent], seed: int
) -> dict[str, list[CapturedFrame]]:
    """Check that both ways of reading find these connections, with every byte in a whole frame."""
    frames, connections = assembled(captured)
    in_columns, also = by_columns(random.Random(seed), captured, NONE)
    assert sorted(connections.values(), key=lambda one: one.connection) == also
    by_name = {name: [one for one in frames if one.connection == name] for name in connections}
    assert {name: found for name, found in by_name.items() if found} == in_columns
    assert set(connections) == set(expected), seed
    for name, one in connections.items():
        counts = one.lost_bytes, one.late_bytes, one.early_bytes, one.unreadable_bytes
        assert counts == (0, 0, 0, 0), (seed, name)
        assert one.repeated_bytes == 0
        assert one.seen_from_start
        for direction, end in (("request", CLIENT), ("response", SERVER)):
            found = [one for one in by_name[name] if one.direction == direction]
            data = b"".join(len(one.payload).to_bytes(4) + one.payload for one in found)
            assert data == expected[name].streams[end], (seed, name, direction)
    return by_name


@pytest.mark.slow
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("exchanges", [0, 1, 5, *in_make_long(40)])
def test_one_connection_stays_one_in_any_order(exchanges: int, window: int) -> None:
    for seed in range(4):
        source = random.Random(seed)
        made = sent(source, exchanges, 0, closes=seed % 3 > 0)
        assert_whole(permuted(source, made.segments, window), {CONNECTION: made}, seed)


@pytest.mark.slow
@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("exchanges", [1, *in_make_long(20)])
def test_where_ports_are_used_again_the_first_numbers_decide(exchanges: int, window: int) -> None:
    for seed in range(4):
        source = random.Random(seed)
        both = [sent(source, exchanges, first) for first in (0, 100)]
        captured = permuted(source, both[0].segments + both[1].segments, window)
        # Sorted as text or by the first segment, either end may come first.
        names = [CONNECTION, f"{CONNECTION}#2"]
        is_later = captured.index(
            next(one for one in captured if is_of(one, both[1]))
        ) < captured.index(next(one for one in captured if is_of(one, both[0])))
        expected = dict(zip(names, reversed(both) if is_later else both, strict=True))
        assert_whole(captured, expected, seed)


def is_of(segment: Segment, made: Sent) -> bool:
    """Return whether a segment belongs to a connection with sequence numbers near these."""
    first = next(one for one in made.segments if one.source == segment.source)
    return (segment.sequence - first.sequence) % MODULUS < NEAR_BYTES


@pytest.mark.parametrize("order", [(1, 0, 2), (2, 0, 1), (2, 1, 0), (1, 2, 0), (0, 2, 1)])
def test_a_handshake_in_any_order_begins_one_connection(order: tuple[int, ...]) -> None:
    for exchanges in (0, 3):
        made = sent(random.Random(exchanges), exchanges, 0)
        captured = [*(made.segments[one] for one in order), *made.segments[3:]]
        assert_whole(captured, {CONNECTION: made}, 0)
