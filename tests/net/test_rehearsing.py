"""If a tap rehearses a release, each client sees the release's versions; nothing else changes."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.capture.files.comments import CaptureFilter, read_rehearsed, rehearsed_release_in
from flexwire.errors import ArgumentError, TapError
from flexwire.protocol import Conversation, parse_request
from flexwire.tap import HostPort, Tap, TapSecurity, run_tap
from flexwire.tap.header_stamps import HeaderTag, StampConfig
from flexwire.tap.rehearsal import (
    RehearsalPlan,
    narrow,
)
from flexwire.versions import Versions
from tests.net.broker import (
    LOOPBACK,
    Broker,
    Client,
    captured,
    connected,
    run,
    serving,
    settled,
    tapped,
)
from tests.net.releases import (
    API_VERSIONS,
    NEWER,
    REAL,
    asks,
    broker_of,
    produce,
    versions_answer,
)
from tests.net.test_processes import processes_of
from tests.net.test_relay import METADATA, PRODUCE, SASL_HANDSHAKE, asking, echo
from tests.net.test_tap_tls import Made, made
from tests.protocol.payloads import frame, make, request_payload, response_payload

if TYPE_CHECKING:
    from pathlib import Path

    from flexwire.protocol import RequestFrame

__all__ = ["made"]
LEADER_AND_ISR = 4
# As JSON, the report takes more bytes than a process may send in one message.
LONG = "\x01" * 30_000


def test_clients_meet_the_release_and_the_capture_has_what_was_sent(tmp_path: Path) -> None:
    broker = broker_of(REAL, echo)
    sent = [asks(version, correlation_id=version) for version in range(6)]
    lost = [asks(version, correlation_id=version) for version in (6, 99, 32767)]

    async def job() -> None:
        async with (
            serving(broker) as upstream,
            tapped(upstream, tmp_path, rehearsal=RehearsalPlan("4.4")) as tap,
            connected(tap.listen_address) as client,
        ):
            assert tap.rehearsal is not None
            assert tap.rehearsal.plan.read == Versions(0, 4)
            answers = [await client.ask(payload) for payload in sent]
            for version, payload in enumerate(answers):
                known = parse_request(asks(min(version, 4), correlation_id=version))
                real = versions_answer(REAL, known)
                assert payload == narrow(real, min(version, 4), min(version, 4), NEWER)
            for payload in lost:
                expected = payload[4:8] + bytes.fromhex("0023 00000001 0012 0000 0005")
                assert await client.ask(payload) == expected
            negative = asks(5).replace(bytes.fromhex("0012 0005"), bytes.fromhex("0012 ffff"))
            expected = bytes.fromhex("00000007 0023 00000001 0012 0000 0005")
            assert await client.ask(negative) == expected
            # On the same connection, the tap still forwards requests that the release supports.
            assert (await client.ask(produce(3)))[4:] == make("ProduceRequest", acks=-1).encode(3)
            client.writer.close()
            await settled(lambda: tap.stats.open_connections == 0)
            streams = captured(tap.capture_paths)
            went = b"".join(map(frame, (*sent[:5], asks(4, correlation_id=5), produce(3))))
            assert bytes(broker.received[1]) == went
            said = b"".join(map(frame, (*sent, *lost, negative, produce(3))))
            assert streams[client.port, upstream.port] == said
            counts = tap.stats
            assert (counts.rehearsed_narrowed, counts.rehearsed_sent_on) == (5, 1)
            assert (counts.rehearsed_unsupported, counts.rehearsed_closed) == (4, 0)
            (path,) = tap.capture_paths
            did = [(one.correlation_id, one.did, one.release) for one in read_rehearsed(path)]
            names = ["narrowed"] * 5 + ["sent on"] + ["unsupported"] * 4
            ids = [*range(6), 6, 99, 32767, 7]
            assert did == [(one, name, NEWER) for one, name in zip(ids, names, strict=True)]
            with path.open("rb") as file:
                assert rehearsed_release_in(file) == NEWER
            real_ones = [
                versions_answer(REAL, parse_request(asks(min(version, 4), correlation_id=version)))
                for version in range(6)
            ]
            heard = streams[upstream.port, client.port]
            assert heard.startswith(b"".join(map(frame, real_ones)))

    run(job())


class Waiting:
    """A broker of a release that answers only when allowed, in pieces of any size."""

    def __init__(self, source: random.Random) -> None:
        self.may = asyncio.Event()
        self.heard: list[bytes] = []
        self._source = source

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client, conversation = Client(reader, writer), Conversation()
        while True:
            payload = await client.receive()
            request = conversation.request(payload).request
            assert request is not None
            is_list = request.api_key == API_VERSIONS
            if not is_list or request.client_id != "flexwire":
                await self.may.wait()
                self.heard.append(payload)
            if request.api_key == PRODUCE and payload.endswith(make_acks_0(request.api_version)):
                continue
            answer = frame(versions_answer(REAL, request) if is_list else echo(request, payload))
            while answer:
                size = self._source.randrange(1, 60)
                writer.write(answer[:size])
                await writer.drain()
                answer = answer[size:]
                if self._source.random() < 0.3:
                    await asyncio.sleep(0)


def make_acks_0(version: int) -> bytes:
    encoded: bytes = make("ProduceRequest", acks=0).encode(version)
    return encoded


@pytest.mark.parametrize("seed", range(12))
def test_answers_keep_the_order_of_requests_in_any_pipeline(seed: int, tmp_path: Path) -> None:
    source = random.Random(seed)
    kinds = ["list", "new list", "unsupported", "read", "silent"]
    plan = [source.choice(kinds) for _ in range(40)] + ["refused", "read", "unsupported"]
    requests, expected, passed = [], [], []
    for number, kind in enumerate(plan):
        # Ids are reused, as clients may do.
        told = source.choice([number, 3])
        is_over = "refused" in plan[:number]
        if kind in {"list", "new list"}:
            version = 5 if kind == "new list" else source.randrange(5)
            payload, real = asks(version, told), min(version, 4)
            went = asks(real, told)
            answer = narrow(versions_answer(REAL, parse_request(went)), version, real, NEWER)
        elif kind == "unsupported":
            payload, went = asks(source.randrange(6, 99), told), b""
            answer = payload[4:8] + bytes.fromhex("0023 00000001 0012 0000 0005")
        else:
            acks = 0 if kind == "silent" else -1
            payload = went = produce(2 if kind == "refused" else 5, told, acks)
            answer = b"" if kind != "read" else echo(parse_request(payload), payload)
        requests.append(payload)
        if not is_over and kind != "refused":
            passed += [went] if went else []
            expected += [answer] if answer else []

    async def job() -> None:
        broker = Waiting(source)
        async with (
            serving(broker) as upstream,
            tapped(upstream, tmp_path, rehearsal=RehearsalPlan(NEWER)) as tap,
            connected(tap.listen_address) as client,
        ):
            said = b"".join(map(frame, requests))
            left = said
            if seed % 2:
                broker.may.set()
            while left:
                size = source.randrange(1, 200)
                await client.send(left[:size])
                left = left[size:]
                if source.random() < 0.5:
                    await asyncio.sleep(0)
            await settled(lambda: tap.stats.rehearsed_closed == 1)
            broker.may.set()
            assert await client.reader.read() == b"".join(map(frame, expected))
            client.writer.close()
            await settled(lambda: tap.stats.open_connections == 0)
            assert broker.heard == passed
            refused = requests[: plan.index("refused") + 1]
            heard = captured(tap.capture_paths)[client.port, upstream.port]
            assert said.startswith(heard[: len(b"".join(map(frame, refused)))])
            assert heard.startswith(b"".join(map(frame, refused)))
            assert tap.rehearsal is not None
            assert tap.rehearsal.failed == {(LOOPBACK, "tests"): "Produce v2"}
            did = [one for path in tap.capture_paths for one in read_rehearsed(path)]
            assert [(one.request, one.client_id) for one in did if one.did == "closed"] == [
                ("Produce v2", "tests")
            ]

    run(job())


@pytest.mark.parametrize("only", [CaptureFilter(client_ids=("others",)), None])
def test_clients_that_are_not_chosen_see_what_the_broker_says(
    only: CaptureFilter | None, tmp_path: Path
) -> None:
    options: dict[str, Any] = {"rehearsal": RehearsalPlan(NEWER)} | ({"only": only} if only else {})

    async def job() -> None:
        async with (
            serving(broker_of(REAL, echo)) as upstream,
            tapped(upstream, tmp_path, **options) as tap,
            connected(tap.listen_address) as client,
        ):
            if only is None:
                # The rehearsal is over, but its connections continue.
                await client.ask(asks(4))
                tap.end_rehearsal()
            for payload in [asks(version) for version in (0, 4, 5, 99)]:
                expected = versions_answer(REAL, parse_request(payload))
                assert await client.ask(payload) == expected
            assert await client.ask(produce(0)) == echo(parse_request(produce(0)), produce(0))
            assert tap.stats.rehearsed_closed == 0

    run(job())


async def all_pass(tap: Tap, processes: int) -> bool:
    """Return whether a refused request now passes in every process. Each process has a client."""
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(connected(tap.listen_address)) for _ in range(processes)
        ]
        heard = []
        for client in clients:
            await client.send(frame(produce(0)))
            heard.append(await client.reader.read(1))
    await settled(lambda: tap.stats.open_connections == 0)
    return all(heard)


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_it_ends_for_all_once_too_many_clients_failed(processes: int, tmp_path: Path) -> None:
    async def job() -> None:
        async with (
            serving(broker_of(REAL, echo)) as upstream,
            tapped(
                upstream,
                tmp_path,
                processes=processes,
                rehearsal=RehearsalPlan(NEWER, most_failed=2),
            ) as tap,
        ):
            # The same client is counted once.
            for client_id in ("a", "a", "b", "a", LONG):
                async with connected(tap.listen_address) as client:
                    await client.send(
                        frame(
                            request_payload(PRODUCE, 0, make("ProduceRequest"), client_id=client_id)
                        )
                    )
                    assert await client.reader.read() == b""
            rehearsal = tap.rehearsal
            assert rehearsal is not None
            await settled(lambda: rehearsal.over is not None)
            assert rehearsal.failed == {
                (LOOPBACK, name): "Produce v0" for name in ("a", "b", LONG[:200])
            }
            assert rehearsal.over == "more than 2 clients failed"
            # Each process receives this shortly afterwards, and then everything passes everywhere.
            while not await all_pass(tap, processes):
                pass
            if processes > 1:
                # A process that replaces another one continues the rehearsal.
                assert processes_of(tap)._config.rehearsal is None
            await settled(lambda: tap.stats.rehearsed_closed >= 5)

    run(job())


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_a_tap_that_stops_says_who_failed(
    processes: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def job() -> None:
        async with (
            serving(broker_of(REAL, echo)) as upstream,
            tapped(upstream, tmp_path, processes=processes, rehearsal=RehearsalPlan(NEWER)) as tap,
            connected(tap.listen_address) as client,
        ):
            await client.send(frame(produce(1)))
            assert await client.reader.read() == b""

    run(job())
    (end,) = [one.getMessage() for one in caplog.records if "has ended" in one.getMessage()]
    why, _, who = end.partition("; ")
    assert why == "the rehearsal of 4.4.0 has ended: the tap has stopped"
    assert who == "clients that failed: 1: 'tests' (127.0.0.1) by Produce v1"


def test_it_ends_when_its_time_is_over(tmp_path: Path) -> None:
    async def job() -> None:
        async with (
            serving(broker_of(REAL, echo)) as upstream,
            tapped(upstream, tmp_path, rehearsal=RehearsalPlan(NEWER, seconds=0.01)) as tap,
        ):
            rehearsal = tap.rehearsal
            assert rehearsal is not None
            await settled(lambda: rehearsal.over == "the time is up")
            async with connected(tap.listen_address) as client:
                assert await client.ask(produce(0)) == echo(parse_request(produce(0)), produce(0))

    run(job())


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.own_process
def test_a_signal_ends_the_rehearsal_and_not_the_tap(tmp_path: Path) -> None:
    async def job() -> None:
        started: asyncio.Future[Tap] = asyncio.get_running_loop().create_future()
        async with serving(broker_of(REAL, echo)) as upstream:
            program = asyncio.create_task(
                run_tap(
                    f"{LOOPBACK}:0",
                    str(upstream),
                    tmp_path,
                    ready=started.set_result,
                    rehearsal=RehearsalPlan(NEWER),
                )
            )
            tap = await started
            rehearsal = tap.rehearsal
            assert rehearsal is not None
            os.kill(os.getpid(), signal.SIGUSR1)
            await settled(lambda: rehearsal.over is not None)
            async with connected(tap.listen_address) as client:
                assert await client.ask(produce(0)) == echo(parse_request(produce(0)), produce(0))
            os.kill(os.getpid(), signal.SIGTERM)
            await program

    run(job())


def test_a_broker_among_the_clients_ends_it_and_passes(tmp_path: Path) -> None:
    async def job() -> None:
        # In ZooKeeper mode a controller uses the same listener.
        def answer(request: RequestFrame, payload: bytes) -> bytes:
            is_list = request.api_key == API_VERSIONS
            return versions_answer(REAL, request) if is_list else echo(request, payload)

        async with (
            serving(Broker(answer)) as upstream,
            tapped(upstream, tmp_path, rehearsal=RehearsalPlan(NEWER)) as tap,
            connected(tap.listen_address) as client,
        ):
            payload = request_payload(LEADER_AND_ISR, 5, b"any")
            assert await client.ask(payload) == echo(parse_request(payload), payload)
            assert tap.rehearsal is not None
            assert tap.rehearsal.over is not None
            assert "one of the clients is a controller" in tap.rehearsal.over
            assert await client.ask(produce(0)) == echo(parse_request(produce(0)), produce(0))

    run(job())


def test_tokens_of_a_login_are_no_requests(tmp_path: Path) -> None:
    handshake = request_payload(SASL_HANDSHAKE, 0, make("SaslHandshakeRequest", mechanism="PLAIN"))
    # These bytes read as a negative version of ApiVersions.
    token = bytes.fromhex("0012 ffff 00000007 ffff 00")

    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = Client(reader, writer)
        first = parse_request(await client.receive())
        if first.api_key == API_VERSIONS:
            await client.send(frame(versions_answer(REAL, first)))
            # The tap asks in a version that 3.9 lacks, and then in a version that 3.9 supports.
            await client.send(frame(versions_answer(REAL, parse_request(await client.receive()))))
            return
        body = make("SaslHandshakeResponse")
        await client.send(frame(response_payload(SASL_HANDSHAKE, 0, body)))
        await client.send(frame(await client.receive()))
        await reader.read()

    async def job() -> None:
        async with (
            serving(answered) as upstream,
            tapped(upstream, tmp_path, rehearsal=RehearsalPlan(NEWER)) as tap,
            connected(tap.listen_address) as client,
        ):
            await client.ask(handshake)
            assert await client.ask(token) == token

    run(job())


def test_it_works_under_tls_on_both_sides(made: Made, tmp_path: Path) -> None:
    async def job() -> None:
        async with (
            serving(broker_of(REAL, echo), made.broker) as upstream,
            tapped(
                upstream,
                tmp_path,
                rehearsal=RehearsalPlan(NEWER),
                security=TapSecurity(made.listen, made.upstream),
            ) as tap,
            connected(tap.listen_address, made.client) as client,
        ):
            real = versions_answer(REAL, parse_request(asks(4)))
            assert await client.ask(asks(4)) == narrow(real, 4, 4, NEWER)
            await client.send(frame(asking(b"")) + frame(produce(1)))
            assert await client.receive() == echo(parse_request(asking(b"")), asking(b""))
            assert await client.reader.read() == b""

    run(job())


def test_a_request_too_long_to_keep_is_refused_by_its_beginning(tmp_path: Path) -> None:
    broker = broker_of(REAL, echo)

    async def job() -> None:
        async with (
            serving(broker) as upstream,
            tapped(upstream, tmp_path, rehearsal=RehearsalPlan(NEWER)) as tap,
        ):
            # Until the broker answers, the tap keeps at most half a megabyte.
            whole = frame(request_payload(PRODUCE, 2, b"\0" * 2_000_000))
            async with connected(tap.listen_address) as client:
                client.writer.write(whole)
                # The tap acts like a broker that closes while more bytes are on their way.
                with suppress(ConnectionResetError):
                    assert await client.reader.read() == b""
            body = request_payload(METADATA, 1, b"\0" * 1_000_000)
            async with connected(tap.listen_address) as client:
                # The part of a long list that was read is answered before the next request is
                # refused.
                await client.send(frame(body) + frame(produce(1)))
                assert (await client.receive())[4:] == b"\0" * 1_000_000
                assert await client.reader.read() == b""
            await settled(lambda: tap.stats.open_connections == 0)
            assert [bytes(one) for one in broker.received[1:]] == [b"", frame(body)]
            assert tap.stats.rehearsed_closed == 2

    run(job())


def test_what_a_broker_garbles_passes_and_ends_the_rehearsal(tmp_path: Path) -> None:
    garbled = bytes.fromhex("00000007 0000 7fffffff")
    answers = iter([True, True])

    def answer(request: RequestFrame, payload: bytes) -> bytes:
        is_list = request.api_key == API_VERSIONS
        if is_list and next(answers, False):
            return versions_answer(REAL, request)
        return garbled if is_list else echo(request, payload)

    async def job() -> None:
        async with (
            serving(Broker(answer)) as upstream,
            tapped(upstream, tmp_path, rehearsal=RehearsalPlan(NEWER)) as tap,
            connected(tap.listen_address) as client,
        ):
            assert await client.ask(asks(0)) == garbled
            assert tap.rehearsal is not None
            assert tap.rehearsal.over is not None
            assert tap.rehearsal.over.startswith("a broker's list of versions cannot be read")

    run(job())


def test_a_list_that_is_asked_for_in_a_body_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    async def job() -> None:
        async with (
            serving(broker_of(REAL, echo)) as upstream,
            tapped(upstream, tmp_path, rehearsal=RehearsalPlan(NEWER)) as tap,
            connected(tap.listen_address) as client,
        ):
            await client.send(frame(request_payload(API_VERSIONS, 5, b"\x05ab")))
            assert await client.reader.read() == b""
            assert tap.stats.rehearsed_closed == 1

    run(job())


def test_answers_that_wait_are_bounded(tmp_path: Path) -> None:
    broker = Waiting(random.Random(1))

    async def job() -> None:
        async with (
            serving(broker) as upstream,
            tapped(upstream, tmp_path, rehearsal=RehearsalPlan(NEWER)) as tap,
            connected(tap.listen_address) as client,
        ):
            await client.send(frame(produce(5)) + frame(asks(99)) * 3000)
            await settled(lambda: tap.stats.requests == 3001)
            broker.may.set()
            heard = await client.reader.read()
            # The client receives the first answer, a thousand answers from the tap, and the end.
            own = frame(asks(99)[4:8] + bytes.fromhex("0023 00000001 0012 0000 0005"))
            first = frame(echo(parse_request(produce(5)), produce(5)))
            assert heard == first + own * 1000

    run(job())


def test_an_answer_does_not_come_into_the_middle_of_a_response(tmp_path: Path) -> None:
    unasked = frame(b"\0\0\0\x63" + bytes(200))
    rest = asyncio.Event()

    async def half(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = Client(reader, writer)
        first = parse_request(await client.receive())
        if first.client_id == "flexwire":
            await client.send(frame(versions_answer(REAL, first)))
            await client.send(frame(versions_answer(REAL, parse_request(await client.receive()))))
            return
        await client.send(unasked[:50])
        await rest.wait()
        await client.send(unasked[50:])
        await reader.read()

    async def job() -> None:
        async with (
            serving(half) as upstream,
            tapped(upstream, tmp_path, rehearsal=RehearsalPlan(NEWER)) as tap,
            connected(tap.listen_address) as client,
        ):
            # The request gets no answer, so the broker sends first.
            await client.send(frame(produce(5, acks=0)))
            begun = await client.reader.readexactly(50)
            await client.send(frame(asks(99)))
            await settled(lambda: tap.stats.rehearsed_unsupported == 1)
            rest.set()
            own = frame(asks(99)[4:8] + bytes.fromhex("0023 00000001 0012 0000 0005"))
            heard = begun + await client.reader.readexactly(len(unasked) - 50 + len(own))
            assert heard == unasked + own

    run(job())


def test_a_tap_that_cannot_ask_the_broker_does_not_start(tmp_path: Path) -> None:
    tap = Tap((LOOPBACK, 0), HostPort(LOOPBACK, 1), tmp_path, rehearsal=RehearsalPlan(NEWER))
    with pytest.raises(TapError, match=r"cannot rehearse 4\.4\.0: .* cannot be reached"):
        run(tap.start())


def test_header_tags_and_a_rehearsal_are_not_mixed(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="either a rehearsal or header tags"):
        Tap(
            (LOOPBACK, 0),
            (LOOPBACK, 1),
            tmp_path,
            rehearsal=RehearsalPlan(NEWER),
            stamping=StampConfig([HeaderTag(10042, "x")]),
        )
