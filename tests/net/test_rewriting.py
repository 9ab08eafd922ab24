"""Clients reach every broker of the cluster through the tap, and nothing else changes."""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any

import pytest

from flexwire.codec import message
from flexwire.protocol import parse_response
from flexwire.tap import HostPort, Tap
from tests.net.broker import (
    LOOPBACK,
    Broker,
    captured,
    connected,
    free_ports,
    run,
    serving,
    settled,
    tapped,
)
from tests.net.test_relay import answering, asking
from tests.protocol.payloads import frame, make, request_payload, response_payload

if TYPE_CHECKING:
    from pathlib import Path

    from flexwire.protocol import RequestFrame

METADATA, FIND_COORDINATOR, DESCRIBE_CLUSTER, PRODUCE, FETCH = 3, 10, 60, 0, 1
FAR = HostPort("broker-3.cluster.example", 29092)
STRANGE = {1000: b"\x01\x02", 1001: b""}


def part(owner: str, struct: str, /, **fields: Any) -> Any:
    return getattr(message(owner), struct)(**fields)


def metadata(version: int, *brokers: HostPort) -> Any:
    name, tags = "MetadataResponse", STRANGE if version >= 9 else {}
    body = make(
        name,
        brokers=[
            part(
                name,
                "MetadataResponseBroker",
                node_id=number,
                host=broker.host,
                port=broker.port,
                unknown_tagged_fields=tags,
            )
            for number, broker in enumerate(brokers)
        ],
        topics=[
            part(
                name,
                "MetadataResponseTopic",
                name="orders",
                partitions=[
                    part(
                        name,
                        "MetadataResponsePartition",
                        partition_index=1,
                        leader_id=2,
                        unknown_tagged_fields=tags,
                    )
                ],
                unknown_tagged_fields=tags,
            )
        ],
        unknown_tagged_fields=tags,
    )
    if version >= 2:
        body.cluster_id = "c"
    return body


def find_coordinator(version: int, *brokers: HostPort) -> Any:
    name = "FindCoordinatorResponse"
    tags = STRANGE if version >= 3 else {}
    if version < 4:
        host, port = brokers[0]
        return make(name, node_id=1, host=host, port=port, unknown_tagged_fields=tags)
    found = [
        part(name, "Coordinator", key=f"g{n}", host=b.host, port=b.port, unknown_tagged_fields=tags)
        for n, b in enumerate(brokers)
    ]
    return make(name, coordinators=found, unknown_tagged_fields=tags)


def describe_cluster(version: int, *brokers: HostPort) -> Any:
    del version
    name = "DescribeClusterResponse"
    found = [
        part(
            name,
            "DescribeClusterBroker",
            broker_id=number,
            host=broker.host,
            port=broker.port,
            unknown_tagged_fields=STRANGE,
        )
        for number, broker in enumerate(brokers)
    ]
    return make(name, cluster_id="c", brokers=found, unknown_tagged_fields=STRANGE)


def node_endpoints(name: str, *brokers: HostPort) -> Any:
    found = [
        part(name, "NodeEndpoint", node_id=number, host=broker.host, port=broker.port)
        for number, broker in enumerate(brokers)
    ]
    return make(name, node_endpoints=found, unknown_tagged_fields=STRANGE)


CASES = [
    *((METADATA, version, metadata) for version in (0, 1, 5, 8, 9, 12, 13)),
    *((FIND_COORDINATOR, version, find_coordinator) for version in (0, 2, 3, 4, 6)),
    *((DESCRIBE_CLUSTER, version, describe_cluster) for version in (0, 1, 2)),
    (PRODUCE, 10, lambda _, *brokers: node_endpoints("ProduceResponse", *brokers)),
    (FETCH, 16, lambda _, *brokers: node_endpoints("FetchResponse", *brokers)),
]


