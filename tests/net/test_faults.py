"""Each fault of a tap has the intended effect, and changes nothing else."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from flexwire.capture.files.comments import read_faulted
from flexwire.codec import message
from flexwire.errors import ArgumentError
from flexwire.protocol import Conversation, parse_request, parse_response
from flexwire.protocol.apis import api_key_of
from flexwire.schema.catalog import catalog
from flexwire.schema.spec import MessageType
from flexwire.tap import HostPort
from flexwire.tap.config import TapConfig
from flexwire.tap.fault_forwarder import FaultForwarder, OldResponses
from flexwire.tap.fault_rules import FaultPlan, Faults, parse_fault
from flexwire.tap.frame_filter import TopicNames
from flexwire.tap.header_stamps import HeaderTag, StampConfig
from flexwire.tap.log_limit import LogLimiter
from flexwire.tap.metrics import TapStatistics
from flexwire.tap.rehearsal import RehearsalPlan
from tests.net.broker import (
    LOOPBACK,
    Broker,
    captured,
    connected,
    run,
    serving,
    settled,
    tapped,
)
from tests.net.test_tap_tls import Made, made
from tests.protocol.payloads import frame, request_payload, response_payload

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from flexwire.protocol import RequestFrame
    from flexwire.tap import Tap
    from tests.net.broker import Client

__all__ = ["made"]

RETRIABLE, FATAL = 6, 48
SILENT = "silent from here on"
ID = UUID("d9a3f0c8-3b0f-4d2e-9a55-0c7d1e2f3a4b")


def asks(
    name: str, version: int, correlation_id: int = 7, client: str = "tests", **of: Any
) -> bytes:
    """Return a request of an API with these fields, as `Message.of` accepts them."""
    body = message(f"{name}Request").of(**of)
    key = api_key_of(f"{name}Request")
    return request_payload(key, version, body, correlation_id=correlation_id, client_id=client)


def ends(correlation_id: int = 7, client: str = "tests") -> bytes:
    return asks("EndTxn", 3, correlation_id, client, transactional_id="pay")


def produce(topic: str = "orders", correlation_id: int = 7, acks: int = -1) -> bytes:
    topics = [{"name": topic, "partition_data": [{"index": 3, "records": None}]}]
    return asks("Produce", 8, correlation_id, acks=acks, topic_data=topics)


def real_answer(request: RequestFrame, payload: bytes) -> bytes | None:
    """Return the response of a broker that did what was asked; None if no response is expected."""
    name = request.message_name.replace("Request", "Response")
    fields: dict[str, Any] = {}
    if name == "ProduceResponse":
        body: Any = message(request.message_name).decode(
            payload[request.body_offset :], request.api_version
        )
        if body.acks == 0:
            return None
        fields["responses"] = [
            {
                "name": topic.name,
                "partition_responses": [
                    {"index": part.index, "base_offset": 42} for part in topic.partition_data
                ],
            }
            for topic in body.topic_data
        ]
    if name == "MetadataResponse":
        fields["topics"] = [{"name": "orders", "topic_id": ID}]
    if name == "FetchResponse":
        fields["responses"] = [
            {"topic": topic, "topic_id": ID, "partitions": [{"high_watermark": 9, "records": None}]}
            for topic in ("orders", "others")
        ]
    answer = message(name).of(**fields)
    key, version = request.api_key, request.api_version
    return response_payload(key, version, answer, correlation_id=request.correlation_id)


def said_by_broker(payload: bytes) -> bytes:
    answer = real_answer(parse_request(payload), payload)
    assert answer is not None
    return answer


def decoded(answer: bytes, asked: bytes) -> Any:
    request = parse_request(asked)
    read = parse_response(answer, request.api_key, request.api_version)
    assert read.correlation_id == request.correlation_id
    return message(read.message_name).decode(answer[read.body_offset :], read.body_version)


def did(tap: Tap) -> list[tuple[int, str]]:
    return [
        (one.correlation_id, one.did) for path in tap.capture_paths for one in read_faulted(path)
    ]


def plan(*texts: str) -> FaultPlan:
    return FaultPlan(tuple(map(parse_fault, texts)), 1)


@pytest.fixture
def somewhere() -> HostPort:
    return HostPort(LOOPBACK, 9092)


def faulty(
    tmp_path: Path, *texts: str, seed: int = 1
) -> Callable[[Callable[[Client, Tap, Broker], Any]], None]:
    """Run a job with one client, through a tap with these faults, to a broker without faults."""

    def over(job: Callable[[Client, Tap, Broker], Any]) -> None:
        broker = Broker(real_answer)
        faults = FaultPlan(tuple(map(parse_fault, texts)), seed)

        async def all_of_it() -> None:
            async with (
                serving(broker) as upstream,
                tapped(upstream, tmp_path, faults=faults) as tap,
                connected(tap.listen_address) as client,
            ):
                await job(client, tap, broker)

        run(all_of_it())

    return over


def received(broker: Broker) -> bytes:
    return b"".join(map(bytes, broker.received))


def test_an_error_before_never_reaches_the_broker(tmp_path: Path) -> None:
    async def job(client: Client, tap: Tap, broker: Broker) -> None:
        first = await client.ask(ends(1))
        assert decoded(first, ends(1)).error_code == FATAL
        assert received(broker) == b""
        assert await client.ask(ends(2)) == said_by_broker(ends(2))
        assert received(broker) == frame(ends(2))
        assert did(tap) == [(1, "answered with an error")]
        assert (tap.stats.faults, tap.stats.faults_impossible) == (1, 0)
        assert tap.stats.unpaired == 0

    faulty(tmp_path, "EndTxn error=INVALID_TXN_STATE before once")(job)


def test_an_error_after_is_of_what_the_broker_has_done(tmp_path: Path) -> None:
    async def job(client: Client, tap: Tap, broker: Broker) -> None:
        answer = decoded(await client.ask(produce()), produce())
        (topic,) = answer.responses
        assert [part.error_code for part in topic.partition_responses] == [RETRIABLE]
        assert received(broker) == frame(produce())
        assert did(tap) == [(7, "answered with an error")]
        # The capture contains the broker's real responses.
        (heard,) = (
            data
            for (source, _), data in captured(tap.capture_paths).items()
            if source != client.port
        )
        assert heard == frame(said_by_broker(produce()))

    faulty(tmp_path, "Produce error=NOT_LEADER_OR_FOLLOWER after")(job)


def test_only_the_meant_topic_has_the_error_after(tmp_path: Path) -> None:
    asked = asks("Fetch", 12, topics=[{"topic": "orders"}, {"topic": "others"}])

    async def job(client: Client, _: Tap, __: Broker) -> None:
        answer = decoded(await client.ask(asked), asked)
        codes = {
            topic.topic: [part.error_code for part in topic.partitions]
            for topic in answer.responses
        }
        assert codes == {"orders": [RETRIABLE], "others": [0]}
        assert answer.error_code == 0
        other = asks("Fetch", 12, topics=[{"topic": "others"}])
        assert await client.ask(other) == said_by_broker(other)

    faulty(tmp_path, "Fetch topic=ord* error=6 after")(job)


def test_a_topic_is_known_by_its_id_once_a_response_named_both(tmp_path: Path) -> None:
    asked = asks("Fetch", 13, 8, topics=[{"topic_id": ID}])

    async def job(client: Client, _: Tap, __: Broker) -> None:
        assert await client.ask(asked) == said_by_broker(asked)
        await client.ask(asks("Metadata", 12, topics=None))
        answer = decoded(await client.ask(asked), asked)
        assert {part.error_code for one in answer.responses for part in one.partitions} == {6}

    faulty(tmp_path, "Fetch topic=orders error=6 after")(job)


def test_a_request_for_everything_is_answered_by_the_broker_first(tmp_path: Path) -> None:
    asked = asks("Metadata", 12, topics=None)

    async def job(client: Client, tap: Tap, broker: Broker) -> None:
        answer = decoded(await client.ask(asked), asked)
        assert [topic.error_code for topic in answer.topics] == [3]
        assert received(broker) == frame(asked)
        assert did(tap) == [(7, "answered with an error")]

    faulty(tmp_path, "Metadata error=UNKNOWN_TOPIC_OR_PARTITION")(job)


def test_what_cannot_be_answered_before_passes_and_is_counted(tmp_path: Path) -> None:
    asked = asks("Metadata", 12, topics=None)

    async def job(client: Client, tap: Tap, _: Broker) -> None:
        assert await client.ask(asked) == said_by_broker(asked)
        ((number, said),) = did(tap)
        assert number == 7
        assert said.startswith("not possible: ")
        assert (tap.stats.faults, tap.stats.faults_impossible) == (0, 1)

    faulty(tmp_path, "Metadata error=UNKNOWN_TOPIC_OR_PARTITION before")(job)


@pytest.mark.parametrize("point", ["before", "after"])
def test_an_error_for_what_has_no_response_is_a_close(point: str, tmp_path: Path) -> None:
    async def job(client: Client, tap: Tap, broker: Broker) -> None:
        await client.send(frame(produce(acks=0)))
        assert await client.reader.read() == b""
        await settled(lambda: tap.stats.open_connections == 0)
        assert received(broker) == (frame(produce(acks=0)) if point == "after" else b"")
        assert did(tap) == [(7, "closed")]

    faulty(tmp_path, f"Produce error=6 {point}")(job)


def test_own_answers_wait_for_those_to_earlier_requests(tmp_path: Path) -> None:
    sent = [produce(correlation_id=1), ends(2), produce(correlation_id=3), ends(4)]

    async def job(client: Client, tap: Tap, broker: Broker) -> None:
        await client.send(b"".join(map(frame, sent)))
        answers = [await client.receive() for _ in sent]
        assert [int.from_bytes(one[:4], "big") for one in answers] == [1, 2, 3, 4]
        assert received(broker) == frame(sent[0]) + frame(sent[2])
        assert tap.stats.unpaired == 0

    faulty(tmp_path, "EndTxn error=INVALID_TXN_STATE")(job)


def test_a_fetch_without_topics_is_about_those_of_earlier_ones(tmp_path: Path) -> None:
    unnamed = asks("Fetch", 12, topics=[])

    async def job(client: Client, _: Tap, __: Broker) -> None:
        assert await client.ask(unnamed) == said_by_broker(unnamed)
        for topic, code in (("others", 0), (None, 0), ("orders", 6), (None, 6)):
            named = [] if topic is None else [{"topic": topic}]
            asked = asks("Fetch", 12, topics=named)
            orders = decoded(await client.ask(asked), asked).responses[0]
            assert [part.error_code for part in orders.partitions] == [code]

    faulty(tmp_path, "Fetch topic=orders error=6 after")(job)


def test_nothing_follows_a_response_that_is_cut(tmp_path: Path) -> None:
    first, last = frame(said_by_broker(ends(1))), frame(said_by_broker(ends(2)))

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(frame(ends(1)) + frame(ends(2))))
        # One piece contains a whole response and the beginning of the next response.
        writer.write(first + last[:-1])
        await reader.read()

    async def job() -> None:
        async with (
            serving(handler) as upstream,
            tapped(upstream, tmp_path, faults=plan("EndTxn cut after=6 once")) as tap,
            connected(tap.listen_address) as client,
        ):
            await client.send(frame(ends(1)) + frame(ends(2)))
            assert await client.reader.read() == first[:6]

    run(job())


def test_after_a_cut_no_request_goes_on() -> None:
    passing = FaultForwarder(
        Faults(plan("EndTxn cut after=6")),
        TopicNames(),
        OldResponses(),
        TapStatistics(),
        LogLimiter(logging.getLogger("tests")),
    )
    conversation = Conversation()
    turn = conversation.request(ends(1))
    assert passing.requests([ends(1)], [turn]).outgoing == frame(ends(1))
    answer = said_by_broker(ends(1))
    assert passing.response(answer, conversation.response(answer)).length == 6
    assert passing.requests([ends(2)], [conversation.request(ends(2))]).outgoing == b""
    assert passing.rest(b"more") == b""


@pytest.mark.parametrize(
    ("text", "reaches_broker", "length"),
    [
        ("EndTxn close", False, 0),
        ("EndTxn close after", True, 0),
        ("EndTxn cut after=9", True, 9),
        ("EndTxn cut", True, 0),
        ("EndTxn cut after=100000", True, None),
        ("EndTxn cut after=9 before", False, 0),
    ],
)
def test_a_cut_ends_the_connection_after_so_many_bytes(
    text: str,
    reaches_broker: bool,  # noqa: FBT001 - pytest passes arguments by name
    length: int | None,
    tmp_path: Path,
) -> None:
    earlier = produce(correlation_id=1)

    async def job(client: Client, tap: Tap, broker: Broker) -> None:
        await client.send(frame(earlier) + frame(ends(2)))
        cut = frame(said_by_broker(ends(2)))[:length]
        assert await client.reader.read() == frame(said_by_broker(earlier)) + cut
        await settled(lambda: tap.stats.open_connections == 0)
        whole = frame(earlier) + (frame(ends(2)) if reaches_broker else b"")
        assert received(broker) == whole
        assert did(tap) == [(2, "closed" if "close" in text else "cut")]

    faulty(tmp_path, text)(job)


def test_a_request_that_is_cut_reaches_the_broker_so_far(tmp_path: Path) -> None:
    heard = bytearray()

    async def handler(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        heard.extend(await reader.read())

    async def job() -> None:
        async with (
            serving(handler) as upstream,
            tapped(upstream, tmp_path, faults=plan("EndTxn cut after=9 before")) as tap,
            connected(tap.listen_address) as client,
        ):
            await client.send(frame(ends(1)) + frame(ends(2)))
            assert await client.reader.read() == b""
            await settled(lambda: tap.stats.open_connections == 0)
            assert bytes(heard) == frame(ends(1))[:9]

    run(job())


def test_silence_before_keeps_all_later_requests_from_the_broker(tmp_path: Path) -> None:
    async def job(client: Client, tap: Tap, broker: Broker) -> None:
        await client.send(frame(produce(correlation_id=1)) + frame(ends(2)) + frame(ends(3)))
        assert await client.receive() == said_by_broker(produce(correlation_id=1))
        await client.send(frame(produce(correlation_id=4)))
        client.writer.write_eof()
        # No answer comes, and the tap releases a client that leaves.
        assert await client.reader.read() == b""
        await settled(lambda: tap.stats.open_connections == 0)
        assert received(broker) == frame(produce(correlation_id=1))
        assert did(tap) == [(2, "silent from here on")]
        # The capture still contains the client's bytes.
        streams = captured(tap.capture_paths)
        said = [data for (source, _), data in streams.items() if source == client.port]
        expected = (produce(correlation_id=1), ends(2), ends(3), produce(correlation_id=4))
        assert said == [b"".join(map(frame, expected))]

    faulty(tmp_path, "EndTxn silence")(job)


def test_silence_after_keeps_all_later_responses_from_the_client(tmp_path: Path) -> None:
    sent = [produce(correlation_id=1), ends(2), produce(correlation_id=3)]

    async def job(client: Client, tap: Tap, broker: Broker) -> None:
        await client.send(b"".join(map(frame, sent)))
        assert await client.receive() == said_by_broker(sent[0])
        client.writer.write_eof()
        assert await client.reader.read() == b""
        await settled(lambda: tap.stats.open_connections == 0)
        assert received(broker) == b"".join(map(frame, sent))
        assert did(tap) == [(2, "silent from here on")]

    faulty(tmp_path, "EndTxn silence after")(job)


@pytest.mark.parametrize("point", ["before", "after"])
def test_silence_keeps_nothing_back_that_came_before_it(point: str, tmp_path: Path) -> None:
    early, last = produce(correlation_id=1), ends(2)

    async def job(client: Client, tap: Tap, broker: Broker) -> None:
        await client.send(frame(early) + frame(last))
        assert await client.receive() == said_by_broker(early)
        client.writer.write_eof()
        await settled(lambda: tap.stats.open_connections == 0)
        assert received(broker) == frame(early) + (b"" if point == "before" else frame(last))

    faulty(tmp_path, f"Produce delay=5ms {point}", f"EndTxn silence {point}")(job)


@pytest.mark.parametrize("point", ["before", "after"])
def test_a_delay_holds_its_connection_and_no_other(point: str, tmp_path: Path) -> None:
    early, held, behind = produce(correlation_id=1), ends(2), produce(correlation_id=3)

    async def job(client: Client, tap: Tap, broker: Broker) -> None:
        await client.send(frame(early) + frame(held) + frame(behind))
        assert await client.receive() == said_by_broker(early)
        async with connected(tap.listen_address) as other:
            assert await other.ask(early) == said_by_broker(early)
        # Delayed frames are sent when the tap stops: nothing is lost.
        if point == "before":
            assert bytes(broker.received[0]) == frame(early)
            await tap.close()
            assert bytes(broker.received[0]) == frame(early) + frame(held) + frame(behind)
        else:
            await settled(lambda: len(broker.received[0]) > len(frame(early)))
            await tap.close()
            assert await client.receive() == said_by_broker(held)

    faulty(tmp_path, f"EndTxn delay=10m {point}")(job)


@pytest.mark.parametrize("point", ["before", "after"])
def test_what_is_late_comes_whole_and_in_order(point: str, tmp_path: Path) -> None:
    sent = [(ends if number % 3 else produce)(correlation_id=number) for number in range(40)]

    async def job(client: Client, tap: Tap, broker: Broker) -> None:
        await client.send(b"".join(map(frame, sent)))
        client.writer.write_eof()
        for payload in sent:
            assert await client.receive() == said_by_broker(payload)
        assert await client.reader.read() == b""
        assert received(broker) == b"".join(map(frame, sent))
        await settled(lambda: tap.stats.open_connections == 0)
        assert tap.stats.faults == len(did(tap)) > 3

    faulty(tmp_path, f"EndTxn delay=2ms {point} 50%", f"Produce delay=1ms {point}")(job)


def test_a_client_that_is_throttled_is_not_read_meanwhile(tmp_path: Path) -> None:
    asked = asks("Produce", 9, acks=-1, topic_data=[])

    async def job(client: Client, tap: Tap, broker: Broker) -> None:
        answer = decoded(await client.ask(asked), asked)
        assert answer.throttle_time_ms == 600_000
        await client.send(frame(ends(2)))
        async with connected(tap.listen_address) as other:
            assert await other.ask(ends(3)) == said_by_broker(ends(3))
        assert bytes(broker.received[0]) == frame(asked)
        assert did(tap) == [(7, "throttled")]

    faulty(tmp_path, "Produce throttle=10m once")(job)


def test_a_throttle_ends_in_its_time(tmp_path: Path) -> None:
    async def job(client: Client, _: Tap, __: Broker) -> None:
        for number in range(5):
            await client.ask(produce(correlation_id=number))

    faulty(tmp_path, "Produce throttle=5ms")(job)


def test_a_throttle_of_a_version_without_one_is_not_possible(tmp_path: Path) -> None:
    asked = request_payload(
        api_key_of("ProduceRequest"), 0, message("ProduceRequest").of(acks=-1, topic_data=[])
    )

    async def job(client: Client, tap: Tap, _: Broker) -> None:
        assert await client.ask(asked) == said_by_broker(asked)
        assert tap.stats.faults_impossible == 1

    faulty(tmp_path, "Produce throttle=5ms")(job)


def test_an_odd_tag_is_in_header_and_body_of_flexible_versions(tmp_path: Path) -> None:
    async def job(client: Client, tap: Tap, _: Broker) -> None:
        asked = asks("EndTxn", 3, transactional_id="pay")
        answer = await client.ask(asked)
        read = parse_response(answer, api_key_of("EndTxnRequest"), 3)
        header: Any = read.header
        assert header.unknown_tagged_fields == {10042: b"\x00\xff"}
        assert decoded(answer, asked).unknown_tagged_fields == {10042: b"\x00\xff"}
        plain = asks("EndTxn", 2, 8, transactional_id="pay")
        assert await client.ask(plain) == said_by_broker(plain)
        assert [number for number, _ in did(tap)] == [7, 8]
        assert (tap.stats.faults, tap.stats.faults_impossible) == (1, 1)

    faulty(tmp_path, "* tag=10042=hex:00ff")(job)


def test_a_stale_response_is_the_first_one_under_a_new_number(tmp_path: Path) -> None:
    asked = asks("Metadata", 9, 1, topics=None)
    again = asks("Metadata", 9, 2, topics=None)
    brokers = iter([1, 2, 3, 4])

    def moving(request: RequestFrame, _: bytes) -> bytes:
        body = message("MetadataResponse").of(controller_id=next(brokers))
        return response_payload(3, 9, body, correlation_id=request.correlation_id)

    async def job() -> None:
        async with (
            serving(Broker(moving)) as upstream,
            tapped(upstream, tmp_path, faults=plan("Metadata stale first=2")) as tap,
        ):
            async with connected(tap.listen_address) as client:
                heard = [await client.ask(asked)]
            async with connected(tap.listen_address) as client:
                heard += [await client.ask(again) for _ in range(3)]
            assert decoded(heard[0], asked).controller_id == 1
            assert [decoded(one, again).controller_id for one in heard[1:]] == [1, 1, 4]
            assert did(tap) == [(2, "answered as before")] * 2

    run(job())


def test_only_this_client_and_the_nth_request_are_meant(tmp_path: Path) -> None:
    async def job(client: Client, _: Tap, broker: Broker) -> None:
        for number in range(6):
            name = "billing" if number % 2 else "other"
            answer = decoded(await client.ask(ends(number, name)), ends(number, name))
            assert answer.error_code == (FATAL if number == 3 else 0)
        assert received(broker).count(b"pay") == 5

    faulty(tmp_path, "EndTxn client=bill* error=48 nth=2")(job)


def test_a_seed_draws_the_same_requests_again(tmp_path: Path) -> None:
    def drawn(seed: int, out: str) -> list[int]:
        numbers: list[int] = []

        async def job(client: Client, tap: Tap, _: Broker) -> None:
            for number in range(60):
                await client.ask(ends(number))
            numbers.extend(number for number, _ in did(tap))

        faulty(tmp_path / out, "EndTxn error=48 30%", seed=seed)(job)
        return numbers

    first = drawn(5, "a")
    assert first == drawn(5, "b")
    assert first != drawn(6, "c")
    assert 0 < len(first) < 60


def test_what_no_fault_fits_passes_byte_for_byte(tmp_path: Path) -> None:
    source = random.Random(3)
    sent = [produce(correlation_id=number) for number in range(30)]
    stream = b"".join(map(frame, sent)) + b"\x00\x00"

    async def job(client: Client, tap: Tap, broker: Broker) -> None:
        rest = stream
        while rest:
            size = source.randrange(1, 200)
            await client.send(rest[:size])
            rest = rest[size:]
        for payload in sent:
            assert await client.receive() == said_by_broker(payload)
        client.writer.write_eof()
        await settled(lambda: tap.stats.open_connections == 0)
        assert received(broker) == stream[:-2]
        assert (tap.stats.faults, did(tap)) == (0, [])

    faulty(tmp_path, "EndTxn error=48", "Fetch delay=2s", "Produce client=x close")(job)


def test_faults_come_and_go_on_open_connections(tmp_path: Path) -> None:
    async def job(client: Client, tap: Tap, _: Broker) -> None:
        assert await client.ask(ends(1)) == said_by_broker(ends(1))
        tap.add_fault("EndTxn error=INVALID_TXN_STATE")
        assert decoded(await client.ask(ends(2)), ends(2)).error_code == FATAL
        tap.end_faults()
        assert await client.ask(ends(3)) == said_by_broker(ends(3))
        assert tap.faults is not None
        assert tap.faults.done == {"EndTxn error=INVALID_TXN_STATE": 1}

    faulty(tmp_path)(job)


def test_a_tap_without_faults_takes_none(tmp_path: Path) -> None:
    async def job() -> None:
        async with serving(Broker(real_answer)) as upstream, tapped(upstream, tmp_path) as tap:
            with pytest.raises(ArgumentError, match="started with faults"):
                tap.add_fault("EndTxn error=48")
            tap.end_faults()

    run(job())


@pytest.mark.parametrize(
    "options",
    [
        {"rehearsal": RehearsalPlan("4.4")},
        {"stamping": StampConfig([HeaderTag(10042, "a")])},
        {"processes": 2},
    ],
    ids=["rehearsal", "header tags", "processes"],
)
def test_faults_go_with_nothing_that_alters_or_divides(
    options: dict[str, Any], tmp_path: Path, somewhere: HostPort
) -> None:
    with pytest.raises(ArgumentError, match="faults"):
        TapConfig(somewhere, somewhere, tmp_path, faults=plan("EndTxn close"), **options)


def test_responses_of_any_bytes_pass_and_are_counted(tmp_path: Path) -> None:
    source = random.Random(11)
    kinds = ("tag=10042=x 30%", "error=6 after 30%", "throttle=1ms 30%", "delay=1ms 30%", "stale")
    texts = [f"* {kind}" for kind in kinds]
    # Other tests cover logins, and requests that may get no response.
    others = {"Produce", "SaslHandshake", "SaslAuthenticate", "ApiVersions"}
    keys = sorted({*catalog().api_keys()} - {api_key_of(f"{name}Request") for name in others})

    def answer(request: RequestFrame, _: bytes) -> bytes:
        head = request.correlation_id.to_bytes(4, "big", signed=True)
        return head + source.randbytes(source.randrange(0, 60))

    async def job() -> None:
        async with (
            serving(Broker(answer)) as upstream,
            tapped(upstream, tmp_path, faults=plan(*texts)) as tap,
            connected(tap.listen_address) as client,
        ):
            for number in range(400):
                key = source.choice(keys)
                version = source.choice([*catalog().by_api_key(key, MessageType.REQUEST).versions])
                body = source.randbytes(source.randrange(0, 80))
                heard = await client.ask(request_payload(key, version, body, correlation_id=number))
                assert heard[:4] == number.to_bytes(4, "big")
            assert tap.stats.faults_impossible > 50
            assert tap.stats.unpaired == 0

    run(job())


LASTING: tuple[str, ...] = (
    "error=6 before",
    "error=6 after",
    "error=6",
    "delay=1ms before",
    "delay=1ms after",
)
LASTING += ("tag=10042=x", "throttle=1ms", "stale")
ENDING: tuple[str, ...] = (
    "close before",
    "close after",
    "cut after=3",
    "cut before after=5",
    "silence before",
)
ENDING += ("silence after",)


@pytest.mark.parametrize("seed", range(12))
def test_any_faults_keep_order_and_bytes(seed: int, tmp_path: Path) -> None:
    source = random.Random(seed)
    texts = [
        f"{source.choice(['*', 'EndTxn'])} {what} {source.randrange(1, 30)}%" for what in LASTING
    ]
    if seed % 2:
        texts.append(f"Produce {source.choice(ENDING)} nth={source.randrange(20, 60)}")
    source.shuffle(texts)
    sent = [
        source.choice([ends(number), produce("orders", number), produce("others", number)])
        for number in range(80)
    ]

    async def job(client: Client, tap: Tap, broker: Broker) -> None:
        rest = b"".join(map(frame, sent))
        heard = asyncio.create_task(client.reader.read())
        while rest and not heard.done():
            size = source.randrange(1, 900)
            client.writer.write(rest[:size])
            rest = rest[size:]
            await asyncio.sleep(0)
        client.writer.write_eof()
        answers = await heard
        await settled(lambda: tap.stats.open_connections == 0)
        ended = {one: what for one, what in did(tap) if what in {"closed", "cut", SILENT}}
        last = min(ended, default=len(sent))
        # The client gets the answers in order, up to the request that ended the connection.
        numbers = list(correlation_ids(answers))
        assert numbers == list(range(len(numbers)))
        assert len(numbers) <= last
        assert len(numbers) == last or ended[last] == SILENT
        # The broker receives everything that was sent, to the end, but none of the tap's own
        # answers.
        own = {
            one.correlation_id
            for path in tap.capture_paths
            for one in read_faulted(path)
            if one.did == "answered with an error" and one.source.endswith(f":{client.port}")
        }
        went = [frame(one) for number, one in enumerate(sent) if number not in own]
        assert b"".join(went).startswith(received(broker))
        if not ended:
            assert received(broker) == b"".join(went)
            assert len(numbers) == len(sent)
        assert tap.stats.unpaired == 0

    faulty(tmp_path, *texts, seed=seed)(job)


def correlation_ids(data: bytes) -> Iterator[int]:
    """Yield the numbers of whole responses, and of one that is cut within or after its number."""
    while len(data) >= 8:
        yield int.from_bytes(data[4:8], "big")
        data = data[4 + int.from_bytes(data[:4], "big") :]


@pytest.mark.parametrize("text", ["delay=2ms after", "delay=2ms before", "cut after=9", "silence"])
def test_faults_are_done_under_tls_too(text: str, made: Made, tmp_path: Path) -> None:
    first, last = produce(correlation_id=1), ends(2)

    async def job() -> None:
        async with (
            serving(Broker(real_answer), made.broker) as upstream,
            tapped(upstream, tmp_path, security=made.both, faults=plan(f"EndTxn {text}")) as tap,
            connected(tap.listen_address, made.client) as client,
        ):
            await client.send(frame(first) + frame(last))
            assert await client.receive() == said_by_broker(first)
            if text.startswith("delay"):
                assert await client.receive() == said_by_broker(last)
            elif text.startswith("cut"):
                assert await client.reader.read() == frame(said_by_broker(last))[:9]
            else:
                # The broker sees that the client has ended the connection, and receives no further
                # bytes.
                client.writer.close()
            await settled(lambda: tap.stats.faults == 1)

    run(job())
