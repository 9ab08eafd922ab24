"""Requests and responses form the same pairs, wherever they are joined."""

from __future__ import annotations

import asyncio
import random
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import given as given_any
from hypothesis import settings
from hypothesis import strategies as st

from flexwire.capture.pairing.state import UNPAIRED
from flexwire.capture.reassembly.connections import CapturedFrame
from flexwire.protocol import Conversation
from flexwire.protocol.frames import FrameBudget
from flexwire.tap.ends import End
from flexwire.tap.forwarding import DirectForwarder
from flexwire.tap.metrics import TapStatistics
from flexwire.tap.recorder import NoCapture, Recorder
from flexwire.tap.relay import Relay
from tests.capture.columns.test_turns import cut, in_columns
from tests.net.test_ends import Wire
from tests.protocol.payloads import frame, make, request_payload, response_payload
from tests.reference.frames import paired_rows
from tests.spark.traffic import START_US

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from flexwire.protocol import Turn
    from flexwire.protocol.frames import FrameGroup
    from flexwire.tap import HostPort
    from tests.reference.frames import Row

PRODUCE, HEARTBEAT, SASL_HANDSHAKE = 0, 12, 17
# There are twice as many responses as requests of each kind, and few correlation ids, because
# clients reuse them.
KINDS = (
    *("request", "response", "response", "acks 0", "acks 1", "handshake"),
    *("token", "short token", "long token", "not a request", "cut off"),
)


class Frame(NamedTuple):
    """A frame of one connection. A request has room for a client id."""

    direction: str
    payload: bytes


class Joined(NamedTuple):
    """The results for the frames, by their places."""

    pairs: dict[int, int | None]
    """The request that each response answers."""
    unanswered: list[int]
    tokens: list[int]


def sent(place: int, kind: str, correlation_id: int) -> Frame:
    """Return a frame of a kind."""
    named: dict[str, Any] = {"correlation_id": correlation_id, "client_id": str(place)}
    match kind:
        case "request":
            return Frame("request", request_payload(HEARTBEAT, 0, **named))
        case "response":
            answer = response_payload(HEARTBEAT, 0, correlation_id=correlation_id)
            return Frame("response", answer)
        case "acks 0" | "acks 1":
            body = make("ProduceRequest", acks=int(kind[-1]))
            return Frame("request", request_payload(PRODUCE, 9, body, **named))
        case "handshake":
            body = make("SaslHandshakeRequest")
            return Frame("request", request_payload(SASL_HANDSHAKE, 0, body, **named))
        case "cut off":
            return Frame("request", request_payload(HEARTBEAT, 0, **named)[:9])
    given = {
        "token": Frame("request", b"\0alice\0secret"),
        "short token": Frame("response", b""),
        "long token": Frame("response", b"r=fyko3rfcNHYJ"),
    }
    return given.get(kind, Frame("request", b"GET / HTTP/1.1\r\n"))


CONVERSATIONS = st.lists(
    st.lists(st.tuples(st.sampled_from(KINDS), st.integers(1, 3)), max_size=24).map(
        lambda kinds: [sent(place, *one) for place, one in enumerate(kinds)]
    ),
    min_size=30,
    max_size=40,
)


def in_memory(frames: list[Frame]) -> Joined:
    """Return the pairs from the requests that a conversation returns, and check pair numbers."""
    conversation = Conversation()
    asked: dict[int | None, int] = {}
    joined = Joined({}, [], [])
    for place, (direction, payload) in enumerate(frames):
        give = conversation.request if direction == "request" else conversation.response
        turn = give(payload)
        if turn.kind == "token":
            joined.tokens.append(place)
        elif turn.kind == "request" and turn.pair is not None:
            asked[turn.pair] = place
        elif turn.kind == "response":
            joined.pairs[place] = None if turn.request is None else int(turn.request.client_id or 0)
            assert joined.pairs[place] == asked.get(turn.pair)
    joined.unanswered.extend(int(one.client_id or 0) for one in conversation.unanswered())
    return joined


