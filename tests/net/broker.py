"""A small broker, a small client, and a reader for captures of the traffic between them."""

from __future__ import annotations

import asyncio
import random
import socket
from collections import defaultdict
from contextlib import ExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeVar

import dpkt  # type: ignore[import-untyped]  # it comes without types

from flexwire.protocol import Conversation, RequestFrame
from flexwire.tap import HostPort, Tap
from tests.protocol.payloads import frame

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
    from pathlib import Path

    Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
    Answer = Callable[[RequestFrame, bytes], bytes | None]

LOOPBACK = "127.0.0.1"
PATIENCE = 120
CHUNK_BYTES = 256 * 1024
"""The maximum number of bytes that asyncio reads in one call."""
T = TypeVar("T")


def run(job: Coroutine[None, None, T]) -> T:
    """Run an asynchronous test. A test fails if it hangs or leaves a task behind."""

    async def bounded() -> T:
        async with asyncio.timeout(PATIENCE):
            result = await job
        assert asyncio.all_tasks() == {asyncio.current_task()}
        return result

    return asyncio.run(bounded())


def free_ports(count: int = 1) -> int:
    """Return the first of this many consecutive free ports, which also remain free.

    Systems assign other ports to clients that do not choose one: those from 32768 or 49152.
    """
    while True:
        first = random.randrange(20_000, 32_000)
        with ExitStack() as stack, suppress(OSError):
            for port in range(first, first + count):
                stack.enter_context(socket.socket()).bind((LOOPBACK, port))
            return first


@asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[HostPort]:
    """Run a server on a free loopback port. Then close the server and all connections."""
    tasks: set[asyncio.Task[None]] = set()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await handler(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            await close(writer)

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(handle(reader, writer))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        # A task that is canceled before it starts closes nothing.
        task.add_done_callback(lambda _: writer.close())

    server = await asyncio.start_server(accept, LOOPBACK, 0, ssl=tls)
    try:
        yield HostPort(LOOPBACK, server.sockets[0].getsockname()[1])
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()


class Broker:
    """Answer each request with the result of ``answer``, and keep the received bytes."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.received: list[bytearray] = []

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received = bytearray()
        self.received.append(received)
        conversation = Conversation()
        while prefix := await reader.read(4):
            prefix += await reader.readexactly(4 - len(prefix))
            payload = await reader.readexactly(int.from_bytes(prefix, "big"))
            received += prefix + payload
            request = conversation.request(payload).request
            assert request is not None
            answer = self.answer(request, payload)
            if answer is not None:
                writer.write(frame(answer))
                await writer.drain()


class Client:
    """One connection that sends and receives frames."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        # After a TLS transport is closed, this information is lost.
        self.port: int = writer.get_extra_info("sockname")[1]

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def receive(self) -> bytes:
        prefix = await self.reader.readexactly(4)
        return await self.reader.readexactly(int.from_bytes(prefix, "big"))

    async def ask(self, payload: bytes) -> bytes:
        await self.send(frame(payload))
        return await self.receive()


@asynccontextmanager
async def connected(
    address: HostPort, tls: ssl.SSLContext | None = None, name: str | None = None
) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection(*address, ssl=tls, server_hostname=name)
    try:
        yield Client(reader, writer)
    finally:
        await close(writer)


async def close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):  # the other side may have closed first
        await writer.wait_closed()


@asynccontextmanager
async def tapped(
    upstream: HostPort, out: Path, *, frame_limit: int = 1 << 24, **options: Any
) -> AsyncIterator[Tap]:
    async with Tap((LOOPBACK, 0), upstream, out, frame_limit=frame_limit, **options) as tap:
        yield tap
    assert tap.stats.failures == 0
    assert tap.stats.open_connections == 0


async def settled(condition: Callable[[], bool]) -> None:
    """Wait until the tap has noticed an event. Only the test's own timeout limits the wait."""
    while not condition():  # noqa: ASYNC110  # counts have no events
        await asyncio.sleep(0.002)


Streams = dict[tuple[int, int], bytes]


def captured(paths: Iterable[Path]) -> Streams:
    """Return the bytes of each (source port, destination port), read by an independent reader."""
    streams: defaultdict[tuple[int, int], bytes] = defaultdict(bytes)
    for path in sorted(paths):
        with path.open("rb") as file:
            for _, raw in dpkt.pcapng.Reader(file):
                segment = dpkt.ip.IP(raw).data
                assert isinstance(segment, dpkt.tcp.TCP)
                streams[segment.sport, segment.dport] += bytes(segment.data)
    return dict(streams)
