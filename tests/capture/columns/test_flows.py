"""Frames in columns equal those of the assemblers alone, whatever the order of the segments.

Every test runs with the kernels and without them.
"""

from __future__ import annotations

import pickle
import random
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pytest

from flexwire.capture.files.links import Segment
from flexwire.capture.reassembly import flows
from flexwire.capture.reassembly.assembly import connection_key
from flexwire.capture.reassembly.connections import BrokerEnds, CapturedFrame
from flexwire.capture.reassembly.flows import Flows
from flexwire.capture.reassembly.framing import Framer
from flexwire.capture.reassembly.segments import ChunkTotals, FileOrigins
from flexwire.wire.segment_layout import ACK, FIN, MODULUS, RST, SYN
from tests.capture.traffic import framed, request, response
from tests.reference.frames import Clocked, assembled
from tests.searching import in_make_long, times

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flexwire.capture.reassembly.connections import CapturedConnection

pytestmark = pytest.mark.slow

BROKER = "10.0.0.1:9092"
_KINDS = {
    "timestamp_us": np.int64,
    "sequence": np.int64,
    "acknowledgment": np.int64,
    "flags": np.uint8,
    "missing": np.int32,
}


class Segments:
    """Segments in columns, made from objects."""

    timestamp_us: Any
    sequence: Any
    acknowledgment: Any
    flags: Any
    missing: Any
    origins = None

    def __init__(self, segments: list[Segment], keys: list[str], file: str) -> None:
        self._segments = segments
        self.keys, self.file = keys, file
        for name, kind in _KINDS.items():
            setattr(self, name, np.array([getattr(one, name) for one in segments], kind))
        names = [connection_key(one) for one in segments]
        keys += sorted(set(names) - set(keys))
        self.key = np.array([keys.index(one) for one in names], np.int32)
        self.is_high = np.array(
            [
                not name.startswith(f"{one.source}|")
                for name, one in zip(names, segments, strict=True)
            ],
            np.bool_,
        )
        begins = {None: 0, "request": 1, "response": 2}
        self.begins = np.array([begins[one.begins] for one in segments], np.int8)
        self.payload_size = np.array([len(one.payload) for one in segments], np.int32)
        self.payload_at = np.cumsum(self.payload_size, dtype=np.int64) - self.payload_size
        self.data = np.frombuffer(b"".join(one.payload for one in segments), np.uint8)
        self.totals = ChunkTotals(len(segments), len(self.data))

    def segment(self, row: int) -> Segment:
        return self._segments[row]


@dataclass
class Ways:
    """The probability of each event that can happen to segments."""

    lost: float = 0.0
    repeated: float = 0.0
    late: float = 0.0
    cut: float = 0.0
    mid_stream: bool = False
    damaged: float = 0.0
    exchanges: int = 30
    twice: bool = False  # two hosts captured it, each with its own segment boundaries


CLEAN = Ways()
LOSSY = Ways(lost=0.02, repeated=0.02, late=0.03, cut=0.01)
MID_STREAM = Ways(mid_stream=True)
# There are so many segments that some segments between two losses are in order.
SELDOM = Ways(lost=3e-3, repeated=3e-3, late=3e-3, cut=2e-3, damaged=5e-3, exchanges=200)
RARELY = Ways(lost=5e-4, repeated=5e-4, late=5e-4, cut=3e-4, damaged=5e-3, exchanges=200)
TWICE = Ways(twice=True, exchanges=120)
TWICE_LOSSY = Ways(twice=True, lost=3e-3, late=3e-3, cut=2e-3, mid_stream=True, exchanges=200)
EVERYTHING = Ways(lost=0.05, repeated=0.05, late=0.05, cut=0.02, mid_stream=True, damaged=0.02)


def connection(rng: random.Random, number: int, ways: Ways) -> list[Segment]:
    """Return the segments of one connection, in the order in which a capture shows them."""
    client = f"10.0.{number // 250}.{number % 250 + 2}:{40_000 + rng.randrange(20_000)}"
    ends = {"request": client, "response": BROKER}
    at = {"request": rng.randrange(MODULUS), "response": rng.randrange(MODULUS)}
    if rng.random() < 0.2:
        at["request"] = MODULUS - rng.randrange(3000)
    made: list[Segment] = []

    def send(direction: str, data: bytes = b"", flags: int = ACK, missing: int = 0) -> None:
        back = "response" if direction == "request" else "request"
        made.append(
            Segment(0, ends[direction], ends[back], at[direction] % MODULUS, at[back] % MODULUS,
                    flags, data, missing)
        )  # fmt: skip
        at[direction] += len(data) + missing + bool(flags & (SYN | FIN))

    if not ways.mid_stream or rng.random() < 0.3:
        for direction, flags in (("request", SYN), ("response", SYN | ACK), ("request", ACK)):
            send(direction, flags=flags)
    size = rng.choice([40, 200, 1448, 6000])
    for exchange in range(rng.randrange(1, ways.exchanges)):
        asked, told = exchanged(rng, exchange * 10, ways)
        for direction, data in (("request", asked), ("response", told)):
            for start in range(0, len(data), size):
                send(direction, data[start : start + size])
            if rng.random() < 0.7:
                send("response" if direction == "request" else "request")
    for direction, flags in farewell(rng):
        send(direction, flags=flags)
    return happened(rng, made, ways)