@pytest.mark.parametrize(("api_key", "version", "body"), CASES)
def test_addresses_become_listeners_and_all_else_stays(
    api_key: int, version: int, body: Any, tmp_path: Path
) -> None:
    tags = {7: b"header"} if version >= 9 else {}

    async def job() -> None:
        async with AsyncExitStack() as stack:
            sent: list[bytes] = []

            def answer(request: RequestFrame, _: bytes) -> bytes:
                sent.append(
                    response_payload(
                        api_key,
                        version,
                        body(version, bootstrap, second, FAR),
                        correlation_id=request.correlation_id,
                        unknown_tagged_fields=tags,
                    )
                )
                return sent[-1]

            bootstrap = await stack.enter_async_context(serving(Broker(answer)))
            second = await stack.enter_async_context(serving(Broker(answer)))
            tap = await stack.enter_async_context(tapped(bootstrap, tmp_path))
            client = await stack.enter_async_context(connected(tap.listen_address))
            received = await client.ask(request_payload(api_key, version))

            listeners = tap.listeners
            assert listeners[bootstrap] == tap.listen_address
            expected = body(
                version, *(listeners[b] for b in (bootstrap, second, FAR) if b in listeners)
            )
            assert received == response_payload(
                api_key, version, expected, unknown_tagged_fields=tags
            )
            assert received != sent[0]
            assert tap.stats.rewritten == 1

            # The capture contains the bytes that the broker really sent.
            streams = captured(tap.capture_paths)
            assert streams[bootstrap.port, client.port] == frame(sent[0])

    run(job())


def test_a_second_broker_is_reached_through_its_listener(tmp_path: Path) -> None:
    async def job() -> None:
        async with AsyncExitStack() as stack:

            def answer_as(node: int) -> Any:
                def answer(request: RequestFrame, _: bytes) -> bytes:
                    body = metadata(1, first, second)
                    body.controller_id = node
                    return response_payload(
                        METADATA, 1, body, correlation_id=request.correlation_id
                    )

                return answer

            first = await stack.enter_async_context(serving(Broker(answer_as(1))))
            second = await stack.enter_async_context(serving(Broker(answer_as(2))))
            tap = await stack.enter_async_context(tapped(first, tmp_path))
            client = await stack.enter_async_context(connected(tap.listen_address))
            addresses = []
            for _ in range(2):
                payload = await client.ask(request_payload(METADATA, 1))
                body: Any = message("MetadataResponse").decode(payload[4:], 1)
                assert body.controller_id == 1
                addresses.append([HostPort(one.host, one.port) for one in body.brokers])
            # The mapping does not change while the tap runs.
            assert addresses[0] == addresses[1]
            assert addresses[0][0] == tap.listen_address
            other = await stack.enter_async_context(connected(addresses[0][1]))
            payload = await other.ask(request_payload(METADATA, 1))
            body = message("MetadataResponse").decode(payload[4:], 1)
            assert body.controller_id == 2
            assert [HostPort(one.host, one.port) for one in body.brokers] == addresses[0]
            assert tap.stats.connections == 2
            assert set(tap.listeners) == {first, second}

    run(job())


def test_listeners_take_the_ports_after_the_first_where_these_are_free(tmp_path: Path) -> None:
    def answer(request: RequestFrame, _: bytes) -> bytes:
        body = metadata(1, FAR, HostPort("other.example", 29093), HostPort("last.example", 1))
        return response_payload(METADATA, 1, body, correlation_id=request.correlation_id)

    async def job() -> None:
        port = free_ports(4)
        with socket.create_server((LOOPBACK, port + 2)):
            async with AsyncExitStack() as stack:
                upstream = await stack.enter_async_context(serving(Broker(answer)))
                tap = Tap((LOOPBACK, port), upstream, tmp_path)
                await stack.enter_async_context(tap)
                client = await stack.enter_async_context(connected(tap.listen_address))
                await client.ask(request_payload(METADATA, 1))
                ports = [one.port for one in tap.listeners.values()]
                assert ports[:2] == [port, port + 1]
                assert ports[2] not in range(port, port + 4)
                assert ports[3] == port + 3
                assert tap.stats.not_rerouted == 0

    run(job())


