"""No peer can make the tap's other clients wait long, or make the tap use much memory."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.capture.files.comments import CaptureFilter
from flexwire.capture.messages import CapturedMessage, UnusedBytes, read_messages
from flexwire.codec import message
from flexwire.protocol import Conversation
from flexwire.protocol.credentials import CREDENTIALS
from flexwire.protocol.frames import BEGINNING_BYTES, FrameBudget
from flexwire.schema.catalog import catalog
from flexwire.tap import TapSecurity
from flexwire.tap.addresses import response_address_fields
from flexwire.tap.connections import LocalRunner
from flexwire.tap.ends import End
from flexwire.tap.forwarding import DirectForwarder
from flexwire.tap.header_stamps import HeaderTag, StampConfig
from flexwire.tap.limits import MOST_FRAMES, MOST_HELD_UNANSWERED
from flexwire.tap.metrics import TapStatistics
from flexwire.tap.relay import Relay
from flexwire.wire.varint import write_unsigned_varint
from tests.net.broker import CHUNK_BYTES, connected, run, serving, settled, tapped
from tests.net.densest import dense_cases, densest
from tests.net.test_ends import Wire
from tests.net.test_tap_tls import Made, made
from tests.protocol.payloads import frame, request_payload, response_payload

if TYPE_CHECKING:
    from pathlib import Path

    from flexwire.tap import Tap

__all__ = ["made"]

MIB = 1024 * 1024
FRAME_LIMIT = 8 * MIB
BODY = FRAME_LIMIT - 1000
# The limit for one step of the event loop, in CPU seconds. Decoding the densest frame of this size
# takes seven seconds.
LONGEST_STEP = 1.0
HIDING = sorted({one.message_name for one in CREDENTIALS})
REQUESTS = [name for name in HIDING if name.endswith("Request")]
RESPONSES = [name for name in HIDING if name.endswith("Response")]
API_VERSIONS, LIST_GROUPS, PRODUCE, METADATA = 18, 16, 0, 3


class Watch:
    """The longest time that the event loop ran without a pause, in CPU seconds."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._last = time.thread_time()
        self._handle = asyncio.get_running_loop().call_soon(self._tick)

    def _tick(self) -> None:
        now = time.thread_time()
        self.longest = max(self.longest, now - self._last)
        self._last = now
        self._handle = asyncio.get_running_loop().call_later(0.001, self._tick)

    def end(self) -> float:
        self._handle.cancel()
        return self.longest


def key_of(name: str) -> int:
    key = catalog().entry(name).api_key
    assert key is not None
    return key


ADVERTISING = {
    name
    for name in catalog().names()
    if name.endswith("Response")
    and any(response_address_fields(name, one) for one in catalog().entry(name).versions)
}
DENSE_REQUESTS = dense_cases([*REQUESTS, "ProduceRequest", "MetadataRequest"])
DENSE_RESPONSES = dense_cases(sorted(ADVERTISING.union(RESPONSES)))


def dense_tags(size: int) -> bytes:
    """Return a tag section with as many tagged fields as fit into it."""
    count = size // 5
    tags = b"".join(
        write_unsigned_varint(tag) + b"\x00" for tag in range(2_097_152, 2_097_152 + count)
    )
    return write_unsigned_varint(count) + tags


async def drained(reader: asyncio.StreamReader) -> None:
    with suppress(OSError):
        while await reader.read(MIB):
            pass


def answers_once(then: bytes) -> Any:
    """Return a broker that answers the first request correctly, and the second with some bytes."""

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        size = int.from_bytes(await reader.readexactly(4), "big")
        await reader.readexactly(size)
        body = message("ListGroupsResponse")().encode(3)
        writer.write(frame(response_payload(LIST_GROUPS, 3, body)))
        if then:
            size = int.from_bytes(await reader.readexactly(4), "big")
            await reader.readexactly(size)
            writer.write(then)
        await drained(reader)

    return handler


ASKED = request_payload(LIST_GROUPS, 3, message("ListGroupsRequest")().encode(3))


