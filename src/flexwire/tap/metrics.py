"""A port at which a monitor asks how a tap does: HTTP, of which one question is known.

Ours and not a library's: the counts are already there, so a registry would only repeat them, and
what prometheus-client brings as a server has a thread for each connection and no bound on time or
bytes. What asks here may be anybody on the machine, and the tap has other things to do.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from flexwire.client.notation import HostPort
from flexwire.errors import TapError
from flexwire.tap.listening import Listener, begin, resolved
from flexwire.tap.openmetrics import CONTENT_TYPE
from flexwire.tap.saying import Saying

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

log = logging.getLogger("flexwire.tap")

MOST_HEAD_BYTES: Final = 8 * 1024
"""A longer request is not read to its end."""
MOST_CONNECTIONS: Final = 16
"""A connection beyond these is closed at once."""
_SECONDS: Final = 5.0
_PATH: Final = b"/metrics"
_HEAD_ENDS: Final = b"\r\n\r\n"
_CLOSE_SECONDS: Final = 1.0


class MetricsPort:
    """Answers ``GET /metrics`` from `start` until `close`.

    It listens on loopback only, unless ``beyond_loopback``; a port of 0 takes any free one.
    ``seconds`` is what a connection may take from its first byte to its last.
    """

    def __init__(
        self,
        address: HostPort | tuple[str, int],
        *,
        beyond_loopback: bool = False,
        seconds: float = _SECONDS,
    ) -> None:
        self._address = HostPort(*address)
        self._render: Callable[[], bytes] = bytes
        self._beyond_loopback = beyond_loopback
        self._seconds = seconds
        self._listener: Listener | None = None
        self._answering: dict[asyncio.Task[None], socket.socket] = {}
        self._saying = Saying(log)

    @property
    def address(self) -> HostPort:
        """Where it listens, with the port that was really taken."""
        return self._address

    async def start(self, render: Callable[[], bytes]) -> None:
        """Begin to answer with what ``render`` gives.

        Raises `TapError` where it cannot listen, or would beyond loopback without being told to.
        """
        self._render = render
        try:
            host = await resolved(self._address)
            if not self._beyond_loopback and not ip_address(host).is_loopback:
                raise TapError(
                    f"expected a loopback address for metrics, got {self._address}; others than "
                    "this machine are let in by --metrics-beyond-loopback"
                )
            self._listener = Listener(host, self._address.port, self._accepted)
        except (OSError, ValueError) as error:
            raise TapError(f"cannot listen on {self._address} for metrics: {error}") from error
        self._address = HostPort(host, self._listener.port)

    async def close(self) -> None:
        """Answer nobody any more."""
        if self._listener is not None:
            await self._listener.close()
        left = dict(self._answering)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        for client in left.values():
            client.close()
        self._saying.close()

    def _accepted(self, client: socket.socket) -> None:
        if len(self._answering) >= MOST_CONNECTIONS:
            client.close()
            return
        task = asyncio.create_task(self._answer(client))
        self._answering[task] = client
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._answering.pop(task).close()
        if not task.cancelled() and (error := task.exception()) is not None:
            told = "metrics were not given, by a defect in the tap"
            self._saying.say(logging.ERROR, told, told, error=error)

    async def _answer(self, client: socket.socket) -> None:
        # A monitor that leaves early, sends too much or takes too long gets nothing more.
        with suppress(OSError, EOFError, asyncio.LimitOverrunError):
            loop = asyncio.get_running_loop()
            reader = asyncio.StreamReader(MOST_HEAD_BYTES, loop)
            protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
            transport = await begin(client, protocol, None, _CLOSE_SECONDS)
            writer = asyncio.StreamWriter(transport, protocol, reader, loop)
            try:
                async with asyncio.timeout(self._seconds):
                    head = await reader.readuntil(_HEAD_ENDS)
                    writer.write(self._answer_to(head))
                    await writer.drain()
            finally:
                await _close(writer)

    def _answer_to(self, head: bytes) -> bytes:
        method, _, rest = head.partition(b"\r\n")[0].partition(b" ")
        target, _, protocol = rest.partition(b" ")
        if not protocol.startswith(b"HTTP/1."):
            return _response("400 Bad Request")
        if target.partition(b"?")[0] != _PATH:
            return _response("404 Not Found")
        if method not in {b"GET", b"HEAD"}:
            return _response("405 Method Not Allowed", b"", "Allow: GET, HEAD\r\n")
        body = self._render()
        whole = _response("200 OK", body, f"Content-Type: {CONTENT_TYPE}\r\n")
        return whole[: -len(body)] if method == b"HEAD" else whole


def _response(status: str, body: bytes = b"", fields: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\n{fields}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


async def _close(writer: asyncio.StreamWriter) -> None:
    """Close, once what was written is sent; drop a peer that does not take it in time."""
    writer.close()
    closed = asyncio.ensure_future(writer.wait_closed())
    try:
        await asyncio.wait({closed}, timeout=_CLOSE_SECONDS)
    finally:
        if not closed.done():
            writer.transport.abort()
        with suppress(OSError):
            await closed