@pytest.mark.parametrize("cut", [1, 3, 4, 7, 8, 20])
def test_a_response_that_arrives_in_parts_is_rewritten_whole(cut: int, tmp_path: Path) -> None:
    sent = frame(response_payload(METADATA, 9, metadata(9, FAR)))
    rest = asyncio.Event()

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(frame(request_payload(METADATA, 9))))
        writer.write(sent[:cut])
        await rest.wait()
        writer.write(sent[cut:])
        await writer.drain()

    async def job() -> None:
        async with (
            serving(handler) as upstream,
            tapped(upstream, tmp_path) as tap,
            connected(tap.listen_address) as client,
        ):
            await client.send(frame(request_payload(METADATA, 9)))
            await settled(lambda: tap.stats.response_bytes == cut)
            rest.set()
            received = await client.receive()
            assert received == response_payload(METADATA, 9, metadata(9, tap.listeners[FAR]))

    run(job())


def test_an_address_seen_by_many_at_once_gets_one_listener(tmp_path: Path) -> None:
    def answer(request: RequestFrame, _: bytes) -> bytes:
        body = metadata(1, FAR)
        return response_payload(METADATA, 1, body, correlation_id=request.correlation_id)

    async def job() -> None:
        async with serving(Broker(answer)) as upstream, tapped(upstream, tmp_path) as tap:

            async def ask() -> bytes:
                async with connected(tap.listen_address) as client:
                    return await client.ask(request_payload(METADATA, 1))

            answers = await asyncio.gather(*(ask() for _ in range(20)))
            expected = response_payload(METADATA, 1, metadata(1, tap.listeners[FAR]))
            assert set(answers) == {expected}

    run(job())


def test_beyond_the_most_listeners_addresses_stay_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flexwire.tap.listeners._MOST_LISTENERS", 2)
    other = HostPort("other.example", 29093)

    async def job() -> None:
        def answer(_: RequestFrame, __: bytes) -> bytes:
            return response_payload(METADATA, 1, metadata(1, FAR, other))

        async with (
            serving(Broker(answer)) as upstream,
            tapped(upstream, tmp_path) as tap,
            connected(tap.listen_address) as client,
        ):
            received = await client.ask(request_payload(METADATA, 1))
            expected = metadata(1, tap.listeners[FAR], other)
            assert received == response_payload(METADATA, 1, expected)
            assert (len(tap.listeners), tap.stats.not_rerouted) == (2, 1)

    run(job())


@pytest.mark.parametrize("trailing", [b"", b"\x00\x01"])
def test_a_response_without_addresses_goes_on_byte_for_byte(
    trailing: bytes, tmp_path: Path
) -> None:
    bodies = [
        metadata(12).encode(12),
        find_coordinator(4, HostPort("", -1)).encode(4),
        find_coordinator(0, HostPort("", -1)).encode(0),
    ]
    asked = [(METADATA, 12), (FIND_COORDINATOR, 4), (FIND_COORDINATOR, 0)]

    async def job() -> None:
        def answer(request: RequestFrame, _: bytes) -> bytes:
            body = bodies[asked.index((request.api_key, request.api_version))] + trailing
            return response_payload(request.api_key, request.api_version, body)

        async with (
            serving(Broker(answer)) as upstream,
            tapped(upstream, tmp_path) as tap,
            connected(tap.listen_address) as client,
        ):
            for (api_key, version), body in zip(asked, bodies, strict=True):
                received = await client.ask(request_payload(api_key, version))
                assert received == response_payload(api_key, version, body + trailing)
            assert (tap.stats.rewritten, tap.stats.undecodable) == (0, 0)

    run(job())