async def longest_step(
    handler: Any,
    sent: bytes,
    tmp_path: Path,
    *,
    is_answered: bool,
    tls: Made | None,
    **options: Any,
) -> tuple[float, TapStatistics]:
    """Send bytes through a tap, and return the longest step of the loop and the tap's counts."""
    security = TapSecurity(None if tls is None else tls.listen, None)
    async with (
        serving(handler) as upstream,
        tapped(upstream, tmp_path, frame_limit=FRAME_LIMIT, security=security, **options) as tap,
        connected(tap.listen_address, None if tls is None else tls.client) as client,
    ):
        watch = Watch()
        if is_answered:
            await client.ask(ASKED)
        receiving = asyncio.create_task(drained(client.reader))
        await client.send(sent)
        counts = tap.stats
        wanted = len(sent) + is_answered * len(frame(ASKED))
        await settled(lambda: counts.request_bytes == wanted)
        longest = watch.end()
        receiving.cancel()
    return longest, counts


WITH_TOPICS = {"only": CaptureFilter(topics=("orders",))}


@pytest.mark.slow
@pytest.mark.parametrize("is_answered", [True, False])
@pytest.mark.parametrize(("name", "version", "array"), DENSE_REQUESTS)
def test_no_request_stops_the_loop(
    name: str, version: int, array: str, *, is_answered: bool, made: Made, tmp_path: Path
) -> None:
    body = densest(name, version, array, BODY)
    sent = frame(request_payload(key_of(name), version, body))

    async def job() -> None:
        for number, (tls, options) in enumerate([(made, {}), (None, WITH_TOPICS)]):
            longest, counts = await longest_step(
                answers_once(b""),
                sent,
                tmp_path / str(number),
                is_answered=is_answered,
                tls=tls,
                **options,
            )
            assert longest < LONGEST_STEP
            assert counts.requests == 1 + is_answered

    run(job())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "version", "array"), DENSE_RESPONSES)
def test_no_response_stops_the_loop(
    name: str, version: int, array: str, made: Made, tmp_path: Path
) -> None:
    body = densest(name, version, array, BODY)
    request = name.replace("Response", "Request")
    key = key_of(request)
    then = frame(response_payload(key, version, body))

    async def job() -> None:
        for number, (tls, options) in enumerate([(made, {}), (None, WITH_TOPICS)]):
            security = TapSecurity(None if tls is None else tls.listen, None)
            async with (
                serving(answers_once(then)) as upstream,
                tapped(
                    upstream,
                    tmp_path / str(number),
                    frame_limit=FRAME_LIMIT,
                    security=security,
                    **options,
                ) as tap,
                connected(tap.listen_address, None if tls is None else tls.client) as client,
            ):
                watch = Watch()
                await client.ask(ASKED)
                asked = request_payload(key, version, message(request)().encode(version))
                assert await client.ask(asked) == then[4:]
                assert watch.end() < LONGEST_STEP
                assert tap.stats.responses == 2

    run(job())


@pytest.mark.long
@pytest.mark.slow
def test_no_header_stops_the_loop(made: Made, tmp_path: Path) -> None:
    head = request_payload(API_VERSIONS, 3)[:-1]
    sent = frame(head + dense_tags(BODY))

    async def job() -> None:
        longest, counts = await longest_step(
            answers_once(b""), sent, tmp_path, is_answered=True, tls=made
        )
        assert longest < LONGEST_STEP
        # The header is too long to be read, so nothing shows that this is a request.
        assert (counts.requests, counts.not_requests) == (2, 1)

    run(job())