def exchanged(rng: random.Random, first: int, ways: Ways) -> tuple[bytes, bytes]:
    """Return requests with ids from ``first``, and their responses. A few frames are damaged."""
    ids = range(first, first + rng.choice([1, 1, 1, 2, 5]))
    largest = rng.choice([10, 100, 3000])
    asked = b"".join(request(one, rng.choice([0, rng.randrange(largest)])) for one in ids)
    told = b"".join(response(one, rng.randrange(largest)) for one in ids)
    if rng.random() < ways.damaged:
        asked += framed(b"") * rng.choice([1, 2])
    if rng.random() < ways.damaged:
        told = told[: len(told) // 2] + rng.randbytes(30) + told[len(told) // 2 :]
    return asked, told


def farewell(rng: random.Random) -> list[tuple[str, int]]:
    if rng.random() < 0.5:
        return []
    return [("request", FIN | ACK), ("response", rng.choice([FIN, RST]) | ACK), ("request", ACK)]


def happened(rng: random.Random, made: list[Segment], ways: Ways) -> list[Segment]:
    if ways.twice:
        alone = replace(ways, twice=False)
        taps = [happened(rng, one, alone) for one in (made, recut(rng, made))]
        return at_once(rng, *taps)
    found: list[Segment] = []
    for one in made:
        if rng.random() < ways.lost:
            continue
        segment = one
        if one.payload and rng.random() < ways.cut:
            kept = rng.randrange(len(one.payload))
            segment = msgspec.structs.replace(
                one, payload=one.payload[:kept], missing=len(one.payload) - kept
            )
        place = len(found) - (rng.randrange(1, 5) if rng.random() < ways.late else 0)
        found.insert(max(0, place), segment)
        if rng.random() < ways.repeated:
            found.insert(rng.randrange(len(found) + 1), segment)
    return found


def recut(rng: random.Random, made: list[Segment]) -> list[Segment]:
    """Return the same bytes as a network card delivers them: some segments split, some joined."""
    found: list[Segment] = []
    for one in made:
        last = found[-1] if found else None
        if (
            last is not None
            and (last.source, last.flags, one.flags) == (one.source, ACK, ACK)
            and rng.random() < 0.5
        ):
            found[-1] = msgspec.structs.replace(
                one, sequence=last.sequence, payload=last.payload + one.payload
            )
        elif len(one.payload) > 1 and rng.random() < 0.3:
            cut = rng.randrange(1, len(one.payload))
            later = (one.sequence + cut) % MODULUS
            found.append(msgspec.structs.replace(one, payload=one.payload[:cut]))
            found.append(msgspec.structs.replace(one, payload=one.payload[cut:], sequence=later))
        else:
            found.append(one)
    return found


def at_once(rng: random.Random, *taps: list[Segment]) -> list[Segment]:
    """Mix several captures into one. Their clocks take turns at being ahead."""
    found: list[Segment] = []
    left = [list(one) for one in taps]
    while left := [one for one in left if one]:
        tap = rng.choice(left)
        count = rng.choice([1, 1, 2, 30])
        found += tap[:count]
        del tap[:count]
    return found


def interleaved(rng: random.Random, ways: Ways) -> list[Segment]:
    """Return the segments of several connections, some of which reuse the ports of others."""
    streams = [connection(rng, number, ways) for number in range(rng.randrange(1, 8))]
    if rng.random() < 0.3:
        again = connection(rng, 0, ways)
        names = (again[0].source, again[0].destination) if again else ("", "")
        old = streams[0][0] if streams[0] else None
        if old is not None and again:
            mine = next(one for one in names if one != BROKER)
            theirs = old.source if old.source != BROKER else old.destination
            streams[0] += [
                msgspec.structs.replace(
                    one,
                    source=theirs if one.source == mine else BROKER,
                    destination=theirs if one.destination == mine else BROKER,
                )
                for one in again
            ]
    found, time = [], 1_000_000
    while streams := [one for one in streams if one]:
        segment = rng.choice(streams).pop(0)
        time += rng.choice([0, 1, 500])
        found.append(msgspec.structs.replace(segment, timestamp_us=time))
    return found


def by_objects(
    segments: Iterable[Segment], brokers: BrokerEnds
) -> tuple[dict[str, list[CapturedFrame]], list[CapturedConnection]]:
    given = (Clocked(0, "file", number, one) for number, one in enumerate(segments))
    frames, ended = assembled(given, brokers)
    ended.sort(key=lambda one: one.connection)
    return by_connection(one for _, one in frames), ended


def by_connection(frames: Iterable[CapturedFrame]) -> dict[str, list[CapturedFrame]]:
    found: dict[str, list[CapturedFrame]] = {}
    for one in frames:
        found.setdefault(one.connection, []).append(one)
    return found


def by_columns(
    rng: random.Random, segments: list[Segment], brokers: BrokerEnds
) -> tuple[dict[str, list[CapturedFrame]], list[CapturedConnection]]:
    taken = Flows(brokers=brokers)
    cuts = sorted({0, len(segments), *(rng.randrange(len(segments) + 1) for _ in range(4))})
    frames: list[CapturedFrame] = []
    ended: list[CapturedConnection] = []
    keys: list[str] = []
    for start, stop in pairwise(cuts):
        if rng.random() < 0.3:
            taken = pickle.loads(pickle.dumps(taken))  # noqa: S301 - ours
            keys = []
        columns: Any = Segments(segments[start:stop], keys, "file")
        found = taken.push(columns)
        assert found.connections is taken.connections
        frames += [found.frame(row) for row in range(len(found))]
        ended += taken.ended()
    for found in taken.finish():
        frames += [found.frame(row) for row in range(len(found))]
    return by_connection(frames), sorted([*ended, *taken.ended()], key=lambda one: one.connection)


def by_columns_without_kernels(
    seed: int, segments: list[Segment], brokers: BrokerEnds
) -> tuple[dict[str, list[CapturedFrame]], list[CapturedConnection]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flows, "load_kernel", lambda _: None)
        return by_columns(random.Random(seed), segments, brokers)


@pytest.mark.parametrize(
    "ways", [CLEAN, LOSSY, MID_STREAM, SELDOM, RARELY, EVERYTHING, TWICE, TWICE_LOSSY]
)
@pytest.mark.parametrize("brokers", [BrokerEnds(), *in_make_long(BrokerEnds.parse([9092], []))])
def test_columns_give_the_frames_of_the_assemblers(ways: Ways, brokers: BrokerEnds) -> None:
    for seed in range(times(1 if ways.twice or ways.exchanges > 100 else 3)):
        segments = interleaved(random.Random(seed), ways)
        expected = by_objects(segments, brokers)
        for executor, found in (
            ("kernels", by_columns(random.Random(seed), segments, brokers)),
            ("objects", by_columns_without_kernels(seed, segments, brokers)),
        ):
            assert found[0].keys() == expected[0].keys(), (seed, executor)
            for connection_name, frames in expected[0].items():
                assert found[0][connection_name] == frames, (seed, executor, connection_name)
            assert found[1] == expected[1], (seed, executor)


@pytest.mark.parametrize("before", [0, 3])
@pytest.mark.parametrize("swapped", [0, 5])
def test_what_is_held_of_a_long_frame_is_not_copied_with_each_segment(
    monkeypatch: pytest.MonkeyPatch, before: int, swapped: int
) -> None:
    copied = 0

    def counted(framer: Framer) -> tuple[bytes, int, int]:
        nonlocal copied
        found = held(framer)
        copied += len(found[0])
        return found

    held = Framer.held
    monkeypatch.setattr(Framer, "held", counted)
    client, size, step = "10.0.0.2:40000", 1 << 23, 1448
    data = b"".join(request(one) for one in range(before)) + request(before, size)
    made = [
        Segment(1, client, BROKER, 0, 0, SYN, b""),
        Segment(1, BROKER, client, 0, 1, SYN | ACK, b""),
    ]
    made += [
        Segment(2, client, BROKER, 1 + start, 1, ACK, data[start : start + step])
        for start in range(0, len(data), step)
    ]
    if swapped:
        for at in range(40, len(made) - 1, swapped):
            made[at], made[at + 1] = made[at + 1], made[at]
    expected = by_objects(made, BrokerEnds())
    assert copied == 0
    assert by_columns(random.Random(1), made, BrokerEnds()) == expected
    assert copied < 20 * size


def test_the_file_of_the_last_segment_of_each_connection_is_known() -> None:
    """An incomplete frame belongs to the file in which its connection was last seen."""
    rng = random.Random(5)
    segments = interleaved(rng, CLEAN)
    names = [f"{number}.pcap" for number in range(4)]
    taken, keys = Flows(), list[str]()
    expected: dict[str, str] = {}
    half = len(segments) // 2
    for part in (segments[:half], segments[half:]):
        columns: Any = Segments(part, keys, "")
        of_row = np.array([rng.randrange(len(names)) for _ in part])
        columns.origins = FileOrigins(files=names, of_row=of_row)
        taken.push(columns)
        for one, file in zip(part, of_row.tolist(), strict=True):
            expected[connection_key(one)] = names[file]
        assert taken.files == expected
    assert len(expected) > 1