def test_what_trails_a_rewritten_body_goes_on(tmp_path: Path) -> None:
    async def job() -> None:
        def answer(request: RequestFrame, _: bytes) -> bytes:
            body = metadata(9, FAR).encode(9) + b"trailing"
            return response_payload(METADATA, 9, body, correlation_id=request.correlation_id)

        async with (
            serving(Broker(answer)) as upstream,
            tapped(upstream, tmp_path) as tap,
            connected(tap.listen_address) as client,
        ):
            received = await client.ask(request_payload(METADATA, 9))
            expected = metadata(9, tap.listeners[FAR]).encode(9) + b"trailing"
            assert received[parse_response(received, METADATA, 9).body_offset :] == expected

    run(job())


@pytest.mark.parametrize(
    ("version", "body"),
    [
        (1000, b"what a later Kafka says"),
        (9, b"garbage"),
        (9, b""),
        (1, metadata(1, FAR).encode(1)[:20]),
        (1, b"\x7f\xff\xff\xff"),
    ],
)
def test_what_does_not_decode_goes_on_and_is_counted(
    version: int, body: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def job() -> None:
        def answer(_: RequestFrame, __: bytes) -> bytes:
            return response_payload(METADATA, version, body)

        async with (
            serving(Broker(answer)) as upstream,
            tapped(upstream, tmp_path) as tap,
            connected(tap.listen_address) as client,
        ):
            received = await client.ask(request_payload(METADATA, version))
            assert received == response_payload(METADATA, version, body)
            assert (tap.stats.rewritten, tap.stats.undecodable) == (0, 1)

    run(job())
    assert "forwarded a response unchanged" in caplog.text
    assert "MetadataResponse" in caplog.text


def test_a_response_is_rewritten_whatever_follows_its_addresses(tmp_path: Path) -> None:
    """No client gets a broker's address, even if a later part of the response cannot be decoded."""

    async def job() -> None:
        def answer(_: RequestFrame, __: bytes) -> bytes:
            return response_payload(METADATA, 1, metadata(1, FAR).encode(1)[:-1])

        async with (
            serving(Broker(answer)) as upstream,
            tapped(upstream, tmp_path) as tap,
            connected(tap.listen_address) as client,
        ):
            received = await client.ask(request_payload(METADATA, 1))
            expected = metadata(1, tap.listeners[FAR]).encode(1)[:-1]
            assert received == response_payload(METADATA, 1, expected)
            assert (tap.stats.rewritten, tap.stats.undecodable) == (1, 0)

    run(job())


@pytest.mark.parametrize("cut", [0, 3, 7, 20, None])
def test_what_follows_a_response_that_began_to_pass_on_is_still_rewritten(
    cut: int | None, tmp_path: Path
) -> None:
    """The rest of a response arrives together with the next one, or with its beginning."""
    first = frame(answering(bytes(range(200))))
    second = frame(response_payload(METADATA, 9, metadata(9, FAR), correlation_id=8))
    asked = frame(asking(b"")) + frame(request_payload(METADATA, 9, correlation_id=8))
    may_go_on = [asyncio.Event(), asyncio.Event()]

    async def handler(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(len(asked))
        writer.write(first[:50])
        await may_go_on[0].wait()
        writer.write(first[50:] + second[:cut])
        await may_go_on[1].wait()
        writer.write(b"" if cut is None else second[cut:])
        await reader.read()

    async def job() -> None:
        async with serving(handler) as upstream, tapped(upstream, tmp_path) as tap:
            async with connected(tap.listen_address) as client:
                await client.send(asked)
                assert await client.reader.readexactly(50) == first[:50]
                may_go_on[0].set()
                assert await client.reader.readexactly(len(first) - 50) == first[50:]
                may_go_on[1].set()
                payload = await client.receive()
                body: Any = message("MetadataResponse").decode(payload[5:], 9)
                assert body.brokers[0].port == tap.listeners[FAR].port
            await settled(lambda: tap.stats.open_connections == 0)
            assert captured(tap.capture_paths)[upstream.port, client.port] == first + second

    run(job())
