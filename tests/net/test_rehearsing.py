"""A tap that rehearses a release: each client meets that release, and nothing else is touched."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flexwire.capture.files.comments import ALL_FRAMES, CaptureFilter, read_rehearsed
from flexwire.codec import message
from flexwire.errors import ArgumentError, FlexwireError, TapError, UnknownMessageError
from flexwire.protocol import Conversation, parse_request
from flexwire.protocol.audit.evidence import offered_versions, role_of, stable_versions
from flexwire.schema.catalog import catalog
from flexwire.tap import HostPort, Tap, TapSecurity, run_tap
from flexwire.tap.header_stamps import HeaderTag, StampConfig
from flexwire.tap.log_limit import LogLimiter
from flexwire.tap.metrics import TapStatistics
from flexwire.tap.rehearsal import (
    Rehearsal,
    RehearsalPlan,
    RehearsingForwarder,
    log,
    missing_apis,
    narrow,
    translate,
)
from flexwire.versions import Versions
from tests.each import each
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
from tests.net.releases import API_VERSIONS, FEATURES, broker_of, versions_answer, versions_list
from tests.net.test_processes import processes_of
from tests.net.test_relay import METADATA, PRODUCE, SASL_HANDSHAKE, asking, echo
from tests.net.test_tap_tls import Made, made
from tests.protocol.payloads import frame, make, request_payload, response_payload

if TYPE_CHECKING:
    from pathlib import Path

    from flexwire.protocol import RequestFrame

__all__ = ["made"]
REAL, OLDER, NEWER = "3.9.2", "4.0.2", "4.4.0"
FINAL = catalog().final_releases[-8:]
PLAN = RehearsalPlan(NEWER, read=stable_versions(API_VERSIONS, REAL))
FETCH, LEADER_AND_ISR = 1, 4
# As JSON it has more bytes than a process may say at once.
LONG = "\x01" * 30_000


def forwarder(plan: RehearsalPlan = PLAN) -> tuple[RehearsingForwarder, Rehearsal, TapStatistics]:
    rehearsal, statistics = Rehearsal(plan, ALL_FRAMES), TapStatistics()
    passing = RehearsingForwarder(rehearsal, "10.0.0.9", statistics, LogLimiter(log))
    return passing, rehearsal, statistics


def asks(version: int, correlation_id: int = 7, client_id: str = "tests") -> bytes:
    """A request for the list of versions."""
    told = {"client_software_name": "tests", "client_software_version": "1"}
    body = make("ApiVersionsRequest", **(told if version >= 3 else {}))
    known = version if version in catalog().entry("ApiVersionsRequest").versions else 5
    return request_payload(
        API_VERSIONS,
        version,
        body.encode(known),
        correlation_id=correlation_id,
        client_id=client_id,
    )


def produce(version: int, correlation_id: int = 7, acks: int = -1) -> bytes:
    body = make("ProduceRequest", acks=acks)
    return request_payload(PRODUCE, version, body, correlation_id=correlation_id)


def in_both(body: Any, release: str) -> list[tuple[int, int, int]]:
    """What a release offers of a list, computed anew."""
    kept = []
    for one in body.api_keys:
        own = offered_versions(one.api_key, release)
        low, high = max(own.lowest, one.min_version), min(own.highest, one.max_version)
        if own and low <= high:
            kept.append((one.api_key, low, high))
    return kept


@each("real", FINAL)
def test_a_list_has_the_versions_of_both_releases_and_all_else_as_it_was(real: str) -> None:
    for release in FINAL:
        for version in stable_versions(API_VERSIONS, real):
            request = parse_request(asks(version))
            sent = versions_answer(real, request)
            told = narrow(sent, version, version, release)
            assert told[:4] == sent[:4]
            kind: Any = message("ApiVersionsResponse")
            old, new = kind.decode(sent[4:], version), kind.decode(told[4:], version)
            found = [(one.api_key, one.min_version, one.max_version) for one in new.api_keys]
            assert found == in_both(old, release)
            new.api_keys = old.api_keys
            assert new.encode(version) == sent[4:]
            assert narrow(told, version, version, release) == told
            if real == release:
                assert told == sent


def test_produce_is_offered_from_0_although_4_0_reads_it_from_3() -> None:
    sent = versions_answer(REAL, parse_request(asks(4)))
    body: Any = message("ApiVersionsResponse").decode(narrow(sent, 4, 4, NEWER)[4:], 4)
    (offer,) = [one for one in body.api_keys if one.api_key == PRODUCE]
    assert (offer.min_version, offer.max_version) == (0, 11)
    assert stable_versions(PRODUCE, NEWER).lowest == 3


@given(
    unknown=st.dictionaries(st.integers(10, 2**31 - 1), st.binary(max_size=20), max_size=4),
    rest=st.binary(max_size=9),
    correlation_id=st.integers(-(2**31), 2**31 - 1),
)
def test_tags_that_nobody_knows_and_what_follows_stay(
    unknown: dict[int, bytes], rest: bytes, correlation_id: int
) -> None:
    body = versions_list(REAL, **FEATURES)
    body.unknown_tagged_fields = unknown
    sent = response_payload(API_VERSIONS, 4, body, correlation_id=correlation_id) + rest
    told = narrow(sent, 4, 4, NEWER)
    kind: Any = message("ApiVersionsResponse")
    new, end = kind.decode_prefix(told, 4, 4)
    assert told[:4] == sent[:4]
    assert told[end:] == rest
    new.api_keys = body.api_keys
    assert new == body


@given(st.binary(max_size=60))
def test_any_bytes_are_a_list_or_refused(payload: bytes) -> None:
    for version in (0, 2, 3, 4):
        try:
            told = narrow(payload, version, version, NEWER)
        except FlexwireError:
            continue
        assert narrow(told, version, version, NEWER) == told


def test_a_request_in_a_version_that_the_broker_lacks_goes_on_in_its_highest() -> None:
    body = make(
        "ApiVersionsRequest",
        client_software_name="librdkafka",
        client_software_version="2.6.1",
        cluster_id="c",
        node_id=3,
        unknown_tagged_fields={77: b"x"},
    )
    sent = request_payload(API_VERSIONS, 5, body, correlation_id=-9, client_id="ä")
    told = translate(sent, parse_request(sent), 4)
    body.cluster_id, body.node_id = None, make("ApiVersionsRequest").node_id
    assert told == request_payload(API_VERSIONS, 4, body, correlation_id=-9, client_id="ä")


@each("api_key", catalog().api_keys())
def test_exactly_what_the_release_does_not_read_is_refused(api_key: int) -> None:
    if api_key == API_VERSIONS or role_of({api_key}) != "client":
        return
    for version in range(20):
        passing, rehearsal, statistics = forwarder()
        payload = request_payload(api_key, version)
        turn = Conversation().request(payload)
        passed = passing.requests([payload], [turn])
        if rehearsal.over:
            # Some versions only brokers send.
            assert (passed.outgoing, passed.answers) == (frame(payload), {})
        elif version in stable_versions(api_key, NEWER):
            assert (passed.outgoing, passed.answers) == (frame(payload), {}), (api_key, version)
            assert statistics == TapStatistics()
        else:
            assert (passed.outgoing, passed.answers) == (b"", {0: None}), (api_key, version)
            assert statistics.rehearsed_closed == 1
            assert passing.rest(b"more") == b""
            assert passing.requests([payload], [turn]).outgoing == b""


@each("api_key", catalog().api_keys())
def test_a_rehearsal_ends_where_the_api_is_one_of_brokers(api_key: int) -> None:
    if role_of({api_key}) == "client":
        return
    passing, rehearsal, _ = forwarder()
    for payload in (request_payload(api_key, 0), produce(2)):
        turn = Conversation().request(payload)
        assert passing.requests([payload], [turn]) == (frame(payload), [b""], {})
    assert rehearsal.over is not None
    assert "10.0.0.9 sent" in rehearsal.over


def test_a_rehearsal_ends_where_a_replica_fetches_and_not_where_a_consumer_does() -> None:
    for version in range(4, 18):
        for replica in (-1, 0, 2):
            passing, rehearsal, _ = forwarder()
            body = make("FetchRequest")
            if version < 15:
                body.replica_id = replica
            else:
                body.replica_state.replica_id = replica
            payload = request_payload(FETCH, version, body)
            passed = passing.requests([payload], [Conversation().request(payload)])
            assert passed.outgoing == frame(payload)
            assert (rehearsal.over is not None) is (replica >= 0)


@pytest.mark.parametrize(("partitions", "is_over"), [(8_000, False), (60_000, True)])
def test_a_fetch_too_long_to_look_into_may_be_a_replicas(partitions: int, *, is_over: bool) -> None:
    kind: Any = message("FetchRequest")
    body = kind.of(topics=[{"partitions": [{"partition": one} for one in range(partitions)]}])
    payload = request_payload(FETCH, 17, body)
    assert len(payload) > 200_000
    passing, rehearsal, _ = forwarder()
    assert passing.requests([payload], [Conversation().request(payload)]).outgoing == frame(payload)
    assert (rehearsal.over is not None) is is_over


def test_lists_that_are_never_answered_are_forgotten() -> None:
    passing, _, _ = forwarder()
    conversation = Conversation()
    for number in range(1200):
        payload = asks(4, number)
        passing.requests([payload], [conversation.request(payload)])
    assert len(passing._asked) == 1000


def test_an_older_broker_of_the_cluster_says_so_in_version_0() -> None:
    only = {"api_key": API_VERSIONS, "min_version": 0, "max_version": 3}
    kind: Any = message("ApiVersionsResponse")
    body = kind.of(error_code=35, api_keys=[only])
    sent = response_payload(API_VERSIONS, 4, body, body_version=0)
    assert narrow(sent, 5, 4, NEWER) == sent


def test_a_list_that_kafka_would_not_write_so_is_refused() -> None:
    sent = versions_answer(REAL, parse_request(asks(4)))
    # The count of APIs in one byte more than it takes.
    assert sent[6] < 0x80
    longer = sent[:6] + bytes([sent[6] | 0x80, 0]) + sent[7:]
    with pytest.raises(FlexwireError):
        narrow(longer, 4, 4, NEWER)


def test_a_share_is_of_clients_and_the_same_everywhere() -> None:
    plan = RehearsalPlan(NEWER, share=0.05)
    first, second = Rehearsal(plan, ALL_FRAMES), Rehearsal(plan, ALL_FRAMES)
    clients = [(f"10.0.{one % 50}.1", f"client-{one}") for one in range(4000)]
    taken = [first.takes(*client) for client in clients]
    assert taken == [second.takes(*client) for client in clients]
    assert 150 < sum(taken) < 250
    # A larger share has the clients of a smaller one.
    larger = Rehearsal(RehearsalPlan(NEWER, share=0.5), ALL_FRAMES)
    assert all(larger.takes(*client) for client, is_in in zip(clients, taken, strict=True) if is_in)
    only = Rehearsal(PLAN, CaptureFilter(client_ids=("billing-*",)))
    assert only.takes("h", "billing-1")
    assert not only.takes("h", "orders")
    assert not only.takes("h", None)


def test_a_plan_is_of_a_final_release_and_its_numbers_are_checked() -> None:
    assert RehearsalPlan("4.0").release == OLDER
    with pytest.raises(UnknownMessageError):
        RehearsalPlan("9.9")
    wrong: list[dict[str, Any]] = [
        {"share": 0},
        {"share": 1.5},
        {"seconds": 0},
        {"most_failed": -1},
        {"most_failed": True},
    ]
    for given_fields in wrong:
        with pytest.raises(ArgumentError):
            RehearsalPlan(NEWER, **given_fields)


def test_what_brokers_cannot_act_out_is_named() -> None:
    offered = [key for key in catalog().api_keys() if stable_versions(key, REAL)]
    missing = missing_apis(NEWER, offered)
    assert {"ShareFetch", "StreamsGroupHeartbeat"} <= set(missing)
    assert not {"Produce", "ConsumerGroupHeartbeat", "Vote"} & set(missing)


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
            # What the release reads passes in the same connection.
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
            real_ones = [
                versions_answer(REAL, parse_request(asks(min(version, 4), correlation_id=version)))
                for version in range(6)
            ]
            heard = streams[upstream.port, client.port]
            assert heard.startswith(b"".join(map(frame, real_ones)))

    run(job())


class Waiting:
    """A broker of a release that answers only when it may, in pieces of any size."""

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
        # Ids are used again, as clients may.
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
            assert tap.rehearsal.failed == {(LOOPBACK, "tests"): None}

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
                # The rehearsal is over, and its connections go on.
                await client.ask(asks(4))
                tap.end_rehearsal()
            for payload in [asks(version) for version in (0, 4, 5, 99)]:
                expected = versions_answer(REAL, parse_request(payload))
                assert await client.ask(payload) == expected
            assert await client.ask(produce(0)) == echo(parse_request(produce(0)), produce(0))
            assert tap.stats.rehearsed_closed == 0

    run(job())


async def all_pass(tap: Tap, processes: int) -> bool:
    """Whether a request that was refused passes in every process: each has one of these clients."""
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
            # The same client again is one client.
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
            assert set(rehearsal.failed) == {(LOOPBACK, name) for name in ("a", "b", LONG[:200])}
            assert rehearsal.over == "more than 2 clients failed"
            # Each process hears of it in a moment, and then everything passes everywhere.
            while not await all_pass(tap, processes):
                pass
            if processes > 1:
                # One that takes the place of another does not begin anew.
                assert processes_of(tap)._config.rehearsal is None
            await settled(lambda: tap.stats.rehearsed_closed >= 5)

    run(job())


def test_it_ends_when_its_time_is_over(tmp_path: Path) -> None:
    async def job() -> None:
        async with (
            serving(broker_of(REAL, echo)) as upstream,
            tapped(upstream, tmp_path, rehearsal=RehearsalPlan(NEWER, seconds=0.01)) as tap,
        ):
            rehearsal = tap.rehearsal
            assert rehearsal is not None
            await settled(lambda: rehearsal.over == "its time is over")
            async with connected(tap.listen_address) as client:
                assert await client.ask(produce(0)) == echo(parse_request(produce(0)), produce(0))

    run(job())


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
        # In ZooKeeper mode a controller comes to the same listener.
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
            assert "a controller is among the clients" in tap.rehearsal.over
            assert await client.ask(produce(0)) == echo(parse_request(produce(0)), produce(0))

    run(job())


def test_tokens_of_a_login_are_no_requests(tmp_path: Path) -> None:
    handshake = request_payload(SASL_HANDSHAKE, 0, make("SaslHandshakeRequest", mechanism="PLAIN"))
    # It reads as a negative version of ApiVersions.
    token = bytes.fromhex("0012 ffff 00000007 ffff 00")

    async def answered(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        client = Client(reader, writer)
        first = parse_request(await client.receive())
        if first.api_key == API_VERSIONS:
            await client.send(frame(versions_answer(REAL, first)))
            # The tap asks in a version that 3.9 lacks, and then in one that it has.
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
            # Before a broker has answered, half a megabyte is kept.
            whole = frame(request_payload(PRODUCE, 2, b"\0" * 2_000_000))
            async with connected(tap.listen_address) as client:
                client.writer.write(whole)
                # As a broker that closes while more is on its way.
                with suppress(ConnectionResetError):
                    assert await client.reader.read() == b""
            body = request_payload(METADATA, 1, b"\0" * 1_000_000)
            async with connected(tap.listen_address) as client:
                # What is read of a long one is answered before the next one is refused.
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
            # The first answer, a thousand of the tap's own, and the end.
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
            # One that has no answer, so that the broker speaks first.
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