class Steps:
    """The number of frames that a conversation read in each step of the event loop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.frames = [0]
        run_handle = asyncio.Handle._run

        def step(handle: asyncio.Handle) -> None:
            self.frames.append(0)
            run_handle(handle)

        monkeypatch.setattr(asyncio.Handle, "_run", step)
        for name in ("request", "response"):
            monkeypatch.setattr(Conversation, name, self._counting(getattr(Conversation, name)))

    def _counting(self, looks: Any) -> Any:
        def look(conversation: Conversation, payload: bytes) -> Any:
            self.frames[-1] += 1
            return looks(conversation, payload)

        return look


SMALLEST = frame(request_payload(API_VERSIONS, 0, client_id=None))
FLOOD = 20 * MOST_FRAMES
SMALLEST_ANSWER = frame(response_payload(API_VERSIONS, 0, b""))


def answers_all(reader_got: bytearray) -> Any:
    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(MIB):
            before = len(reader_got) // len(SMALLEST)
            reader_got.extend(data)
            writer.write(SMALLEST_ANSWER * (len(reader_got) // len(SMALLEST) - before))
            await writer.drain()
        writer.close()

    return handler


@pytest.mark.parametrize("over_tls", [False, True])
@pytest.mark.parametrize(
    "options", [{}, {"stamping": StampConfig([HeaderTag(10_042, "{connection}")])}, WITH_TOPICS]
)
def test_a_flood_of_frames_is_taken_in_short_steps(
    options: dict[str, Any],
    made: Made,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    over_tls: bool,
) -> None:
    """Another connection waits for this many frames of each flood, not for a whole chunk."""
    steps, came = Steps(monkeypatch), bytearray()
    security = TapSecurity(made.listen if over_tls else None, None)

    async def job() -> None:
        async with (
            serving(answers_all(came)) as upstream,
            tapped(upstream, tmp_path, security=security, **options) as tap,
            connected(tap.listen_address, made.client if over_tls else None) as client,
        ):
            sending = asyncio.create_task(client.send(SMALLEST * FLOOD))
            answers = await client.reader.readexactly(len(SMALLEST_ANSWER) * FLOOD)
            await sending
            assert answers == SMALLEST_ANSWER * FLOOD
            stats = tap.stats
            assert (stats.requests, stats.responses, stats.unpaired) == (FLOOD, FLOOD, 0)
        assert bytes(came) == SMALLEST * FLOOD
        assert max(steps.frames) == MOST_FRAMES

    run(job())


class Frames:
    """A recorder that counts frames of both directions."""

    def __init__(self) -> None:
        self.requests = self.responses = 0

    def frames(self, direction: str, frames: Any, *_: Any) -> None:
        if direction == "request":
            self.requests += len(frames.payloads)
        else:
            self.responses += len(frames.payloads)

    def close(self, **_: Any) -> None:
        """Keep nothing."""


@pytest.mark.parametrize("ends", ["client", "broker", "lost", "cancelled"])
def test_what_waits_for_a_later_step_is_captured_whatever_ends_the_connection(ends: str) -> None:
    """Frames that were read are kept even if the connection ends before they are processed."""

    async def job() -> None:
        client, broker, recorder = Wire(End(over_tls=True)), Wire(End()), Frames()
        relay: Any = Relay(
            client.end,
            broker.end,
            recorder,  # type: ignore[arg-type]  # it takes what this connection gives
            DirectForwarder(),
            route=lambda address: address,
            statistics=TapStatistics(),
            frame_limit=1000,
            room=FrameBudget(1000),
            name="client → broker",
        )
        running = asyncio.create_task(relay.run())
        await asyncio.sleep(0)
        client.end.data_received(SMALLEST * MOST_FRAMES)
        broker.end.data_received(SMALLEST_ANSWER * FLOOD)
        client.end.data_received(SMALLEST * FLOOD)
        assert (recorder.requests, recorder.responses) == (2 * MOST_FRAMES, MOST_FRAMES)
        if ends == "client":
            client.end.eof_received()
            client.end.connection_lost(None)
        elif ends == "lost":
            client.end.connection_lost(ConnectionResetError())
        elif ends == "broker":
            broker.end.eof_received()
        else:
            running.cancel()
        client.closed = ends in {"client", "lost"}
        broker.end.connection_lost(None)
        await asyncio.gather(running, return_exceptions=True)
        assert running.cancelled() is (ends == "cancelled")
        assert recorder.requests == FLOOD + MOST_FRAMES
        assert recorder.responses == FLOOD
        assert relay._statistics.left_early <= 1

    run(job())


def has_come(tap: Tap, count: int) -> bool:
    return tap.stats.request_bytes == count


@pytest.mark.slow
@pytest.mark.parametrize("is_answered", [False, True])
def test_unfinished_frames_have_one_bound_for_all_connections(
    *, is_answered: bool, tmp_path: Path
) -> None:
    most_held, clients, size = 2 * MIB, 8, FRAME_LIMIT - 100
    body = bytes(size)
    sent = frame(request_payload(PRODUCE, 9, body))
    unfinished = sent[: len(sent) * 95 // 100]

    async def job() -> None:
        async with (
            serving(answers_once(b"")) as upstream,
            tapped(upstream, tmp_path, frame_limit=FRAME_LIMIT, most_held=most_held) as tap,
        ):
            async with AsyncExitStack() as stack:
                all_clients = [
                    await stack.enter_async_context(connected(tap.listen_address))
                    for _ in range(clients)
                ]
                carrier = tap._carrier
                assert isinstance(carrier, LocalRunner)
                room = carrier._room
                wanted = 0
                for client in all_clients:
                    if is_answered:
                        await client.ask(ASKED)
                        wanted += len(frame(ASKED))
                    await client.send(unfinished)
                    wanted += len(unfinished)
                    await settled(partial(has_come, tap, wanted))
                    least = BEGINNING_BYTES + (not is_answered) * MOST_HELD_UNANSWERED
                    bound = most_held if is_answered else clients * least
                    assert room.held <= bound + CHUNK_BYTES + clients * BEGINNING_BYTES
            await settled(lambda: tap.stats.open_connections == 0)
            assert room.held == 0
            stats = tap.stats
            assert stats.broken_off == clients
            # Frames are captured unchanged while there is room for them.
            assert stats.shortened_frames >= clients - 1
            captured_bytes = sum(path.stat().st_size for path in tap.capture_paths)
            assert captured_bytes < clients * MIB + most_held

    run(job())


def test_a_frame_that_is_not_kept_passes_whole_and_is_a_request_in_the_capture(
    tmp_path: Path,
) -> None:
    """The broker receives every byte, and readers see a request with missing bytes."""
    before, after = b"\x01" * (3 * MIB), ASKED
    produce = request_payload(PRODUCE, 9, produce_body(before), correlation_id=8)
    answered = response_payload(PRODUCE, 9, message("ProduceResponse")(), correlation_id=8)
    received = bytearray()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for answer in (answered, response_payload(LIST_GROUPS, 3, message("ListGroupsResponse")())):
            prefix = await reader.readexactly(4)
            received.extend(prefix + await reader.readexactly(int.from_bytes(prefix, "big")))
            writer.write(frame(answer))
        await drained(reader)

    async def job() -> None:
        async with (
            serving(handler) as upstream,
            tapped(upstream, tmp_path) as tap,
            connected(tap.listen_address) as client,
        ):
            assert await client.ask(produce) == answered
            await client.ask(after)
            stats = tap.stats
            assert (stats.requests, stats.responses, stats.shortened_frames) == (2, 2, 1)
            assert not stats.is_captured
        assert received == frame(produce) + frame(after)
        (path,) = tap.capture_paths
        found = list(read_messages([path]))
        unused = [one for one in found if isinstance(one, UnusedBytes)]
        names = [one.name for one in found if isinstance(one, CapturedMessage)]
        assert names == ["ProduceResponse", "ListGroupsRequest", "ListGroupsResponse"]
        # Every byte is accounted for.
        assert [(one.kind, one.size) for one in unused] == [("frame", len(frame(produce)))]

    run(job())


def produce_body(records: bytes) -> Any:
    kind: Any = message("ProduceRequest")
    partition = kind.PartitionProduceData(index=0, records=records)
    data = kind.TopicProduceData(name="orders", partition_data=[partition])
    return kind(acks=-1, timeout_ms=1000, topic_data=[data])
