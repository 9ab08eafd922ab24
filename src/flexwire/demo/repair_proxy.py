"""A proxy in front of each mock broker that repairs the mock's incorrect responses.

ApiVersions: the mock supports versions 0 to 2. For a later version, KIP-511 requires the error
UNSUPPORTED_VERSION and the broker's own versions, in the layout of version 0. Instead, the mock's
answer contains a compact count that is off by one, and no tag sections. This body is not valid in
any version. librdkafka reads only its error code and continues, but kafka-python 3 decodes the
complete body and fails.

Metadata: in flexible versions, the mock writes the last tag section twice, so an extra byte follows
the message. Clients ignore this byte, but a strict decoder does not.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
import threading
from typing import TYPE_CHECKING, TypeVar

from flexwire.codec import message
from flexwire.errors import DecodeError, FlexwireError, FrameError, UnknownMessageError
from flexwire.protocol import Conversation, FrameSplitter, parse_response

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence


_METADATA, _API_VERSIONS = 3, 18
_UNSUPPORTED_VERSION = 35
_FIRST_FLEXIBLE = {_METADATA: 9, _API_VERSIONS: 3}
# The fields are the correlation id, the error code, 1, the API key, the lowest and the highest
# version, and the throttle time.
_WRONG_FALLBACK = struct.Struct(">ihbhhhi")
# The fields are the correlation id, the error code, the count, the API key, and the lowest and the
# highest version.
_RIGHT_FALLBACK = struct.Struct(">ihihhh")
_EMPTY_TAG_SECTION = b"\0"


def may_need_repair(api_key: int, api_version: int) -> bool:
    """Return whether the mock may send an incorrect response to such a request."""
    return api_version >= _FIRST_FLEXIBLE.get(api_key, api_version + 1)


def repair(payload: bytes, api_key: int, api_version: int) -> bytes:
    """Return the repaired response, or the response itself if neither fault occurs.

    >>> repair(bytes.fromhex("00000001 0023 01 0012 0000 0002 00000000"), 18, 4).hex(" ", 2)
    '0000 0001 0023 0000 0001 0012 0000 0002'
    """
    if api_key == _API_VERSIONS:
        return _repair_fallback(payload)
    if api_key == _METADATA:
        return _repair_end(payload, api_version)
    return payload


def _repair_fallback(payload: bytes) -> bytes:
    if len(payload) != _WRONG_FALLBACK.size:
        return payload
    correlation_id, error, count, api_key, lowest, highest, _ = _WRONG_FALLBACK.unpack(payload)
    if (error, count, api_key) != (_UNSUPPORTED_VERSION, 1, _API_VERSIONS):
        return payload
    return _RIGHT_FALLBACK.pack(correlation_id, error, 1, api_key, lowest, highest)


def _repair_end(payload: bytes, api_version: int) -> bytes:
    try:
        frame = parse_response(payload, _METADATA, api_version)
        kind = message(frame.message_name)
        _, end = kind.decode_prefix(payload, frame.body_version, frame.body_offset)
    except (DecodeError, FrameError, UnknownMessageError):
        return payload
    return payload[:end] if payload[end:] == _EMPTY_TAG_SECTION else payload


_T = TypeVar("_T")
_CHUNK = 65536
_SECONDS = 60.0


class RepairProxy:
    """Listeners on 127.0.0.1, one for each broker address, all of which run in one separate thread.

    ``addresses`` are the listeners' addresses, in the order of the brokers. Requests are forwarded
    unchanged, as are responses that `repair` does not change.
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
            raise FlexwireError("the mock cluster's proxy did not respond in time") from error

    async def _listen(self, host: str, port: int) -> tuple[str, int]:
        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(_serve(host, port, reader, writer))
            self._connections.add(task)

            def done(task: asyncio.Task[None]) -> None:
                # The task itself does not make this call, because a task that is canceled before it
                # begins never runs.
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


class _RepairedConnection:
    """Forward the traffic of one connection, and repair incorrect responses."""

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
    """Forward one connection until either side closes it or sends bytes that are not frames."""
    with contextlib.suppress(ConnectionError, FrameError):
        broker_reader, broker_writer = await asyncio.open_connection(host, port)
        with contextlib.closing(broker_writer):
            repairs = _RepairedConnection()
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