class Noting(Recorder):
    """Capture nothing, but record which request each response answers."""

    def __init__(self) -> None:
        statistics = TapStatistics()
        super().__init__(NoCapture(statistics), statistics, "tests", withholds=False)
        self.answered: list[int | None] = []

    def frames(self, direction: str, frames: FrameGroup, turns: Sequence[Turn], *_: Any) -> None:
        """Record these pairs."""
        assert len(frames.payloads) == len(turns)
        if direction == "response":
            requests = [turn.request for turn in turns]
            self.answered += [None if one is None else int(one.client_id or 0) for one in requests]


def unrouted(address: HostPort) -> HostPort:
    raise AssertionError(f"no address is in these messages, got {address}")


def at_the_tap(frames: list[Frame]) -> dict[int, int | None]:
    noting = Noting()

    async def pass_on() -> None:
        client, broker = Wire(End()), Wire(End())
        relay = Relay(
            client.end,
            broker.end,
            noting,
            DirectForwarder(),
            route=unrouted,
            statistics=TapStatistics(),
            frame_limit=1 << 20,
            room=FrameBudget(1 << 20),
            name="tests",
        )
        running = asyncio.create_task(relay.run())
        await asyncio.sleep(0)
        for direction, payload in frames:
            from_, to = (client, broker) if direction == "request" else (broker, client)
            to.written = b""
            from_.end.data_received(frame(payload))
            assert to.written == frame(payload)
        broker.end.connection_lost(None)
        await running

    asyncio.run(pass_on())
    places = [place for place, one in enumerate(frames) if one.direction == "response"]
    return dict(zip(places, noting.answered, strict=True))


def given(
    connection: str, frames: list[Frame], *, order: tuple[int, ...] | None = None
) -> list[CapturedFrame]:
    """Return frames in capture order, a microsecond apart."""
    found = []
    for place in order or range(len(frames)):
        direction, payload = frames[place]
        at: Any = (START_US + place, START_US + place, place, len(payload) + 4, payload)
        found.append(CapturedFrame(connection, direction, *at))  # type: ignore[arg-type]  # either of two words
    return found


def by_reference(frames: list[CapturedFrame]) -> list[Row]:
    return paired_rows([("a.pcapng", one) for one in frames], ())


def by_columns(frames: list[CapturedFrame]) -> list[Row]:
    return in_columns(cut(frames, random.Random(len(frames))), [], show_credentials=False)


def joined(rows: list[Row]) -> Joined:
    joined = Joined({}, [], [])
    for row in rows:
        place = row["frame_index"]
        if row["direction"] == "response" and row["outcome"] in {None, UNPAIRED}:
            joined.pairs[place] = None if row["outcome"] else int(row["client_id"])
        if row["answered"] is False:
            joined.unanswered.append(place)
        if row["outcome"] == "token":
            joined.tokens.append(place)
    return joined


@settings(max_examples=2)
@given_any(conversations=CONVERSATIONS)
def test_memory_the_tap_the_reference_and_columns_make_the_same_pairs(
    conversations: list[list[Frame]],
) -> None:
    remembered = [in_memory(one) for one in conversations]
    every = [frame for number, one in enumerate(conversations) for frame in given(str(number), one)]
    for way in (by_reference, by_columns):
        rows = way(every)
        assert len(rows) == len(every)
        of_each: dict[str, list[Row]] = {str(number): [] for number in range(len(conversations))}
        for row in rows:
            of_each[row["connection"]].append(row)
        assert [joined(one) for one in of_each.values()] == remembered
    for frames, one in zip(conversations, remembered, strict=True):
        tapped = at_the_tap(frames)
        assert {place: tapped[place] for place in one.pairs} == one.pairs
        assert {tapped[place] for place in tapped.keys() - one.pairs.keys()} <= {None}


@pytest.mark.parametrize("way", [by_reference, by_columns])
def test_a_request_that_is_known_after_its_response_is_of_its_pair(
    way: Callable[[list[CapturedFrame]], list[Row]],
) -> None:
    asked, answer = sent(0, "request", 1), sent(1, "response", 1)
    # The response is given first, and is captured before or after the request.
    frames = given("late", [asked, answer], order=(1, 0)) + given("stray", [answer, asked])
    found = {(row["connection"], row["direction"]): row for row in way(frames)}
    assert found["late", "request"]["answered"] is True
    assert found["late", "response"]["latency_us"] == 1
    assert found["stray", "request"]["answered"] is False
    assert found["stray", "response"]["outcome"] == UNPAIRED
