"""Where bytes contain no frames, kernels and assemblers skip the same bytes.

All frames, and the counts of all connections, equal those of the assemblers alone. Kernels process
nearly all TLS segments, whether the capture shows the connection's beginning or not.
"""

from __future__ import annotations

import random
import struct
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from flexwire.capture.files.links import Segment, read_segments
from flexwire.capture.reassembly.assembly import FrameAssembler
from flexwire.capture.reassembly.connections import BrokerEnds
from flexwire.capture.reassembly.framing import CAPTURED_FRAME_LIMIT as LIMIT
from flexwire.schema.catalog import catalog
from flexwire.wire.segment_layout import ACK, SYN
from tests.capture.columns.test_flows import by_columns, by_objects
from tests.capture.exchanges import Talk
from tests.capture.interleaved import TLS, Shape, write_capture
from tests.capture.traffic import request, response

if TYPE_CHECKING:
    from pathlib import Path

SHAPES = {
    "usual": TLS,
    "lossy": replace(TLS, loss=0.03, repeats=0.03, reorder=0.1),
    "begun": replace(TLS, begun=1.0, segment=(30, 400)),
    "marked": replace(TLS, marks=True, false_marks=0.05, begun=0.5),
    "reset": replace(TLS, reset=0.5, reuse=0.5),
    "reused": replace(
        TLS, talk=Talk(exchanges=20), reuse=0.9, connections=20, begun=0.1, unended=0.1
    ),
}
LONG = Shape(connections=3, talk=Talk(exchanges=300, hidden=1.0), acks=1.0, segment=(1448, 1448))
TOP = max(catalog().api_keys())
CLIENT, BROKER = "10.0.0.9:50000", "10.0.0.1:9092"
# These bytes look like the beginning of a request: length, api key, version, correlation id.
HEAD = (16, 3, 0, 7)
HEADS = [
    (*HEAD[:place], value, *HEAD[place + 1 :])
    for place, values in enumerate(
        [
            (-1, 0, 3, 4, 7, 8, LIMIT, LIMIT + 1, LIMIT + 8, LIMIT + 9),
            (-1, 0, TOP, TOP + 1),
            (-1, 0, 99),
            (-1, 0, 8),
        ]
    )
    for value in values
]


def segments_of(place: Path, seed: int, shape: Shape) -> list[Segment]:
    paths = write_capture(place, seed, shape)
    every = (one for path in paths for one in read_segments(path))
    return [one for one in every if isinstance(one, Segment)]


def same(segments: list[Segment], seed: int) -> None:
    expected = by_objects(segments, BrokerEnds())
    found = by_columns(random.Random(seed), segments, BrokerEnds())
    assert found == expected, seed


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_hidden_connections_are_those_of_the_assemblers(name: str, tmp_path: Path) -> None:
    for seed in range(2):
        same(segments_of(tmp_path / str(seed), seed, SHAPES[name]), seed)


@pytest.mark.parametrize("begun", [0.0, 1.0])
def test_kernels_take_nearly_all_that_is_hidden(
    begun: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    segments = segments_of(tmp_path, 1, replace(LONG, begun=begun))
    pushed: list[Segment] = []
    push = FrameAssembler.push

    def counted(self: FrameAssembler, segment: Segment) -> object:
        pushed.append(segment)
        return push(self, segment)

    monkeypatch.setattr(FrameAssembler, "push", counted)
    by_columns(random.Random(1), segments, BrokerEnds())
    assert len(segments) > 3000
    assert len(pushed) < len(segments) / 20


class Said:
    """Make segments of one connection. Each segment continues the stream of its direction."""

    def __init__(self) -> None:
        self.segments: list[Segment] = []
        self._next = {CLIENT: 1000, BROKER: 5000}
        self._say(CLIENT, b"", SYN)
        self._say(BROKER, b"", SYN | ACK)

    def _say(self, source: str, payload: bytes, flags: int = ACK) -> None:
        other = BROKER if source == CLIENT else CLIENT
        at = len(self.segments)
        known = self._next[other] if flags & ACK else 0
        self.segments.append(Segment(at, source, other, self._next[source], known, flags, payload))
        self._next[source] += len(payload) + bool(flags & SYN)

    def say(self, source: str, payload: bytes) -> None:
        """Send bytes from one end of the connection."""
        self._say(source, payload)


@pytest.mark.parametrize("is_known", [True, False])
def test_what_is_nearly_a_frame_is_told_apart_as_the_assemblers_do(*, is_known: bool) -> None:
    hello = bytes.fromhex("1603010200") + bytes(1100)
    for seed, head in enumerate(HEADS):
        said = Said()
        if is_known:
            # Requests wait for their responses, and then frames are lost.
            said.say(CLIENT, request(0, 10))
            said.say(CLIENT, request(7, 10))
        for source in (CLIENT, BROKER):
            said.say(source, hello)
            said.say(source, hello)
        length, key, version, identity = head
        asked = struct.pack(">ihhi", length, key, version, identity)
        said.say(BROKER, struct.pack(">ii", length, identity) + bytes(20))
        said.say(CLIENT, asked + b"\0\1a" + bytes(40))
        for size in (1, 7, 8, 11, 12, 20):
            said.say(CLIENT, asked[:size] + bytes(max(0, size - 12)))
            said.say(BROKER, struct.pack(">ii", 12, 7)[:size] + bytes(max(0, size - 8)))
        whole = request(9, 10)
        for size in (8, 11):
            said.say(CLIENT, whole[:size])
            said.say(BROKER, b"\xff" * 20)
            said.say(CLIENT, whole[size:])
            said.say(CLIENT, hello)
        for number in range(3):
            said.say(CLIENT, request(number, 10))
            said.say(BROKER, response(number, 20))
        same(said.segments, seed)
