"""A door before each mock broker: the responses that the mock writes wrong are put right."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, TypeVar

from flexwire.demo.repairs import may_need_repair, repair
from flexwire.errors import FlexwireError, FrameError
from flexwire.protocol import Conversation, FrameSplitter

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

_T = TypeVar("_T")
_CHUNK = 65536
_SECONDS = 60.0


class Front:
    """One listener on a port of 127.0.0.1 for each broker address, served by a thread of its own.

    ``addresses`` are the listeners', in the order of the brokers. Requests pass unchanged, and so
    do the responses that `repair` leaves alone.
    """

    def __init__(self, brokers: Sequence[tuple[str, int]]) -> None:
        self._loop = asyncio.new_event_loop()
        self._connections: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="flexwire-mock-front", daemon=True
        )
        self._thread.start()
        self.addresses = [self._run(self._listen(host, port)) for host, port in brokers]

    def close(self) -> None:
        """Close the listeners and every connection."""
        if self._loop.is_closed():
            return
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_SECONDS)
        self._loop.close()

    def _run(self, work: Coroutine[None, None, _T]) -> _T:
        try:
            return asyncio.run_coroutine_threadsafe(work, self._loop).result(_SECONDS)
        except TimeoutError as error:
            raise FlexwireError("the mock cluster's front did not answer in time") from error

    async def _listen(self, host: str, port: int) -> tuple[str, int]:
        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(_serve(host, port, reader, writer))
            self._connections.add(task)

            def done(task: asyncio.Task[None]) -> None:
                # Not in the task itself: one that is cancelled before it begins does nothing.
                writer.close()
                self._connections.discard(task)

            task.add_done_callback(done)

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        self._servers.append(server)
        listening: tuple[str, int] = server.sockets[0].getsockname()
        return listening

    async def _stop(self) -> None:
        for server in self._servers:
            server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        for server in self._servers:
            await server.wait_closed()


class _Repairs:
    """Passes on what is said over one connection, with the responses that need it repaired."""

    def __init__(self) -> None:
        self._conversation = Conversation()

    async def requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        splitter = FrameSplitter()
        while data := await reader.read(_CHUNK):
            for payload in splitter.feed(data):
                self._conversation.request(payload)
            writer.write(data)
            await writer.drain()

    async def responses(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        splitter = FrameSplitter()
        while data := await reader.read(_CHUNK):
            for payload in splitter.feed(data):
                asked = self._conversation.response(payload).request
                right = payload
                if asked is not None and may_need_repair(asked.api_key, asked.api_version):
                    right = repair(payload, asked.api_key, asked.api_version)
                writer.write(len(right).to_bytes(4, "big") + right)
            await writer.drain()


async def _serve(
    host: str, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Carry one connection until either side closes it, or sends what is not frames."""
    with contextlib.suppress(ConnectionError, FrameError):
        broker_reader, broker_writer = await asyncio.open_connection(host, port)
        with contextlib.closing(broker_writer):
            repairs = _Repairs()
            sides = [
                asyncio.ensure_future(repairs.requests(reader, broker_writer)),
                asyncio.ensure_future(repairs.responses(broker_reader, writer)),
            ]
            try:
                done, _ = await asyncio.wait(sides, return_when=asyncio.FIRST_COMPLETED)
                for side in done:
                    side.result()
            finally:
                for side in sides:
                    side.cancel()
                await asyncio.gather(*sides, return_exceptions=True)
